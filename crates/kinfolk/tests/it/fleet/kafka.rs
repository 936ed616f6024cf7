//! The roles of a fleet with Kafka in the middle. Runs where `KINFOLK_TEST_KAFKA` names brokers, too.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use super::databases::Databases;
use super::processes::eventually;
use crate::serve::running::Running;
use crate::support::Sandbox;

/// A fleet of four shards with a topic of its own. None if the environment names no brokers.
pub(super) fn fleet(databases: &Databases) -> Option<Sandbox> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let brokers = std::env::var("KINFOLK_TEST_KAFKA").ok();
    let is_required = std::env::var_os("KINFOLK_REQUIRE_KAFKA").is_some();
    assert!(brokers.is_some() || !is_required, "set KINFOLK_TEST_KAFKA to the address of a broker");
    let topic = format!("binary.{}.{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let configuration = format!(
        "{}\n[kafka]\nbrokers = \"{}\"\ntopic = \"{topic}\"\nreplication = 1\n",
        databases.configuration(),
        brokers?
    );
    let sandbox = Sandbox::configured(&configuration);
    sandbox.ok("fleet init --shards 4");
    Some(sandbox)
}

#[test]
fn a_write_reaches_the_follower_side_through_its_roles() {
    let Some(databases) = Databases::create() else { return };
    let Some(sandbox) = fleet(&databases) else { return };
    let api = Running::start(&sandbox, "--role api");
    let [relay, project] =
        ["relay", "project"].map(|role| Running::start(&sandbox, &format!("--role {role}")));
    assert_eq!([&relay, &project].map(|server| server.get("/readyz").status), [200, 200]);
    assert_eq!(relay.get("/v1/users/1/counts").status, 404);
    for number in 1..=8 {
        let followed = api.ask("POST", "/v1/users/0/follow", Some(&number.to_string()), &[], None);
        assert_eq!(followed.status, 204, "{followed:?}");
    }
    eventually("all followers", || {
        Some(api.get("/v1/users/0/counts").json()).filter(|counts| counts["followers"] == 8)
    });
    let status = eventually("everything is relayed", || {
        let status = sandbox.json("fleet status --shards");
        (status["not_relayed"] == 0).then_some(status)
    });
    let marks = status["shard_marks"].as_array().unwrap();
    let sum = |mark: &str| marks.iter().map(|shard| shard[mark].as_u64().unwrap()).sum::<u64>();
    assert_eq!(["newest", "relayed", "projected"].map(sum), [8, 8, 8], "{status}");
    assert!(marks.iter().all(|shard| shard["relay"].is_string()), "{status}");
    let text = sandbox.ok("fleet status --shards");
    let epoch = &status["epoch"];
    assert!(text.contains(&format!("4 shards, integer ids, epoch {epoch}, 0 changes not relayed")), "{text}");

    let metrics = eventually("metrics of the shards", || {
        Some(relay.get("/metrics").body).filter(|text| text.contains("kinfolk_fleet_shards_without_relay 0"))
    });
    for line in ["kinfolk_fleet_relay_late 0", "kinfolk_fleet_shards 4"] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    assert!(metrics.contains("kinfolk_fleet_shard_relayed{shard=\"3\"}"), "{metrics}");
    for server in [relay, project, api] {
        let (code, said) = server.end("TERM");
        assert_eq!(code, 0, "{said:?}");
    }
    let status = sandbox.json("fleet status --shards");
    assert!(status["shard_marks"][0]["relay"].is_null(), "{status}");
}

#[test]
fn checks_of_edges_that_do_not_exist_end_in_the_filter() {
    const NO: &str = "kinfolk_fleet_filter_checks_total{verdict=\"no\"} ";
    let Some(databases) = Databases::create() else { return };
    let Some(sandbox) = fleet(&databases) else { return };
    let servers = ["--role api --fleet-filter-memory 1MiB", "--role api", "--role relay"]
        .map(|flags| Running::start(&sandbox, flags));
    let [api, other, _relay] = &servers;
    assert_eq!(other.redis("SADD following:1 2"), ":1");
    eventually("a filter that has it all", || {
        assert_eq!(api.redis("SISMEMBER following:1 3"), ":0");
        let metrics = api.get("/metrics").body;
        metrics.lines().find_map(|line| line.strip_prefix(NO)).filter(|count| *count != "0").map(drop)
    });
    assert_eq!(api.redis("SADD following:1 3"), ":1");
    assert_eq!(api.redis("SISMEMBER following:1 3"), ":1", "what was written here is visible at once");
    assert_eq!(api.redis("SISMEMBER following:1 2"), ":1");
    assert!(!other.get("/metrics").body.contains("kinfolk_fleet_filter"), "without memory there is none");
    for server in servers {
        let (code, said) = server.end("TERM");
        assert_eq!(code, 0, "{said:?}");
    }
}

#[test]
fn a_process_may_do_everything() {
    let Some(databases) = Databases::create() else { return };
    let Some(sandbox) = fleet(&databases) else { return };
    let server = Running::start(&sandbox, "");
    let followed = server.ask("POST", "/v1/users/2/follow", Some("1"), &[], None);
    let token = followed.token.unwrap();
    let fresh = [("Kinfolk-Token", token.as_str())];
    let counts = eventually("the follower", || {
        Some(server.ask("GET", "/v1/users/2/counts", None, &fresh, None))
            .filter(|answer| answer.status == 200)
    });
    assert_eq!(counts.json(), json!({"id": "2", "following": 0, "followers": 1}));
    eventually("the change is relayed", || (sandbox.json("fleet status")["not_relayed"] == 0).then_some(()));
    assert_eq!(server.end("TERM").0, 0);
}

/// A process starts without Kafka: the follower side comes from the logs, and a relay says why it is not ready.
#[test]
fn kafka_may_be_away_when_a_process_starts() {
    let Some(databases) = Databases::create() else { return };
    let nobody =
        format!("{}\n[kafka]\nbrokers = \"127.0.0.1:1\"\nreplication = 1\n", databases.configuration());
    let sandbox = Sandbox::configured(&nobody);
    sandbox.ok("fleet init --shards 4");
    let relay = Running::start(&sandbox, "--role relay");
    let refused =
        eventually("not ready", || Some(relay.get("/readyz")).filter(|answer| answer.status == 503));
    assert!(refused.body.contains("Kafka"), "{}", refused.body);
    let [api, project] = ["api", "project"].map(|role| Running::start(&sandbox, &format!("--role {role}")));
    assert_eq!(api.ask("POST", "/v1/users/2/follow", Some("1"), &[], None).status, 204);
    eventually("the follower", || {
        Some(api.get("/v1/users/2/counts").json()).filter(|counts| counts["followers"] == 1)
    });
    for server in [relay, project, api] {
        let (code, said) = server.end("TERM");
        assert_eq!(code, 0, "{said:?}");
    }
}
