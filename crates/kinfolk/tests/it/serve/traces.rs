//! Traces arrive at a collector.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use super::running::Running;
use crate::support::Sandbox;

#[test]
fn a_request_becomes_a_trace() {
    let sandbox = Sandbox::new();
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let received = std::thread::spawn(move || {
        let (mut stream, _) = collector.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut first, mut length) = (String::new(), 0);
        reader.read_line(&mut first).unwrap();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        (first, body)
    });
    let server = Running::start(&sandbox, &format!("--otlp-endpoint {endpoint} --trace-sample 1"));
    assert_eq!(server.get("/v1/users/1/counts").status, 200);
    // The end sends what is left.
    assert_eq!(server.end("TERM").0, 0);
    let (first, body) = received.join().unwrap();
    assert_eq!(first.trim(), "POST /v1/traces HTTP/1.1");
    let text = String::from_utf8_lossy(&body);
    assert!(text.contains("kinfolk"), "the service is named");
}
