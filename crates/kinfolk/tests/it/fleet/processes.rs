//! Several processes of one fleet: two that serve the API, and one that projects.

use serde_json::{Value, json};

use super::databases::Databases;
use crate::serve::running::{PATIENCE, Running};
use crate::support::Run;

/// Asks until the answer is there: what other processes do is seen a moment later.
pub(super) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(std::time::Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_write_on_one_process_is_read_on_another() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let [one, other] = [(); 2].map(|()| Running::start(&sandbox, "--role api"));
    let followed = one.ask("POST", "/v1/users/2/follow", Some("1"), &[], None);
    assert_eq!(followed.status, 204, "{followed:?}");
    let token = followed.token.unwrap();
    let fresh = [("Kinfolk-Token", token.as_str())];
    let read = |path: &str| other.ask("GET", path, None, &fresh, None);
    // The follower's shard has the edge, whether or not anybody projects.
    assert_eq!(read("/v1/users/1/following/2").json()["following"], true);
    let late = read("/v1/users/2/followers");
    assert_eq!((late.status, &late.json()["code"]), (503, &json!("not_yet_visible")));
    // Nobody projects: without a token, what is over two seconds old is not shown. Everything else is served.
    let refused =
        |path: &str| eventually(path, || Some(other.get(path)).filter(|answer| answer.status == 503)).json();
    assert_eq!(refused("/v1/users/2/counts")["code"], "unavailable");
    assert_eq!(other.get("/readyz").status, 200);

    let project = Running::start(&sandbox, "--role project");
    assert_eq!(
        eventually("followers", || Some(read("/v1/users/2/followers")).filter(|read| read.status == 200))
            .json()["items"][0]["id"],
        "1"
    );
    assert_eq!(read("/v1/users/2/counts").json(), json!({"id": "2", "following": 0, "followers": 1}));
    assert_eq!(other.redis("SCARD followers:2"), ":1");

    // Over the Redis protocol and the command line as well.
    assert!(other.redis("FOLLOW 3 2").starts_with('$'));
    let written = sandbox.json(&format!("follow 4 2 {}", one.url()));
    let token = written["token"].as_str().unwrap();
    let counted = sandbox.ok(&format!("counts 2 --json --token={token} {}", other.url()));
    assert_eq!(serde_json::from_str::<Value>(&counted).unwrap()["followers"], 3);

    let status = eventually("three processes", || {
        let status = sandbox.json("fleet status");
        (status["processes"].as_array().unwrap().len() == 3).then_some(status)
    });
    let roles: Vec<&str> = status["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| process["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["api", "api", "project"]);
    for server in [one, other, project] {
        let (code, said) = server.end("TERM");
        assert_eq!(code, 0, "{said:?}");
    }
}

#[test]
fn a_process_that_projects_serves_only_its_own_state() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let project = Running::start(&sandbox, "--role project");
    assert_eq!(project.resp, "", "{}", project.ready);
    assert_eq!(["/healthz", "/readyz"].map(|path| project.get(path).status), [200, 200]);
    assert_eq!(project.get("/v1/users/1/counts").status, 404);
    let metrics = eventually("metrics of the hosts", || {
        Some(project.get("/metrics").body).filter(|text| text.contains("kinfolk_fleet_changes_behind 0"))
    });
    for line in ["kinfolk_fleet_hosts 2", "kinfolk_fleet_hosts_unreachable 0", "kinfolk_fleet_shards 4"] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    assert_eq!(project.end("TERM").0, 0);
}

#[test]
fn what_a_fleet_lacks_is_501_and_the_document_says_so() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let server = Running::start(&sandbox, "");
    for (method, path) in [
        ("POST", "/v1/posts"),
        ("GET", "/v1/posts/1"),
        ("GET", "/v1/users/1/feed"),
        ("GET", "/v1/posts/1/comments"),
        ("GET", "/v1/admin/backup"),
        ("POST", "/v1/admin/compact"),
        ("POST", "/v1/admin/suggest"),
    ] {
        let answer = server.ask(method, path, Some("1"), &[], None);
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (501, &json!("not_available")),
            "{method} {path}"
        );
    }
    assert!(server.redis("FEED 1").starts_with("-ERR the feed API is not available"));
    let document = server.get("/openapi.json").json();
    let described = document["info"]["description"].as_str().unwrap();
    for missing in ["feeds", "comments", "backups", "compaction", "suggestion-runs"] {
        assert!(
            described.contains(&format!("has no {missing}: operations with x-capability {missing}")),
            "{described}"
        );
    }
    assert_eq!(document["paths"]["/v1/admin/backup"]["get"]["x-not-available"], true);
    assert_eq!(document["paths"]["/v1/users/{id}/suggestions"]["get"]["x-not-available"], Value::Null);
    for line in ["post 1", "feed 1", "backup graph.backup", "compact", "suggest"] {
        let message = sandbox.fails(&format!("{line} {}", server.url()), 1);
        assert!(message.contains("not available"), "{line}: {message}");
    }
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn changes_of_all_shards_are_streamed_by_every_process() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    let [one, other] = [(); 2].map(|()| Running::start(&sandbox, ""));
    for follower in 1..=20 {
        let server = if follower % 2 == 0 { &one } else { &other };
        assert!(server.redis(&format!("FOLLOW {follower} 100")).starts_with('$'));
    }
    let run = |server: &Running, line: &str| -> Run { sandbox.run(&format!("{line} {}", server.url())) };
    let mut changes = run(&one, "changes --json").stdout;
    assert_eq!(changes.matches("\"type\":\"follow\"").count(), 20, "{changes}");
    let shards = ["\"0-1\"", "\"1-1\"", "\"2-1\"", "\"3-1\""];
    assert!(shards.iter().all(|first| changes.contains(first)), "{changes}");
    let page: Value = serde_json::from_str(&changes).unwrap();
    let next = page["next"].as_str().unwrap();
    changes = run(&other, &format!("changes --json --after {next}")).stdout;
    assert!(!changes.contains("follow"), "{changes}");
    for server in [one, other] {
        assert_eq!(server.end("INT").0, 0);
    }
}
