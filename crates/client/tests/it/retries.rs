//! Requests against a server that fails first: which are repeated, and which must not be.

use kinfolk_client::api::{NewComment, NewPost};
use kinfolk_client::{Error, ErrorCode, Retry, blocking};

use crate::scripted::{Scripted, problem, response};

const POST: &str = r#"{"id":"7","author":"1","created_at":"2026-11-15T08:00:00.000Z"}"#;
const COMMENT: &str = r#"{"id":"0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b","post":"7","author":"1","body":"a","version":1,
    "created_at":"2026-11-15T08:00:00.000Z","status":"active","depth":0,"reply_count":0}"#;

fn written(body: &str) -> String {
    response("201 Created", &[("kinfolk-token", "t"), ("kinfolk-changed", "true")], body)
}

/// The connection is closed without a response.
fn lost() -> String {
    String::new()
}

fn unavailable() -> String {
    problem("503 Service Unavailable", &[], "unavailable")
}

#[test]
fn reads_and_follows_are_repeated() {
    let counts = response("200 OK", &[], r#"{"id":"1","following":2,"followers":0}"#);
    let server = Scripted::start(vec![unavailable(), lost(), counts]);
    assert_eq!(server.client().counts(1).unwrap().following, 2);
    assert_eq!(server.requests().len(), 3);
    let server = Scripted::start(vec![lost(), unavailable(), written("")]);
    assert!(server.client().follow(2).unwrap().changed);
    assert!(server.requests().iter().all(|request| request.line() == "POST /v1/users/2/follow HTTP/1.1"));
}

#[test]
fn a_post_is_repeated_only_with_an_id_or_a_key() {
    let server = Scripted::start(vec![lost(), written(POST)]);
    let lost_post = server.client().register_post(&NewPost::default(), None).unwrap_err();
    assert!(matches!(lost_post, Error::Connection { .. }), "{lost_post:?}");
    assert_eq!(server.requests().len(), 1);

    let server = Scripted::start(vec![unavailable(), written(POST)]);
    let refused = server.client().register_post(&NewPost::default(), None).unwrap_err();
    assert_eq!((refused.code(), server.requests().len()), (Some(ErrorCode::Unavailable), 1));

    // A request that was certainly not applied can be repeated in any case.
    let server = Scripted::start(vec![problem("429 Too Many Requests", &[], "rate_limited"), written(POST)]);
    assert!(server.client().register_post(&NewPost::default(), None).unwrap().changed);

    let server = Scripted::start(vec![lost(), unavailable(), written(POST)]);
    server.client().register_post(&NewPost::default(), Some("k")).unwrap();
    assert!(server.requests().iter().all(|request| request.header("idempotency-key").unwrap() == "k"));
    let server = Scripted::start(vec![lost(), written(POST)]);
    server.client().register_post(&NewPost { id: Some(7.into()), ..NewPost::default() }, None).unwrap();
}

#[test]
fn a_comment_keeps_its_key_and_an_edit_is_sent_once() {
    let server = Scripted::start(vec![lost(), written(COMMENT)]);
    let comment = NewComment { body: "a".to_owned(), reply_to: None };
    let id = server.client().write_comment(7, &comment, None).unwrap().item.id;
    let keys: Vec<_> = server.requests().iter().map(|request| request.header("idempotency-key")).collect();
    assert!(keys[0].is_some() && keys[0] == keys[1], "{keys:?}");
    let server = Scripted::start(vec![lost(), written(COMMENT)]);
    assert!(server.client().edit_comment(id, 1, "b").is_err());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn attempts_are_bounded_and_long_waits_are_left_to_the_caller() {
    let server = Scripted::start(vec![unavailable(); 9]);
    assert_eq!(server.client().counts(1).unwrap_err().code(), Some(ErrorCode::Unavailable));
    assert_eq!(server.requests().len(), 4);
    let busy = problem("429 Too Many Requests", &[("retry-after", "60")], "rate_limited");
    let server = Scripted::start(vec![busy; 2]);
    let refused = server.client().counts(1).unwrap_err();
    let Error::Refused(refusal) = &refused else { panic!("{refused:?}") };
    assert_eq!((refusal.retry_after.unwrap().as_secs(), server.requests().len()), (60, 1));
    let server = Scripted::start(vec![unavailable(); 2]);
    let never = blocking::Client::builder(server.url()).retry(Retry::NEVER).build_blocking().unwrap();
    assert!(never.counts(1).is_err() && server.requests().len() == 1);
}

#[test]
fn what_is_no_kinfolk_server_is_told_apart() {
    let server = Scripted::start(vec![response("404 Not Found", &[], "<html>")]);
    let unexpected = server.client().counts(1).unwrap_err();
    assert!(matches!(unexpected, Error::UnexpectedResponse(_)), "{unexpected:?}");
    let server = Scripted::start(vec![response("200 OK", &[], r#"{"id":"1"}"#)]);
    assert!(matches!(server.client().counts(1).unwrap_err(), Error::UnexpectedResponse(_)));
    let nobody =
        blocking::Client::builder("http://127.0.0.1:1").retry(Retry::NEVER).build_blocking().unwrap();
    let unreachable = nobody.counts(1).unwrap_err();
    assert!(matches!(unreachable, Error::Unreachable { .. }), "{unreachable:?}");
}
