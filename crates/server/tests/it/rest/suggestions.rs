//! People you may know: asked for, dismissed, and computed for everyone.

use std::net::Shutdown;
use std::time::Duration;

use kinfolk_server::rest::RestSettings;
use serde_json::{Value, json};

use super::client::Connection;
use super::server::Server;

const HOUR_MILLIS: u64 = 60 * 60 * 1_000;

/// User 1 follows 2, 3 and 4. All of them follow 10, two of them 11, one of them 12.
fn server() -> Server {
    // Only a client that leaves ends a walk.
    let server =
        Server::with(RestSettings { request_timeout: Duration::from_secs(600), ..RestSettings::default() });
    for followee in [2, 3, 4] {
        server.follow(1, followee);
        server.follow(followee, 10);
    }
    for (followee, candidate) in [(2, 11), (3, 11), (4, 12)] {
        server.follow(followee, candidate);
    }
    server
}

fn suggested(server: &Server, path: &str) -> Vec<String> {
    let items = server.read(path)["items"].clone();
    items.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

fn last_line(server: &Server, path: &str) -> Value {
    let answer = server.request("POST", path, &[], b"");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/x-ndjson")));
    serde_json::from_str(answer.text().lines().last().unwrap()).unwrap()
}

#[test]
fn suggestions_say_through_whom() {
    let server = server();
    let found = server.read("/v1/users/1/suggestions");
    // Each in between has three edges: one that leads to it and two that lead on.
    let weight = 1.0 / 3_f64.ln();
    let item = |at: usize| &found["items"][at];
    assert_eq!(item(0)["id"], "10");
    assert_eq!((&item(0)["mutual_count"], &item(0)["via"]), (&json!(3), &json!(["2", "3", "4"])));
    assert!((item(0)["score"].as_f64().unwrap() - 3.0 * weight).abs() < 1e-6, "{found}");
    assert_eq!(item(0)["jaccard"], json!(1.0));
    assert_eq!((&item(1)["id"], &item(1)["via"]), (&json!("11"), &json!(["2", "3"])));
    assert_eq!((&item(2)["id"], &item(2)["mutual_count"]), (&json!("12"), &json!(1)));
    assert_eq!((found.get("computed_at"), found["items"].as_array().unwrap().len()), (None, 3));

    assert_eq!(suggested(&server, "/v1/users/1/suggestions?limit=1"), ["10"]);
    assert_eq!(server.read("/v1/users/77/suggestions"), json!({"items": []}));
}

#[test]
fn what_is_followed_or_dismissed_is_not_suggested() {
    let server = server();
    let token = server.follow(1, 11);
    assert_eq!(suggested(&server, "/v1/users/1/suggestions"), ["10", "12"]);
    let dismissed = server.act(1, "DELETE", "/v1/users/1/suggestions/10");
    assert_eq!((dismissed.status, dismissed.body.len()), (204, 0));
    assert_eq!(dismissed.header("kinfolk-changed"), Some("true"));
    assert_ne!(dismissed.header("kinfolk-token"), Some(token.as_str()));
    let again = server.act(1, "DELETE", "/v1/users/1/suggestions/10");
    assert_eq!((again.status, again.header("kinfolk-changed")), (204, Some("false")));
    let fresh = [("kinfolk-token", dismissed.header("kinfolk-token").unwrap())];
    let found = server.request("GET", "/v1/users/1/suggestions", &fresh, b"").json();
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    // It is nobody's follow.
    assert_eq!(server.read("/v1/users/10/counts")["followers"], 3);
}

#[test]
fn refused_suggestions_and_dismissals() {
    let server = server();
    for query in ["limit=0", "limit=101", "limit=99999999999999999999999"] {
        let answer = server.get(&format!("/v1/users/1/suggestions?{query}"));
        assert_eq!(answer.refusal(), (400, "limit_out_of_range".to_owned()), "{query}");
        assert!(answer.json()["detail"].as_str().unwrap().contains("100"), "{answer:?}");
    }
    for query in ["limit=x", "cursor=1", "limit=1&limit=2"] {
        let answer = server.get(&format!("/v1/users/1/suggestions?{query}"));
        assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()), "{query}");
    }
    let dismiss = |actor, path: &str| server.act(actor, "DELETE", path).refusal();
    assert_eq!(dismiss(2, "/v1/users/1/suggestions/10"), (403, "forbidden".to_owned()));
    assert_eq!(dismiss(1, "/v1/users/1/suggestions/1"), (400, "invalid_request".to_owned()));
    assert_eq!(dismiss(1, "/v1/users/1/suggestions/x"), (400, "invalid_id".to_owned()));
    let unnamed = server.request("DELETE", "/v1/users/1/suggestions/10", &[], b"");
    assert_eq!(unnamed.refusal(), (400, "actor_required".to_owned()));
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
fn dismissals_are_in_the_change_log() {
    let server = Server::start();
    server.act(1, "DELETE", "/v1/users/1/suggestions/10");
    let changes = server.read("/v1/changes");
    assert_eq!(
        changes["items"],
        json!([{
            "position": "0-1", "type": "dismiss", "at": "2026-11-15T08:00:00.123Z", "follower": "1", "followee": "10",
        }])
    );
}

#[test]
fn a_client_that_leaves_gives_up_its_walk() {
    let server = server();
    server.watch.make_walks_endless();
    for (number, path) in ["suggestions", "friends", "feed", "posts"].into_iter().enumerate() {
        let mut connection = server.connect();
        connection.begin("GET", &format!("/v1/users/1/{path}"), &[]);
        server.watch.await_walks((number + 1, number));
        drop(connection);
        server.watch.await_walks((number + 1, number + 1));
    }
}

/// One that has only closed its sending side waits for what it has asked: it looks the same as one that has left.
#[test]
fn a_client_that_sends_no_more_gets_what_comes_soon() {
    let server = server();
    for _ in 0..20 {
        let (begun, ended) = server.watch.walks();
        server.watch.make_walks_endless();
        let socket = super::client::socket(server.address);
        let mut connection = Connection::over(socket.try_clone().unwrap());
        connection.begin("GET", "/v1/users/1/suggestions", &[]);
        server.watch.await_walks((begun + 1, ended));
        socket.shutdown(Shutdown::Write).unwrap();
        server.watch.end_walks();
        assert_eq!(connection.answer("GET").unwrap().status, 200);
        assert!(connection.is_closed());
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
