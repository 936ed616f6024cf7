//! Changes that are too old to be kept, by the clock and without any writes, and what consumers get instead.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::running::{PATIENCE, Running};
use crate::support::Sandbox;

fn follow(server: &Running, followee: u64) -> String {
    let answer = server.ask("POST", &format!("/v1/users/{followee}/follow"), Some("1"), &[], None);
    assert_eq!(answer.status, 204, "{answer:?}");
    answer.token.unwrap()
}

fn await_trimmed(server: &Running, position: u64) {
    let expected = format!("\nkinfolk_log_position_trimmed {position}\n");
    let deadline = Instant::now() + PATIENCE;
    while !server.get("/metrics").body.contains(&expected) {
        assert!(Instant::now() < deadline, "an idle server does not trim its log up to {position}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The status of a stream that goes on after a token.
fn stream_status(server: &Running, token: &str) -> String {
    let mut stream = TcpStream::connect(server.http.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /v1/changes/stream HTTP/1.1\r\nhost: localhost\r\nlast-event-id: {token}\r\n\r\n")
        .unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.next().unwrap()
}

fn require_expired(sandbox: &Sandbox, server: &Running, token: &str) {
    let answer = server.get(&format!("/v1/changes?after={token}"));
    assert_eq!((answer.status, &answer.json()["code"]), (410, &"position_expired".into()), "{answer:?}");
    assert!(stream_status(server, token).contains(" 410 "));
    let message = sandbox.fails(&format!("changes --after {token} {}", server.url()), 1);
    assert!(message.contains("no longer kept") && message.contains("read the graph again"), "{message}");
}

#[test]
fn an_idle_server_forgets_old_changes_and_says_so_everywhere() {
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "--log-keep 1s");
    let tokens: Vec<String> = (2..=5).map(|followee| follow(&server, followee)).collect();
    await_trimmed(&server, 4);
    require_expired(&sandbox, &server, &tokens[0]);
    // A consumer that has seen everything has missed nothing.
    assert_eq!(server.get(&format!("/v1/changes?after={}", tokens[3])).status, 200);
    assert!(stream_status(&server, &tokens[3]).contains(" 200 "));
    assert!(sandbox.ok(&format!("changes --after {} {}", tokens[3], server.url())).starts_with("next "));
    assert_eq!(server.end("TERM").0, 0);
    let message = sandbox.fails(&format!("changes --after {}", tokens[0]), 1);
    assert!(message.contains("no longer kept"), "{message}");
    assert_eq!(sandbox.export("kinfolk-data").lines().count(), 5);
}

#[test]
fn what_was_kept_for_long_ages_after_a_restart_without_a_write() {
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "--log-keep 7d");
    let tokens: Vec<String> = (2..=5).map(|followee| follow(&server, followee)).collect();
    assert_eq!(server.end("TERM").0, 0);
    let server = Running::start(&sandbox, "--log-keep 7d");
    assert_eq!(server.get(&format!("/v1/changes?after={}", tokens[0])).json()["items"][2]["position"], "0-4");
    server.end("KILL");
    let server = Running::start(&sandbox, "--log-keep 1s");
    await_trimmed(&server, 4);
    require_expired(&sandbox, &server, &tokens[0]);
    assert_eq!(server.get("/v1/users/1/counts").json()["following"], 4);
    follow(&server, 6);
    assert_eq!(server.end("TERM").0, 0);
    assert_eq!(sandbox.export("kinfolk-data").lines().count(), 6);
    sandbox.ok("verify");
}

/// The clock of the machine jumps ahead and back: nothing goes too early.
#[test]
fn a_clock_that_jumps_trims_nothing() {
    let sandbox = Sandbox::new();
    let clock = sandbox.path("clock");
    let mut command = sandbox.command([
        "serve",
        "--http",
        "127.0.0.1:0",
        "--resp",
        "127.0.0.1:0",
        "--log-keep",
        "6h",
        "--log-level",
        "info",
    ]);
    command.env("KINFOLK_TEST_CLOCK_FILE", &clock);
    let server = Running::from_command(command).unwrap_or_else(|run| panic!("{run:?}"));
    follow(&server, 2);
    std::fs::write(&clock, (10 * 365 * 24 * 3_600_000_i64).to_string()).unwrap();
    server.line_with("too far ahead to be right");
    let ahead = server.get("/metrics").body;
    let ahead = ahead.lines().find_map(|line| line.strip_prefix("kinfolk_clock_ahead_seconds ")).unwrap();
    assert!(ahead.parse::<f64>().unwrap() > 9.9 * 365.0 * 24.0 * 3_600.0, "{ahead}");
    let year = |server: &Running, followee: u64| {
        let path = format!("/v1/users/1/following/{followee}");
        server.get(&path).json()["since"].as_str().unwrap()[..4].parse::<u32>().unwrap()
    };
    follow(&server, 3);
    assert!(year(&server, 3) <= year(&server, 2) + 1);
    std::fs::write(&clock, "0").unwrap();
    server.line_with("plausible again");
    follow(&server, 4);
    assert!(server.get("/metrics").body.contains("\nkinfolk_log_position_trimmed 0\n"));
    assert!(server.get("/metrics").body.contains("\nkinfolk_clock_ahead_seconds 0\n"));
    assert_eq!(server.get("/v1/changes").json()["items"].as_array().unwrap().len(), 3);
    assert_eq!(server.end("TERM").0, 0);
}
