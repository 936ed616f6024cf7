//! The cache and the filters of the binary: who answers checks, and what outlives a restart. Runs where `KINFOLK_TEST_REDIS_CLUSTER`
//! names nodes, too.

use serde_json::{Value, json};

use super::databases::Databases;
use super::processes::eventually;
use crate::serve::running::Running;
use crate::support::Sandbox;

/// The nodes to test with. Without them there is nothing to test, unless `KINFOLK_REQUIRE_REDIS` is set.
fn nodes() -> Option<String> {
    let nodes = std::env::var("KINFOLK_TEST_REDIS_CLUSTER").ok();
    let is_required = std::env::var_os("KINFOLK_REQUIRE_REDIS").is_some();
    assert!(
        nodes.is_some() || !is_required,
        "set KINFOLK_TEST_REDIS_CLUSTER to the addresses of a Redis Cluster"
    );
    nodes
}

/// A fleet of four shards with some nodes of Redis.
fn fleet(databases: &Databases, nodes: &str) -> Sandbox {
    let redis = format!("[redis]\nnodes = \"{nodes}\"\ntimeout = \"500 ms\"\n");
    let sandbox = Sandbox::configured(&format!("{}\n{redis}", databases.configuration()));
    sandbox.ok("fleet init --shards 4");
    sandbox
}

fn follow(server: &Running, from: u64, to: u64) {
    let followed = server.ask("POST", &format!("/v1/users/{to}/follow"), Some(&from.to_string()), &[], None);
    assert_eq!(followed.status, 204, "{followed:?}");
}

fn check(server: &Running, pairs: &Value) -> Value {
    let body = json!({ "pairs": pairs }).to_string();
    let checked = server.ask("POST", "/v1/check", None, &[], Some(&body));
    assert_eq!(checked.status, 200, "{checked:?}");
    checked.json()["results"].clone()
}

/// The value of a line of metrics.
fn metric(server: &Running, line: &str) -> u64 {
    let text = server.get("/metrics").body;
    let value = text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse().unwrap())
}

#[test]
fn checks_are_answered_by_layers_that_operators_can_see() {
    let Some((databases, nodes)) = Databases::create().zip(nodes()) else { return };
    let sandbox = fleet(&databases, &nodes);
    let api = Running::start(&sandbox, "--role api --fleet-filter-memory 1MiB --fleet-filter-folder filters");
    let project = Running::start(&sandbox, "--role project");
    (1..=20).for_each(|from| follow(&api, from, 100 + from));
    let pairs = json!([["1", "101"], ["2", "101"], ["2", "102"], ["3", "999"]]);
    let of_cache = "kinfolk_fleet_cache_checks_total{verdict=\"yes\"}";
    let of_filter = "kinfolk_fleet_filter_checks_total{verdict=\"no\"}";
    eventually("the cache and the filters answer", || {
        assert_eq!(check(&api, &pairs), json!([true, false, true, false]));
        (metric(&api, of_cache) > 0 && metric(&api, of_filter) > 0).then_some(())
    });
    let status = eventually("a process reports its checks", || {
        check(&api, &pairs);
        let status = sandbox.json("fleet status");
        let has_reported = |line: &&Value| line["role"] == "api" && line["filter"].as_u64() > Some(0);
        status["checks"].as_array()?.iter().find(has_reported).cloned()
    });
    assert!(status["cache"].as_u64() > Some(0), "{status}");
    let text = sandbox.ok("fleet status");
    assert!(text.contains("checks of") && text.contains(" %"), "{text}");
    // Stopped and started again, a process reads its filters from their files.
    let (code, _) = api.end("TERM");
    assert_eq!(code, 0);
    let files = std::fs::read_dir(sandbox.path("filters")).unwrap().count();
    assert_eq!(files, 4, "one for each shard");
    let api = Running::start(&sandbox, "--role api --fleet-filter-memory 1MiB --fleet-filter-folder filters");
    eventually("the filters answer again", || {
        assert_eq!(check(&api, &pairs), json!([true, false, true, false]));
        (metric(&api, of_filter) > 0).then_some(())
    });
    drop(project);
}

#[test]
fn sets_are_saved_and_warm_an_empty_cache() {
    let Some((databases, nodes)) = Databases::create().zip(nodes()) else { return };
    let sandbox = fleet(&databases, &nodes);
    let server = Running::start(&sandbox, "");
    (1..=20).for_each(|from| follow(&server, from, 100 + from));
    let saved = sandbox.ok("fleet save-sets sets");
    assert!(saved.starts_with("saved 20 following sets to sets"), "{saved}");
    assert!(sandbox.fails("fleet save-sets sets", 1).contains("sets"), "a file is never replaced");
    let warmed = sandbox.json("fleet warm sets");
    // One whose reply came too late is sent again, and present then.
    let warm = ["stored", "present"].iter().filter_map(|outcome| warmed[outcome].as_u64()).sum::<u64>();
    assert_eq!((warm, &warmed["failed"]), (20, &json!(0)), "{warmed}");
    eventually("the cache answers", || {
        assert_eq!(check(&server, &json!([["7", "107"], ["7", "108"]])), json!([true, false]));
        (metric(&server, "kinfolk_fleet_cache_checks_total{verdict=\"yes\"}") > 0).then_some(())
    });
    assert_eq!(metric(&server, "kinfolk_fleet_cache_fills_total{outcome=\"stored\"}"), 0);
    sandbox.write("other", "not sets");
    assert!(sandbox.fails("fleet warm other", 1).contains("damaged or cut off"));
    assert!(sandbox.fails("fleet warm missing", 1).contains("missing can't be read"));
}

#[test]
fn settings_of_redis_that_cannot_work_are_refused() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let refusals = [
        ("--redis-nodes nowhere", "nowhere is not HOST:PORT"),
        ("--redis-nodes 127.0.0.1:1 --redis-keep 0s", "redis.keep must be 1 s at least"),
        ("--redis-nodes 127.0.0.1:1 --redis-username me", "redis.username needs redis.password"),
    ];
    for (flags, reason) in refusals {
        let Err(run) = Running::try_start(&sandbox, flags) else { panic!("it started with {flags}") };
        assert!(run.status == 1 && run.stderr.contains(reason), "{flags}: {run:?}");
    }
    // Nodes that do not answer only make checks slower.
    let server = Running::start(&sandbox, "--redis-nodes 127.0.0.1:1");
    follow(&server, 1, 2);
    assert_eq!(check(&server, &json!([["1", "2"], ["2", "1"]])), json!([true, false]));
    assert!(metric(&server, "kinfolk_fleet_cache_checks_total{verdict=\"unreachable\"}") > 0);
}
