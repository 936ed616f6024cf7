//! Starting and ending.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use super::running::Running;
use crate::support::{Sandbox, entries};

#[test]
fn both_protocols_answer_and_the_data_is_there_after_a_restart() {
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "");
    assert!(server.ready.contains("0 edges"), "{}", server.ready);
    assert!(server.ready.contains("authentication is off"), "{}", server.ready);
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/readyz").status, 200);
    let written = server.ask("POST", "/v1/users/2/follow", Some("1"), &[], None);
    assert_eq!((written.status, written.token.is_some()), (204, true), "{written:?}");
    assert_eq!(server.redis("SISMEMBER following:1 2"), ":1");
    assert_eq!(server.redis("SADD following:3 1"), ":1");
    assert_eq!(server.get("/v1/users/3/following/1").json()["following"], true);
    let metrics = server.get("/metrics").body;
    // Two writes, one list entry, and no bulk of checks.
    for (layer, count) in [("writer_queue", 2), ("log_sync", 2), ("rows", 1), ("index", 0)] {
        let line = format!("kinfolk_layer_duration_seconds_count{{layer=\"{layer}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    assert!(metrics.contains("kinfolk_edges 2"), "{metrics}");
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0, "{said:?}");

    let server = Running::start(&sandbox, "");
    assert!(server.ready.contains("2 edges"), "{}", server.ready);
    assert_eq!(server.redis("SISMEMBER following:3 1"), ":1");
    assert_eq!(server.end("INT").0, 0);
    assert_eq!(sandbox.export("kinfolk-data").lines().count(), 3);
}

#[test]
fn a_folder_has_one_owner_and_others_are_told_to_ask_it() {
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "");
    let message = sandbox.fails("check 1 2", 1);
    assert!(message.contains("open in another") && message.contains("--url"), "{message}");
    let run = Running::try_start(&sandbox, "").err().unwrap();
    assert_eq!(run.status, 1);
    assert!(run.stderr.contains("open in another"), "{run:?}");
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn a_taken_port_is_told_before_anything_is_done() {
    let sandbox = Sandbox::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for (http, resp, flag) in [
        (address.to_string(), "127.0.0.1:0".to_owned(), "--http"),
        ("127.0.0.1:0".to_owned(), address.to_string(), "--resp"),
    ] {
        let message = sandbox.fails(&format!("serve --http {http} --resp {resp}"), 1);
        assert!(message.contains(&format!("{address} is in use")) && message.contains(flag), "{message}");
    }
    assert!(entries(&sandbox.path("")).is_empty());
}

#[test]
fn without_authentication_only_this_machine_is_served() {
    let sandbox = Sandbox::new();
    for (http, resp) in [("0.0.0.0:0", "127.0.0.1:0"), ("127.0.0.1:0", "[::]:0")] {
        let message = sandbox.fails(&format!("serve --http {http} --resp {resp}"), 1);
        assert!(message.contains("authentication is off"), "{message}");
    }
    assert!(entries(&sandbox.path("")).is_empty());
}

#[test]
fn kinds_of_ids_are_chosen_at_the_first_start() {
    let sandbox = Sandbox::new();
    let (one, other) = ("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c");
    let server = Running::start(&sandbox, "--ids uuid");
    assert_eq!(server.redis(&format!("SADD following:{one} {other}")), ":1");
    assert_eq!(server.get("/v1/users/7/counts").status, 400);
    assert_eq!(server.end("TERM").0, 0);
    let run = Running::try_start(&sandbox, "--ids integer").err().unwrap();
    assert!(run.stderr.contains("uses uuid ids"), "{run:?}");
}

#[test]
fn a_stop_while_draining_is_seen_by_load_balancers_and_a_second_one_is_obeyed() {
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "--drain 1h");
    server.ask("POST", "/v1/users/2/follow", Some("1"), &[], None);
    server.signal("TERM");
    server.line_with("stopping");
    assert_eq!(server.get("/readyz").status, 503);
    assert_eq!(server.get("/v1/users/1/following/2").status, 200, "requests are still answered");
    // Signals that arrive together are one request.
    std::thread::sleep(Duration::from_millis(1_100));
    let (status, said) = server.end("TERM");
    assert_eq!(status, 1);
    assert!(said.iter().any(|line| line.contains("second signal")), "{said:?}");
    assert_eq!(sandbox.export("kinfolk-data").lines().count(), 2);
}

#[test]
fn a_signal_sent_twice_in_a_row_is_one_request() {
    // As `timeout` sends it. Several times: the first may be over before the server looks for a second.
    for _ in 0..5 {
        let sandbox = Sandbox::new();
        let server = Running::start(&sandbox, "");
        let id = server.process().to_string();
        assert!(Command::new("kill").args(["-TERM", &id, &id]).status().unwrap().success());
        let (status, said) = server.wait();
        assert_eq!(status, 0, "{said:?}");
    }
}

#[test]
fn the_demo_shows_and_serves() {
    let sandbox = Sandbox::new();
    sandbox.write("temporary", "");
    let mut command = sandbox.command(["demo", "--edges", "20000", "--once"]);
    std::fs::create_dir(sandbox.path("tmp")).unwrap();
    let output = command.env("TMPDIR", sandbox.path("tmp")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("user 1 follows") && shown.contains("newest followers of user 1"), "{shown}");
    assert!(shown.contains("of its followees follow"), "{shown}");
    let lines_below = |heading: &str| {
        let found = shown.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
        found.take_while(|line| !line.is_empty()).count()
    };
    assert_eq!(lines_below("home feed of user"), 3, "{shown}");
    assert_eq!(lines_below("comments on the newest post:"), 6, "{shown}");
    assert!(shown.contains(": What do you cook when nobody is watching?\n"), "{shown}");
    assert!(shown.contains(": Toast, butter, one anchovy. Repeat.\n    "), "{shown}");
    assert!(entries(&sandbox.path("tmp")).is_empty(), "the folder is removed");
}

#[test]
fn the_calls_that_the_demo_shows_work() {
    use std::io::{BufRead, BufReader};
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("tmp")).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let arguments = ["demo", "--edges", "20000", "--http", &address, "--resp", "127.0.0.1:0", "--quiet"];
    let mut command = sandbox.command(arguments);
    command.env("TMPDIR", sandbox.path("tmp")).stdout(std::process::Stdio::piped());
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let shown: Vec<String> = lines.take_while(|line| !line.starts_with("Ctrl-C")).collect();
    assert!(shown.iter().any(|line| line.contains("taking free ports")), "{shown:?}");
    assert!(
        shown.iter().any(|line| line.starts_with("Look around in a browser: http://127.0.0.1:")),
        "{shown:?}"
    );
    let calls: Vec<&String> = shown.iter().filter(|line| line.starts_with("  curl")).collect();
    assert_eq!(calls.len(), 5, "{shown:?}");
    if Command::new("curl").arg("--version").output().is_ok() {
        let answers: Vec<String> = calls
            .iter()
            .map(|call| {
                let output = Command::new("sh").args(["-c", call]).output().unwrap();
                String::from_utf8(output.stdout).unwrap()
            })
            .collect();
        assert!(answers[0].contains("\"following\":true"), "{answers:?}");
        assert!(answers[1].contains("204"), "{answers:?}");
        assert!(answers[2].contains("\"mutual_count\""), "{answers:?}");
        assert_eq!(answers[3].matches("\"created_at\"").count(), 3, "{answers:?}");
        assert_eq!(answers[4].matches("\"body\"").count(), 9, "{answers:?}");
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    assert!(entries(&sandbox.path("tmp")).is_empty(), "the folder is removed");
}

#[test]
fn the_demo_prints_results_and_addresses_as_json() {
    use std::io::{BufRead, BufReader};
    let sandbox = Sandbox::new();
    let arguments = ["demo", "--edges", "2000", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--json"];
    let mut command = sandbox.command(arguments);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let documents: Vec<serde_json::Value> =
        lines.take(2).map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert_eq!(documents[0]["edges"], 2_000);
    assert_eq!(documents[0]["feed"].as_array().unwrap().len(), 3);
    assert!(documents[1]["http"].as_str().unwrap().starts_with("http://127.0.0.1:"));
    assert!(documents[1]["redis"].as_str().unwrap().starts_with("redis://127.0.0.1:"));
    let (http, fan) = (documents[1]["http"].as_str().unwrap(), documents[0]["fan"].as_str().unwrap());
    assert_eq!(documents[1]["console"], format!("{http}/console/users/{fan}"));

    let changes = sandbox.json(&format!("changes --limit 1000 --url {http}"));
    let changes = changes["items"].as_array().unwrap();
    let types: BTreeSet<&str> = changes.iter().map(|change| change["type"].as_str().unwrap()).collect();
    let all = "comment comment_deleted comment_edited comment_purged comment_removed comments_locked \
               comments_unlocked dismiss follow imported post post_deleted unfollow";
    assert_eq!(types.into_iter().collect::<Vec<_>>().join(" "), all);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}
