//! People you may know: asked for and dismissed.

use std::net::Shutdown;
use std::time::Duration;

use kinfolk_server::rest::RestSettings;
use serde_json::json;

use super::super::backing::HAS_CONTENT;
use super::client::Connection;
use super::server::Server;

/// User 1 follows 2, 3 and 4. All of them follow 10, two of them 11, one of them 12.
pub(super) fn server() -> Server {
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

pub(super) fn suggested(server: &Server, path: &str) -> Vec<String> {
    let items = server.read(path)["items"].clone();
    items.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
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
    let walks = ["suggestions", "friends", "feed", "posts"];
    let walks = if HAS_CONTENT { &walks[..] } else { &walks[..2] };
    for (number, path) in walks.iter().enumerate() {
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
