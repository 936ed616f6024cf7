//! The change log: pages, and a stream that is resumed.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc;

use futures_util::TryStreamExt;
use kinfolk_client::{Client, blocking};

use crate::server::Server;

#[test]
fn pages_continue_with_their_token() {
    let server = Server::start();
    let client = server.blocking();
    client.acting_as(1).follow(2).unwrap();
    client.acting_as(1).unfollow(2).unwrap();
    let first = client.changes(None, 1).unwrap();
    assert_eq!((&*first.items[0].r#type, first.items[0].follower), ("follow", Some(1.into())));
    let second = client.changes(Some(&first.next), 10).unwrap();
    assert_eq!(second.items.iter().map(|change| &*change.r#type).collect::<Vec<_>>(), ["unfollow"]);
    assert!(client.changes(Some(&second.next), 10).unwrap().items.is_empty());
}

#[test]
fn a_lost_stream_is_resumed_without_a_gap_or_a_repetition() {
    let server = Server::start();
    let (cuts, cut) = mpsc::channel();
    let port = proxy(&server, cut);
    let client = server.blocking().acting_as(1);
    let changes = blocking::Client::new(format!("http://localhost:{port}")).unwrap().change_stream(None);
    let mut changes = changes.map(|change| change.unwrap().followee.unwrap().to_string());
    for followee in 2..30_u64 {
        client.follow(followee).unwrap();
        assert_eq!(changes.next(), Some(followee.to_string()));
        if followee % 5 == 0 {
            cuts.send(()).unwrap();
        }
    }
}

#[test]
fn an_async_stream_waits_for_changes() {
    let server = Server::start();
    server.run(async |client| {
        let mut changes = client.change_stream(None);
        for followee in 2..10_u64 {
            client.acting_as(1).follow(followee).await.unwrap();
            let change = changes.try_next().await.unwrap().unwrap();
            assert_eq!(change.followee, Some(followee.into()));
        }
    });
}

#[test]
fn a_refused_stream_ends() {
    let server = Server::start();
    let mut changes = server.blocking().change_stream(Some("nonsense"));
    assert!(changes.next().unwrap().is_err());
    assert!(changes.next().is_none());
}

#[test]
fn a_quiet_log_and_restarts_do_not_end_a_stream() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let event = "data: {\"position\":\"0-1\",\"type\":\"follow\",\"at\":\"2026-01-01T00:00:00.000Z\"}\n\n";
    std::thread::spawn(move || {
        // More connections without an event than a request has attempts.
        let bodies = std::iter::repeat_n(": keep-alive\n\n", 6).chain([event]);
        for (body, connection) in bodies.zip(listener.incoming()) {
            let mut connection = connection.unwrap();
            assert!(connection.read(&mut [0; 4_096]).unwrap() > 0);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            connection.write_all(head.as_bytes()).unwrap();
            connection.write_all(body.as_bytes()).unwrap();
        }
    });
    let client = blocking::Client::new(format!("http://localhost:{port}")).unwrap();
    assert_eq!(client.change_stream(None).next().unwrap().unwrap().position.sequence.0, 1);
}

#[test]
fn a_dropped_stream_does_not_hold_up_its_program() {
    let server = Server::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Client::new(server.url()).unwrap();
        let mut changes = client.change_stream(None);
        client.acting_as(1).follow(2).await.unwrap();
        assert!(changes.try_next().await.unwrap().is_some());
    });
    // Nothing is written after the stream was dropped.
    drop(runtime);
}

/// Forwards connections to the server, one after another, and cuts the one that is open when it is told to.
fn proxy(server: &Server, cut: mpsc::Receiver<()>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = server.address;
    let cut = Mutex::new(cut);
    std::thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let server = TcpStream::connect(address).unwrap();
            forward(client.try_clone().unwrap(), server.try_clone().unwrap());
            forward(server.try_clone().unwrap(), client.try_clone().unwrap());
            if cut.lock().unwrap().recv().is_err() {
                return;
            }
            for socket in [client, server] {
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
    });
    port
}

fn forward(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4_096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if to.write_all(&bytes[..count]).is_err() {
                return;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}
