//! From a door that is closed to the last answer: loading, serving, closing, stopping.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kinfolk_core::IdKind;
use kinfolk_server::Access;
use kinfolk_server::rest::RestSettings;
use serde_json::json;

use super::server::Server;

#[test]
fn before_the_store_is_loaded() {
    let server = Server::closed(RestSettings::default());
    assert_eq!(server.read("/healthz"), json!({"status": "alive"}));
    for path in ["/readyz", "/metrics", "/openapi.json", "/v1/users/1/counts", "/nowhere", "/v1/posts"] {
        let answer = server.get(path);
        assert_eq!(answer.refusal(), (503, "loading".to_owned()), "{path}");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    server.open(IdKind::Integer, Access::open());
    assert_eq!(server.read("/readyz"), json!({"status": "ready"}));
    assert_eq!(server.read("/v1/users/1/counts")["following"], 0);
    assert_eq!(server.get("/metrics").status, 200);
}

#[test]
fn a_closing_server_serves_but_wants_no_more() {
    let server = Server::start();
    let mut kept = server.connect();
    let served = kept.request("GET", "/v1/users/1/counts", &[], b"");
    assert_eq!((served.status, served.header("connection")), (200, None));
    server.door.close();
    let answer = server.get("/readyz");
    assert_eq!(answer.problem(), "not_ready");
    assert!(answer.json()["detail"].as_str().unwrap().contains("is stopping"), "{answer:?}");
    assert_eq!(server.get("/healthz").status, 200);
    // A connection that is kept is ended after a response, and further ones are accepted.
    let served = kept.request("GET", "/v1/users/1/counts", &[], b"");
    assert_eq!((served.status, served.header("connection")), (200, Some("close")));
    assert!(kept.is_closed());
    assert_eq!(server.get("/v1/users/1/counts").status, 200);
}

#[test]
fn a_failed_store_is_not_ready() {
    let server = Server::start();
    server.administration.has_failed.store(true, Ordering::Release);
    let answer = server.get("/readyz");
    assert_eq!(answer.refusal(), (503, "read_only".to_owned()));
    assert!(!answer.json().to_string().contains("secret"), "{answer:?}");
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/v1/users/1/counts").status, 200);
}

#[test]
fn a_server_that_is_not_ready_for_now_says_why() {
    let server = Server::start();
    for (is_not_ready, status) in [(true, 503), (false, 200)] {
        server.administration.is_not_ready.store(is_not_ready, Ordering::Release);
        let answer = server.get("/readyz");
        assert_eq!(answer.status, status, "{answer:?}");
        if is_not_ready {
            assert_eq!(answer.problem(), "not_ready");
            assert_eq!(answer.json()["detail"], "synchronize the clocks");
        }
        assert_eq!(server.get("/v1/users/1/counts").status, 200, "requests are served");
    }
}

#[test]
fn a_stop_finishes_what_was_begun_and_closes_what_is_idle() {
    let server = Server::start();
    let mut idle = server.connect();
    assert_eq!(idle.request("GET", "/healthz", &[], b"").status, 200);
    let mut busy = server.connect();
    let body = br#"{"pairs":[[1,2]]}"#;
    let length = body.len().to_string();
    let headers = [
        ("content-type", "application/json"),
        ("content-length", length.as_str()),
        ("expect", "100-continue"),
    ];
    busy.begin("POST", "/v1/check", &headers);
    // The server asks for the body: the request is in its hands.
    assert_eq!(busy.head().unwrap().0, 100);
    server.stop();
    assert!(idle.is_closed());
    busy.write(body).unwrap();
    assert_eq!(busy.answer("POST").unwrap().json(), json!({"results": [false]}));
    assert!(busy.is_closed());
    let address = server.address;
    server.join();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_stop_does_not_wait_for_ever() {
    let settings = RestSettings { drain_timeout: Duration::from_millis(50), ..RestSettings::default() };
    let server = Server::with(settings);
    let mut connection = server.connect();
    let headers = [("content-type", "application/json"), ("content-length", "9"), ("expect", "100-continue")];
    connection.begin("POST", "/v1/check", &headers);
    assert_eq!(connection.head().unwrap().0, 100);
    server.stop();
    server.join();
    assert!(connection.is_closed());
}

#[test]
fn headers_that_do_not_come_close_the_connection() {
    let settings = RestSettings { header_timeout: Duration::from_millis(50), ..RestSettings::default() };
    let server = Server::with(settings);
    let mut silent = server.connect();
    let mut slow = server.connect();
    slow.write(b"GET /healthz HTTP/1.1\r\nhost").unwrap();
    let mut waiting = server.connect();
    assert_eq!(waiting.request("GET", "/healthz", &[], b"").status, 200);
    // Between requests, an empty line begins none.
    waiting.write(b"\r\n").unwrap();
    assert!(silent.is_closed() && waiting.is_closed());
    let refused = slow.answer("GET").unwrap();
    assert_eq!(refused.refusal(), (408, "request_timeout".to_owned()));
    assert_eq!(refused.header("connection"), Some("close"));
    assert!(slow.is_closed());
}

#[test]
fn a_client_that_does_not_read_is_left() {
    let settings = RestSettings { write_timeout: Duration::from_millis(50), ..RestSettings::default() };
    let server = Server::with(settings);
    let mut connection = server.connect();
    // It goes on for as long as somebody reads, which nobody does.
    connection.begin("GET", "/v1/admin/backup", &[]);
    let patience = Instant::now() + Duration::from_secs(30);
    while !server.administration.cut_short.load(Ordering::Acquire) {
        assert!(Instant::now() < patience, "the server still waits");
        assert_eq!(server.get("/healthz").status, 200);
    }
}

#[test]
fn a_panic_is_an_answer_too() {
    let server = Server::start();
    server.administration.stats_panic.store(true, Ordering::Release);
    let mut connection = server.connect();
    let failed = connection.request("GET", "/metrics", &[], b"");
    assert_eq!(failed.refusal(), (500, "internal".to_owned()));
    assert!(!failed.text().contains("as the test wants"));
    assert_eq!(connection.request("GET", "/healthz", &[], b"").status, 200);
}

#[test]
fn connections_over_the_limit_wait_for_their_turn() {
    let server = Server::with(RestSettings { connections_max: 1, ..RestSettings::default() });
    let mut first = server.connect();
    assert_eq!(first.request("GET", "/healthz", &[], b"").status, 200);
    let mut second = server.connect();
    second.begin("GET", "/healthz", &[]);
    assert_eq!(first.request("GET", "/healthz", &[], b"").status, 200);
    drop(first);
    assert_eq!(second.answer("GET").unwrap().status, 200);
}

#[test]
fn requests_in_a_row_on_one_connection() {
    let server = Server::start();
    let mut connection = server.connect();
    for _ in 0..3 {
        connection.begin("GET", "/v1/users/1/counts", &[]);
    }
    for _ in 0..3 {
        assert_eq!(connection.answer("GET").unwrap().status, 200);
    }
}
