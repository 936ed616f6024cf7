//! Whom users follow in common, and which of a viewer's followees follow a user.

use serde_json::{Value, json};

use super::client::Answer;
use super::server::Server;

/// Users 1 and 2 both follow 10 to 16, and user 3 follows 12 and 14; so do 12 and 14 user 9.
fn server() -> Server {
    let server = Server::start();
    for target in 10..=16 {
        server.follow(1, target);
        server.follow(2, target);
    }
    for target in [12, 14] {
        server.follow(3, target);
        server.follow(target, 9);
    }
    server.follow(1, 100);
    server.follow(200, 9);
    server
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[test]
fn common_of_two_and_of_many() {
    let server = server();
    let common = server.read("/v1/users/1/common/2?limit=2");
    assert_eq!((&common["count"], ids(&common)), (&json!(7), vec!["10", "11"]));
    assert_eq!(
        server.read("/v1/common?id=3&id=1&id=2"),
        json!({"count": 2, "items": [{"id": "12"}, {"id": "14"}]})
    );
    assert_eq!(ids(&server.read("/v1/common?id=3")), ["12", "14"]);
    assert_eq!(server.read("/v1/users/1/common/77"), json!({"count": 0, "items": []}));
    let ten = "id=3&".repeat(10);
    assert_eq!(server.read(&format!("/v1/common?{ten}"))["count"], 2);
}

#[test]
fn known_followers_depend_on_the_viewer() {
    let server = server();
    let known = json!({"count": 2, "items": [{"id": "12"}, {"id": "14"}]});
    assert_eq!(server.read("/v1/users/9/known-followers?viewer=1"), known);
    assert_eq!(server.read("/v1/users/9/known-followers?viewer=9"), json!({"count": 0, "items": []}));
    let actor = [("kinfolk-actor", "3")];
    assert_eq!(server.request("GET", "/v1/users/9/known-followers", &actor, b"").json(), known);
    // The parameter outweighs the header.
    let other = server.request("GET", "/v1/users/9/known-followers?viewer=4", &actor, b"");
    assert_eq!(other.json()["count"], 0);

    let nobody = server.get("/v1/users/9/known-followers");
    assert_eq!(nobody.refusal(), (400, "invalid_request".to_owned()));
    assert!(nobody.json()["detail"].as_str().unwrap().contains("viewer"), "{nobody:?}");
}

#[test]
fn pages_are_walked_by_cursor_and_by_link() {
    let server = server();
    for (first, expected) in [
        ("/v1/users/1/common/2?limit=3", vec!["10", "11", "12", "13", "14", "15", "16"]),
        ("/v1/common?id=2&id=1&limit=3", vec!["10", "11", "12", "13", "14", "15", "16"]),
        ("/v1/users/9/known-followers?viewer=3&limit=1", vec!["12", "14"]),
    ] {
        let (mut path, mut found) = (first.to_owned(), Vec::new());
        loop {
            let answer = server.get(&path);
            let page = answer.json();
            assert_eq!(page["count"], expected.len(), "{path}");
            found.extend(ids(&page).into_iter().map(str::to_owned));
            let Some(next) = page.get("next") else {
                assert_eq!(answer.header("link"), None);
                break;
            };
            path = format!("{first}&cursor={}", next.as_str().unwrap());
            assert_eq!(answer.header("link"), Some(format!("<{path}>; rel=\"next\"").as_str()));
        }
        assert_eq!(found, expected, "{first}");
    }
}

#[test]
fn a_cursor_belongs_to_its_users_in_any_order() {
    let server = server();
    let next = server.read("/v1/users/1/common/2?limit=2")["next"].as_str().unwrap().to_owned();
    let page = server.read(&format!("/v1/common?id=2&id=1&limit=1&cursor={next}"));
    assert_eq!(ids(&page), ["12"]);
    for path in [
        format!("/v1/users/1/common/3?cursor={next}"),
        format!("/v1/common?id=1&cursor={next}"),
        format!("/v1/users/2/known-followers?viewer=1&cursor={next}"),
        format!("/v1/users/1/common/2?cursor=x{next}"),
    ] {
        assert_eq!(server.get(&path).refusal(), (400, "invalid_cursor".to_owned()), "{path}");
    }
}

#[test]
fn refused_overlaps() {
    let server = Server::start();
    let refused = |path: &str, code: &str| {
        let answer: Answer = server.get(path);
        assert_eq!(answer.refusal(), (400, code.to_owned()), "{path}");
    };
    refused("/v1/common", "invalid_request");
    refused("/v1/common?id=1&ids=2", "invalid_request");
    refused("/v1/common?id=1&id=x", "invalid_id");
    refused(&format!("/v1/common?{}", "id=1&".repeat(11)), "too_many");
    refused("/v1/users/1/common/x", "invalid_id");
    refused("/v1/users/1/common/2?id=3", "invalid_request");
    refused("/v1/users/1/known-followers?viewer=x", "invalid_id");
    refused("/v1/users/1/known-followers?viewer=1&viewer=1", "invalid_request");
    for path in ["/v1/users/1/common/2?", "/v1/common?id=1&", "/v1/users/1/known-followers?viewer=2&"] {
        refused(&format!("{path}limit=0"), "limit_out_of_range");
        refused(&format!("{path}limit=1001"), "limit_out_of_range");
        refused(&format!("{path}offset=1"), "invalid_request");
    }
}
