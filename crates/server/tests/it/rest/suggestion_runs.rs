//! People you may know, computed for everyone.

use serde_json::{Value, json};

use super::server::Server;
use super::suggestions::{server, suggested};

const HOUR_MILLIS: u64 = 60 * 60 * 1_000;

fn last_line(server: &Server, path: &str) -> Value {
    let answer = server.request("POST", path, &[], b"");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/x-ndjson")));
    serde_json::from_str(answer.text().lines().last().unwrap()).unwrap()
}

#[test]
fn stored_suggestions_are_served_while_they_are_fresh() {
    let server = server();
    let report = last_line(&server, "/v1/admin/suggest?keep=2&threads=1");
    assert_eq!(report["result"]["complete"], true, "{report}");
    assert_eq!((&report["result"]["users"], &report["result"]["suggested"]), (&json!(4), &json!(1)));
    assert_eq!(report["result"]["resumed"], 0);

    let walks = server.watch.walks();
    let found = server.read("/v1/users/1/suggestions");
    assert_eq!(found["items"].as_array().unwrap().len(), 2);
    assert_eq!(found["computed_at"], "2026-11-15T08:00:00.123Z");
    server.follow(1, 10);
    assert_eq!(suggested(&server, "/v1/users/1/suggestions"), ["11"]);
    assert_eq!(server.watch.walks(), walks);

    server.clock.advance(25 * HOUR_MILLIS);
    let found = server.read("/v1/users/1/suggestions");
    assert_eq!((found.get("computed_at"), found["items"].as_array().unwrap().len()), (None, 2));
    let metrics = server.get("/metrics");
    for line in [
        "kinfolk_suggestions_served_total{source=\"stored\"} 2",
        "kinfolk_suggestions_served_total{source=\"walk\"} 1",
    ] {
        assert!(metrics.text().lines().any(|known| known == line), "{line}");
    }
    let counted = |operation: &str| {
        let name =
            format!("kinfolk_request_duration_seconds_count{{protocol=\"rest\",operation=\"{operation}\"}}");
        metrics.text().lines().find_map(|line| line.strip_prefix(&name)).map(|count| count.trim().to_owned())
    };
    assert_eq!((counted("suggestions"), counted("suggest")), (Some("3".into()), Some("1".into())));
}

#[test]
fn the_best_are_what_the_ranking_says() {
    let server = server();
    // Many follow 10, so that what user 1 shares with it is a smaller part.
    (50..60).for_each(|follower| drop(server.follow(follower, 10)));
    for (ranking, expected) in [("count", "10"), ("adamic-adar", "10"), ("jaccard", "11")] {
        let path = format!("/v1/admin/suggest?ranking={ranking}&keep=1&per_node=500&afresh=true");
        assert_eq!(last_line(&server, &path)["result"]["complete"], true);
        assert_eq!(suggested(&server, "/v1/users/1/suggestions"), [expected], "{ranking}");
    }
    for query in [
        "ranking=best",
        "ranking=",
        "keep=0",
        "keep=1001",
        "per_node=-1",
        "per_node=1000001",
        "threads=0",
        "threads=257",
        "afresh=yes",
        "users=1",
    ] {
        let answer = server.request("POST", &format!("/v1/admin/suggest?{query}"), &[], b"");
        assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()), "{query}");
    }
}

#[test]
fn a_client_that_leaves_stops_the_work_for_everyone() {
    let server = server();
    server.watch.make_walks_endless();
    let mut connection = server.connect();
    connection.begin("POST", "/v1/admin/suggest", &[("content-length", "0")]);
    assert_eq!(connection.head().unwrap().0, 200);
    let line = String::from_utf8(connection.chunk().unwrap().unwrap()).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line, json!({"progress": {"stage": "suggesting", "done": 1, "total": 2}}));
    assert_eq!(server.watch.walks(), (1, 0));
    drop(connection);
    server.watch.await_walks((1, 1));
}
