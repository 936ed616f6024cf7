//! Many commands in one go: order, one commit for writes that follow each other, refusals that hit only themselves.

use kinfolk_core::graph::GraphSettings;

use super::client::encode;
use super::server::{Server, Setup};

#[test]
fn replies_are_in_order() {
    let server = Server::start();
    let mut client = server.connect();
    let commands: Vec<String> = (0..5_000)
        .map(|number| match number % 4 {
            0 => format!("ECHO {number}"),
            1 => format!("SADD following:1 {}", number + 2),
            2 => format!("SISMEMBER following:1 {}", number + 1),
            _ => format!("NONSENSE{number}"),
        })
        .collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    for (number, reply) in client.call_all(&commands).into_iter().enumerate() {
        match number % 4 {
            0 => assert_eq!(reply, format!("\"{number}\"")),
            1 | 2 => assert_eq!(reply, "1", "{number}"),
            _ => assert!(reply.contains(&format!("'NONSENSE{number}'")), "{reply}"),
        }
    }
}

#[test]
fn a_pipeline_may_be_cut_anywhere() {
    let server = Server::start();
    let mut client = server.connect();
    let pipeline =
        [encode("SADD following:1 2 3"), b"SCARD following:1\r\n".to_vec(), encode("ECHO x")].concat();
    for at in 1..pipeline.len() {
        client.send(&pipeline[..at]);
        // The answer to another connection shows that the first part was taken in before the rest is sent.
        assert_eq!(server.connect().call("PING"), "+PONG");
        client.send(&pipeline[at..]);
        client.reply();
        assert_eq!((client.reply(), client.reply()), ("2".to_owned(), "\"x\"".to_owned()), "cut at {at}");
    }
    for byte in &pipeline {
        client.send(&[*byte]);
    }
    assert_eq!([client.reply(), client.reply(), client.reply()], ["0", "2", "\"x\""]);
}

#[test]
fn writes_that_follow_each_other_share_a_commit() {
    let server = Server::start();
    let mut client = server.connect();
    let mut commands: Vec<String> = (2..102).map(|id| format!("FOLLOW 1 {id}")).collect();
    commands.push("UNFOLLOW 1 50".to_owned());
    commands.push("SADD following:3 1 2 50".to_owned());
    commands.push("SREM following:3 2 9".to_owned());
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let replies = client.call_all(&commands);
    assert!(replies[..101].iter().all(|reply| reply.starts_with('"')), "{replies:?}");
    assert_eq!(replies[101..], ["3", "1"]);
    // One, unless the system delivers the pipeline in parts.
    assert!(server.watch.commits() <= 3, "{} commits", server.watch.commits());
    assert_eq!(client.call("FOLLOWS 1 2 50 101"), "[1, 0, 1]");
    assert_eq!(client.call("SMEMBERS following:3").matches('"').count(), 4);
}

#[test]
fn the_last_word_about_a_pair_counts() {
    let server = Server::start();
    let mut client = server.connect();
    let mut commands = Vec::new();
    for _ in 0..500 {
        commands.extend(["FOLLOW 1 2", "UNFOLLOW 1 2"]);
    }
    commands.push("FOLLOWS 1 2");
    assert_eq!(client.call_all(&commands).last().unwrap(), "0");
    commands.truncate(999);
    commands.push("FOLLOWS 1 2");
    assert_eq!(client.call_all(&commands).last().unwrap(), "1");
}

#[test]
fn a_refused_write_refuses_no_other() {
    let graph = GraphSettings { following_limit: 3, ..GraphSettings::default() };
    let server = Server::with(Setup { graph, ..Setup::default() });
    let mut client = server.connect();
    let replies = client.call_all(&[
        "SADD following:1 2 3",
        "FOLLOW 1 1",
        "SADD following:1 4",
        "SADD following:1 5",
        "SADD following:9 5",
        "SREM following:1 2",
        "NONSENSE",
        "SADD following:1 5 6",
        "SADD following:1 x",
        "SADD following:1 5",
        "SCARD following:1",
    ]);
    let expected =
        ["2", "-ERR a user", "1", "-LIMIT", "1", "1", "-ERR unknown", "-LIMIT", "-ERR \"x\"", "1", "3"];
    for (reply, expected) in replies.iter().zip(expected) {
        assert!(reply.starts_with(expected), "{replies:?}");
    }
    assert_eq!(client.call("SMISMEMBER following:1 2 3 4 5 6"), "[0, 1, 1, 1, 0]");
}

#[test]
fn a_commit_that_takes_long_stops_only_its_connection() {
    let server = Server::start();
    let (mut writer, mut reader) = (server.connect(), server.connect());
    server.watch.close();
    writer.send_all(&["SADD following:1 2", "SISMEMBER following:1 2"]);
    for _ in 0..100 {
        assert_eq!(reader.call("SISMEMBER following:1 2"), "0");
    }
    server.watch.open();
    assert_eq!([writer.reply(), writer.reply()], ["1", "1"]);
}

#[test]
fn one_giant_pipeline_lets_others_in() {
    let server = Server::start();
    let (mut greedy, mut modest) = (server.connect(), server.connect());
    let part = encode("SISMEMBER following:1 2").repeat(1_000);
    let mut stream = greedy.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        for _ in 0..100 {
            std::io::Write::write_all(&mut stream, &part).unwrap();
        }
    });
    let reading = std::thread::spawn(move || {
        for _ in 0..100_000 {
            assert_eq!(greedy.reply(), "0");
        }
    });
    while !reading.is_finished() {
        assert_eq!(modest.call("PING"), "+PONG");
    }
    sending.join().unwrap();
    reading.join().unwrap();
}
