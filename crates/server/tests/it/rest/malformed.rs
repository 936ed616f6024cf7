//! What is no request: each has its problem document, and then the connection is closed.

use std::net::Shutdown;

use super::client::{Answer, Connection, socket};
use super::server::Server;

fn ask(server: &Server, bytes: &[u8]) -> (Answer, Connection) {
    let mut connection = server.connect();
    connection.write(bytes).unwrap();
    let answer = connection.answer("GET").unwrap_or_else(|error| {
        panic!("{error}: {:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(80)]))
    });
    (answer, connection)
}

fn assert_refused(server: &Server, bytes: &[u8], refusal: (u16, &str)) {
    let (answer, mut connection) = ask(server, bytes);
    assert_eq!(answer.refusal(), (refusal.0, refusal.1.to_owned()), "{answer:?}");
    assert_eq!(answer.header("connection"), Some("close"), "{answer:?}");
    assert!(answer.header("date").is_some(), "{answer:?}");
    assert!(connection.is_closed());
}

#[test]
fn malformed_lines_and_headers() {
    let server = Server::start();
    for request in [
        "nonsense\r\n\r\n",
        "\r\n\r\nnonsense\r\n\r\n",
        "GET\r\n\r\n",
        "GET /healthz\r\n\r\n",
        "G\0T / HTTP/1.1\r\n\r\n",
        "GET / HTTP/x\r\n\r\n",
        "GET /a b HTTP/1.1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nno colon\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost : localhost\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n folded\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nx: \x01\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n",
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}",
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n{}",
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: gzip\r\n\r\n{}",
        "\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n",
    ] {
        assert_refused(&server, request.as_bytes(), (400, "invalid_request"));
    }
}

#[test]
fn malformed_bodies() {
    let server = Server::start();
    let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    for body in ["x\r\n{}\r\n0\r\n\r\n", "2\r\n{}xx0\r\n\r\n", "fffffffffffffffffff\r\n{}"] {
        assert_refused(&server, format!("{head}{body}").as_bytes(), (400, "invalid_request"));
    }
    // A body that ends early, and a request that does.
    let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n";
    for request in [format!("{head}\r\n{{}}"), head.to_owned()] {
        let socket = socket(server.address);
        let mut connection = Connection::over(socket.try_clone().unwrap());
        connection.write(request.as_bytes()).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        let answer = connection.answer("POST").unwrap();
        assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()), "{request:?}");
        assert!(connection.is_closed());
    }
}

#[test]
fn other_versions() {
    let server = Server::start();
    for request in [
        "GET / HTTP/2.0\r\n\r\n",
        "GET / HTTP/9\r\n\r\n",
        "GET / HTTP/1.2\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        assert_refused(&server, request.as_bytes(), (505, "unsupported_version"));
    }
    let (old, mut connection) = ask(&server, b"GET /healthz HTTP/1.0\r\n\r\n");
    assert!(old.status == 200 && connection.is_closed());
}

#[test]
fn long_addresses_and_headers() {
    let server = Server::start();
    // The client sends all of it before it reads; the server stops in the middle.
    let long = "x".repeat(1 << 20);
    let path = format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_refused(&server, path.as_bytes(), (414, "uri_too_long"));
    let header = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {long}\r\n\r\n");
    assert_refused(&server, header.as_bytes(), (431, "headers_too_large"));
    let headers = "x: 1\r\n".repeat(200);
    let headers = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    assert_refused(&server, headers.as_bytes(), (431, "headers_too_large"));
    // As long as it may be.
    let path = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(60_000));
    assert_eq!(ask(&server, path.as_bytes()).0.refusal(), (404, "not_found".to_owned()));
}
