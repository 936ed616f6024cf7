//! People you may know: asked for and dismissed.

use super::super::backing::HAS_CONTENT;
use super::client::encode;
use super::server::Server;

/// User 1 follows 2 and 3. Both follow 10, one of them 11.
fn server() -> Server {
    let server = Server::start();
    let graph = ["SADD following:1 2 3", "SADD following:2 10", "SADD following:3 10 11"];
    assert_eq!(server.connect().call_all(&graph), ["2", "1", "2"]);
    server
}

#[test]
fn suggestions_and_dismissals() {
    let server = server();
    let mut client = server.connect();
    let found = client.call("SUGGEST 1");
    assert!(found.starts_with("[[\"10\", 2, \"2.35"), "{found}");
    assert!(found.contains("[\"2\", \"3\"]], [\"11\", 1, \"0.91"), "{found}");
    assert_eq!(client.call("SUGGEST 1 LIMIT 1").matches(", [").count(), 1);
    assert_eq!(client.call("SUGGEST 77"), "[]");

    // In one pipeline: a read sees the dismissal before it.
    let replies = client.call_all(&["FOLLOW 5 6", "DISMISS 1 10", "DISMISS 1 10", "SUGGEST 1"]);
    assert!(replies[..3].iter().all(|token| token.starts_with('"') && token.len() > 20), "{replies:?}");
    assert_ne!(replies[0], replies[1]);
    assert_eq!(replies[1], replies[2]);
    assert!(replies[3].starts_with("[[\"11\", 1, "), "{}", replies[3]);
    client.call("FOLLOW 1 11");
    assert_eq!(client.call("SUGGEST 1"), "[]");
    // It is nobody's follow.
    assert_eq!(client.call("FOLLOWS 1 10"), "0");
}

#[test]
fn version_three_has_numbers_that_are_not_whole() {
    let server = server();
    let mut client = server.connect();
    client.hello_three();
    let found = client.call("SUGGEST 1 LIMIT 1");
    assert!(found.starts_with("[[\"10\", 2, ,2.35") && found.ends_with("[\"2\", \"3\"]]]"), "{found}");
}

#[test]
fn transactions_dismiss_and_suggest() {
    let server = server();
    let mut client = server.connect();
    let replies =
        client.call_all(&["MULTI", "FOLLOW 1 11", "DISMISS 1 10", "SUGGEST 1", "DISMISS 1 1", "EXEC"]);
    assert_eq!(replies[4], "+QUEUED");
    assert!(replies[5].ends_with(", [], -ERR a user is never suggested to itself]"), "{}", replies[5]);
}

#[test]
fn a_client_that_leaves_gives_up_its_walk() {
    let server = server();
    server.watch.make_walks_endless();
    let mut client = server.connect();
    client.send(&encode("SUGGEST 1"));
    server.watch.await_walks((1, 0));
    drop(client);
    server.watch.await_walks((1, 1));
    // Also one that has sent more meanwhile.
    let mut client = server.connect();
    client.send(&encode("SUGGEST 1"));
    server.watch.await_walks((2, 1));
    client.send(&encode("PING"));
    // Others are served.
    assert_eq!(server.connect().call("PING"), "+PONG");
    assert_eq!(server.watch.walks(), (2, 1));
    drop(client);
    server.watch.await_walks((2, 2));
    let walks = ["FRIENDS 1", "POSTS 1", "FEED 1"];
    let walks = if HAS_CONTENT { &walks[..] } else { &walks[..1] };
    for (number, command) in walks.iter().enumerate() {
        let mut client = server.connect();
        client.send(&encode(command));
        server.watch.await_walks((number + 3, number + 2));
        drop(client);
        server.watch.await_walks((number + 3, number + 3));
    }
}

#[test]
fn what_was_answered_before_a_walk_was_given_up_is_sent() {
    let server = server();
    server.watch.make_walks_endless();
    let mut client = server.connect();
    client.send_all(&["FOLLOWS 1 2", "SUGGEST 1", "PING"]);
    server.watch.await_walks((1, 0));
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.reply(), "1");
    client.assert_closed();
    server.watch.await_walks((1, 1));
}
