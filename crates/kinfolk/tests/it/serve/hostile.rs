//! Clients that cost more than they should: thousands that say nothing, never read, never finish, announce gigabytes.
//! The server's memory stays bounded and others are answered. That each of them is ended is tested in `kinfolk-server`.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::running::{PATIENCE, Running};
use crate::support::Sandbox;

const IDLE: usize = 10_000;
/// What a test needs besides its connections.
const FILES_BESIDES: usize = 600;

/// How many connections can be opened of those that are wanted. The server inherits the limit.
fn connections(wanted: usize) -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let most = maximum.map_or(usize::MAX, |most| most as usize).saturating_sub(FILES_BESIDES);
    if most < wanted {
        println!("ONLY {most} OF {wanted} CONNECTIONS: the limit of open files (ulimit -Hn) is too low");
    }
    most.min(wanted)
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a command and reads the one line that answers it.
fn ask(stream: &mut TcpStream, command: &str) -> String {
    stream.write_all(format!("{command}\r\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// Sends until nothing more is taken; how much was.
fn fill(stream: &mut TcpStream, part: &[u8], bytes_max: usize) -> usize {
    stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut sent = 0;
    while sent < bytes_max {
        match stream.write(part) {
            Ok(count) => sent += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) => panic!("the server ended the connection: {error}"),
        }
    }
    sent
}

/// By how much the server's memory has grown over some connections is at most so much for each.
fn assert_bounded(server: &Running, before: usize, count: usize, bytes_each_max: usize) {
    let grown = server.memory_bytes().saturating_sub(before);
    println!("{count} connections: {grown} bytes more, {} each", grown / count);
    assert!(grown <= count * bytes_each_max, "{grown} bytes for {count} connections");
}

#[test]
fn idle_connections_cost_little_and_hold_nobody_up() {
    let count = connections(IDLE);
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "");
    assert_eq!(server.redis("SADD following:1 2"), ":1");
    let before = server.memory_bytes();
    let mut idle: Vec<TcpStream> = (0..count).map(|_| connect(&server.resp)).collect();
    for stream in &mut idle {
        assert_eq!(ask(stream, "SISMEMBER following:1 2"), ":1");
    }
    assert_bounded(&server, before, count, 8 << 10);
    // Now half of them begin a command that they never finish.
    for stream in idle.iter_mut().step_by(2) {
        stream.write_all(b"*16000\r\n$4\r\nSADD\r\n$1000000\r\nx").unwrap();
    }
    assert_eq!(server.redis("SADD following:1 3"), ":1");
    assert_eq!(server.get("/v1/users/1/counts").json()["following"], 2);
    for stream in idle.iter_mut().skip(1).step_by(2) {
        assert_eq!(ask(stream, "SISMEMBER following:1 3"), ":1");
    }
    assert_bounded(&server, before, count, 8 << 10);
    drop(idle);
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0, "{said:?}");
}

#[test]
fn idle_connections_of_rest_cost_little_and_hold_nobody_up() {
    let count = connections(2_000);
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "");
    let address = server.http.trim_start_matches("http://").to_owned();
    assert_eq!(server.get("/healthz").status, 200);
    let before = server.memory_bytes();
    // Half have asked once and stay; the others send one header after the other.
    let mut idle: Vec<TcpStream> = (0..count).map(|_| connect(&address)).collect();
    for stream in idle.iter_mut().step_by(2) {
        stream.write_all(b"GET /v1/users/1/counts HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        assert!(stream.read(&mut [0; 1_024]).unwrap() > 0);
    }
    for round in 0..4 {
        for stream in idle.iter_mut().skip(1).step_by(2) {
            let part: &[u8] = if round == 0 { b"GET /healthz HTTP/1.1\r\n" } else { b"x-slow: 1\r\nx-sl" };
            stream.write_all(&part[..part.len() - round]).unwrap();
        }
        assert_eq!(server.get("/healthz").status, 200);
    }
    assert_bounded(&server, before, count, 64 << 10);
    assert_eq!(server.redis("SADD following:1 3"), ":1");
    drop(idle);
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0, "{said:?}");
}

#[test]
fn clients_that_never_read_cost_little_and_hold_nobody_up() {
    const DEAF: usize = 24;
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "--limit-changes none");
    let members: String = (0..10_000_u64).map(|id| format!(" {}", 1_000_000_000_000_000_000 + id)).collect();
    for part in members.as_bytes().chunks(20 * 2_500) {
        let part = std::str::from_utf8(part).unwrap();
        assert_eq!(server.redis(&format!("SADD following:1{part}")), ":2500");
    }
    let before = server.memory_bytes();
    // Each reply has a quarter of a megabyte, and a few kilobytes of commands ask for gigabytes.
    let pipeline = "SMEMBERS following:1\r\n".repeat(500);
    let deaf: Vec<TcpStream> = (0..DEAF)
        .map(|number| {
            let mut stream = connect(&server.resp);
            let sent = fill(&mut stream, pipeline.as_bytes(), 64 << 20);
            assert!(sent < 64 << 20, "the server reads on for a client that does not: number {number}");
            assert_eq!(server.redis("SCARD following:1"), ":10000");
            stream
        })
        .collect();
    assert_bounded(&server, before, DEAF, 2 << 20);
    assert_eq!(server.redis("SADD following:2 3"), ":1");
    drop(deaf);
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0, "{said:?}");
}

/// A token of user 7 until the year 2100, signed with the key of the server's tests.
const TOKEN: &str = "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI3IiwiYXVkIjoia2luZm9sayIsImV4cCI6NDEwMjQ0NDgwMH0.\
                     VJGjpD89DxrLkglNvfHy7NLb2GROT2lGHSp2S-RWH5xSA-K-z5QbFFvsfxxwie11XjTITpnS97XfIVbJVegtCg";

#[test]
fn one_user_with_many_connections_holds_little_and_hurts_nobody() {
    const CONNECTIONS: usize = 100;
    const PART: usize = 1_000_000;
    let sandbox = Sandbox::new();
    let key = sandbox.ok("keys add other --scopes read,write --file keys.toml").trim().to_owned();
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/fixtures/test-only-ed-public.pem");
    // Not the rate of requests, but what they hold, is to be limited.
    let access = format!(
        "--auth-keys keys.toml --auth-token-keys {} --auth-audience kinfolk --limit-user none",
        keys.display()
    );
    let server = Running::start(&sandbox, &access);
    let login = |credential: &str| {
        let mut stream = connect(&server.resp);
        assert_eq!(ask(&mut stream, &format!("AUTH {credential}")), "+OK");
        stream
    };
    let mut other = login(&key);
    assert_eq!(ask(&mut other, "SADD following:1 2"), ":1");
    let before = server.memory_bytes();
    // Each has a transaction of megabytes, then a command of megabytes of which the end never comes.
    let mut part = format!("*2\r\n$4\r\nECHO\r\n${PART}\r\n").into_bytes();
    part.resize(part.len() + PART, b'x');
    part.extend(b"\r\n");
    let bulk = part[b"*2\r\n$4\r\nECHO\r\n".len()..].repeat(3);
    let unfinished = [b"*5\r\n$4\r\nECHO\r\n", bulk.as_slice(), b"$1000000\r\n", &bulk[..PART / 2]].concat();
    let held: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| {
            let mut stream = login(TOKEN);
            assert_eq!(ask(&mut stream, "MULTI"), "+OK");
            // Once there is too much of it, connections are ended: then writing fails.
            for bytes in [&part, &part, &part, &unfinished] {
                let _ = stream.write_all(bytes);
            }
            assert_eq!(ask(&mut other, "SISMEMBER following:1 2"), ":1");
            stream
        })
        .collect();
    // Of 6.5 MB each, as many are kept as the user may hold: 32 MiB of all. The allocator keeps about twice as much besides.
    assert_bounded(&server, before, CONNECTIONS, 2 << 20);
    drop(held);
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0, "{said:?}");
}

/// How many requests of REST were served, once that stays as it is.
fn served(server: &Running) -> usize {
    const NAME: &str = "kinfolk_request_duration_seconds_count{protocol=\"rest\",operation=\"other\"} ";
    let count = || -> usize {
        let text = server.get("/metrics").body;
        text.lines().find_map(|line| line.strip_prefix(NAME)).unwrap_or("0").parse().unwrap()
    };
    let (mut last, mut quiet) = (count(), 0);
    while quiet < 50 {
        let now = count();
        // Each look is a request, too.
        quiet = if now == last + 1 { quiet + 1 } else { 0 };
        last = now;
    }
    last
}

#[test]
fn responses_that_nobody_reads_cost_little() {
    const CLIENTS: usize = 200;
    const REQUESTS: usize = 10_000;
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "");
    let address = server.http.trim_start_matches("http://").to_owned();
    assert_eq!(server.get("/openapi.json").status, 200);
    let before = (server.memory_bytes(), served(&server));
    let ask = |count: usize| {
        let mut stream = connect(&address);
        let request = "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\naccept-encoding: gzip\r\n\r\n";
        fill(&mut stream, request.repeat(count).as_bytes(), request.len() * count);
        stream
    };
    let one = ask(REQUESTS);
    let looks = served(&server) - before.1;
    assert!(looks < REQUESTS / 2, "{looks} of {REQUESTS} requests were served");
    assert_bounded(&server, before.0, 1, 16 << 20);
    let many: Vec<TcpStream> = (0..CLIENTS).map(|_| ask(REQUESTS / CLIENTS)).collect();
    served(&server);
    assert_bounded(&server, before.0, CLIENTS, 256 << 10);
    assert_eq!(server.redis("SADD following:2 3"), ":1");
    drop((one, many));
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0, "{said:?}");
}

#[test]
fn exports_that_nobody_reads_cost_little_and_are_few() {
    const CLIENTS: usize = 50;
    const JOBS: usize = 4;
    let sandbox = Sandbox::new();
    let edges: String = (0..1_000_000_u64)
        .map(|at| format!("{},{}\n", 1_000_000_000_000_000 + at / 50, 2_000_000_000_000_000 + at))
        .collect();
    sandbox.write("edges.csv", &edges);
    assert_eq!(sandbox.run("import edges.csv --data kinfolk-data").status, 0);
    let server = Running::start(&sandbox, "");
    let address = server.http.trim_start_matches("http://").to_owned();
    assert_eq!(server.get("/v1/admin/export?content=comments").status, 200);
    let before = server.memory_bytes();
    let mut taken = 0;
    let deaf: Vec<TcpStream> = (0..CLIENTS)
        .map(|_| {
            let mut stream = connect(&address);
            stream.write_all(b"GET /v1/admin/export HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            let mut status = [0; 12];
            stream.read_exact(&mut status).unwrap();
            taken += usize::from(status.ends_with(b"200"));
            stream
        })
        .collect();
    assert_eq!(taken, JOBS);
    served(&server);
    assert_bounded(&server, before, JOBS, 16 << 20);
    drop(deaf);
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0, "{said:?}");
}

#[test]
fn announced_gigabytes_cost_nothing() {
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "");
    assert_eq!(server.redis("PING"), "+PONG");
    let before = server.memory_bytes();
    let mut waiting = Vec::new();
    for _ in 0..500 {
        for announced in
            ["*2\r\n$4\r\nECHO\r\n$4000000000\r\n", "*2147483647\r\n", "*1\r\n$-9223372036854775808\r\n"]
        {
            let mut stream = connect(&server.resp);
            stream.write_all(announced.as_bytes()).unwrap();
            let mut answer = String::new();
            BufReader::new(&stream).read_line(&mut answer).unwrap();
            assert!(answer.starts_with("-ERR Protocol error"), "{announced:?}: {answer:?}");
        }
        // As much as is allowed, of which nothing comes.
        let mut stream = connect(&server.resp);
        stream.write_all(b"*16384\r\n$4\r\nECHO\r\n$1048576\r\n").unwrap();
        waiting.push(stream);
    }
    assert_eq!(server.redis("PING"), "+PONG");
    assert_bounded(&server, before, 2_000, 8 << 10);
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0, "{said:?}");
}

#[test]
fn without_descriptors_those_who_are_there_are_served_and_others_later() {
    let sandbox = Sandbox::new();
    let serve = sandbox.command(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 120; exec \"$0\" \"$@\""]).arg(serve.get_program()).args(serve.get_args());
    limited.current_dir(serve.get_current_dir().unwrap());
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let server = Running::from_command(limited).unwrap();
    let mut first = connect(&server.resp);
    assert_eq!(ask(&mut first, "SADD following:1 2"), ":1");
    let crowd: Vec<TcpStream> = (0..200).map(|_| connect(&server.resp)).collect();
    server.line_with("could not be accepted");
    assert_eq!(ask(&mut first, "SISMEMBER following:1 2"), ":1");
    assert_eq!(ask(&mut first, "SADD following:1 3"), ":1", "a write needs no new descriptor");
    drop(crowd);
    assert_eq!(server.redis("SCARD following:1"), ":2");
    assert_eq!(server.get("/healthz").status, 200);
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0, "{said:?}");
}
