//! `kinfolk shards`, `shards move`, `shards balance` and `fleet new-epoch`, beside processes that serve.

use serde_json::json;

use super::databases::Databases;
use super::processes::eventually;
use crate::serve::running::Running;
use crate::support::Sandbox;

/// The host of each shard.
fn hosts(sandbox: &Sandbox) -> Vec<String> {
    let shards = sandbox.json("shards");
    let shards = shards["shards"].as_array().unwrap();
    shards.iter().map(|shard| shard["host"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn shards_are_moved_beside_processes_that_serve() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let [one, other] = ["--role api", "--role all"].map(|flags| Running::start(&sandbox, flags));
    for follower in 1..=40 {
        assert!(one.redis(&format!("FOLLOW {follower} 100")).starts_with('$'));
    }
    assert_eq!(hosts(&sandbox), ["a", "b", "a", "b"]);
    assert!(sandbox.ok("shards balance").contains("spread evenly"));

    let moved = sandbox.ok("shards move 1 a");
    assert!(moved.starts_with("moved shard 1 to host a in "), "{moved}");
    assert_eq!(hosts(&sandbox), ["a", "a", "a", "b"]);
    let text = sandbox.ok("shards");
    assert!(text.starts_with("shard  host  newest  behind\n    0  a "), "{text}");
    // Processes that were not told find out.
    for server in [&one, &other] {
        let following = (1..=40).filter(|id| server.redis(&format!("SISMEMBER following:{id} 100")) == ":1");
        assert_eq!(following.count(), 40);
        assert!(server.redis("FOLLOW 41 100").starts_with('$'));
    }
    let counted = || Some(one.redis("SCARD followers:100")).filter(|count| count == ":41");
    eventually("the followers", counted);

    let plan = sandbox.json("shards balance");
    assert_eq!(plan["moves"], json!([{"shard": 2, "from": "a", "to": "b"}]));
    assert!(sandbox.ok("shards balance --run").contains("moved shard 2 to host b"));
    assert_eq!(hosts(&sandbox), ["a", "a", "b", "b"]);
    let verified = sandbox.json(&format!("verify {}", other.url()));
    assert_eq!((&verified["edges"], &verified["difference_count"]), (&json!(41), &json!(0)));

    assert!(sandbox.fails("shards move 1 a", 1).contains("is on host a already"));
    assert!(sandbox.fails("shards move 1 c", 1).contains("has no host c"));
    assert!(sandbox.fails("shards move 9 a", 1).contains("no shard 9"));
    assert!(sandbox.fails("shards move 1 --abort", 1).contains("is not being moved"));
    assert!(sandbox.fails("shards move 1", 2).contains("the host is missing"));
    assert!(Sandbox::new().fails("shards", 2).contains("no fleet is configured"));
    for server in [one, other] {
        assert_eq!(server.end("TERM").0, 0);
    }
}

#[test]
fn a_new_epoch_refuses_old_tokens_and_keeps_the_graph() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let server = Running::start(&sandbox, "--role all");
    let followed = server.ask("POST", "/v1/users/2/follow", Some("1"), &[], None);
    let token = followed.token.unwrap();
    let begun = sandbox.ok("fleet new-epoch");
    assert!(begun.starts_with("epoch ") && begun.ends_with("are refused\n"), "{begun}");
    let fresh = [("Kinfolk-Token", token.as_str())];
    let refused = eventually("a refusal", || {
        let read = server.ask("GET", "/v1/users/1/following/2", None, &fresh, None);
        Some(read).filter(|read| read.status != 200)
    });
    assert_eq!(refused.status, 400, "{refused:?}");
    assert_eq!(server.get("/v1/users/1/following/2").json()["following"], true);
    let counts = || Some(server.get("/v1/users/2/counts")).filter(|answer| answer.status == 200);
    assert_eq!(eventually("counts", counts).json()["followers"], 1);
    assert_eq!(server.ask("POST", "/v1/users/3/follow", Some("1"), &[], None).status, 204);
    assert_eq!(server.end("TERM").0, 0);
}
