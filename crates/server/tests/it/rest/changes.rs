//! The change log, polled and streamed.

use std::time::Duration;

use kinfolk_core::{Epoch, Error, Keyring, Sequence, Shard, SigningKey, Token};
use kinfolk_server::rest::RestSettings;
use serde_json::{Value, json};

use super::client::Connection;
use super::server::Server;

/// An event of a stream.
#[derive(Debug, PartialEq)]
pub(super) struct Event {
    /// On the last event of a page.
    pub id: Option<String>,
    pub name: String,
    pub data: Value,
}

/// A client of the stream.
pub(super) struct Listener {
    connection: Connection,
    text: String,
}

impl Listener {
    pub(super) fn open(server: &Server, query: &str, headers: &[(&str, &str)]) -> Self {
        let mut connection = server.connect();
        connection.begin("GET", &format!("/v1/changes/stream{query}"), headers);
        let (status, headers) = connection.head().unwrap();
        assert_eq!(status, 200);
        assert!(headers.contains(&("content-type".to_owned(), "text/event-stream".to_owned())));
        Self { connection, text: String::new() }
    }

    /// The next paragraph, or nothing at the end.
    fn paragraph(&mut self) -> Option<String> {
        loop {
            if let Some((paragraph, rest)) = self.text.split_once("\n\n") {
                let paragraph = paragraph.to_owned();
                self.text = rest.to_owned();
                return Some(paragraph);
            }
            self.text.push_str(&String::from_utf8(self.connection.chunk().unwrap()?).unwrap());
        }
    }

    /// The next event that is one.
    pub(super) fn event(&mut self) -> Event {
        loop {
            let paragraph = self.paragraph().unwrap();
            let field = |name: &str| {
                paragraph
                    .lines()
                    .find_map(|line| line.strip_prefix(name))
                    .map(|value| value.trim().to_owned())
            };
            if let (Some(name), Some(data)) = (field("event:"), field("data:")) {
                return Event { id: field("id:"), name, data: serde_json::from_str(&data).unwrap() };
            }
        }
    }
}

#[test]
fn polling_goes_on_from_next() {
    let server = Server::start();
    server.follow(1, 2);
    server.act(1, "DELETE", "/v1/users/2/follow");
    server.follow(1, 3);
    let page = server.read("/v1/changes?limit=2");
    let at = "2026-11-15T08:00:00.123Z";
    assert_eq!(
        page["items"],
        json!([
            {"position": "0-1", "type": "follow", "at": at, "follower": "1", "followee": "2"},
            {"position": "0-2", "type": "unfollow", "at": at, "follower": "1", "followee": "2", "since": at},
        ])
    );
    let page = server.read(&format!("/v1/changes?after={}", page["next"].as_str().unwrap()));
    assert_eq!(page["items"][0]["position"], "0-3");
    let end = server.read(&format!("/v1/changes?after={}", page["next"].as_str().unwrap()));
    assert_eq!(end["items"], json!([]));
    assert_eq!(end["next"], page["next"]);
    for (query, code) in [
        ("after=x", "invalid_token"),
        ("limit=0", "limit_out_of_range"),
        ("limit=1001", "limit_out_of_range"),
        ("since=1", "invalid_request"),
    ] {
        assert_eq!(server.get(&format!("/v1/changes?{query}")).refusal(), (400, code.to_owned()));
    }
}

#[test]
fn a_stream_tells_what_was_and_what_comes() {
    let server = Server::start();
    server.follow(1, 2);
    let mut listener = Listener::open(&server, "", &[]);
    let first = listener.event();
    assert_eq!((first.name.as_str(), &first.data["position"]), ("follow", &json!("0-1")));
    for target in 3..40 {
        let token = server.follow(1, target);
        let event = listener.event();
        assert_eq!((event.id, &event.data["followee"]), (Some(token), &json!(target.to_string())));
    }
    let mut late = Listener::open(&server, &format!("?after={}", first.id.unwrap()), &[]);
    assert_eq!(late.event().data["position"], "0-2");
}

#[test]
fn a_stream_is_resumed_without_loss_from_its_last_id() {
    let server = Server::start();
    (2..=700).for_each(|target| drop(server.follow(1, target)));
    let (mut last, mut seen, mut ids) = (None::<(String, u64)>, 0, Vec::new());
    // Each connection takes some events and is lost: in the middle of a page, most of the time.
    for connection in 0.. {
        let headers: Vec<_> = last.iter().map(|(id, _)| ("last-event-id", id.as_str())).collect();
        // What the header says outweighs the query, which a client repeats when it comes back.
        let token = server.read("/v1/changes?limit=1")["next"].as_str().unwrap().to_owned();
        let query = if last.is_some() { format!("?after={token}") } else { String::new() };
        let mut listener = Listener::open(&server, &query, &headers);
        let next = last.as_ref().map_or(0, |&(_, position)| position) + 1;
        for position in (next..=699).take(connection * 97 % 400 + 30) {
            let event = listener.event();
            assert_eq!(event.data["position"], format!("0-{position}"));
            seen = seen.max(position);
            if let Some(id) = event.id {
                ids.push(position);
                last = Some((id, position));
            }
        }
        if seen == 699 {
            break;
        }
    }
    // Once a page, on its last event.
    assert_eq!(ids, [256, 512, 699]);
}

#[test]
fn refused_streams() {
    let server = Server::start();
    let keys = Keyring::new(SigningKey::new([7; 32]), []);
    let sealed = |epoch, position| {
        let frontier = Sequence(position).on(Shard::ONLY).into();
        Token { epoch: Epoch(epoch), frontier }.encode(&keys)
    };
    let refusal = |query: &str| server.get(&format!("/v1/changes/stream?{query}")).refusal();
    assert_eq!(refusal("after=x"), (400, "invalid_token".to_owned()));
    assert_eq!(refusal(&format!("after={}", sealed(2, 0))), (400, "invalid_token".to_owned()));
    assert_eq!(refusal(&format!("after={}", sealed(1, 5))), (503, "not_yet_visible".to_owned()));
    assert_eq!(refusal("limit=5"), (400, "invalid_request".to_owned()));
}

#[test]
fn a_restore_ends_streams() {
    let server = Server::start();
    let mut listener = Listener::open(&server, "", &[]);
    server.follow(1, 2);
    assert_eq!(listener.event().data["position"], "0-1");
    server.watch.restore();
    server.follow(1, 3);
    let end = listener.event();
    assert_eq!((&*end.name, end.data["code"].as_str()), ("problem", Some("invalid_token")));
    assert_eq!(listener.paragraph(), None);
}

#[test]
fn a_quiet_stream_shows_that_it_is_alive_and_ends_with_the_server() {
    let settings = RestSettings { keep_alive_interval: Duration::from_millis(20), ..RestSettings::default() };
    let server = Server::with(settings);
    let mut listener = Listener::open(&server, "", &[]);
    assert_eq!(listener.paragraph().unwrap(), "retry: 1000");
    assert_eq!(listener.paragraph().unwrap(), ": keep-alive");
    assert_eq!(listener.paragraph().unwrap(), ": keep-alive");
    server.stop();
    while let Some(paragraph) = listener.paragraph() {
        assert_eq!(paragraph, ": keep-alive");
    }
    server.join();
}

#[test]
fn all_streams_have_one_watcher_that_outlives_a_pause_of_the_log() {
    let server = Server::start();
    let mut listeners: Vec<Listener> = (0..5).map(|_| Listener::open(&server, "", &[])).collect();
    server.follow(1, 2);
    listeners.iter_mut().for_each(|listener| assert_eq!(listener.event().data["position"], "0-1"));
    let retry_after = Duration::from_millis(1);
    let unreachable = Error::Unavailable { what: "the log".to_owned(), retry_after };
    for (position, error) in [(2, unreachable), (3, Error::Overloaded { retry_after }), (4, Error::TimedOut)]
    {
        server.watch.refuse_watching(error);
        server.watch.await_refused_watching();
        server.follow(1, position + 1);
        for listener in &mut listeners {
            assert_eq!(listener.event().data["position"], format!("0-{position}"));
        }
    }
    assert_eq!(server.watch.watchers_max(), 1);

    // What can't be mended by waiting ends them; those that come back are served again.
    server.watch.refuse_watching(Error::Storage { detail: "as the test wants".to_owned() });
    for listener in &mut listeners {
        while let Some(paragraph) = listener.paragraph() {
            assert_eq!(paragraph, ": keep-alive");
        }
    }
    let mut again = Listener::open(&server, "", &[]);
    (1..=4).for_each(|position| assert_eq!(again.event().data["position"], format!("0-{position}")));
    server.follow(1, 6);
    assert_eq!(again.event().data["position"], "0-5");
}

#[test]
fn a_reader_that_does_not_read_holds_nobody_up() {
    let server = Server::start();
    (2..=1_500).for_each(|target| drop(server.follow(1, target)));
    let mut idle = Listener::open(&server, "", &[]);
    let mut busy = Listener::open(&server, "", &[]);
    let read = |listener: &mut Listener, position: u64| {
        assert_eq!(listener.event().data["position"], format!("0-{position}"));
    };
    (1..1_500).for_each(|position| read(&mut busy, position));
    server.follow(2, 1);
    read(&mut busy, 1_500);
    (1..=1_500).for_each(|position| read(&mut idle, position));
}
