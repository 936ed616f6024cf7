//! Whether a process of a fleet should be sent requests.

use super::databases::Databases;
use super::processes::eventually;
use crate::serve::running::{Answer, Running};
use crate::support::Sandbox;

#[test]
fn a_process_whose_clock_is_ahead_is_not_ready_and_says_why() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let clock = sandbox.write("clock", "0");
    let mut command = sandbox.command(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
    command.env("KINFOLK_TEST_CLOCK_FILE", &clock);
    let server = Running::from_command(command).unwrap_or_else(|run| panic!("{run:?}"));
    let ready = |status: u16| -> Answer {
        eventually("readiness", || Some(server.get("/readyz")).filter(|answer| answer.status == status))
    };
    ready(200);
    sandbox.write("clock", "60000");
    let problem = ready(503).json();
    assert_eq!(problem["code"], "not_ready");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("the clock of this process is") && detail.contains("ahead of host"), "{detail}");
    server.line_with("not ready");
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/v1/users/1/counts").status, 200, "those who ask are served");
    sandbox.write("clock", "0");
    ready(200);
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn a_process_is_ready_when_it_has_its_filters() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let server = Running::start(&sandbox, "--role api --fleet-filter-memory 1MiB");
    assert_eq!(server.get("/readyz").status, 200);
    let metrics = server.get("/metrics").body;
    assert!(metrics.lines().any(|line| line == "kinfolk_fleet_filter_shards 4"), "{metrics}");
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn a_process_that_stops_serves_for_a_while_and_says_that_it_stops() {
    let Some(databases) = Databases::create() else { return };
    // With the default.
    let sandbox = Sandbox::configured(&databases.configuration().replace("drain = \"0 s\"", ""));
    sandbox.ok("fleet init --shards 4");
    let server = Running::start(&sandbox, "--role api");
    server.signal("TERM");
    server.line_with("stopping");
    let refused = server.get("/readyz");
    assert_eq!((refused.status, &refused.json()["code"]), (503, &"not_ready".into()));
    assert!(refused.body.contains("this process is stopping"), "{refused:?}");
    assert_eq!(server.get("/v1/users/1/counts").status, 200);
    assert_eq!(server.redis("SISMEMBER following:1 2"), ":0");
    let (status, said) = server.wait();
    assert_eq!(status, 0, "{said:?}");
    // What nobody sends requests to does not wait.
    assert_eq!(Running::start(&sandbox, "--role project").end("TERM").0, 0);
}
