//! The change log, polled and streamed.

use std::time::Duration;

use kinfolk_core::{Epoch, Error, Keyring, Sequence, Shard, SigningKey, Token};
use kinfolk_server::rest::RestSettings;
use serde_json::{Value, json};

use super::client::Connection;
use super::server::Server;

/// An event of a stream.
#[derive(Debug, PartialEq)]
struct Event {
    /// On the last event of a page.
    id: Option<String>,
    name: String,
    data: Value,
}

/// A client of the stream.
struct Listener {
    connection: Connection,
    text: String,
}

impl Listener {
    fn open(server: &Server, query: &str, headers: &[(&str, &str)]) -> Self {
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
    fn event(&mut self) -> Event {
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
fn posts_are_in_the_log_and_in_streams() {
    let server = Server::start();
    let mut listener = Listener::open(&server, "", &[]);
    let payload = "{\n \"text\": \"a\\nb \\u2028\u{2028}\",\r\n \"big\": 12345678901234567890123 }";
    let body =
        format!(r#"{{"id":"5","author":"1","created_at":"2020-01-02T03:04:05Z","payload":{payload}}}"#);
    server.post(&body);
    // Three followers are enough for posts to be pulled here.
    (2..=4).for_each(|follower| drop(server.follow(follower, 1)));
    server.post(r#"{"id":"6","author":"1"}"#);
    let answer = server.get("/v1/changes");
    let mut events: Vec<Event> = (0..5).map(|_| listener.event()).collect();
    let deleted = server.act(1, "DELETE", "/v1/posts/5");
    server.act(1, "DELETE", "/v1/posts/5");
    let (at, made) = ("2026-11-15T08:00:00.123Z", "2020-01-02T03:04:05.000Z");

    let kept = "{\"text\":\"a\\nb \\u2028\u{2028}\",\"big\":12345678901234567890123}";
    assert!(answer.text().contains(&format!("\"payload\":{kept}}}")), "{}", answer.text());
    let posted_item = answer.json()["items"][0].clone();
    let payload: Value = serde_json::from_str(kept).unwrap();
    assert_eq!(
        posted_item,
        json!({"position": "0-1", "type": "post", "at": at, "post": "5", "author": "1", "created_at": made,
            "delivery": "push", "payload": payload})
    );
    // Once it is deleted, the log still says that there was a post, but not what came with it.
    let items = server.read("/v1/changes")["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 6);
    assert_eq!(
        items[0],
        json!({"position": "0-1", "type": "post", "at": at, "post": "5", "author": "1", "created_at": made,
            "delivery": "push"})
    );
    assert_eq!(Listener::open(&server, "", &[]).event().data, items[0], "nor does a late stream");
    assert_eq!(
        items[4],
        json!({"position": "0-5", "type": "post", "at": at, "post": "6", "author": "1", "created_at": at,
            "delivery": "pull"})
    );
    assert_eq!(
        items[5],
        json!({"position": "0-6", "type": "post_deleted", "at": at, "post": "5", "author": "1", "created_at": made})
    );

    events.push(listener.event());
    assert_eq!((events[0].name.as_str(), &events[0].data), ("post", &posted_item));
    let id = Some(deleted.header("kinfolk-token").unwrap().to_owned());
    assert_eq!(events[5], Event { id, name: "post_deleted".to_owned(), data: items[5].clone() });
}

#[test]
fn threads_are_in_the_log_and_in_streams() {
    let server = Server::start();
    let mut listener = Listener::open(&server, "", &[]);
    server.post(r#"{"id":"5","author":"1"}"#);
    let first = server.comment(2, 5, "a", r#"{"body":"one\u001b"}"#);
    assert_eq!(first.status, 422);
    let first = server.comment(2, 5, "a", "{\"body\":\"one\\n\\ttwo\u{2028}\"}").json()["id"].clone();
    let reply = json!({"body": "three", "reply_to": first}).to_string();
    let reply = server.comment(3, 5, "a", &reply).json()["id"].clone();
    let (id, of_reply) = (first.as_str().unwrap(), reply.as_str().unwrap());
    assert_eq!(server.edit(2, id, "\"1\"", r#"{"body":"four"}"#).status, 200);
    let at = "2026-11-15T08:00:00.123Z";
    let edited = json!({"position": "0-4", "type": "comment_edited", "at": at, "comment": first, "post": "5",
        "author": "2", "version": 2, "body": "four"});
    assert_eq!(server.read("/v1/changes")["items"][3], edited);
    let told: Vec<Event> = (0..4).map(|_| listener.event()).collect();

    assert_eq!(server.edit(2, id, "\"2\"", r#"{"body":"five"}"#).status, 200);
    server.act(3, "DELETE", &format!("/v1/comments/{of_reply}"));
    server.remove(of_reply, r#"{"reason":"rude"}"#);
    server.request("POST", &format!("/v1/comments/{of_reply}/purge"), &[], b"");
    server.request("PUT", "/v1/posts/5/comments/lock", &[], b"");
    server.request("PUT", "/v1/posts/5/comments/lock", &[], b"");
    server.request("DELETE", "/v1/posts/5/comments/lock", &[], b"");
    let of_reply = |position: u64, name: &str| json!({"position": format!("0-{position}"), "type": name, "at": at, "comment": reply, "post": "5", "author": "3"});
    // A text is told only while it is what an active comment says.
    let items = server.read("/v1/changes")["items"].clone();
    let expected = json!([
        {"position": "0-2", "type": "comment", "at": at, "comment": first, "post": "5", "author": "2", "depth": 0},
        {"position": "0-3", "type": "comment", "at": at, "comment": reply, "post": "5", "author": "3",
            "reply_to": first, "depth": 1},
        {"position": "0-4", "type": "comment_edited", "at": at, "comment": first, "post": "5", "author": "2",
            "version": 2},
        {"position": "0-5", "type": "comment_edited", "at": at, "comment": first, "post": "5", "author": "2",
            "version": 3, "body": "five"},
        of_reply(6, "comment_deleted"),
        of_reply(7, "comment_removed"),
        of_reply(8, "comment_purged"),
        {"position": "0-9", "type": "comments_locked", "at": at, "post": "5"},
        {"position": "0-10", "type": "comments_unlocked", "at": at, "post": "5"},
    ]);
    assert_eq!(items.as_array().unwrap()[1..], *expected.as_array().unwrap());
    let events: Vec<Event> = (0..6).map(|_| listener.event()).collect();
    for (event, item) in events.iter().zip(&items.as_array().unwrap()[4..]) {
        assert_eq!((json!(event.name), &event.data), (item["type"].clone(), item));
    }
    // Streams had told earlier ones as they were then.
    assert_eq!([&told[2].data["body"], &told[3].data["body"]], ["three", "four"]);
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
    server.watch.refuse_watching(Error::Unavailable { what: "the log".to_owned(), retry_after });
    server.watch.await_refused_watching();
    server.follow(1, 3);
    listeners.iter_mut().for_each(|listener| assert_eq!(listener.event().data["position"], "0-2"));
    assert_eq!(server.watch.watchers_max(), 1);

    // What can't be mended by waiting ends them; those that come back are served again.
    server.watch.refuse_watching(Error::Storage { detail: "as the test wants".to_owned() });
    for listener in &mut listeners {
        while let Some(paragraph) = listener.paragraph() {
            assert_eq!(paragraph, ": keep-alive");
        }
    }
    let mut again = Listener::open(&server, "", &[]);
    (1..=2).for_each(|position| assert_eq!(again.event().data["position"], format!("0-{position}")));
    server.follow(1, 4);
    assert_eq!(again.event().data["position"], "0-3");
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
