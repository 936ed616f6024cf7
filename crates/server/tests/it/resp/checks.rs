//! Runs of checks in a pipeline: answered at once where the store can, and otherwise in one call, in their order.

use std::time::Duration;

use kinfolk_core::Error;
use kinfolk_core::graph::GraphSettings;

use super::client::Client;
use super::server::{Server, Setup};

/// User 1 follows the multiples of five, up to 100.
fn follow_fives(client: &mut Client) {
    let fives: Vec<String> = (1..=20).map(|number| (number * 5).to_string()).collect();
    assert_eq!(client.call(&format!("SADD following:1 {}", fives.join(" "))), "20");
}

/// So many checks, by alternating commands, and their replies.
fn checks(count: u64) -> (Vec<String>, Vec<String>) {
    let command = |id: u64| match id % 3 {
        0 => format!("SISMEMBER following:1 {id}"),
        1 => format!("FOLLOWS 1 {id}"),
        _ => format!("SISMEMBER followers:{id} 1"),
    };
    let replies = (2..count + 2).map(|id| u8::from(id % 5 == 0 && id <= 100).to_string());
    ((2..count + 2).map(command).collect(), replies.collect())
}

fn call_all(client: &mut Client, commands: &[String]) -> Vec<String> {
    client.call_all(&commands.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_run_is_one_call_at_most() {
    let server = Server::start();
    let mut client = server.connect();
    follow_fives(&mut client);
    let (commands, replies) = checks(64);
    // None, all, or some of them are answered at once.
    for (divisor, calls) in [(0, 1), (1, 0), (2, 1), (7, 1)] {
        server.watch.answer_now(divisor);
        let before = server.watch.checks();
        assert_eq!(call_all(&mut client, &commands), replies, "{divisor}");
        assert_eq!(server.watch.checks() - before, calls, "{divisor}");
    }
}

#[test]
fn a_run_is_no_longer_than_the_graph_takes() {
    let graph = GraphSettings { check_pairs_max: 10, ..GraphSettings::default() };
    let server = Server::with(Setup { graph, ..Setup::default() });
    let mut client = server.connect();
    follow_fives(&mut client);
    let (commands, replies) = checks(64);
    assert_eq!(call_all(&mut client, &commands), replies);
    assert_eq!(server.watch.checks(), 7);
}

#[test]
fn a_check_sees_the_writes_before_it_and_not_those_after_it() {
    let server = Server::start();
    let mut client = server.connect();
    for divisor in [0, 1, 2, 3] {
        server.watch.answer_now(divisor);
        let mut commands = Vec::new();
        for id in 2..22 {
            commands.push(format!("SISMEMBER following:1 {id}"));
            commands.push(format!("FOLLOWS 1 {}", id + 1));
            commands.push(format!("SADD following:1 {id} {}", id + 1));
            commands.push(format!("SISMEMBER following:1 {id}"));
            commands.push(format!("FOLLOWS 1 {}", id + 1));
            commands.push(format!("SREM following:1 {id} {}", id + 1));
        }
        let expected = ["0", "0", "2", "1", "1", "2"].repeat(20);
        assert_eq!(call_all(&mut client, &commands), expected, "{divisor}");
    }
}

#[test]
fn other_commands_and_refusals_keep_their_place() {
    let server = Server::start();
    let mut client = server.connect();
    server.watch.answer_now(2);
    let replies = client.call_all(&[
        "SADD following:1 4 5",
        "SISMEMBER following:1 5",
        "SISMEMBER friends:1 5",
        "NONSENSE",
        "SISMEMBER following:1 4",
        "SISMEMBER following:1 x",
        "SISMEMBER following:1 7",
        "ECHO a",
        "SISMEMBER following:1",
        "FOLLOWS 1 4 5 6",
        "FOLLOWS 1 5",
        "FOLLOW 1 1",
        "FOLLOWS 1 5",
    ]);
    let expected = [
        "2",
        "1",
        "-WRONGTYPE",
        "-ERR unknown",
        "1",
        "-ERR \"x\"",
        "0",
        "\"a\"",
        "-ERR wrong number",
        "[1, 1, 0]",
        "1",
        "-ERR a user",
        "1",
    ];
    for (reply, expected) in replies.iter().zip(expected) {
        assert!(reply.starts_with(expected), "{replies:?}");
    }
}

#[test]
fn a_transaction_has_runs_too() {
    let server = Server::start();
    let mut client = server.connect();
    follow_fives(&mut client);
    server.watch.answer_now(2);
    let (mut commands, replies) = checks(64);
    commands.insert(0, "MULTI".to_owned());
    commands.push("EXEC".to_owned());
    let answered = call_all(&mut client, &commands).pop().unwrap();
    assert_eq!(answered, format!("[{}]", replies.join(", ")));
    assert_eq!(server.watch.checks(), 1);
}

#[test]
fn a_run_that_fails_fails_where_the_store_was_asked() {
    let server = Server::start();
    let mut client = server.connect();
    server.watch.answer_now(2);
    let retry_after = Duration::from_secs(1);
    server.watch.refuse_next(Error::Unavailable { what: "a host".to_owned(), retry_after });
    let replies = client.call_all(&["FOLLOWS 1 2", "FOLLOWS 1 3", "FOLLOWS 1 4", "FOLLOWS 1 5", "PING"]);
    let refused = "-TRYAGAIN a part of the storage can't be reached, nothing was changed; try again";
    assert_eq!(replies, ["0", refused, "0", refused, "+PONG"]);
    server.watch.refuse_next(Error::TimedOut);
    assert!(client.call("FOLLOW 1 2").starts_with("-ERR the request timed out"));
}
