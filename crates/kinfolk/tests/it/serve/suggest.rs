//! Suggestions of a server: computed when they are due, stopped with it, gone on with after it.

use std::time::Instant;

use serde_json::Value;

use super::running::{PATIENCE, Running};
use crate::suggest::sandbox;
use crate::support::Sandbox;

fn computed_at(server: &Running) -> Value {
    server.get("/v1/users/1/suggestions").json()["computed_at"].clone()
}

/// A figure of the server.
fn figure(server: &Running, name: &str) -> f64 {
    let metrics = server.get("/metrics").body;
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
}

#[test]
fn they_are_computed_again_and_again() {
    let sandbox = sandbox();
    let server = Running::start(&sandbox, "--suggest-every 1s");
    server.line_with("computed suggestions for all users");
    let first = computed_at(&server);
    assert!(first.is_string());
    server.line_with("computed suggestions for all users");
    assert!(computed_at(&server).as_str() > first.as_str());
    assert!(figure(&server, "kinfolk_suggest_started_timestamp_seconds") > 0.0);
    assert_eq!(server.end("TERM").0, 0);

    // The next one is due long after the one before, whatever happened in between.
    let server = Running::start(&sandbox, "--suggest-every 12h");
    assert!(computed_at(&server).is_string(), "they survive");
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0);
    assert!(!said.iter().any(|line| line.contains("computing suggestions")), "{said:?}");
}

#[test]
fn without_a_schedule_they_are_found_by_walks() {
    let sandbox = sandbox();
    let server = Running::start(&sandbox, "--suggest-every 0 --suggest-per-node 1");
    let found = server.get("/v1/users/1/suggestions").json();
    assert!(found.get("computed_at").is_none());
    assert_eq!(found["items"][0]["id"], "10", "the newest whom 1 follows is 4, who follows 10 last by id");
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn what_is_too_old_is_not_served() {
    let sandbox = sandbox();
    sandbox.ok("suggest");
    let server = Running::start(&sandbox, "--suggest-every 0 --suggest-fresh 0");
    let found = server.get("/v1/users/1/suggestions").json();
    assert!(found.get("computed_at").is_none(), "{found}");
    assert_eq!(found["items"][0]["id"], "10");
    assert_eq!(server.end("TERM").0, 0);
}

/// Ends a server in the middle of a run; false if it was done before.
fn end_half_way(sandbox: &Sandbox) -> bool {
    let server = Running::start(sandbox, "--suggest-every 500ms --suggest-threads 1");
    let began = Instant::now();
    while figure(&server, "kinfolk_suggest_users_done") == 0.0 {
        assert!(began.elapsed() < PATIENCE, "nothing is computed");
    }
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0, "{said:?}");
    said.iter().any(|line| line.contains("stopped computing suggestions"))
}

#[test]
fn a_run_ends_with_the_server_and_goes_on_with_the_next() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate edges.csv --edges 400000 --users 30000");
    sandbox.ok("import edges.csv");
    assert!((0..20).any(|_| end_half_way(&sandbox)), "it can be stopped half-way");
    // Due in twelve hours, but for what was stopped.
    let server = Running::start(&sandbox, "");
    let said = server.line_with("computed suggestions for all users");
    let resumed = said.split("resumed=").nth(1).unwrap().split_whitespace().next().unwrap();
    assert_ne!(resumed, "0", "{said}");
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn a_server_computes_as_it_is_set_and_as_it_is_asked() {
    let sandbox = sandbox();
    let server = Running::start(&sandbox, "--suggest-every 0 --suggest-keep 1");
    let suggest = |line: &str| -> Value {
        let run = sandbox.run(&format!("suggest {line} --json {}", server.url()));
        assert_eq!(run.status, 0, "{run:?}");
        serde_json::from_str(&run.stdout).unwrap()
    };
    let count = || server.get("/v1/users/1/suggestions").json()["items"].as_array().unwrap().len();
    let report = suggest("");
    assert_eq!(report["complete"], true, "{report}");
    assert_eq!(count(), 1);
    suggest("--keep 3 --per-node 0 --ranking jaccard --threads 2 --afresh");
    assert_eq!(count(), 3);
    assert!(computed_at(&server).is_string());
    let refused = sandbox.run(&format!("suggest --per-node 1000001 {}", server.url())).failure(2);
    assert!(refused.contains("per_node"), "{refused}");
    assert_eq!(server.end("TERM").0, 0);
}
