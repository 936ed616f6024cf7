//! Every complete request gets its response, at once, whatever follows it on its connection.

use std::net::Shutdown;

use super::client::{Connection, socket};
use super::server::Server;

const FOLLOW: &str = "POST /v1/users/2/follow HTTP/1.1\r\nhost: localhost\r\nkinfolk-actor: 1\r\n\r\n";
const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[test]
fn a_response_does_not_wait_for_what_follows_its_request() {
    let server = Server::start();
    // The next request would have to come within a minute, and never does.
    for rest in
        ["\r\n", "\r\n\r\n", "G", "GET /healthz HTTP/1.1\r\nhost: loc", "POST / HTTP/1.1\r\ncontent-le"]
    {
        let mut connection = server.connect();
        connection.write(format!("{FOLLOW}{rest}").as_bytes()).unwrap();
        assert_eq!(connection.answer("POST").unwrap().status, 204, "{rest:?}");
    }
}

#[test]
fn a_response_is_sent_before_garbage_is_refused() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.write(format!("{FOLLOW}{HEALTH}\0garbage\r\n\r\n").as_bytes()).unwrap();
    assert_eq!(connection.answer("POST").unwrap().status, 204);
    assert_eq!(connection.answer("GET").unwrap().status, 200);
    assert_eq!(connection.answer("GET").unwrap().refusal(), (400, "invalid_request".to_owned()));
    assert!(connection.is_closed());
}

#[test]
fn a_response_does_not_wait_for_the_next_one() {
    let server = Server::start();
    server.follow(1, 2);
    server.watch.make_walks_endless();
    let mut connection = server.connect();
    let walk = "GET /v1/users/1/suggestions HTTP/1.1\r\nhost: localhost\r\n\r\n";
    connection.write(format!("{HEALTH}{walk}{HEALTH}").as_bytes()).unwrap();
    assert_eq!(connection.answer("GET").unwrap().status, 200);
    server.watch.await_walks((1, 0));
}

#[test]
fn all_requests_of_a_packet_are_answered_in_order() {
    let server = Server::start();
    let requests: String = (1..=1_000_u32)
        .map(|id| format!("GET /v1/users/{id}/counts HTTP/1.1\r\nhost: localhost\r\n\r\n"))
        .collect();
    let mut connection = server.connect();
    connection.write(requests.as_bytes()).unwrap();
    for id in 1..=1_000_u32 {
        assert_eq!(connection.answer("GET").unwrap().json()["id"], id.to_string());
    }
}

#[test]
fn a_client_that_has_closed_its_sending_side_is_answered() {
    let server = Server::start();
    let body = r#"{"author":"1","id":"7"}"#;
    let length = body.len();
    let post = format!(
        "POST /v1/posts HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    // The store keeps the post to itself until the server knows that nothing more comes.
    server.watch.close();
    let socket = socket(server.address);
    let mut connection = Connection::over(socket.try_clone().unwrap());
    connection.write(format!("{HEALTH}{post}").as_bytes()).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(connection.answer("GET").unwrap().status, 200);
    server.watch.await_posts(1);
    server.watch.open();
    assert_eq!(connection.answer("POST").unwrap().status, 201);
    assert!(connection.is_closed());
    for request in [
        HEALTH,
        FOLLOW,
        "GET /v1/admin/export HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "POST /v1/admin/import HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\n1,2\n",
        "DELETE /v1/posts/7 HTTP/1.1\r\nhost: localhost\r\nkinfolk-actor: 1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ] {
        let socket = super::client::socket(server.address);
        let mut connection = Connection::over(socket.try_clone().unwrap());
        connection.write(request.as_bytes()).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        assert!(connection.answer("GET").unwrap().status < 300, "{request:?}");
        assert!(connection.is_closed());
    }
}

#[test]
fn a_client_that_continues_after_asking_is_served_like_others() {
    let server = Server::start();
    let mut connection = server.connect();
    let body = br#"{"pairs":[[1,2]]}"#;
    let length = body.len().to_string();
    let headers = [
        ("content-type", "application/json"),
        ("content-length", length.as_str()),
        ("expect", "100-continue"),
    ];
    for _ in 0..2 {
        connection.begin("POST", "/v1/check", &headers);
        assert_eq!(connection.head().unwrap().0, 100);
        connection.write(body).unwrap();
        assert_eq!(connection.answer("POST").unwrap().status, 200);
    }
    // Refused by its headers, so that the body is not asked for.
    connection.begin("POST", "/v1/check", &[("content-length", length.as_str()), ("expect", "100-continue")]);
    assert_eq!(connection.answer("POST").unwrap().refusal(), (415, "unsupported_media_type".to_owned()));
}
