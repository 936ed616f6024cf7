//! Rate limits over two processes of one fleet. Runs where `KINFOLK_TEST_REDIS_CLUSTER` names nodes, too.

use super::databases::Databases;
use super::processes::eventually;
use crate::serve::running::Running;
use crate::support::Sandbox;

/// What a key may do in an hour.
const BURST: u32 = 20;

/// The nodes to test with. Without them there is nothing to test, unless `KINFOLK_REQUIRE_REDIS` is set.
fn nodes() -> Option<String> {
    let named = std::env::var("KINFOLK_TEST_REDIS_CLUSTER").ok();
    let is_required = std::env::var_os("KINFOLK_REQUIRE_REDIS").is_some();
    assert!(named.is_some() || !is_required, "set KINFOLK_TEST_REDIS_CLUSTER to the addresses of nodes");
    named
}

/// A fleet with nodes of Redis.
struct Limited {
    sandbox: Sandbox,
    /// Sees the metrics, and has no limit.
    observer: String,
}

impl Limited {
    fn new(databases: &Databases, nodes: &str) -> Self {
        let configuration = format!("{}\n[redis]\nnodes = \"{nodes}\"\n", databases.configuration());
        let sandbox = Sandbox::configured(&configuration);
        sandbox.ok("fleet init --shards 4");
        let observer = new_key(&sandbox, &["--scopes", "read,write,admin"]);
        Self { sandbox, observer }
    }

    /// A new key that may do `BURST` requests in an hour.
    fn limited_key(&self) -> String {
        let limit = format!("{BURST}/h burst {BURST}");
        new_key(&self.sandbox, &["--scopes", "read,write", "--limit", &limit])
    }

    fn start(&self) -> Running {
        Running::start(&self.sandbox, "--role api --auth-keys keys.toml")
    }

    /// The value of a metric.
    fn metric(&self, server: &Running, name: &str) -> u64 {
        let answer = server.ask("GET", "/metrics", None, &[("Authorization", &self.observer)], None);
        let found = answer.body.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("no {name}: {answer:?}"))
    }

    /// As [`is_admitted`]; if it is, waits until the process has exchanged since.
    fn is_admitted_and_exchanged(&self, server: &Running, key: &str) -> bool {
        let before = self.metric(server, EXCHANGED);
        let is_admitted = is_admitted(server, key);
        if is_admitted {
            eventually("an exchange", || (self.metric(server, EXCHANGED) > before).then_some(()));
        }
        is_admitted
    }
}

/// A new key, as the header of a request.
fn new_key(sandbox: &Sandbox, options: &[&str]) -> String {
    let line = [&["keys", "add", "service", "--file", "keys.toml"], options].concat();
    let output = sandbox.command(line).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    format!("Bearer {}", String::from_utf8(output.stdout).unwrap().trim())
}

/// Whether a request of a key is admitted.
fn is_admitted(server: &Running, key: &str) -> bool {
    let answer = server.ask("GET", "/v1/users/1/following/2", None, &[("Authorization", key)], None);
    assert!([200, 429].contains(&answer.status), "{answer:?}");
    answer.status == 200
}

const EXCHANGED: &str = "kinfolk_fleet_budget_exchanges_total{outcome=\"exchanged\"}";
const FAILED: &str = "kinfolk_fleet_budget_exchanges_total{outcome=\"failed\"}";

/// How often something is so, until it is not.
fn count_while(mut is_so: impl FnMut() -> bool) -> u32 {
    (0..).take_while(|_| is_so()).count() as u32
}

#[test]
fn two_processes_admit_what_the_limit_of_a_key_allows() {
    let Some((databases, nodes)) = Databases::create().zip(nodes()) else { return };
    let fleet = Limited::new(&databases, &nodes);
    let keys = [(); 3].map(|()| fleet.limited_key());
    let [one, other] = [(); 2].map(|()| fleet.start());
    // Alternating: each process learns what the other has admitted. An exchange that was on its way may lack the newest request.
    let mut admitted = 0;
    let pairs = count_while(|| {
        let of_both =
            [&one, &other].map(|server| u32::from(fleet.is_admitted_and_exchanged(server, &keys[0])));
        admitted += of_both.iter().sum::<u32>();
        of_both != [0, 0]
    });
    assert!((BURST..BURST + BURST / 2).contains(&admitted), "{admitted} requests in {pairs} pairs");
    // All of it on one process: others learn with their first requests that nothing is left.
    assert_eq!(count_while(|| fleet.is_admitted_and_exchanged(&one, &keys[1])), BURST);
    let third = fleet.start();
    for server in [&other, &third] {
        let late = count_while(|| fleet.is_admitted_and_exchanged(server, &keys[1]));
        assert!(late < BURST / 2, "{late} requests too many");
    }
    // A key that was not used has all of its budget.
    assert!(is_admitted(&third, &keys[2]));
    for server in [one, other, third] {
        let (code, said) = server.end("TERM");
        assert_eq!(code, 0, "{said:?}");
    }
}

#[test]
fn without_redis_each_process_limits_by_itself() {
    let Some(databases) = Databases::create() else { return };
    let fleet = Limited::new(&databases, "127.0.0.1:1");
    let key = fleet.limited_key();
    let servers = [(); 2].map(|()| fleet.start());
    for server in &servers {
        assert_eq!(count_while(|| is_admitted(server, &key)), BURST);
        server.line_with("limits its callers by itself");
        eventually("failed exchanges", || (fleet.metric(server, FAILED) > 1).then_some(()));
        assert!(!is_admitted(server, &key));
        assert_eq!(fleet.metric(server, EXCHANGED), 0);
    }
    for server in servers {
        let (code, said) = server.end("TERM");
        assert_eq!(code, 0, "{said:?}");
    }
}
