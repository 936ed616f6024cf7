//! Tokens on writes: what a request carries is joined with what it writes, and never lost.

use std::time::Duration;

use kinfolk_core::{Epoch, Error, Frontier, Keyring, Sequence, Shard, SigningKey, Token};

use super::super::backing::HAS_CONTENT;
use super::client::Answer;
use super::document::operations;
use super::server::Server;

fn keys() -> Keyring {
    Keyring::new(SigningKey::new([7; 32]), [])
}

/// The token of what somebody has seen: sequences by shard.
fn sealed(epoch: u64, seen: &[(u16, u64)]) -> String {
    let frontier = seen.iter().map(|&(shard, sequence)| Sequence(sequence).on(Shard(shard))).collect();
    Token { epoch: Epoch(epoch), frontier }.encode(&keys())
}

/// What the token of an answer covers.
fn covered(answer: &Answer) -> Frontier {
    Token::decode(answer.header("kinfolk-token").unwrap(), &keys()).unwrap().frontier
}

/// Every write that the store has, in an order in which each succeeds, as user 1 and with some token.
fn writes(server: &Server, token: &str) -> Vec<Answer> {
    let send = |method: &str, path: &str, more: &[(&str, &str)], body: &str| {
        let headers =
            [("kinfolk-actor", "1"), ("kinfolk-token", token), ("content-type", "application/json")];
        server.request(method, path, &[&headers[..], more].concat(), body.as_bytes())
    };
    let mut answers = vec![
        send("POST", "/v1/users/2/follow", &[], ""),
        send("DELETE", "/v1/users/2/follow", &[], ""),
        send("DELETE", "/v1/users/1/followers/2", &[], ""),
        send("DELETE", "/v1/users/1/suggestions/2", &[], ""),
    ];
    if !HAS_CONTENT {
        return answers;
    }
    answers.extend([
        send("POST", "/v1/posts", &[], r#"{"id":"5"}"#),
        send("POST", "/v1/posts", &[], r#"{"id":"6"}"#),
        send("DELETE", "/v1/posts/6", &[], ""),
        send("PUT", "/v1/posts/5/comments/lock", &[], ""),
        send("DELETE", "/v1/posts/5/comments/lock", &[], ""),
    ]);
    let written = send("POST", "/v1/posts/5/comments", &[("idempotency-key", "a")], r#"{"body":"b"}"#);
    if written.status == 201 {
        let id = written.json()["id"].as_str().unwrap().to_owned();
        answers.extend([
            send("PATCH", &format!("/v1/comments/{id}"), &[("if-match", "\"1\"")], r#"{"body":"c"}"#),
            send("DELETE", &format!("/v1/comments/{id}"), &[], ""),
            send("POST", &format!("/v1/comments/{id}/remove"), &[], r#"{"reason":"d"}"#),
            send("POST", &format!("/v1/comments/{id}/purge"), &[], ""),
        ]);
    }
    answers.push(written);
    answers
}

#[test]
fn the_token_of_a_write_covers_that_of_its_request() {
    let server = Server::start();
    // Shards of which nothing was seen: nobody has to wait for that.
    let answers = writes(&server, &sealed(1, &[(3, 0), (9, 0)]));
    assert_eq!(answers.len(), if HAS_CONTENT { 14 } else { 4 });
    for answer in answers {
        assert!((200..300).contains(&answer.status), "{answer:?}");
        let covered = covered(&answer);
        assert!(covered.get(Shard::ONLY).is_some_and(|sequence| sequence > Sequence::START), "{covered}");
        let seen = [3, 9].map(|shard| covered.get(Shard(shard)));
        assert_eq!(seen, [Some(Sequence::START); 2], "{covered}");
    }
    // What was seen of the same shard stays if it is further; without a token, the answer is about the write alone.
    let headers = |token| [("kinfolk-actor", "1"), ("kinfolk-token", token)];
    let ahead = sealed(1, &[(0, 1_000)]);
    let followed = server.request("POST", "/v1/users/3/follow", &headers(&ahead), b"");
    assert_eq!(covered(&followed).to_string(), "0-1000");
    // A write that has to know whose something is reads that with what its caller has seen.
    if HAS_CONTENT {
        let post = [("kinfolk-actor", "1"), ("content-type", "application/json")];
        server.request("POST", "/v1/posts", &post, b"{\"id\":\"7\"}");
        let early = server.request("DELETE", "/v1/posts/7", &headers(&ahead), b"");
        assert_eq!(early.refusal(), (503, "not_yet_visible".to_owned()));
        assert_eq!(server.act(1, "DELETE", "/v1/posts/7").status, 204);
    }
    let alone = server.act(1, "POST", "/v1/users/4/follow");
    assert_eq!(covered(&alone).iter().count(), 1);
}

#[test]
fn the_token_of_an_import_covers_that_of_its_request() {
    let server = Server::start();
    let import =
        |token: &str| server.request("POST", "/v1/admin/import", &[("kinfolk-token", token)], b"1,2\n");
    let imported = import(&sealed(1, &[(0, 1_000), (3, 0)]));
    let last: serde_json::Value = serde_json::from_str(imported.text().lines().last().unwrap()).unwrap();
    let token = Token::decode(last["result"]["token"].as_str().unwrap(), &keys()).unwrap();
    let seen = [0, 3].map(|shard| token.frontier.get(Shard(shard)));
    assert_eq!(seen, [Some(Sequence(1_000)), Some(Sequence::START)], "{}", token.frontier);
    assert_eq!(import("nonsense").refusal(), (400, "invalid_token".to_owned()));
}

#[test]
fn a_write_with_a_bad_token_is_refused_and_does_nothing() {
    let server = Server::start();
    for bad in [sealed(2, &[(0, 1)]), "nonsense".to_owned()] {
        for answer in writes(&server, &bad) {
            assert_eq!(answer.refusal(), (400, "invalid_token".to_owned()), "{bad}");
        }
    }
    assert_eq!(server.read("/v1/changes")["items"].as_array().unwrap().len(), 0);
}

#[test]
fn every_read_that_takes_a_token_waits_for_it() {
    let server = Server::start();
    let document = server.read("/openapi.json");
    let future = sealed(1, &[(0, 99)]);
    let mut tried = 0;
    for (method, path, operation) in operations(&document) {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let takes_token = parameters.clone().any(|parameter| parameter["name"] == "Kinfolk-Token");
        let is_read = method == "get" || path == "/v1/check";
        if !takes_token || !is_read || operation["x-not-available"] == true {
            continue;
        }
        tried += 1;
        let comment = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
        let address = path.replace("{comment}", comment).replace("{id}", "1");
        let address = address.replace("{target}", "2").replace("{other}", "2");
        let needs_ids =
            parameters.filter(|parameter| parameter["in"] == "query" && parameter["name"] == "id");
        let query = if needs_ids.count() > 0 { "?id=2" } else { "" };
        let headers =
            [("kinfolk-actor", "1"), ("kinfolk-token", &future), ("content-type", "application/json")];
        let body = if method == "post" { &br#"{"pairs":[[1,2]]}"#[..] } else { b"" };
        let answer = server.request(&method.to_uppercase(), &format!("{address}{query}"), &headers, body);
        assert_eq!(answer.refusal(), (503, "not_yet_visible".to_owned()), "{method} {path}");
    }
    assert_eq!(tried, if HAS_CONTENT { 20 } else { 12 });
}

#[test]
fn what_can_not_be_reached_is_to_be_tried_again() {
    let server = Server::start();
    let unavailable =
        || Error::Unavailable { what: "a host".to_owned(), retry_after: Duration::from_millis(2_500) };
    server.watch.refuse_next(unavailable());
    let refused = server.act(1, "POST", "/v1/users/2/follow");
    assert_eq!(refused.refusal(), (503, "unavailable".to_owned()));
    assert_eq!(refused.header("retry-after"), Some("3"));
    server.watch.refuse_next(unavailable());
    assert_eq!(server.check(r#"{"pairs":[[1,2]]}"#).refusal(), (503, "unavailable".to_owned()));
    server.watch.refuse_next(Error::TimedOut);
    let refused = server.act(1, "POST", "/v1/users/2/follow");
    assert_eq!(refused.refusal(), (504, "timed_out".to_owned()));
    assert_eq!(refused.header("retry-after"), None);
}
