//! Processes of a fleet that are stopped and started under load: one by one, without a failed request; and one that is killed, at
//! which only requests in flight may fail. `KINFOLK_ROLLING_ROUNDS` restarts every process so often, for recorded runs.

mod balancer;
mod client;
mod load;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use self::balancer::{Backend, Balancer};
use self::client::HttpClient;
use self::load::{Outcome, over_resp, over_rest};
use super::databases::Databases;
use super::kafka;
use super::processes::eventually;
use crate::serve::running::Running;
use crate::support::Sandbox;

const REST_CLIENTS: u64 = 3;
const CLIENTS: u64 = 5;

/// Long enough for the load balancer to notice, also on a busy machine.
const API: &str = "--role api --drain 5s --limit-changes none";

/// The pairs of one check.
const PAIRS: usize = 500;

/// A process that serves, as the load balancer knows it.
struct Api {
    server: Running,
    backend: Arc<Backend>,
}

impl Api {
    fn start(sandbox: &Sandbox, balancer: &Balancer) -> Self {
        let server = Running::start(sandbox, API);
        let backend = balancer.add(&server);
        Self { server, backend }
    }

    /// Ends it with a signal; its status.
    fn end(self, balancer: &Balancer, signal: &str) -> i32 {
        let (status, _) = self.server.end(signal);
        balancer.remove(&self.backend);
        status
    }

    fn wait_until_ready(&self) {
        eventually("a started process is ready", || self.backend.is_ready().then_some(()));
    }
}

/// Ends threads, also when a test panics.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// What becomes of the requests of all clients while `act` runs.
fn under_load(balancer: &Balancer, apis: &mut Vec<Api>, act: impl FnOnce(&mut Vec<Api>)) -> Outcome {
    let (load_ends, asking_ends) = (&AtomicBool::new(false), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _asking = Ends(asking_ends);
        scope.spawn(move || balancer.ask_until(asking_ends));
        apis.iter().for_each(Api::wait_until_ready);
        let loading = Ends(load_ends);
        let client = |number| {
            let run = if number < REST_CLIENTS { over_rest } else { over_resp };
            scope.spawn(move || run(balancer, number, load_ends))
        };
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        act(apis);
        drop(loading);
        let outcomes = clients.into_iter().map(|client| client.join().unwrap());
        outcomes.fold(Outcome::default(), Outcome::and)
    })
}

/// Every acknowledged write is there, and both directions agree.
fn assert_nothing_is_lost(sandbox: &Sandbox, api: &Api, outcome: &Outcome) {
    assert!(!outcome.acknowledged.is_empty());
    let mut client = HttpClient::default();
    for edges in outcome.acknowledged.chunks(PAIRS) {
        let pairs: Vec<[String; 2]> =
            edges.iter().map(|(follower, followee, _)| [follower, followee].map(u64::to_string)).collect();
        let body = json!({ "pairs": pairs }).to_string();
        let found = client.send(&api.backend.http, "POST /v1/check", &[], &body).unwrap().json();
        let expected: Vec<bool> = edges.iter().map(|(.., exists)| *exists).collect();
        assert_eq!(found["results"], json!(expected));
    }
    let report: Value = sandbox.json(&format!("verify {}", api.server.url()));
    assert_eq!(report["difference_count"], 0, "{report}");
    let Outcome { requests, late, slowest, .. } = outcome;
    let edges = outcome.acknowledged.len();
    println!(
        "{requests} requests, {edges} edges, {late} reads tried again, the slowest request took {slowest:?}"
    );
}

#[test]
fn processes_are_restarted_one_by_one_without_a_failed_request() {
    let Some(databases) = Databases::create() else { return };
    let rounds = std::env::var("KINFOLK_ROLLING_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap());
    let with_kafka = kafka::fleet(&databases);
    let roles: &[&str] = if with_kafka.is_some() { &["project", "relay"] } else { &["project"] };
    let sandbox = with_kafka.unwrap_or_else(|| databases.fleet());
    let start = |role: &str| Running::start(&sandbox, &format!("--role {role}"));
    // Two of each, so that one may be away.
    let mut others: Vec<(&str, Running)> =
        roles.iter().chain(roles).map(|&role| (role, start(role))).collect();
    let balancer = Balancer::default();
    let mut apis: Vec<Api> = (0..3).map(|_| Api::start(&sandbox, &balancer)).collect();
    let outcome = under_load(&balancer, &mut apis, |apis| {
        for _ in 0..rounds {
            for _ in 0..apis.len() {
                assert_eq!(apis.remove(0).end(&balancer, "TERM"), 0);
                apis.push(Api::start(&sandbox, &balancer));
                apis.iter().for_each(Api::wait_until_ready);
            }
            for _ in 0..others.len() {
                let (role, server) = others.remove(0);
                let (status, said) = server.end("TERM");
                assert_eq!(status, 0, "{role}: {said:?}");
                others.push((role, start(role)));
            }
        }
    });
    let failed: Vec<&str> = outcome.failures.iter().map(|failure| failure.what.as_str()).collect();
    assert!(failed.is_empty(), "{} of {}: {failed:?}", failed.len(), outcome.requests);
    assert_eq!(outcome.refused, 0, "a process that says that it is ready accepts connections");
    assert_nothing_is_lost(&sandbox, &apis[0], &outcome);
}

#[test]
fn a_killed_process_loses_only_the_requests_that_it_was_serving() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let _project = Running::start(&sandbox, "--role project");
    let balancer = Balancer::default();
    let mut apis: Vec<Api> = (0..3).map(|_| Api::start(&sandbox, &balancer)).collect();
    let mut killed = String::new();
    let outcome = under_load(&balancer, &mut apis, |apis| {
        let api = apis.remove(0);
        killed = api.backend.http.clone();
        assert_ne!(api.end(&balancer, "KILL"), 0);
        apis.push(Api::start(&sandbox, &balancer));
        apis.iter().for_each(Api::wait_until_ready);
    });
    // A client has one request at a time.
    assert!(outcome.failures.len() <= CLIENTS as usize, "{:?}", outcome.failures);
    let is_lost_with_it = |failure: &load::Failure| failure.is_broken && failure.http == killed;
    assert!(outcome.failures.iter().all(is_lost_with_it), "killed {killed}: {:?}", outcome.failures);
    assert_nothing_is_lost(&sandbox, &apis[0], &outcome);
}
