//! Connections among each other: many, idle, slow, too many, and their end.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use kinfolk_server::resp::RespSettings;

use super::client::encode;
use super::server::{Server, Setup};

fn with(settings: RespSettings) -> Server {
    Server::with(Setup { settings, ..Setup::default() })
}

#[test]
fn a_client_that_never_reads_is_dropped_and_hurts_nobody() {
    let write_timeout = Duration::from_millis(300);
    let server = with(RespSettings { threads: 1, write_timeout, ..RespSettings::default() });
    let mut other = server.connect();
    let members: Vec<String> = (2..5_002).map(|id| id.to_string()).collect();
    assert_eq!(other.call(&format!("SADD following:1 {}", members.join(" "))), "5000");
    let mut deaf = server.connect();
    let part = encode("SMEMBERS following:1").repeat(100);
    // The server stops reading when its replies are not taken, and ends the connection after a while.
    let failed = loop {
        match deaf.stream.write_all(&part) {
            Ok(()) => assert_eq!(other.call("PING"), "+PONG"),
            Err(error) => break error.kind(),
        }
    };
    assert!(matches!(failed, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{failed:?}");
    assert_eq!(other.call("SCARD following:1"), "5000");
}

#[test]
fn announced_gigabytes_and_unfinished_frames_hurt_nobody() {
    let server = with(RespSettings { threads: 1, ..RespSettings::default() });
    let mut unfinished: Vec<_> = (0..200)
        .map(|number| {
            let mut client = server.connect();
            let announced =
                if number % 2 == 0 { "*16000\r\n$1000000\r\n" } else { "*2\r\n$4\r\nECHO\r\n$1000\r\nx" };
            client.send(announced.as_bytes());
            client
        })
        .collect();
    assert_eq!(server.connect().call("PING"), "+PONG");
    let mut last = unfinished.pop().unwrap();
    last.send("y".repeat(999).as_bytes());
    last.send(b"\r\n");
    assert_eq!(last.reply(), format!("\"x{}\"", "y".repeat(999)));
}

#[test]
fn many_idle_connections_are_served_again() {
    let server = with(RespSettings { threads: 2, ..RespSettings::default() });
    let mut clients: Vec<_> = (0..500).map(|_| server.connect()).collect();
    for round in 0..2 {
        for client in &mut clients {
            assert_eq!(client.call("PING"), "+PONG", "round {round}");
        }
    }
}

#[test]
fn too_many_connections_are_told() {
    let server = with(RespSettings { threads: 1, connections_max: 2, ..RespSettings::default() });
    let (mut one, mut two) = (server.connect(), server.connect());
    assert_eq!((one.call("PING"), two.call("PING")), ("+PONG".to_owned(), "+PONG".to_owned()));
    let mut three = server.connect();
    assert_eq!(three.reply(), "-ERR too many connections");
    three.assert_closed();
    one.call("QUIT");
    one.assert_closed();
    // The place becomes free when the server has noticed.
    loop {
        let mut next = server.connect();
        next.send(&encode("PING"));
        if next.try_reply().as_deref() == Some("+PONG") {
            break;
        }
    }
}

#[test]
fn silence_ends_a_connection_if_that_is_set() {
    let idle_max = Some(Duration::from_millis(50));
    let server = with(RespSettings { threads: 1, idle_max, ..RespSettings::default() });
    let mut client = server.connect();
    assert_eq!(client.call("PING"), "+PONG");
    client.assert_closed();
}

#[test]
fn what_is_not_finished_in_time_ends_its_connection() {
    let unfinished_max = Duration::from_millis(100);
    let server = with(RespSettings { threads: 1, unfinished_max, ..RespSettings::default() });
    let mut idle = server.connect();
    assert_eq!(idle.call("PING"), "+PONG");
    for begun in ["*2\r\n$4\r\nECHO\r\n$5\r\nhe", "PIN", "PING\r\n*1\r\n", "*1\r\n$100000\r\n"] {
        let mut client = server.connect();
        client.send(begun.as_bytes());
        let replies: Vec<_> = std::iter::from_fn(|| client.try_reply()).collect();
        let error = "-ERR a command was not finished within 0.1 s: send all of it at once";
        assert_eq!(replies.last().unwrap(), error, "{begun:?}");
    }
    let mut client = server.connect();
    assert_eq!(client.call_all(&["MULTI", "SADD following:1 2"]), ["+OK", "+QUEUED"]);
    assert_eq!(client.reply(), "-ERR a transaction was not finished within 0.1 s: send all of it at once");
    client.assert_closed();
    // Who has nothing unfinished may be silent for as long as it likes, and may begin again.
    assert_eq!(idle.call_all(&["MULTI", "SCARD following:1", "EXEC"])[2], "[0]");
}

#[test]
fn a_stop_finishes_what_was_received() {
    let server = Server::start();
    let (mut idle, mut writer) = (server.connect(), server.connect());
    assert_eq!(idle.call("PING"), "+PONG");
    assert_eq!(writer.call("PING"), "+PONG");
    server.watch.close();
    writer.send_all(&["SADD following:1 2", "SCARD following:1"]);
    // The other connection's answer shows that the server has turned to the writer's commands or will do so first.
    assert_eq!(idle.call("PING"), "+PONG");
    server.stop();
    idle.assert_closed();
    server.watch.open();
    assert_eq!([writer.reply(), writer.reply()], ["1", "1"]);
    writer.assert_closed();
}
