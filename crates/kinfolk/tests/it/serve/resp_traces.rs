//! Commands of the Redis protocol arrive at a collector as spans.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use super::running::{PATIENCE, Running};
use crate::support::Sandbox;

/// Takes one batch of spans: what was sent, as far as it is text.
fn take_batch(collector: &TcpListener) -> String {
    let (mut stream, _) = collector.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    for line in reader.by_ref().lines().map(|line| line.unwrap().to_ascii_lowercase()) {
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
    String::from_utf8_lossy(&body).into_owned()
}

#[test]
fn commands_become_spans_of_their_name() {
    let sandbox = Sandbox::new();
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let received = std::thread::spawn(move || take_batch(&collector));
    let server = Running::start(&sandbox, &format!("--otlp-endpoint {endpoint} --trace-sample 1"));
    assert_eq!(server.redis("SISMEMBER following:4711 4712"), ":0");
    assert!(server.redis("FOLLOW 4711 4711").starts_with("-ERR "));
    let mut stream = TcpStream::connect(&server.resp).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"SCARD following:4711\r\nSCARD following:4712\r\nQUIT\r\n").unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    // The end sends what is left.
    assert_eq!(server.end("TERM").0, 0);
    let text = received.join().unwrap();
    for expected in ["SISMEMBER", "FOLLOW", "PIPELINE", "db.operation.name", "db.operation.batch.size", "ERR"]
    {
        assert!(text.contains(expected), "{expected} is not in {text:?}");
    }
    assert!(!text.contains("4711"), "arguments are no part of a span: {text:?}");
}
