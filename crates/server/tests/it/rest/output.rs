//! Responses that nobody reads: how much of them the server keeps, and for how long.

use std::time::{Duration, Instant};

use kinfolk_server::Scope;
use kinfolk_server::rest::RestSettings;

use super::access::{Guarded, default_limits, token};
use super::client::{Answer, Connection};
use super::server::Server;

/// Some 15 MB, far more than a socket takes when nobody reads at its other end.
const LARGE: &str = "/v1/changes?limit=1000";
/// A socket takes fewer responses of about 48 KB each, by far.
const REQUESTS: usize = 2_000;

/// A server whose change log is large.
fn server(settings: RestSettings) -> Server {
    let server = Server::with(settings);
    assert_eq!(server.post(r#"{"author":"1","id":"1"}"#).status, 201);
    let body = format!(r#"{{"body":"{}"}}"#, "\u{20ac}".repeat(10_000));
    for key in 1..=500 {
        assert_eq!(server.comment(1, 1, &key.to_string(), &body).status, 201);
    }
    server
}

fn ask(server: &Server, path: &str) -> Connection {
    let mut connection = server.connect();
    connection.begin("GET", path, &[]);
    connection
}

/// Asks, and reads no more than how the response begins.
fn ask_without_reading(server: &Server) -> Connection {
    await_some(|| {
        let mut deaf = ask(server, LARGE);
        (deaf.head().unwrap().0 == 200).then_some(deaf)
    })
}

/// Follows the change log, and reads no more than how its first events begin.
fn follow_without_reading(server: &Server) -> Connection {
    await_some(|| {
        let mut deaf = ask(server, "/v1/changes/stream");
        assert_eq!(deaf.head().unwrap().0, 200);
        let _opening = deaf.chunk().unwrap().unwrap();
        let length = usize::from_str_radix(&deaf.line().unwrap(), 16).unwrap();
        (length > 1 << 20).then_some(deaf)
    })
}

/// A figure of the server; 0 while it has none.
fn figure(server: &Server, sample: &str) -> usize {
    let text = server.get("/metrics");
    let line = text.text().lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.map_or(0, |value| value.parse().unwrap())
}

/// Tries again for a while: a response that was sent a moment ago may still be counted.
fn await_some<T>(attempt: impl Fn() -> Option<T>) -> T {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        assert!(Instant::now() < patience, "it has not come");
    }
}

fn await_true(is_true: impl Fn() -> bool) {
    await_some(|| is_true().then_some(()));
}

#[test]
fn requests_of_a_client_that_does_not_read_are_not_read_and_then_it_is_closed() {
    let settings = RestSettings { write_timeout: Duration::from_millis(200), ..RestSettings::default() };
    let server = Server::with(settings);
    (2..1_002).for_each(|target| drop(server.follow(1, target)));
    let mut deaf = server.connect();
    let request = "GET /v1/users/1/following?limit=1000 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    deaf.write(request.repeat(REQUESTS).as_bytes()).unwrap();
    let served = "kinfolk_request_duration_seconds_count{protocol=\"rest\",operation=\"following\"}";
    await_true(|| figure(&server, served) > 0);
    // Until nobody but this figure's reader is connected.
    await_true(|| figure(&server, "kinfolk_connections{protocol=\"rest\"}") == 1);
    let served = figure(&server, served);
    assert!((1..REQUESTS / 2).contains(&served), "{served} of {REQUESTS} requests were served");
}

#[test]
fn a_caller_that_does_not_read_is_refused_until_it_does() {
    let server = server(RestSettings { caller_output_bytes_max: 1 << 20, ..RestSettings::default() });
    // A response larger than the limit may be the only one.
    let deaf = ask_without_reading(&server);
    let refused = server.get(LARGE);
    assert_eq!(refused.refusal(), (503, "overloaded".to_owned()));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(server.get("/v1/users/1/counts").status, 200, "small responses cost nothing");
    // Before it is applied: a write that was applied is answered.
    let refused = server.act(1, "POST", "/v1/users/2/follow");
    assert_eq!(refused.refusal(), (503, "overloaded".to_owned()));
    assert_eq!(server.read("/v1/users/1/counts")["following"], 0);
    drop(deaf);
    await_true(|| server.get(LARGE).status == 200);
    await_true(|| server.act(1, "POST", "/v1/users/2/follow").status == 204);
}

#[test]
fn all_callers_together_have_a_limit() {
    let server = server(RestSettings { output_bytes_max: 1 << 20, ..RestSettings::default() });
    let deaf = ask_without_reading(&server);
    assert_eq!(server.get(LARGE).refusal(), (503, "overloaded".to_owned()));
    drop(deaf);
    await_true(|| server.get(LARGE).status == 200);
}

#[test]
fn a_stream_that_nobody_reads_counts_too() {
    let server = server(RestSettings { caller_output_bytes_max: 1 << 20, ..RestSettings::default() });
    let deaf = follow_without_reading(&server);
    assert_eq!(server.get(LARGE).refusal(), (503, "overloaded".to_owned()));
    // Another one ends, and says why.
    let mut stream = ask(&server, "/v1/changes/stream");
    assert_eq!(stream.head().unwrap().0, 200);
    let _opening = stream.chunk().unwrap().unwrap();
    let problem = String::from_utf8(stream.chunk().unwrap().unwrap()).unwrap();
    assert!(problem.starts_with("event: problem") && problem.contains("overloaded"), "{problem}");
    assert_eq!(stream.chunk().unwrap(), None);
    drop(deaf);
    await_true(|| server.get(LARGE).status == 200);
}

#[test]
fn the_document_is_one_for_all_and_sent_as_it_is() {
    let server = Server::start();
    let plain = server.get("/openapi.json");
    let asked = server.request("GET", "/openapi.json", &[("accept-encoding", "gzip")], b"");
    assert_eq!(asked.header("content-encoding"), None);
    assert_eq!(asked.body, plain.body);
}

/// Users who do not read fill all the room that there is. Others write all the same, and what is large is still refused.
#[test]
fn users_that_do_not_read_keep_nobody_from_writing() {
    let settings = RestSettings { output_bytes_max: 1 << 20, ..RestSettings::default() };
    let guarded = Guarded::with(default_limits(), settings);
    let server = &guarded.server;
    let headers = |credential: &str| format!("Bearer {credential}");
    let service = headers(guarded.key(Scope::ALL));
    let body = format!(r#"{{"body":"{}"}}"#, "\u{20ac}".repeat(10_000));
    for author in 100..140 {
        let author = author.to_string();
        let headers = [
            ("authorization", service.as_str()),
            ("kinfolk-actor", author.as_str()),
            ("idempotency-key", "one"),
            ("content-type", "application/json"),
        ];
        assert_eq!(server.request("POST", "/v1/posts/21/comments", &headers, body.as_bytes()).status, 201);
    }
    let path = "/v1/posts/21/comments?limit=1000";
    let user = |number: usize| headers(&token(&number.to_string(), "read write"));
    // As many as no socket takes, so that one of them waits.
    let ask_without_reading = |number: usize| {
        let mut deaf = server.connect();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\n\r\n", user(number));
        deaf.write(request.repeat(50).as_bytes()).unwrap();
        deaf
    };
    let deaf: Vec<Connection> = (1..=3).map(ask_without_reading).collect();
    let is_refused = |answer: &Answer| answer.status == 503;
    await_true(|| is_refused(&server.request("GET", path, &[("authorization", &user(30))], b"")));
    for (number, credential, actor) in [(31, user(31), None), (32, service, Some("32"))] {
        let mut headers = vec![("authorization", credential.as_str())];
        headers.extend(actor.map(|actor| ("kinfolk-actor", actor)));
        let written = server.request("POST", "/v1/users/2/follow", &headers, b"");
        assert_eq!(written.status, 204, "{number}: {written:?}");
    }
    drop(deaf);
    await_true(|| server.request("GET", path, &[("authorization", &user(30))], b"").status == 200);
}
