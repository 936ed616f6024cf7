//! Stores that have given out times from far ahead: they say so, and a restore leads back.

use std::process::Stdio;

use kinfolk_core::{Clock, SystemClock};

use crate::serve::running::Running;
use crate::support::Sandbox;

const YEAR_MS: u64 = 365 * 24 * 3_600_000;

fn year(text: &str) -> u32 {
    text[..4].parse().unwrap()
}

#[test]
fn a_clock_that_was_ahead_is_reported_and_can_be_left_behind() {
    let sandbox = Sandbox::new();
    let clock = sandbox.write("clock", (70 * YEAR_MS).to_string());
    let mut command = sandbox.command(["apply"]);
    command.env("KINFOLK_TEST_CLOCK_FILE", &clock).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut apply = command.spawn().unwrap();
    std::io::Write::write_all(&mut apply.stdin.take().unwrap(), b"follow 1 2\n").unwrap();
    assert!(apply.wait().unwrap().success());

    let server = Running::start(&sandbox, "");
    let said = server.line_with("far ahead of the clock");
    assert!(said.contains("--clamp-times"), "says what to do: {said}");
    let metrics = server.get("/metrics").body;
    let behind = metrics.lines().find_map(|line| line.strip_prefix("kinfolk_clock_behind_seconds ")).unwrap();
    assert!(behind.parse::<f64>().unwrap() > 69.0 * 365.0 * 24.0 * 3_600.0, "{behind}");
    server.ask("POST", "/v1/users/3/follow", Some("1"), &[], None);
    let now = year(&SystemClock.now().to_string());
    let since = |server: &Running, followee: u64| {
        let answer = server.get(&format!("/v1/users/1/following/{followee}")).json();
        year(answer["since"].as_str().unwrap())
    };
    assert!(since(&server, 3) > now + 60, "times never go back");
    assert_eq!(server.end("TERM").0, 0);

    sandbox.ok("backup ahead.backup");
    sandbox.ok("restore ahead.backup --clamp-times --data restored");
    let server = Running::start(&sandbox, "--data restored");
    server.ask("POST", "/v1/users/4/follow", Some("1"), &[], None);
    for followee in 2..=4 {
        assert!(since(&server, followee) <= now + 1);
    }
    assert!(server.get("/metrics").body.contains("\nkinfolk_clock_behind_seconds 0\n"));
    assert_eq!(server.end("TERM").0, 0);
    sandbox.ok("verify --data restored");
    // Without it, a restore brings back what was there.
    sandbox.ok("restore ahead.backup --data as-it-was");
    assert_eq!(sandbox.export("as-it-was"), sandbox.export("kinfolk-data"));
}

/// The clock is wrong before anything is written: it is not believed, and the start says so.
#[test]
fn a_start_in_another_century_is_not_believed() {
    let sandbox = Sandbox::new();
    sandbox.ok("follow 1 2");
    let clock = sandbox.write("clock", (70 * YEAR_MS).to_string());
    let start = |more: &[&str]| {
        let mut command = sandbox.command(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
        command.args(more).env("KINFOLK_TEST_CLOCK_FILE", &clock);
        Running::from_command(command).unwrap_or_else(|run| panic!("{run:?}"))
    };
    let now = year(&SystemClock.now().to_string());
    let follow = |server: &Running, followee: u64| {
        server.ask("POST", &format!("/v1/users/{followee}/follow"), Some("1"), &[], None);
        let answer = server.get(&format!("/v1/users/1/following/{followee}")).json();
        year(answer["since"].as_str().unwrap())
    };
    let server = start(&[]);
    assert!(follow(&server, 3) <= now + 1);
    server.line_with("clock.gap_max");
    assert_eq!(server.end("TERM").0, 0);
    // An operator who knows better can say so.
    let server = start(&["--clock-gap-max", "0"]);
    assert!(follow(&server, 4) > now + 60);
    assert_eq!(server.end("TERM").0, 0);
}
