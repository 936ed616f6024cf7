//! What connections hold while they wait: bounded for each connection, for each caller and for all, and given back.

use std::time::{Duration, Instant};

use kinfolk_server::resp::RespSettings;

use super::access::{Guarded, guarded, token, usual};
use super::client::Client;
use super::server::{Server, Setup};

const KIB: usize = 1 << 10;
/// A command of so many bytes needs a buffer of 64 KiB until it is whole.
const LARGE: usize = 60_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// A client of an end user.
fn login(guarded: &Guarded, user: u64) -> Client {
    let mut client = guarded.server.connect();
    assert_eq!(client.call(&format!("AUTH {}", token(user))), "+OK");
    client
}

/// Begins a large command.
fn begin(client: &mut Client) {
    client.send(format!("*2\r\n$4\r\nECHO\r\n${LARGE}\r\n").as_bytes());
    client.send(&vec![b'x'; LARGE - 1]);
}

/// Finishes the command that was begun.
fn finish(client: &mut Client) {
    client.send(b"x\r\n");
    assert_eq!(client.reply().len(), LARGE + 2);
}

/// A number that `INFO` reports. Users may not ask as often as the tests do, so some calls are refused.
fn info(client: &mut Client, name: &str) -> usize {
    let mut replies = std::iter::from_fn(|| Some(client.call("INFO")));
    let text = replies.find(|reply| !reply.starts_with("-LIMIT ")).unwrap();
    let value = text.split(&format!("{name}:")).nth(1).unwrap_or_else(|| panic!("{text}"));
    value.split('\\').next().unwrap().parse().unwrap()
}

/// Waits until a number of `INFO` is as it should be.
fn wait_for(client: &mut Client, name: &str, is_right: impl Fn(usize) -> bool) {
    let patience = Instant::now() + PATIENCE;
    loop {
        let value = info(client, name);
        if is_right(value) {
            return;
        }
        assert!(Instant::now() < patience, "{name} stays at {value}");
    }
}

fn wait_for_held(client: &mut Client, bytes: usize) {
    wait_for(client, "mem_clients_normal", |held| held == bytes);
}

#[test]
fn unfinished_commands_of_one_caller_are_bounded_and_hurt_no_other() {
    let guarded = guarded(RespSettings { user_memory_bytes_max: 256 * KIB, ..usual() });
    let (mut other, mut watching) = (login(&guarded, 8), login(&guarded, 9));
    let mut greedy: Vec<_> = (1..=4)
        .map(|number| {
            let mut client = login(&guarded, 7);
            begin(&mut client);
            wait_for_held(&mut watching, number * 64 * KIB);
            client
        })
        .collect();
    let mut refused = login(&guarded, 7);
    begin(&mut refused);
    let error = "-ERR the connections of this caller would hold more than 262144 bytes";
    assert!(refused.reply().starts_with(error));
    refused.assert_closed();
    // Small commands of the same caller go on, and so does everything of others.
    assert_eq!(login(&guarded, 7).call("PING"), "+PONG");
    begin(&mut other);
    wait_for_held(&mut watching, 5 * 64 * KIB);
    finish(&mut other);
    // What was begun can be finished, which makes room again; so does a client that leaves.
    finish(&mut greedy[0]);
    wait_for_held(&mut watching, 3 * 64 * KIB);
    begin(&mut greedy[0]);
    wait_for_held(&mut watching, 4 * 64 * KIB);
    drop(greedy);
    wait_for_held(&mut watching, 0);
}

#[test]
fn transactions_of_one_caller_are_bounded_and_discarded_beyond() {
    let guarded = guarded(RespSettings { user_memory_bytes_max: 512 * KIB, ..usual() });
    let (mut other, mut watching) = (login(&guarded, 8), login(&guarded, 9));
    let echo = format!("ECHO {}", "x".repeat(20_000));
    let mut open = Vec::new();
    let refusal = loop {
        let mut client = login(&guarded, 7);
        assert_eq!(client.call("MULTI"), "+OK");
        let refusal = (0..5).map(|_| client.call(&echo)).find(|reply| reply != "+QUEUED");
        open.push(client);
        assert!(info(&mut watching, "mem_clients_normal") <= 512 * KIB);
        if let Some(refusal) = refusal {
            break refusal;
        }
        assert!(open.len() < 20, "nothing bounds them");
    };
    assert!(refusal.starts_with("-ERR the connections of this caller would hold more than"), "{refusal}");
    let mut refused = open.pop().unwrap();
    let held = info(&mut watching, "mem_clients_normal");
    assert_eq!(refused.call("PING"), "+QUEUED");
    assert_eq!(
        info(&mut watching, "mem_clients_normal"),
        held,
        "a transaction that is discarded holds nothing"
    );
    assert!(refused.call("EXEC").starts_with("-EXECABORT "));
    assert_eq!(refused.call("PING"), "+PONG");
    assert_eq!(other.call_all(&["MULTI", &echo, "EXEC"])[1], "+QUEUED");
    // Each way to end a transaction gives its memory back.
    for (client, end) in open.iter_mut().zip(["EXEC", "DISCARD", "RESET", "QUIT"].into_iter().cycle()) {
        let before = info(&mut watching, "mem_clients_normal");
        client.call(end);
        wait_for(&mut watching, "mem_clients_normal", |held| held < before);
    }
    wait_for_held(&mut watching, 0);
    assert_eq!(refused.call_all(&["MULTI", &echo, "DISCARD"]), ["+OK", "+QUEUED", "+OK"]);
}

#[test]
fn replies_that_one_caller_does_not_take_are_bounded() {
    let write_timeout = Duration::from_secs(600);
    let guarded = guarded(RespSettings { service_memory_bytes_max: 512 * KIB, write_timeout, ..usual() });
    let mut other = login(&guarded, 8);
    let members: Vec<String> = (10..5_010).map(|id| id.to_string()).collect();
    assert_eq!(other.call(&format!("SADD following:8 {}", members.join(" "))), "5000");
    // More replies than a socket takes, for commands that fit into one read.
    let pipeline = "SMEMBERS following:8\r\n".repeat(800);
    let deaf: Vec<_> = (0..16)
        .map(|_| {
            let mut client = guarded.server.connect();
            assert_eq!(client.call(&format!("AUTH {}", guarded.reader)), "+OK");
            client.send(pipeline.as_bytes());
            client
        })
        .collect();
    // All but a few are ended long before they would be for not reading.
    wait_for(&mut other, "connected_clients", |connected| connected <= 6);
    wait_for(&mut other, "mem_clients_normal", |held| (100 * KIB..=512 * KIB).contains(&held));
    drop(deaf);
    wait_for_held(&mut other, 0);
}

#[test]
fn all_connections_together_are_bounded_and_small_commands_go_on() {
    let settings = RespSettings { threads: 1, memory_bytes_max: 128 * KIB, ..RespSettings::default() };
    let server = Server::with(Setup { settings, ..Setup::default() });
    let mut watching = server.connect();
    let mut held = [server.connect(), server.connect()];
    for (number, client) in held.iter_mut().enumerate() {
        begin(client);
        wait_for_held(&mut watching, (number + 1) * 64 * KIB);
    }
    let mut refused = server.connect();
    begin(&mut refused);
    assert!(refused.reply().starts_with("-ERR all connections together would hold more than 131072 bytes"));
    refused.assert_closed();
    assert_eq!(watching.call_all(&["MULTI", "SADD following:1 2", "EXEC"])[2], "[1]");
    held.iter_mut().for_each(finish);
    wait_for_held(&mut watching, 0);
}

#[test]
fn one_connection_is_bounded() {
    let settings =
        RespSettings { threads: 1, connection_memory_bytes_max: 100 * KIB, ..RespSettings::default() };
    let server = Server::with(Setup { settings, ..Setup::default() });
    let mut client = server.connect();
    begin(&mut client);
    finish(&mut client);
    // A transaction and a command are counted together.
    assert_eq!(client.call_all(&["MULTI", &format!("ECHO {}", "x".repeat(50_000))]), ["+OK", "+QUEUED"]);
    begin(&mut client);
    assert!(client.reply().starts_with("-ERR this connection would hold more than 102400 bytes"));
    client.assert_closed();
    wait_for_held(&mut server.connect(), 0);
}

#[test]
fn strangers_share_what_one_user_may_hold() {
    let guarded = guarded(RespSettings { user_memory_bytes_max: 64 * KIB, ..usual() });
    let mut known = login(&guarded, 7);
    let begun = format!("*2\r\n$4\r\nAUTH\r\n$16000\r\n{}", "x".repeat(15_000));
    let mut strangers = [guarded.server.connect(), guarded.server.connect()];
    for (number, client) in strangers.iter_mut().enumerate() {
        client.send(begun.as_bytes());
        wait_for_held(&mut known, (number + 1) * 32 * KIB);
    }
    let mut refused = guarded.server.connect();
    refused.send(begun.as_bytes());
    assert!(
        refused.reply().starts_with("-ERR the connections of this caller would hold more than 65536 bytes")
    );
    refused.assert_closed();
    assert_eq!(login(&guarded, 8).call("PING"), "+PONG");
}

#[test]
fn a_large_command_leaves_no_large_buffer_behind() {
    let server = Server::start();
    let (mut client, mut watching) = (server.connect(), server.connect());
    let large = format!("*2\r\n$4\r\nECHO\r\n$900000\r\n{}\r\n", "x".repeat(900_000));
    // Of the command behind it, more arrives than is kept without being counted.
    client.send(format!("{large}*2\r\n$4\r\nECHO\r\n$20000\r\n{}", "y".repeat(10_000)).as_bytes());
    assert_eq!(client.reply().len(), 900_002);
    wait_for_held(&mut watching, 32 * KIB);
    client.send(format!("{}\r\n", "y".repeat(10_000)).as_bytes());
    assert_eq!(client.reply().len(), 20_002);
    wait_for_held(&mut watching, 0);
}
