//! Reads of many: walks, large sets, intersections, freshness.

use std::collections::BTreeSet;

use kinfolk_core::graph::GraphSettings;
use kinfolk_core::{Epoch, Keyring, Sequence, Shard, SigningKey, Token};

use super::super::backing::{HAS_CONTENT, READS_SHOW_EVERYTHING};
use super::client::Client;
use super::server::{Server, Setup};

fn unlimited() -> Setup {
    let graph = GraphSettings { following_limit: 100_000, ..GraphSettings::default() };
    Setup { graph, ..Setup::default() }
}

fn follow_many(client: &mut Client, follower: u64, followees: impl Iterator<Item = u64>) {
    let followees: Vec<String> = followees.map(|id| id.to_string()).collect();
    for part in followees.chunks(10_000) {
        let reply = client.call(&format!("SADD following:{follower} {}", part.join(" ")));
        assert_eq!(reply, part.len().to_string());
    }
}

/// The parts of a reply of `SSCAN`.
fn parts(reply: &str) -> (String, Vec<u64>) {
    let inner = reply.strip_prefix("[\"").unwrap().strip_suffix("]]").unwrap();
    let (cursor, members) = inner.split_once("\", [").unwrap();
    let members = members.split(", ").filter(|member| !member.is_empty());
    (cursor.to_owned(), members.map(|member| member.trim_matches('"').parse().unwrap()).collect())
}

fn scan(client: &mut Client, key: &str, options: &str, mut between: impl FnMut(usize)) -> Vec<u64> {
    let mut cursor = "0".to_owned();
    let mut found = Vec::new();
    for step in 0.. {
        let (next, members) = parts(&client.call(&format!("SSCAN {key} {cursor} {options}")));
        found.extend(members);
        if next == "0" {
            break;
        }
        assert!(next.parse::<u64>().unwrap() > 0);
        cursor = next;
        between(step);
    }
    found
}

#[test]
fn a_scan_of_edges_of_one_moment_finds_each_once() {
    let server = Server::start();
    let mut client = server.connect();
    // The clock stands still: all edges have the same time.
    follow_many(&mut client, 1, (0..5_000).map(|number| number * 7 + 2));
    for options in ["", "COUNT 1", "COUNT 100", "COUNT 100000"] {
        let found = scan(&mut client, "following:1", options, |_| {});
        assert_eq!(found.len(), 5_000, "{options}");
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 5_000, "{options}");
    }
    let found = scan(&mut client, "following:1", "COUNT 50 MATCH *99", |_| {});
    assert!(found.len() > 10 && found.iter().all(|id| id % 100 == 99));
}

#[test]
fn a_scan_finds_all_that_stays_while_others_come_and_go() {
    let server = Server::start();
    let mut client = server.connect();
    let mut other = server.connect();
    follow_many(&mut client, 1, 1_000..4_000);
    let found = scan(&mut client, "following:1", "COUNT 20", |step| {
        // One before, one after, one new, in the middle of the walk.
        let step = step as u64;
        other.call(&format!("SREM following:1 {} {}", 3_999 - step * 2, 1_001 + step * 2));
        other.call(&format!("SADD following:1 {} {}", 10_000 + step, step + 2));
    });
    let found: BTreeSet<u64> = found.into_iter().collect();
    let stayed = (1_000..4_000).filter(|id| id % 2 == 0);
    let missing: Vec<u64> = stayed.filter(|id| !found.contains(id)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn members_up_to_ten_thousand() {
    let server = Server::with(unlimited());
    let mut client = server.connect();
    follow_many(&mut client, 1, 2..10_002);
    assert_eq!(client.call("SMEMBERS following:1").matches(',').count(), 9_999);
    assert_eq!(client.call("SINTER following:1").matches(',').count(), 9_999);
    follow_many(&mut client, 1, 20_000..20_001);
    for command in ["SMEMBERS following:1", "SINTER following:1"] {
        let reply = client.call(command);
        assert!(reply.starts_with("-ERR ") && reply.contains("SSCAN"), "{reply}");
    }
    assert_eq!(client.call("SINTERCARD 1 following:1"), "10001");
    assert_eq!(client.call("SCARD following:1"), "10001");
    assert_eq!(client.call("SADD following:2 5 7 20000 30000"), "4");
    assert_eq!(client.call("SINTER following:1 following:2"), "[\"5\", \"7\", \"20000\"]");
    assert_eq!(client.call("SINTER following:2 following:1"), "[\"5\", \"7\", \"20000\"]");
}

#[test]
fn pages_follow_their_cursor() {
    let server = Server::start();
    let mut client = server.connect();
    follow_many(&mut client, 1, 2..12);
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let reply = client.call(&format!("FOLLOWING 1 LIMIT 4{cursor}"));
        found.extend(reply.split("[\"").skip(1).map(|entry| entry.split('"').next().unwrap().to_owned()));
        if reply.ends_with("null]") {
            break;
        }
        cursor = format!(" CURSOR {}", reply.rsplit('"').nth(1).unwrap());
    }
    let expected: Vec<String> = (2..12).rev().map(|id| id.to_string()).collect();
    assert_eq!(found, expected);
    // A cursor belongs to its list.
    assert!(client.call(&format!("FOLLOWERS 1{cursor}")).starts_with("-ERR the cursor"));
}

#[test]
fn a_read_waits_for_its_token() {
    let server = Server::start();
    let (mut writer, mut reader) = (server.connect(), server.connect());
    let token = writer.call("FOLLOW 1 2");
    let token = token.trim_matches('"');
    assert_eq!(
        reader.call_all(&[&format!("AFTER {token}"), "FOLLOWS 1 2", "FOLLOWS 1 2"]),
        ["+OK", "1", "1"]
    );

    // Another server's token, from a log that is longer: its position has not been reached here.
    let ahead = Server::start();
    let mut client = ahead.connect();
    client.call("FOLLOW 1 2");
    let future = client.call("FOLLOW 1 3");
    let future = future.trim_matches('"');
    // Until it is visible every read is refused: a client that tries again must not see less than it asked for.
    let replies = reader.call_all(&[&format!("AFTER {future}"), "FOLLOWS 1 2", "FOLLOWS 1 2"]);
    assert_eq!(replies[0], "+OK");
    assert!(replies[1..].iter().all(|reply| reply.starts_with("-TRYAGAIN ")), "{replies:?}");
    writer.call("FOLLOW 1 3");
    assert_eq!(reader.call_all(&["FOLLOWS 1 2", "FOLLOWS 1 3"]), ["1", "1"]);
}

/// What the token of a reply covers.
fn covered(reply: &str) -> String {
    let keys = Keyring::new(SigningKey::new([7; 32]), []);
    Token::decode(reply.trim_matches('"'), &keys).unwrap().frontier.to_string()
}

#[test]
fn tokens_are_joined_and_never_replaced() {
    let server = Server::start();
    let (mut writer, mut client) = (server.connect(), server.connect());
    let sealed = |shard, sequence| {
        let keys = Keyring::new(SigningKey::new([7; 32]), []);
        Token { epoch: Epoch(1), frontier: Sequence(sequence).on(Shard(shard)).into() }.encode(&keys)
    };
    assert_eq!(covered(&writer.call("FOLLOW 1 2")), "0-1");
    // One token for a commit, which covers all of it.
    let replies = client.call_all(&["FOLLOW 3 1", "FOLLOW 4 1", "FOLLOW 4 1"]);
    assert_eq!(replies.iter().map(|reply| covered(reply)).collect::<Vec<_>>(), ["0-3"; 3]);
    // What was asked for counts for all reads that follow, and several are asked for together.
    let after = [sealed(7, 4), sealed(3, 5), sealed(7, 2)].map(|token| format!("AFTER {token}"));
    assert_eq!(client.call_all(&after.each_ref().map(String::as_str)), ["+OK"; 3]);
    assert_eq!(covered(&client.call("FOLLOW 4 2")), "0-4 3-5 7-4");
    assert_eq!(covered(&client.call("DISMISS 4 3")), "0-5 3-5 7-4");
    // This store has no such shards, so no read can show them; the client asks until one does.
    let of_its_shard = ["FOLLOWS 4 2", "SISMEMBER following:4 2", "SCARD following:4"];
    let of_all_shards = ["SMEMBERS followers:4", "SCARD followers:4", "FOLLOWERS 2"];
    for command in of_all_shards.iter().chain(of_its_shard.iter().filter(|_| READS_SHOW_EVERYTHING)) {
        assert!(client.call(command).starts_with("-TRYAGAIN "), "{command}");
    }
    // A token that is refused changes nothing: what was asked for before and after it still counts.
    let replies = client.call_all(&["AFTER made-up", &after[0], "SCARD followers:4"]);
    assert!(replies[0].starts_with("-ERR the consistency token"), "{replies:?}");
    assert!(replies[2].starts_with("-TRYAGAIN "), "{replies:?}");
    assert_eq!(covered(&client.call("UNFOLLOW 4 2")), "0-6 3-5 7-4");
    // A write that changes nothing covers what this connection has written before.
    assert_eq!(covered(&client.call("UNFOLLOW 4 2")), "0-6 3-5 7-4");
    if HAS_CONTENT {
        let token = covered(client.call("POST 4 ID 9").split_once(", ").unwrap().1.trim_end_matches(']'));
        assert_eq!(token, "0-7 3-5 7-4");
    }
}

#[test]
fn a_read_asks_for_what_its_connection_has_written() {
    let server = Server::start();
    let (mut writer, mut other) = (server.connect(), server.connect());
    for divisor in [0, 1] {
        server.watch.answer_now(divisor);
        for command in ["SISMEMBER following:1 2", "FOLLOWS 1 2", "FOLLOWS 1 2 3", "SCARD following:1"] {
            let sequence = writer.call_all(&["UNFOLLOW 1 2", "FOLLOW 1 2"])[1].clone();
            // Also after a read has shown it: another may be answered by a part of the store that has not got so far.
            for _ in 0..2 {
                writer.call(command);
                assert_eq!(server.watch.asked(), covered(&sequence), "{command}");
            }
            other.call(command);
            assert_eq!(server.watch.asked(), "", "{command}");
        }
    }
}

#[test]
fn a_token_is_refused_at_once() {
    let server = Server::start();
    let mut client = server.connect();
    let replies = client.call_all(&["AFTER made-up", "FOLLOWS 1 2"]);
    assert_eq!(replies, ["-ERR the consistency token was not issued by this deployment", "0"]);
    let replies = client.call_all(&["MULTI", "AFTER made-up", "FOLLOWS 1 2", "EXEC"]);
    assert!(replies[3].starts_with("[-ERR the consistency token"), "{replies:?}");
}

#[test]
fn what_a_connection_saw_before_a_restore_is_forgotten_with_an_error() {
    let server = Server::start();
    let (mut writer, mut idle) = (server.connect(), server.connect());
    assert_eq!(covered(&writer.call("FOLLOW 1 2")), "0-1");
    idle.call("PING");
    server.watch.restore();
    let replies = writer.call_all(&["FOLLOW 1 3", "FOLLOWS 1 3"]);
    assert_eq!(
        replies,
        ["-ERR the consistency token was issued before a restore; drop it and read the graph again", "0"]
    );
    assert_eq!(idle.call("FOLLOWS 1 2"), "1", "it had seen nothing");
    let written = writer.call("FOLLOW 1 3");
    let keys = Keyring::new(SigningKey::new([7; 32]), []);
    assert_eq!(Token::decode(written.trim_matches('"'), &keys).unwrap().epoch, Epoch(2));
}

#[test]
fn a_token_of_many_shards_is_taken() {
    let server = Server::start();
    let mut client = server.connect();
    let keys = Keyring::new(SigningKey::new([7; 32]), []);
    let frontier = (0..512).map(|shard| Sequence(0).on(Shard(shard))).collect();
    let empty = Token { epoch: Epoch(1), frontier }.encode(&keys);
    assert_eq!(client.call_all(&[&format!("AFTER {empty}"), "FOLLOWS 1 2"])[0], "+OK");
    let frontier = (0..512).map(|shard| Sequence(u64::MAX >> 1).on(Shard(shard))).collect();
    let largest = Token { epoch: Epoch(1), frontier }.encode(&keys);
    assert_eq!(client.call(&format!("AFTER {largest}")), "+OK");
    assert!(client.call("FOLLOWS 1 2").starts_with("-TRYAGAIN "));
    let endless = "x".repeat(8_193);
    assert!(client.call(&format!("AFTER {endless}")).starts_with("-ERR the consistency token"));
}

#[test]
fn a_pattern_has_a_bound() {
    let server = Server::start();
    let mut client = server.connect();
    let (longest, longer) = ("*".repeat(128), "[".repeat(129));
    assert_eq!(client.call(&format!("SSCAN following:1 0 MATCH {longest}")), "[\"0\", []]");
    assert_eq!(client.call(&format!("CONFIG GET save {longest}x")), "-ERR a pattern has at most 128 bytes");
    for command in [format!("SSCAN following:1 0 MATCH {longer}"), format!("CONFIG GET {longer}")] {
        assert_eq!(client.call(&command), "-ERR a pattern has at most 128 bytes");
    }
    let many = "a ".repeat(17);
    assert!(
        client.call(&format!("CONFIG GET {many}")).starts_with("-ERR 17 patterns in one call are too many")
    );
}
