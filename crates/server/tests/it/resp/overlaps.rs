//! Whom users follow in common, and whom of a viewer's followees follow a user.

use super::client::Client;
use super::server::Server;

/// All ids of a command that answers in pages, and how many it says there are.
fn walk(client: &mut Client, command: &str) -> (String, Vec<String>) {
    let (mut cursor, mut found) = (String::new(), Vec::new());
    loop {
        let reply = client.call(&format!("{command}{cursor}"));
        let (count, rest) = reply.strip_prefix('[').unwrap().split_once(", [").unwrap();
        let (ids, next) = rest.split_once("], ").unwrap();
        found.extend(ids.split(", ").map(|id| id.trim_matches('"').to_owned()));
        let next = next.strip_suffix(']').unwrap().trim_matches('"');
        if next == "null" {
            return (count.to_owned(), found);
        }
        cursor = format!(" CURSOR {next}");
    }
}

#[test]
fn pages_of_common_and_known() {
    let server = Server::start();
    let mut client = server.connect();
    client.call_all(&[
        "SADD following:1 10 11 12 13 14 100",
        "SADD following:2 10 11 12 13 14",
        "SADD following:12 9",
        "SADD following:14 9",
        "SADD following:200 9",
    ]);
    let all: Vec<String> = (10..15).map(|id| id.to_string()).collect();
    assert_eq!(walk(&mut client, "COMMON 1 2 LIMIT 2"), ("5".to_owned(), all.clone()));
    assert_eq!(walk(&mut client, "COMMON 2 1 limit 1000"), ("5".to_owned(), all));
    assert_eq!(client.call("COMMON 1 2"), "[\"10\", \"11\", \"12\", \"13\", \"14\"]");
    assert_eq!(client.call("COMMON 3 LIMIT 5"), "[0, [], null]");
    assert_eq!(client.call("KNOWN 1 9"), "[2, [\"12\", \"14\"], null]");
    assert_eq!(walk(&mut client, "KNOWN 1 9 LIMIT 1"), ("2".to_owned(), vec!["12".into(), "14".into()]));
    assert_eq!(client.call("KNOWN 9 1"), "[0, [], null]");
    // A cursor belongs to its sets.
    let page = client.call("COMMON 1 2 LIMIT 1");
    let cursor = page.rsplit('"').nth(1).unwrap();
    assert!(client.call(&format!("KNOWN 1 2 CURSOR {cursor}")).starts_with("-ERR the cursor"));
}

#[test]
fn ten_sets_and_no_more() {
    let server = Server::start();
    let mut client = server.connect();
    client.call("SADD following:1 2 3");
    let ten = "following:1 ".repeat(10);
    assert_eq!(client.call(&format!("SINTERCARD 10 {ten}")), "2");
    assert_eq!(client.call(&format!("SINTER {ten}")), "[\"2\", \"3\"]");
    for command in [
        format!("SINTERCARD 11 {ten} following:1"),
        format!("SINTER {ten} following:1"),
        format!("COMMON {}", "1 ".repeat(11)),
        format!("COMMON {} LIMIT 1", "1 ".repeat(11)),
    ] {
        let reply = client.call(&command);
        assert_eq!(reply, "-ERR 11 sets in one call are too many; send at most 10", "{command}");
    }
}
