//! Posts and feeds.

use super::client::{encode, encode_words};
use super::server::Server;

/// A reply of `POST`: the id and the token.
fn posted(reply: &str) -> (u64, String) {
    let (id, token) = reply.trim_matches(['[', ']']).split_once(", ").unwrap_or_else(|| panic!("{reply}"));
    assert!(token.len() > 20, "{reply}");
    (id.trim_matches('"').parse().unwrap(), token.trim_matches('"').to_owned())
}

#[test]
fn posts_feeds_and_deletions() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(posted(&client.call("POST 1 ID 5 AT 1000")).0, 5);
    client.send(&encode_words(
        ["post", "1", "payload", "{ \"a\" : \"x y\" }", "id", "6", "at", "1000", "key", "k 1"].into_iter(),
    ));
    let (id, token) = posted(&client.reply());
    assert_eq!(id, 6);
    let five = r#"["5", "1", 1000, null]"#;
    let six = r#"["6", "1", 1000, "{\"a\":\"x y\"}"]"#;
    assert_eq!(client.call("POSTS 1"), format!("[[{six}, {five}], null]"));
    assert_eq!(client.call("FEED 2"), "[[], null]");
    client.call("FOLLOW 2 1");
    let first = client.call("FEED 2 LIMIT 1");
    let (page, cursor) = first.rsplit_once(", ").unwrap();
    assert_eq!(page, format!("[[{six}]"));
    let cursor = cursor.trim_end_matches(']').trim_matches('"');
    assert_eq!(client.call(&format!("FEED 2 LIMIT 1 CURSOR {cursor}")), format!("[[{five}], null]"));
    for other in ["FEED 3", "POSTS 2", "FOLLOWING 2"] {
        assert!(client.call(&format!("{other} CURSOR {cursor}")).starts_with("-ERR the cursor is not valid"));
    }
    assert_eq!(client.call(&format!("AFTER {token}")), "+OK");
    assert_eq!(client.call("FEED 2"), format!("[[{six}, {five}], null]"));

    for (command, reply) in [
        ("POST 1 ID 5 PAYLOAD 1", "-ERR post 5 is already registered with different contents"),
        ("POST 2 ID 5", "-ERR post 5 is already registered with different contents"),
        ("DELPOST 2 5", "-NOPERM only its author may delete a post"),
        ("POST 1 KEY", "-ERR syntax error"),
    ] {
        assert_eq!(client.call(command), reply, "{command}");
    }
    assert_eq!(posted(&client.call("POST 1 ID 5")).0, 5);
    let deleted = client.call("DELPOST 1 5");
    assert!(deleted.starts_with('"') && deleted.len() > 20, "{deleted}");
    assert_eq!(client.call("DELPOST 1 5"), deleted);
    assert_eq!(client.call("POST 1 ID 5"), "-ERR post 5 was deleted; its id cannot be reused");
    assert_eq!(client.call("FEED 2"), format!("[[{six}], null]"));
    client.hello_three();
    client.call("POST 1 ID 4 AT 2000");
    assert!(client.call("FEED 2 LIMIT 1").starts_with(r#"[[["4", "1", 2000, null]], ""#));
}

#[test]
fn posts_that_follow_each_other_go_to_the_store_together_and_in_order() {
    let server = Server::start();
    let mut client = server.connect();
    // In a transaction, because a pipeline may arrive in parts. More than a task does without a pause.
    let command = |number| if number % 50 == 7 { "POST 1 ID x" } else { "POST 1" };
    client.call("MULTI");
    (0..300).for_each(|number| assert_eq!(client.call(command(number)), "+QUEUED"));
    server.watch.close();
    client.send(&encode("EXEC"));
    server.watch.await_posts(294);
    server.watch.open();
    let reply = client.reply();
    assert_eq!(reply.matches("-ERR \"x\" is not a valid id").count(), 6);
    let ids: Vec<u64> =
        reply.split("[\"").skip(1).map(|post| post.split('"').next().unwrap().parse().unwrap()).collect();
    assert!(ids.len() == 294 && ids.is_sorted_by(|one, two| one < two), "{ids:?}");
    let newest = ids.last().unwrap();
    assert!(client.call("POSTS 1 LIMIT 1").starts_with(&format!("[[[\"{newest}\", ")));
}

#[test]
fn posts_and_follows_of_a_pipeline_wait_for_each_other() {
    let server = Server::start();
    let mut client = server.connect();
    let mut listener = server.connect();
    server.watch.close();
    client.send_all(&["FOLLOW 2 1", "POST 1 ID 5", "POST 1 ID 6", "UNFOLLOW 2 1", "POST 3 ID 6", "FEED 2"]);
    assert_eq!(listener.call("FEED 2"), "[[], null]");
    server.watch.open();
    let replies: Vec<String> = (0..6).map(|_| client.reply()).collect();
    assert_eq!((posted(&replies[1]).0, posted(&replies[2]).0), (5, 6));
    assert!(replies[4].starts_with("-ERR post 6 is already registered"), "{replies:?}");
    assert_eq!(replies[5], "[[], null]");
    assert_eq!(server.watch.commits(), 2);
}

#[test]
fn transactions_post_and_delete() {
    let server = Server::start();
    let mut client = server.connect();
    let replies = client.call_all(&[
        "MULTI",
        "FOLLOW 2 1",
        "POST 1 ID 5 AT 1000",
        "POST 1 ID 5 AT 1001",
        "FEED 2",
        "DELPOST 1 5",
        "FEED 2",
        "EXEC",
    ]);
    assert!(replies[1..7].iter().all(|reply| reply == "+QUEUED"), "{replies:?}");
    let elements = &replies[7];
    for expected in [
        "-ERR post 5 is already registered with different contents, [[[\"5\", \"1\", 1000, null]], null], ",
        ", [[], null]]",
    ] {
        assert!(elements.contains(expected), "{elements}");
    }
    // A post is one step, however much is said about it.
    client.call("MULTI");
    let command = encode("POST 1 ID 5 AT 1000 PAYLOAD 1 KEY k").repeat(5_000);
    let mut stream = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || std::io::Write::write_all(&mut stream, &command).unwrap());
    (0..5_000).for_each(|_| assert_eq!(client.reply(), "+QUEUED"));
    sending.join().unwrap();
    assert_eq!(client.call("DISCARD"), "+OK");
}

#[test]
fn hostile_payloads() {
    let server = Server::start();
    let mut client = server.connect();
    let mut post = |payload: &str| {
        client.send(&encode_words(["POST", "1", "PAYLOAD", payload].into_iter()));
        client.reply()
    };
    let text = |letters: usize| format!("\"{}\"", "x".repeat(letters));
    posted(&post(&text(4_094)));
    posted(&post(&format!("{}{}", " ".repeat(500_000), text(4_094))));
    posted(&post("null"));
    for payload in [text(4_095), text(1_000_000)] {
        assert_eq!(post(&payload), "-ERR the payload of a post can have at most 4096 bytes");
    }
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    for payload in ["", " ", "1 2", "{", "\"\\ud800\"", "\r\n+OK\r\n", &nested(65), &nested(400_000)] {
        let reply = post(payload);
        assert!(reply.starts_with("-ERR the payload "), "{reply}");
    }
    assert_eq!(client.call("POSTS 1").matches("\"1\", ").count(), 3);
    assert!(client.call("POSTS 1 LIMIT 1").starts_with("[[["));
}

#[test]
fn inner_failures_of_posts_show_no_details() {
    let server = Server::start();
    server.watch.damage();
    let expected = "-ERR the server failed; its log has the details";
    assert_eq!(server.connect().call_all(&["POST 1", "FOLLOW 1 2", "POST 1"]), [expected; 3]);
}
