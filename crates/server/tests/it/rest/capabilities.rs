//! A profile that has the graph only: what it lacks is 501, and the document says so.

use std::collections::BTreeSet;

use kinfolk_core::IdKind;
use kinfolk_server::Access;
use kinfolk_server::rest::RestSettings;
use serde_json::{Value, json};

use super::document::operations;
use super::server::Server;
use crate::graph_only::GraphOnly;

fn graph_only() -> Server<GraphOnly> {
    let server = Server::closed(RestSettings::default());
    server.open_on(IdKind::Integer, Access::open(), GraphOnly);
    server
}

/// Whether a path is about more than the graph.
fn is_beyond(path: &str) -> bool {
    ["/suggest", "/posts", "/feed", "/comments"].iter().any(|word| path.contains(word))
}

#[test]
fn routes_beyond_the_graph_are_not_available() {
    let server = graph_only();
    let document = server.read("/openapi.json");
    let described = document["info"]["description"].as_str().unwrap();
    assert!(described.contains("has no feeds: operations with x-capability feeds respond with 501"));
    let mut missing = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        assert_eq!(operation["x-not-available"] == json!(true), is_beyond(&path), "{method} {path}");
        if !is_beyond(&path) {
            continue;
        }
        missing.insert(operation["x-capability"].as_str().unwrap().to_owned());
        assert_eq!(operation["responses"]["501"]["x-codes"], json!(["not_available"]), "{method} {path}");
        // Refused before ids, bodies and keys are looked at.
        let address = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
        let address = address.collect::<Vec<_>>().join("/");
        let answer = server.request(&method.to_uppercase(), &address, &[], b"");
        assert_eq!(answer.refusal(), (501, "not_available".to_owned()), "{method} {path}");
    }
    let comments = server.request("GET", "/v1/admin/export?content=comments", &[], b"");
    assert_eq!(comments.refusal(), (501, "not_available".to_owned()));
    let beyond = ["comments", "feeds", "suggestion-runs", "suggestions"];
    assert_eq!(missing, beyond.map(str::to_owned).into());
}

#[test]
fn the_graph_works_without_the_rest() {
    let server = graph_only();
    let token = server.follow(1, 2);
    let fresh = [("kinfolk-token", token.as_str())];
    assert_eq!(server.request("GET", "/v1/users/1/following/2", &fresh, b"").json()["following"], true);
    assert_eq!(server.check(r#"{"pairs":[[1,2],[2,1]]}"#).json(), json!({"results": [true, false]}));
    assert_eq!(server.read("/v1/users/2/counts")["followers"], 1);
    assert_eq!(server.read("/v1/users/2/followers")["items"][0]["id"], "1");
    assert_eq!(server.read("/v1/common?id=1")["count"], 1);
    assert_eq!(server.read("/v1/changes")["items"][0]["position"], "0-1");
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn a_profile_that_has_everything_says_nothing_of_it() {
    let document = Server::start().read("/openapi.json");
    for (method, path, operation) in operations(&document) {
        assert_eq!(operation["x-not-available"], Value::Null, "{method} {path}");
        assert_eq!(operation["responses"]["501"], Value::Null, "{method} {path}");
        let is_optional = is_beyond(&path) || path.starts_with("/v1/admin/");
        assert_eq!(operation["x-capability"].is_string(), is_optional, "{method} {path}");
    }
}
