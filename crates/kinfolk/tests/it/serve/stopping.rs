//! Servers that are told to end in the middle of bulk work, or of requests that do not arrive whole: they end soon after the grace
//! period, with status 0, and what they leave is sound.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::running::{PATIENCE, Running};
use crate::support::Sandbox;

const SERVE: &str = "--grace 200ms --suggest-every 0";

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request and reads until a line has a part.
fn begin(server: &Running, request: &str, until: &str) -> TcpStream {
    let mut stream = connect(&server.http);
    let (line, headers) = request.split_once('\n').unwrap_or((request, ""));
    write!(stream, "{line} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n").unwrap();
    wait_for(&stream, until);
    stream
}

fn wait_for(stream: &TcpStream, until: &str) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        assert!(reader.read_until(b'\n', &mut line).unwrap() > 0, "it ended before it said {until}");
        let line = String::from_utf8_lossy(&line);
        assert!(!line.contains("\"error\""), "{line}");
        if line.contains(until) {
            return;
        }
    }
}

#[test]
fn bulk_work_does_not_keep_a_server_from_ending() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate edges.csv --edges 2000000 --users 100000 --quiet");
    sandbox.ok("import edges.csv --quiet");
    let edges = sandbox.export("kinfolk-data");
    for (request, until) in [
        ("POST /v1/admin/verify?repair=true", "progress"),
        ("POST /v1/admin/compact", "progress"),
        ("POST /v1/admin/suggest?threads=1", "progress"),
        ("GET /v1/admin/export?format=csv", "follower,followee"),
        ("GET /v1/admin/backup", "octet-stream"),
        ("POST /v1/admin/import\ncontent-length: 1000\r\n", "200 OK"),
    ] {
        let server = Running::start(&sandbox, SERVE);
        let client = begin(&server, request, until);
        let (status, said) = server.end("TERM");
        assert_eq!(status, 0, "{request}: {said:?}");
        drop(client);
    }
    assert_eq!(sandbox.json("verify")["difference_count"], 0);
    assert_eq!(sandbox.export("kinfolk-data"), edges);
}

#[test]
fn an_import_that_counts_is_finished_by_the_next_start() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate edges.csv --edges 1000000 --users 60000 --quiet");
    sandbox.ok("import edges.csv --data source --quiet");
    let whole = sandbox.export("source");
    for until in ["reading", "counting", "loading"] {
        let data = format!("imported-{until}");
        let server = Running::start(&sandbox, &format!("{SERVE} --data {data}"));
        let mut client = connect(&server.http);
        let mut reader = client.try_clone().unwrap();
        let body = whole.clone();
        let sender = std::thread::spawn(move || {
            let head = "POST /v1/admin/import HTTP/1.1\r\nhost: localhost\r\ncontent-length:";
            // It fails where the server ends before it has read everything.
            let _ = write!(client, "{head} {}\r\n\r\n{body}", body.len());
        });
        wait_for(&reader, until);
        let (status, said) = server.end("TERM");
        assert_eq!(status, 0, "{until}: {said:?}");
        let _ = reader.read_to_end(&mut Vec::new());
        sender.join().unwrap();
        let server = Running::start(&sandbox, &format!("{SERVE} --data {data}"));
        assert_eq!(server.end("TERM").0, 0);
        let found = sandbox.export(&data);
        assert!(found == whole || found.lines().count() == 1, "{until}: {} lines", found.lines().count());
        assert_eq!(sandbox.json(&format!("verify --data {data}"))["difference_count"], 0, "{until}");
    }
}

#[test]
fn half_sent_requests_do_not_keep_a_server_from_ending() {
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, SERVE);
    assert_eq!(server.redis("SADD following:1 2"), ":1");
    let half = [
        (&server.http, "GET /v1/users/1/counts HTTP/1.1\r\nhost: loc"),
        (
            &server.http,
            "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
        ),
        (
            &server.http,
            "POST /v1/admin/import HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n4\r\n1,2\n",
        ),
        (
            &server.http,
            "POST /v1/admin/import?format=parquet HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nPAR1",
        ),
        (&server.http, "GET /v1/changes/stream HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        (&server.resp, "*3\r\n$4\r\nSADD\r\n$11\r\nfollowing:1"),
        (&server.resp, "SADD following:1"),
        (&server.resp, ""),
    ];
    let clients: Vec<TcpStream> = half
        .iter()
        .map(|(address, text)| {
            let mut stream = connect(address);
            stream.write_all(text.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(server.redis("SADD following:1 3"), ":1");
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0, "{said:?}");
    drop(clients);
    assert_eq!(sandbox.json("counts 1")["following"], 2);
}
