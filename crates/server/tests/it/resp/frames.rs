//! What is not a command, or too large to be one.

use std::sync::Arc;

use kinfolk_server::resp::RespSettings;
use kinfolk_server::resp::frame::FrameLimits;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::server::{Server, Setup};

#[test]
fn a_malformed_frame_ends_the_connection_after_what_came_before_it() {
    let server = Server::start();
    for malformed in [
        "*1\r\n:1\r\n",
        "*1\r\n*1\r\n$4\r\nPING\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$4\r\nPINGPING\r\n",
        "*x\r\n",
        "ECHO \"a\r\n",
        "*1000000\r\n",
        "*1\r\n$4000000000\r\n",
    ] {
        let mut client = server.connect();
        let sent = format!("*1\r\n$4\r\nPING\r\nSADD following:1 2\r\n{malformed}PING\r\n");
        client.send(sent.as_bytes());
        assert_eq!(client.reply(), "+PONG");
        client.reply();
        let error = client.reply();
        assert!(error.starts_with("-ERR Protocol error: "), "{malformed:?}: {error}");
        client.assert_closed();
    }
}

#[test]
fn lines_are_commands_too() {
    let server = Server::start();
    let mut client = server.connect();
    client.send(b"\r\n\nping\r\n  SADD following:1 '2' \"3\"\r\nSCARD following:1\n*0\r\n*-1\r\n");
    assert_eq!([client.reply(), client.reply(), client.reply()], ["+PONG", "2", "2"]);
    assert_eq!(client.call("PING"), "+PONG");
}

#[test]
fn ten_thousand_members_fit_and_their_limit_is_told() {
    let server = Server::start();
    let mut client = server.connect();
    let members: Vec<String> = (1..=10_001).map(|id| (1_000_000_000_000_000_u64 + id).to_string()).collect();
    let reply = client.call(&format!("SADD following:1 {}", members.join(" ")));
    assert!(reply.starts_with("-ERR 10001 commands in one call are too many"), "{reply}");
    let reply = client.call(&format!("SADD following:1 {}", members[1..].join(" ")));
    assert_eq!(reply, "10000");
}

#[test]
fn settings_bound_a_frame() {
    let frame = FrameLimits {
        frame_bytes_max: 1_000,
        bulk_bytes_max: 500,
        arguments_max: 5,
        inline_bytes_max: 50,
        is_authenticated: true,
    };
    let settings = RespSettings { threads: 1, frame, ..RespSettings::default() };
    let server = Server::with(Setup { settings, ..Setup::default() });
    for too_large in [
        format!("*2\r\n$4\r\nECHO\r\n$501\r\n{}\r\n", "x".repeat(501)),
        "*3\r\n$400\r\n".to_owned() + &"x".repeat(400) + "\r\n$400\r\n" + &"x".repeat(400) + "\r\n$400\r\n",
        "*6\r\n".to_owned(),
        "x".repeat(51),
    ] {
        let mut client = server.connect();
        client.send(too_large.as_bytes());
        assert!(client.reply().starts_with("-ERR Protocol error: "));
        client.assert_closed();
    }
    let mut client = server.connect();
    let largest = "x".repeat(500);
    assert_eq!(client.call(&format!("ECHO {largest}")), format!("{largest:?}"));
}

/// The first bytes of a client that uses TLS.
fn client_hello() -> Vec<u8> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let mut hello = Vec::new();
    let mut client = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    client.write_tls(&mut hello).unwrap();
    hello
}

#[test]
fn what_is_not_the_protocol_gets_one_error_and_nothing_behind_it_runs() {
    let server = Server::start();
    let not_a_command = "-ERR Protocol error: a command is an array of bulk strings, or a line of text";
    let hello = client_hello();
    for (bytes, error) in [
        (hello.as_slice(), "-ERR Protocol error: this port does not use TLS"),
        (b"\x16\x03\x01", "-ERR Protocol error: this port does not use TLS"),
        (b"\x00\x01\x02\x03", not_a_command),
        (b"\xff\xfe\xfd", not_a_command),
        (b"PING \x01\x02", not_a_command),
        (b"PING\xff", not_a_command),
        (b"+PONG", not_a_command),
        (b"$4\r\nPING", not_a_command),
        (b"POST / HTTP/1.1 ", "-ERR Protocol error: this is the Redis protocol, not HTTP"),
    ] {
        let mut client = server.connect();
        client.send(&[b"PING\r\n", bytes, b"\r\nSADD following:1 2\r\n"].concat());
        assert_eq!(client.reply(), "+PONG");
        let reply = client.reply();
        assert!(reply.starts_with(error), "{bytes:?}: {reply}");
        client.assert_closed();
    }
    // Nor does it wait for a line break that never comes.
    let mut client = server.connect();
    client.send(&hello[..5]);
    assert_eq!(client.reply(), "-ERR Protocol error: this port does not use TLS");
    client.assert_closed();
    assert_eq!(server.connect().call("SCARD following:1"), "0");
}

#[test]
fn a_web_page_can_not_speak_it() {
    let server = Server::start();
    for head in [
        "POST / HTTP/1.1\r\nHost: 127.0.0.1:7401\r\n\r\n",
        "GET /x http/1.0\r\n",
        "Host: 127.0.0.1:7401\r\n",
        "host:x\r\n",
    ] {
        let mut client = server.connect();
        client.send(format!("{head}SADD following:1 2\r\n").as_bytes());
        assert_eq!(client.reply(), "-ERR Protocol error: this is the Redis protocol, not HTTP");
        client.assert_closed();
    }
    assert_eq!(server.connect().call("SCARD following:1"), "0");
    assert_eq!(server.connect().call("ECHO HTTP/1.1"), "\"HTTP/1.1\"");
}
