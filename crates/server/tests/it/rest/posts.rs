//! Posts and feeds. Who may do what with them is tried with all other routes.

use serde_json::{Value, json};

use super::client::Answer;
use super::server::Server;

const NOW: &str = "2026-11-15T08:00:00.123Z";

fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// A whole list, page by page, by the address that each page gives.
fn walk(server: &Server, path: &str, limit: usize) -> Vec<String> {
    let (mut found, mut next) = (Vec::new(), Some(format!("{path}?limit={limit}")));
    while let Some(address) = next {
        let answer = server.get(&address);
        let page = ids(&answer.json());
        assert!(page.len() <= limit);
        found.extend(page);
        next = answer.header("link").map(|link| {
            let (address, relation) = link.split_once('>').unwrap();
            assert_eq!(relation, "; rel=\"next\"");
            address.trim_start_matches('<').to_owned()
        });
        assert_eq!(next.is_some(), answer.json().get("next").is_some());
    }
    found
}

#[test]
fn a_post_is_registered_read_and_deleted() {
    let server = Server::start();
    let body = r#" {"id": 77, "author": "1", "created_at": "2020-01-02T04:04:05.6789+01:00", "payload": {"b": [1, "x y"], "a": 1.50}} "#;
    let posted = server.post(body);
    let expected = r#"{"id":"77","author":"1","created_at":"2020-01-02T03:04:05.678Z","payload":{"b":[1,"x y"],"a":1.50}"#;
    assert_eq!((posted.status, posted.text()), (201, &*format!("{expected}}}")));
    assert_eq!(posted.header("content-type"), Some("application/json"));
    assert_eq!(
        (posted.header("location"), posted.header("kinfolk-changed")),
        (Some("/v1/posts/77"), Some("true"))
    );
    let token = posted.header("kinfolk-token").unwrap();

    let read = server.request("GET", "/v1/posts/77", &[("kinfolk-token", token)], b"");
    assert_eq!(
        (read.status, read.text()),
        (200, &*format!("{expected},\"comment_count\":0,\"comments_locked\":false}}"))
    );
    assert_eq!(server.read("/v1/users/1/posts"), json!({"items": [posted.json()]}));
    assert_eq!(server.read("/v1/users/2/feed"), json!({"items": []}));
    server.follow(2, 1);
    assert_eq!(server.read("/v1/users/2/feed"), json!({"items": [posted.json()]}));

    let deleted = server.act(1, "DELETE", "/v1/posts/77");
    assert_eq!(
        (deleted.status, deleted.body.len(), deleted.header("kinfolk-changed")),
        (204, 0, Some("true"))
    );
    let again = server.act(1, "DELETE", "/v1/posts/77");
    assert_eq!((again.status, again.header("kinfolk-changed")), (204, Some("false")));
    assert_eq!(again.header("kinfolk-token"), deleted.header("kinfolk-token"));
    assert_eq!(server.get("/v1/posts/77").refusal(), (404, "not_found".to_owned()));
    for path in ["/v1/users/1/posts", "/v1/users/2/feed"] {
        assert_eq!(server.read(path), json!({"items": []}));
    }
    assert_eq!(server.post(body).refusal(), (409, "post_deleted".to_owned()));
    assert_eq!(server.act(1, "DELETE", "/v1/posts/78").refusal(), (404, "not_found".to_owned()));
}

#[test]
fn a_post_without_id_and_time_gets_them() {
    let server = Server::start();
    let posts: Vec<Value> = (0..3).map(|_| server.post(r#"{"author":1}"#).json()).collect();
    let numbers: Vec<u64> = posts.iter().map(|post| post["id"].as_str().unwrap().parse().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, two| one < two), "{numbers:?}");
    assert!(posts.iter().all(|post| post["created_at"] == NOW && post.get("payload").is_none()), "{posts:?}");
    // Of one millisecond: the higher id is the newer.
    let newest_first: Vec<String> = numbers.iter().rev().map(u64::to_string).collect();
    assert_eq!(ids(&server.read("/v1/users/1/posts")), newest_first);
    let none = server.post(r#"{"author":1,"payload":null}"#);
    assert_eq!((none.status, none.json().get("payload")), (201, None));
}

#[test]
fn a_repetition_is_the_first_post() {
    let server = Server::start();
    let first = server.post(r#"{"author":"1","id":"7","payload":{"a":1}}"#);
    for body in [
        r#"{"author":"1","id":"7","payload":{"a":1}}"#,
        r#"{"author":1,"id":7,"payload": { "a" : 1 } }"#,
        r#"{"author":"1","id":"7","payload":{"a":1},"created_at":"2026-11-15T08:00:00.123Z"}"#,
    ] {
        let again = server.post(body);
        assert_eq!((again.status, &again.body), (200, &first.body), "{body}");
        assert_eq!(again.header("kinfolk-changed"), Some("false"));
        assert_eq!(again.header("kinfolk-token"), first.header("kinfolk-token"));
        assert_eq!(again.header("location"), first.header("location"));
    }
    for body in [
        r#"{"author":"1","id":"7"}"#,
        r#"{"author":"1","id":"7","payload":{"a":2}}"#,
        r#"{"author":"2","id":"7","payload":{"a":1}}"#,
        r#"{"author":"1","id":"7","payload":{"a":1},"created_at":"2026-11-15T08:00:00.122Z"}"#,
    ] {
        assert_eq!(server.post(body).refusal(), (409, "post_conflict".to_owned()), "{body}");
    }
}

#[test]
fn an_idempotency_key_belongs_to_its_author() {
    let server = Server::start();
    let post = |key: &str, body: &str| server.post_with(&[("idempotency-key", key)], body);
    let first = post("k 1", r#"{"author":"1","payload":1}"#);
    let again = post("k 1", r#"{"author":"1","payload":1}"#);
    assert_eq!([first.status, again.status], [201, 200]);
    assert_eq!(first.body, again.body);
    let other = post("k 1", r#"{"author":"2","payload":1}"#);
    assert_eq!(other.status, 201);
    assert_ne!(first.json()["id"], other.json()["id"]);
    assert_eq!(post("k 1", r#"{"author":"1","payload":2}"#).refusal(), (409, "post_conflict".to_owned()));
    server.act(1, "DELETE", &format!("/v1/posts/{}", first.json()["id"].as_str().unwrap()));
    assert_eq!(post("k 1", r#"{"author":"1","payload":1}"#).refusal(), (409, "post_deleted".to_owned()));

    assert_eq!(post(&"k".repeat(255), r#"{"author":"1"}"#).status, 201);
    for key in ["", &"k".repeat(256), "\u{e9}"] {
        assert_eq!(post(key, r#"{"author":"1"}"#).refusal(), (400, "invalid_request".to_owned()), "{key}");
    }
    let twice = server.post_with(&[("idempotency-key", "a"), ("idempotency-key", "a")], r#"{"author":"1"}"#);
    assert_eq!(twice.refusal(), (400, "invalid_request".to_owned()));
}

#[test]
fn refused_posts() {
    let server = Server::start();
    for (body, status, code) in [
        ("{}", 400, "actor_required"),
        ("", 400, "invalid_request"),
        ("[]", 400, "invalid_request"),
        (r#"{"author":"1","text":"hello"}"#, 400, "invalid_request"),
        (r#"{"author":"1","author":"1"}"#, 400, "invalid_request"),
        (r#"{"author":null}"#, 400, "invalid_request"),
        (r#"{"author":"x"}"#, 400, "invalid_id"),
        (r#"{"author":"1","id":9223372036854775808}"#, 400, "invalid_id"),
        (r#"{"author":"1","created_at":"yesterday"}"#, 400, "invalid_request"),
        (r#"{"author":"1","created_at":1794729600123}"#, 400, "invalid_request"),
        (r#"{"author":"1","created_at":"2026-11-15T08:05:00.124Z"}"#, 422, "post_in_future"),
        (r#"{"author":"1","created_at":"9999-12-31T23:59:59.999Z"}"#, 422, "post_in_future"),
        (r#"{"author":"1","payload":01}"#, 400, "invalid_request"),
    ] {
        assert_eq!(server.post(body).refusal(), (status, code.to_owned()), "{body}");
    }
    assert_eq!(server.post(r#"{"author":"1","created_at":"2026-11-15T08:05:00.123Z"}"#).status, 201);
    assert_eq!(server.post(r#"{"author":"1","created_at":"1970-01-01T00:00:00Z"}"#).status, 201);
    let plain = server.request("POST", "/v1/posts", &[("kinfolk-actor", "1")], b"{}");
    assert_eq!(plain.refusal(), (415, "unsupported_media_type".to_owned()));
    let asks = [("content-type", "application/json"), ("kinfolk-actor", "1")];
    let queried = server.request("POST", "/v1/posts?id=1", &asks, b"{}");
    assert_eq!(queried.refusal(), (400, "invalid_request".to_owned()));
    let unnamed = server.request("DELETE", "/v1/posts/1", &[], b"");
    assert_eq!(unnamed.refusal(), (400, "actor_required".to_owned()));
    for path in ["/v1/posts/x", "/v1/users/x/posts", "/v1/users/x/feed"] {
        assert_eq!(server.get(path).refusal(), (400, "invalid_id".to_owned()), "{path}");
    }
    assert_eq!(server.get("/v1/posts/1?cursor=1").refusal(), (400, "invalid_request".to_owned()));
    // Nothing of what was refused is there.
    assert_eq!(ids(&server.read("/v1/users/1/posts")).len(), 2);
}

#[test]
fn hostile_payloads() {
    let server = Server::start();
    let post = |payload: &str| server.post(&format!("{{\"author\":\"1\",\"payload\":{payload}}}"));
    let text = |letters: usize| format!("\"{}\"", "x".repeat(letters));
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(post(&text(4_094)).status, 201);
    // What counts is the text without blanks.
    assert_eq!(post(&format!("[ {} {}]", text(4_092), " ".repeat(9_000))).status, 201);
    assert_eq!(post(&nested(64)).status, 201);
    for (payload, status, code) in [
        (text(4_095), 422, "payload_too_large"),
        (text(200_000), 422, "payload_too_large"),
        (text(300_000), 413, "too_large"),
        (nested(65), 400, "invalid_request"),
        (nested(100_000), 400, "invalid_request"),
        ("[".repeat(200_000), 400, "invalid_request"),
        (r#""\ud800""#.to_owned(), 400, "invalid_request"),
        ("\"\u{1}\"".to_owned(), 400, "invalid_request"),
        ("1e999".to_owned(), 400, "invalid_request"),
        ("1 2".to_owned(), 400, "invalid_request"),
        (r#"1},{"author":"2""#.to_owned(), 400, "invalid_request"),
    ] {
        let start: String = payload.chars().take(20).collect();
        assert_eq!(post(&payload).refusal(), (status, code.to_owned()), "{start}");
    }
    let odd = r#"{"":"</script>\u0000\r\n\u2028","author":"2","$serde_json::private::RawValue":"1"}"#;
    assert_eq!(post(odd).status, 201);
    let found = server.get("/v1/users/1/posts");
    assert_eq!(found.json()["items"].as_array().unwrap().len(), 4);
    assert!(found.text().contains(odd));
}

#[test]
fn walks_meet_every_post_once() {
    let server = Server::start();
    // Authors 1 to 3, with many posts of the same millisecond; author 1 is pulled, as three follow it.
    for number in 0..60_u64 {
        let (author, at) = (number % 3 + 1, number / 7);
        let body = format!(
            r#"{{"author":{author},"id":{},"created_at":"2026-01-01T00:00:00.{at:03}Z"}}"#,
            1_000 - number
        );
        assert_eq!(server.post(&body).status, 201);
    }
    for (follower, author) in [(9, 1), (9, 2), (9, 3), (8, 1), (7, 1)] {
        server.follow(follower, author);
    }
    let mut expected: Vec<(u64, u64)> = (0..60).map(|number| (number / 7, 1_000 - number)).collect();
    expected.sort_unstable_by(|one, two| two.cmp(one));
    let all: Vec<String> = expected.iter().map(|(_, id)| id.to_string()).collect();
    let of_one: Vec<String> =
        expected.iter().filter(|(_, id)| (1_000 - id) % 3 == 0).map(|(_, id)| id.to_string()).collect();
    for limit in [1, 7, 59, 60, 1_000] {
        assert_eq!(walk(&server, "/v1/users/9/feed", limit), all, "{limit}");
        assert_eq!(walk(&server, "/v1/users/1/posts", limit), of_one, "{limit}");
    }
    assert_eq!(ids(&server.read("/v1/users/9/feed")).len(), 50);

    // In the middle of a walk: what was unfollowed or deleted is gone, and what is newer does not disturb.
    let page = server.read("/v1/users/9/feed?limit=30");
    let next = page["next"].as_str().unwrap();
    server.act(9, "DELETE", "/v1/users/2/follow");
    server.act(1, "DELETE", &format!("/v1/posts/{}", of_one.last().unwrap()));
    server.post(r#"{"author":3}"#);
    let rest = ids(&server.read(&format!("/v1/users/9/feed?cursor={next}")));
    let is_left = |id: &String| (1_000 - id.parse::<u64>().unwrap()) % 3 != 1 && Some(id) != of_one.last();
    assert_eq!(rest, all[30..].iter().filter(|id| is_left(id)).cloned().collect::<Vec<_>>());

    // A cursor belongs to its list and its user.
    for path in ["/v1/users/9/posts", "/v1/users/8/feed", "/v1/users/9/following"] {
        assert_eq!(
            server.get(&format!("{path}?cursor={next}")).refusal(),
            (400, "invalid_cursor".to_owned())
        );
    }
    for (query, code) in [
        ("limit=0", "limit_out_of_range"),
        ("limit=1001", "limit_out_of_range"),
        ("cursor=x", "invalid_cursor"),
        ("limit=x", "invalid_request"),
        ("viewer=9", "invalid_request"),
    ] {
        for path in ["/v1/users/9/posts", "/v1/users/9/feed"] {
            assert_eq!(
                server.get(&format!("{path}?{query}")).refusal(),
                (400, code.to_owned()),
                "{path}?{query}"
            );
        }
    }
}

#[test]
fn posts_and_feeds_are_counted() {
    let server = Server::start();
    server.post(r#"{"author":1,"id":5}"#);
    server.post(r#"{"author":2,"id":5}"#);
    for path in ["/v1/posts/5", "/v1/users/1/posts", "/v1/users/1/feed"] {
        server.read(path);
    }
    server.act(1, "DELETE", "/v1/posts/5");
    let metrics: Answer = server.get("/metrics");
    let counted = |operation: &str| {
        let name =
            format!("kinfolk_request_duration_seconds_count{{protocol=\"rest\",operation=\"{operation}\"}} ");
        metrics.text().lines().find_map(|line| line.strip_prefix(&name)).map(str::to_owned)
    };
    assert_eq!(
        ["post", "delete_post", "posts", "feed"].map(counted),
        ["2", "1", "2", "1"].map(|count| Some(count.to_owned()))
    );
    assert!(metrics.text().contains("operation=\"post\",code=\"post_conflict\"} 1"));
}

#[test]
fn uuids_are_made_in_the_order_of_time() {
    let server = Server::closed(kinfolk_server::rest::RestSettings::default());
    server.open(kinfolk_core::IdKind::Uuid, kinfolk_server::Access::open());
    let author = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
    let posts: Vec<Value> =
        (0..3).map(|_| server.post(&format!("{{\"author\":\"{author}\"}}")).json()).collect();
    let made: Vec<&str> = posts.iter().map(|post| post["id"].as_str().unwrap()).collect();
    assert!(made.is_sorted_by(|one, two| one < two) && made[0].len() == 36, "{made:?}");
    assert_eq!(server.read(&format!("/v1/posts/{}", made[0]))["author"], author);
    assert_eq!(server.post(r#"{"author":1}"#).refusal(), (400, "invalid_id".to_owned()));
}
