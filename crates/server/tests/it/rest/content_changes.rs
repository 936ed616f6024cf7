//! Posts and comments in the change log, polled and streamed.

use serde_json::{Value, json};

use super::changes::{Event, Listener};
use super::server::Server;

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
