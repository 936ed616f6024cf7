//! `MULTI`, `EXEC`, `DISCARD`, as libraries send them around a pipeline.

use std::io::Read;
use std::time::{Duration, Instant};

use kinfolk_core::graph::GraphSettings;
use kinfolk_server::resp::RespSettings;

use super::super::backing::HAS_CONTENT;
use super::client::encode;
use super::server::{Server, Setup};

#[test]
fn commands_run_in_order_and_writes_in_one_commit() {
    let server = Server::start();
    let mut client = server.connect();
    let replies = client.call_all(&[
        "MULTI",
        "SADD following:1 2 3",
        "SREM following:1 3",
        "SADD following:4 2",
        "SISMEMBER following:1 2",
        "SCARD following:1",
        "EXEC",
        "PING",
    ]);
    assert_eq!(replies[0], "+OK");
    assert!(replies[1..6].iter().all(|reply| reply == "+QUEUED"), "{replies:?}");
    assert_eq!(replies[6..], ["[2, 1, 1, 1, 1]", "+PONG"]);
    assert_eq!(server.watch.commits(), 1);
}

#[test]
fn nothing_happens_before_exec() {
    let server = Server::start();
    let (mut client, mut other) = (server.connect(), server.connect());
    assert_eq!(client.call_all(&["MULTI", "SADD following:1 2"]), ["+OK", "+QUEUED"]);
    assert_eq!(other.call("SCARD following:1"), "0");
    assert_eq!(client.call("DISCARD"), "+OK");
    assert_eq!(client.call("SCARD following:1"), "0");
    assert_eq!(client.call_all(&["MULTI", "EXEC"]), ["+OK", "[]"]);
}

#[test]
fn a_command_that_fails_leaves_the_others() {
    let server = Server::start();
    let mut client = server.connect();
    let replies = client.call_all(&["MULTI", "FOLLOW 1 1", "SADD following:1 2", "SISMEMBER x 2", "EXEC"]);
    let expected =
        "[-ERR a user cannot follow itself, 1, -WRONGTYPE a key must be following:ID or followers:ID]";
    assert_eq!(replies[4], expected);
}

#[test]
fn the_writes_of_one_follower_that_come_one_after_another_are_whole() {
    let graph = GraphSettings { following_limit: 3, ..GraphSettings::default() };
    let server = Server::with(Setup { graph, ..Setup::default() });
    let mut client = server.connect();
    let replies = client.call_all(&[
        "MULTI",
        "SADD following:1 2 3",
        "FOLLOW 1 1",
        "SADD following:1 4 5",
        "SADD following:9 5",
        "SREM following:9 5",
        "SADD following:1 6",
        "SADD following:2 6",
        "EXEC",
        "SMEMBERS following:1",
    ]);
    let limit = "-LIMIT user 1 already follows 3 users, the maximum";
    let expected = format!("[{limit}, -ERR a user cannot follow itself, {limit}, 1, 1, 1, 1]");
    assert_eq!(replies[8..], [expected.as_str(), "[\"6\"]"]);
    assert_eq!(server.watch.commits(), 1);
    // A read or a post between them makes them two requests.
    for between in if HAS_CONTENT { &["SCARD following:1", "POST 1"][..] } else { &["SCARD following:1"] } {
        client.call_all(&["MULTI", "SADD following:5 1 2", between, "SADD following:5 3 4", "EXEC"]);
        assert_eq!(client.call("SMISMEMBER following:5 1 2 3 4"), "[1, 1, 0, 0]", "{between}");
        assert_eq!(client.call("SREM following:5 1 2"), "2");
    }
    // Outside of a transaction each command stands for itself.
    let replies = client.call_all(&["SADD following:7 1 2", "SADD following:7 3 4", "SADD following:7 5"]);
    assert_eq!(replies, ["2", "-LIMIT user 7 already follows 3 users, the maximum", "1"]);
}

#[test]
fn a_command_that_can_not_be_queued_aborts() {
    let server = Server::start();
    let mut client = server.connect();
    for wrong in ["NONSENSE", "SADD following:1"] {
        let replies = client.call_all(&["MULTI", "SADD following:1 2", wrong, "EXEC", "SCARD following:1"]);
        assert!(replies[2].starts_with("-ERR "), "{replies:?}");
        assert!(replies[3].starts_with("-EXECABORT "), "{replies:?}");
        assert_eq!(replies[4], "0");
    }
}

#[test]
fn wrong_order_is_told() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.call("EXEC"), "-ERR EXEC without MULTI");
    assert_eq!(client.call("DISCARD"), "-ERR DISCARD without MULTI");
    assert_eq!(client.call("MULTI"), "+OK");
    assert_eq!(client.call("MULTI"), "-ERR MULTI calls can not be nested");
    assert!(client.call("WATCH following:1").starts_with("-ERR WATCH"));
    assert_eq!(client.call_all(&["PING", "EXEC"]), ["+QUEUED", "[+PONG]"]);
    assert_eq!(client.call_all(&["MULTI", "PING", "RESET", "PING"]), ["+OK", "+QUEUED", "+RESET", "+PONG"]);
    // A refused EXEC ends its transaction.
    let replies = client.call_all(&["MULTI", "PING", "EXEC 1", "PING"]);
    assert_eq!([&replies[1], &replies[3]], ["+QUEUED", "+PONG"]);
    assert!(replies[2].starts_with("-EXECABORT"), "{}", replies[2]);
}

#[test]
fn a_queue_has_a_bound() {
    let settings = RespSettings { threads: 1, transaction_bytes_max: 2_000, ..RespSettings::default() };
    let server = Server::with(Setup { settings, ..Setup::default() });
    let mut client = server.connect();
    assert_eq!(client.call("MULTI"), "+OK");
    let refused = (0..100).map(|_| client.call("SADD following:1 2")).find(|reply| reply != "+QUEUED");
    assert!(refused.unwrap().starts_with("-ERR the request is larger"));
    assert!(client.call("EXEC").starts_with("-EXECABORT"));
}

fn queue(client: &mut super::client::Client, commands: &[String]) {
    assert_eq!(client.call("MULTI"), "+OK");
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    assert!(client.call_all(&commands).iter().all(|reply| reply == "+QUEUED"));
}

#[test]
fn a_large_transaction_is_one_commit_or_refused() {
    let server = Server::start();
    let mut client = server.connect();
    let mut commands: Vec<String> =
        (0..9_996).map(|number| format!("SADD following:{number} 20000")).collect();
    commands.extend(["FOLLOW 7 7", "SADD following:1 5 6", "SADD following:2 7"].map(str::to_owned));
    queue(&mut client, &commands);
    let reply = client.call("EXEC");
    assert!(
        reply.ends_with("1, 1, -ERR a user cannot follow itself, 2, 1]"),
        "{}",
        &reply[reply.len() - 80..]
    );
    assert_eq!(server.watch.commits(), 1);

    queue(&mut client, &commands);
    assert!(
        client.call("SADD following:1 2 3").starts_with("-ERR 10002 commands and edges in one transaction")
    );
    assert!(client.call("EXEC").starts_with("-EXECABORT "));
}

#[test]
fn a_client_that_leaves_does_not_stop_it_half_way() {
    let server = Server::start();
    let mut other = server.connect();
    let members: Vec<String> = (2..5_002).map(|id| id.to_string()).collect();
    assert_eq!(other.call(&format!("SADD following:1 {}", members.join(" "))), "5000");
    let mut commands = vec!["SMEMBERS following:1".to_owned(); 500];
    commands.push("SADD following:2 3".to_owned());
    let mut client = server.connect();
    queue(&mut client, &commands);
    client.send(&encode("EXEC"));
    // It has begun, and is not through: the replies are more than a socket holds.
    client.stream.read_exact(&mut [0]).unwrap();
    assert_eq!(other.call("SCARD following:2"), "0");
    drop(client);
    let patience = Instant::now() + Duration::from_secs(30);
    while other.call("SCARD following:2") == "0" {
        assert!(Instant::now() < patience, "the transaction has stopped");
    }
}

#[test]
fn a_wrong_subcommand_is_refused_when_it_is_queued() {
    let server = Server::start();
    let mut client = server.connect();
    let replies = client.call_all(&["MULTI", "CLIENT nonsense", "CLIENT SETNAME", "CLIENT ID", "EXEC"]);
    assert_eq!(replies[1], "-ERR unknown subcommand 'nonsense'. Try CLIENT HELP.");
    assert_eq!(replies[2], "-ERR wrong number of arguments for 'client|setname' command");
    assert_eq!(replies[3], "+QUEUED");
    assert!(replies[4].starts_with("-EXECABORT "), "{replies:?}");
    let replies = client.call_all(&["MULTI", "COMMAND", "CLIENT HELP", "EXEC"]);
    assert!(replies[3].starts_with("[[["), "{replies:?}");
}
