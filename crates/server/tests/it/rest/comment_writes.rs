//! Comments as they are written, edited, taken back and moderated. Reading them has a file of its own, and so has who may do what.

use std::thread;

use serde_json::{Value, json};

use super::client::Answer;
use super::server::Server;

const NOW: &str = "2026-11-15T08:00:00.123Z";

/// A server with post 5 of user 1.
fn with_post() -> Server {
    let server = Server::start();
    assert_eq!(server.post(r#"{"id":"5","author":"1"}"#).status, 201);
    server
}

fn id(answer: &Answer) -> String {
    answer.json()["id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

fn body(text: &str) -> String {
    json!({ "body": text }).to_string()
}

fn reply(text: &str, to: &str) -> String {
    json!({"body": text, "reply_to": to}).to_string()
}

fn purge(server: &Server, comment: &str) -> Answer {
    server.request("POST", &format!("/v1/comments/{comment}/purge"), &[], b"")
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[test]
fn a_comment_is_written_and_read() {
    let server = with_post();
    let written = server.comment(2, 5, "k", &body("hello\n\tworld \u{1f600}"));
    let comment = id(&written);
    let expected = format!(
        "{{\"id\":\"{comment}\",\"post\":\"5\",\"author\":\"2\",\"body\":\"hello\\n\\tworld \u{1f600}\",\"version\":1,\
         \"created_at\":\"{NOW}\",\"status\":\"active\",\"depth\":0,\"reply_count\":0}}"
    );
    assert_eq!((written.status, written.text()), (201, expected.as_str()));
    let location = format!("/v1/comments/{comment}");
    for (header, value) in
        [("location", location.as_str()), ("kinfolk-changed", "true"), ("content-type", "application/json")]
    {
        assert_eq!(written.header(header), Some(value));
    }
    // Of version 7, whatever ids users have.
    assert_eq!((comment.len(), comment.as_bytes()[14]), (36, b'7'));
    let token = written.header("kinfolk-token").unwrap();
    let read = server.request("GET", &location, &[("kinfolk-token", token)], b"");
    assert_eq!((read.status, read.text()), (200, expected.as_str()));
    assert!(written.header("etag").unwrap().starts_with("\"1."), "{written:?}");
    assert_eq!(read.header("etag"), written.header("etag"));

    let answered = server.comment(3, 5, "k", &reply("yes", &comment)).json();
    assert_eq!((&answered["depth"], &answered["reply_to"]), (&json!(1), &json!(comment)));
    assert_eq!(server.read(&location)["reply_count"], 1);
    let post = server.read("/v1/posts/5");
    assert_eq!((&post["comment_count"], &post["comments_locked"]), (&json!(2), &json!(false)));
}

#[test]
fn a_repetition_answers_byte_for_byte() {
    let server = with_post();
    let text = "a \"b\" </c> \u{2028} é \u{1f600}";
    let first = server.comment(2, 5, "k 1", &body(text));
    let comment = id(&first);
    let repeat = || {
        let again = server.comment(2, 5, "k 1", &format!(" {{ \"body\" : {} }} ", json!(text)));
        assert_eq!((again.status, again.header("kinfolk-changed")), (200, Some("false")));
        assert_eq!(again.header("location"), first.header("location"));
        again
    };
    let same = |again: Answer| {
        assert_eq!((&again.body, again.header("etag")), (&first.body, first.header("etag")));
    };
    same(repeat());
    server.comment(3, 5, "k", &reply("answer", &comment));
    same(repeat());
    assert_eq!(server.edit(2, &comment, "\"1\"", &body("other")).status, 200);
    same(repeat());
    assert_eq!(server.request("PUT", "/v1/posts/5/comments/lock", &[], b"").status, 204);
    same(repeat());
    server.act(2, "DELETE", &format!("/v1/comments/{comment}"));
    same(repeat());
    server.remove(&comment, r#"{"reason":"rude"}"#);
    same(repeat());
    server.act(1, "DELETE", "/v1/posts/5");
    same(repeat());
    assert_eq!(purge(&server, &comment).status, 204);
    let tombstone = repeat();
    assert_eq!((&tombstone.json()["status"], tombstone.json().get("body")), (&json!("purged"), None));
    assert_eq!(tombstone.json().get("reason"), None, "it is for moderators");
    assert!(!tombstone.text().contains("</c>"));
    for another in ["other", text.trim_end_matches('\u{1f600}')] {
        let conflict = server.comment(2, 5, "k 1", &body(another));
        assert_eq!(conflict.refusal(), refused(409, "idempotency_conflict"), "{another}");
    }
}

#[test]
fn repetitions_at_once_are_one_comment() {
    let server = with_post();
    let answers: Vec<Answer> = thread::scope(|scope| {
        let writers: Vec<_> =
            (0..8).map(|_| scope.spawn(|| server.comment(2, 5, "k", &body("once")))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    assert!(answers.iter().all(|answer| [200, 201].contains(&answer.status)));
    assert!(answers.iter().all(|answer| answer.body == answers[0].body));
    assert_eq!(server.read("/v1/posts/5")["comment_count"], 1);
}

#[test]
fn a_key_belongs_to_its_author_and_names_one_comment() {
    let server = with_post();
    server.post(r#"{"id":"6","author":"1"}"#);
    let first = id(&server.comment(2, 5, "k", &body("a")));
    let other = id(&server.comment(3, 5, "k", &body("a")));
    assert_ne!(first, other);
    let conflict = refused(409, "idempotency_conflict");
    assert_eq!(server.comment(2, 5, "k", &body("b")).refusal(), conflict);
    assert_eq!(server.comment(2, 6, "k", &body("a")).refusal(), conflict);
    assert_eq!(server.comment(2, 5, "k", &reply("a", &other)).refusal(), conflict);
    assert_eq!(server.comment(2, 5, "k", &body("a")).status, 200);

    assert_eq!(server.comment(2, 5, &"k".repeat(255), &body("a")).status, 201);
    for key in ["", &"k".repeat(256), "\u{e9}"] {
        assert_eq!(server.comment(2, 5, key, &body("a")).refusal(), refused(400, "invalid_request"), "{key}");
    }
    let without = [("kinfolk-actor", "2"), ("content-type", "application/json")];
    let unnamed = server.request("POST", "/v1/posts/5/comments", &without, body("a").as_bytes());
    assert_eq!(unnamed.refusal(), refused(400, "invalid_request"));
    assert!(unnamed.text().contains("Idempotency-Key"), "{}", unnamed.text());
    let twice = [&without[..], &[("idempotency-key", "a"), ("idempotency-key", "a")]].concat();
    let twice = server.request("POST", "/v1/posts/5/comments", &twice, body("a").as_bytes());
    assert_eq!(twice.refusal(), refused(400, "invalid_request"));
}

#[test]
fn refused_comments() {
    let server = with_post();
    let gone = id(&server.comment(2, 5, "gone", &body("a")));
    server.act(2, "DELETE", &format!("/v1/comments/{gone}"));
    server.post(r#"{"id":"6","author":"1"}"#);
    let elsewhere = id(&server.comment(2, 6, "elsewhere", &body("a")));
    let unknown = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
    for (given, status, code) in [
        (String::new(), 400, "invalid_request"),
        ("[]".to_owned(), 400, "invalid_request"),
        (r#"["a"]"#.to_owned(), 400, "invalid_request"),
        ("{}".to_owned(), 400, "invalid_request"),
        (r#"{"body":"a","author":"3"}"#.to_owned(), 400, "invalid_request"),
        (r#"{"body":"a","body":"a"}"#.to_owned(), 400, "invalid_request"),
        (r#"{"body":7}"#.to_owned(), 400, "invalid_request"),
        (r#"{"body":null}"#.to_owned(), 400, "invalid_request"),
        (r#"{"body":"a","reply_to":null}"#.to_owned(), 400, "invalid_request"),
        (r#"{"body":"a","reply_to":7}"#.to_owned(), 400, "invalid_request"),
        (reply("a", "7"), 400, "invalid_id"),
        (reply("a", unknown), 422, "invalid_reply"),
        (reply("a", &gone), 422, "invalid_reply"),
        (reply("a", &elsewhere), 422, "invalid_reply"),
        (body(""), 422, "invalid_body"),
        (body(" \n\t \u{3000}"), 422, "invalid_body"),
    ] {
        assert_eq!(server.comment(2, 5, "k", &given).refusal(), refused(status, code), "{given}");
    }
    assert_eq!(server.comment(2, 7, "k", &body("a")).refusal(), refused(404, "not_found"));
    let named = [("idempotency-key", "k"), ("content-type", "application/json")];
    let anonymous = server.request("POST", "/v1/posts/5/comments", &named, body("a").as_bytes());
    assert_eq!(anonymous.refusal(), refused(400, "actor_required"));
    let headers = [("kinfolk-actor", "2"), ("idempotency-key", "k")];
    let plain = server.request("POST", "/v1/posts/5/comments", &headers, body("a").as_bytes());
    assert_eq!(plain.refusal(), refused(415, "unsupported_media_type"));
    for path in ["/v1/posts/x/comments", "/v1/comments/7", "/v1/comments/x/history", "/v1/users/x/comments"] {
        assert_eq!(server.get(path).refusal(), refused(400, "invalid_id"), "{path}");
    }
    for path in [format!("/v1/comments/{unknown}"), format!("/v1/comments/{unknown}/history")] {
        assert_eq!(server.get(&path).refusal(), refused(404, "not_found"), "{path}");
        assert_eq!(server.get(&format!("{path}?x=1")).refusal(), refused(400, "invalid_request"), "{path}");
    }
    assert_eq!(server.edit(2, unknown, "\"1\"", &body("a")).refusal(), refused(404, "not_found"));
    assert_eq!(
        server.act(2, "DELETE", &format!("/v1/comments/{unknown}")).refusal(),
        refused(404, "not_found")
    );
    // Nothing of what was refused is there, and no key was used up.
    assert_eq!(server.read("/v1/posts/5")["comment_count"], 0);
    assert_eq!(server.comment(2, 5, "k", &body("a")).status, 201);
}

/// What people paste: line ends of other systems, DEL, C1 controls, whatever Unicode has. Replies to it work like others.
#[test]
fn odd_bodies_are_accepted() {
    let server = with_post();
    let odd = [
        ("one\r\ntwo\rthree\n", "one\ntwo\nthree\n"),
        ("a\u{7f}b", "a\u{7f}b"),
        ("caf\u{e9}\u{85}\u{92}s", "caf\u{e9}\u{85}\u{92}s"),
        ("\u{9b}31mred", "\u{9b}31mred"),
        ("\u{feff}\u{202e}abc\u{202c}\u{200b}", "\u{feff}\u{202e}abc\u{202c}\u{200b}"),
        ("z\u{335}\u{321}a\u{337}l", "z\u{335}\u{321}a\u{337}l"),
        ("\u{fffe}\u{10ffff}\u{e000}", "\u{fffe}\u{10ffff}\u{e000}"),
    ];
    for (at, (given, kept)) in odd.into_iter().enumerate() {
        let key = format!("k{at}");
        let first = server.comment(2, 5, &key, &body(given));
        assert_eq!(first.status, 201, "{given:?}: {}", first.text());
        let id = first.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(first.json()["body"], kept, "{given:?}");
        // The same again, also with the line ends that were kept.
        for again in [given, kept] {
            let repeated = server.comment(2, 5, &key, &body(again));
            assert_eq!((repeated.status, repeated.text()), (200, first.text()), "{again:?}");
        }
        let edited = server.edit(2, &id, "\"1\"", &body(&format!("{given}!")));
        assert_eq!(edited.json()["body"], format!("{kept}!"));
        assert_eq!(server.comment(3, 5, &key, &reply(given, &id)).json()["body"], kept);
        let history = server.read(&format!("/v1/comments/{id}/history"));
        assert_eq!(history["items"][0]["body"], kept);
        let removal = serde_json::json!({ "reason": given }).to_string();
        let headers = [("content-type", "application/json")];
        let path = format!("/v1/comments/{id}/remove");
        assert_eq!(server.request("POST", &path, &headers, removal.as_bytes()).status, 204, "{given:?}");
        assert_eq!(server.read(&format!("/v1/comments/{id}"))["reason"], kept);
    }
    let told = server.read("/v1/changes?limit=100");
    let bodies: Vec<&str> =
        told["items"].as_array().unwrap().iter().filter_map(|item| item["body"].as_str()).collect();
    assert_eq!(bodies, odd.map(|(_, kept)| kept), "the replies are active: the log has their bodies");
    let refused = server.comment(2, 5, "control", &body("a\u{1b}[31m"));
    assert_eq!(
        refused.json()["detail"],
        "a comment cannot contain the control character U+001B; only tabs and line breaks are accepted"
    );
}

#[test]
fn hostile_bodies() {
    let server = with_post();
    let mut number = 0;
    let mut write = |given: &str| {
        number += 1;
        server.comment(2, 5, &number.to_string(), given)
    };
    let escaped = |count: usize| format!("{{\"body\":\"{}\"}}", "\\ud83d\\ude00".repeat(count));
    for fits in [
        body(&"x".repeat(10_000)),
        body(&"\u{1f600}".repeat(10_000)),
        escaped(10_000),
        body(&"\n".repeat(9_999)).replacen("\":\"", "\":\"x", 1),
        body("</script>\u{2028}\u{202e}\u{feff}\u{fffd}"),
        format!("{{\"body\":\"x\"{}}}", " ".repeat(200_000)),
    ] {
        let start: String = fits.chars().take(20).collect();
        assert_eq!(write(&fits).status, 201, "{start}");
    }
    for (hostile, status, code) in [
        (body(&"x".repeat(10_001)), 422, "invalid_body"),
        (body(&"\u{1f600}".repeat(10_001)), 422, "invalid_body"),
        (escaped(10_001), 422, "invalid_body"),
        (body(&"x".repeat(200_000)), 422, "invalid_body"),
        (body(&"x".repeat(300_000)), 413, "too_large"),
        (body("a\0b"), 422, "invalid_body"),
        (body("a\u{1}"), 422, "invalid_body"),
        (body("a\u{1b}[31m"), 422, "invalid_body"),
        (body("\u{feff}\u{200b}\u{ad}\u{3164}\u{2800}\u{e0041}\u{7f}\u{85}\r\n"), 422, "invalid_body"),
        (r#"{"body":"\ud800"}"#.to_owned(), 400, "invalid_request"),
        (r#"{"body":"\ude00\ud83d"}"#.to_owned(), 400, "invalid_request"),
        (r#"{"body":"\ud83d\u0041"}"#.to_owned(), 400, "invalid_request"),
        ("{\"body\":\"a\nb\"}".to_owned(), 400, "invalid_request"),
        ("{\"body\":\"a\0b\"}".to_owned(), 400, "invalid_request"),
        (r#"{"body":"a"}{"body":"b"}"#.to_owned(), 400, "invalid_request"),
        ("[".repeat(200_000), 400, "invalid_request"),
        (format!("{{\"body\":{}", "[".repeat(200_000)), 400, "invalid_request"),
        (format!("{{\"{}\":1}}", "x".repeat(200_000)), 400, "invalid_request"),
    ] {
        let start: String = hostile.chars().take(20).collect();
        assert_eq!(write(&hostile).refusal(), refused(status, code), "{start}");
    }
    let headers = [("kinfolk-actor", "2"), ("idempotency-key", "b"), ("content-type", "application/json")];
    let not_text = server.request("POST", "/v1/posts/5/comments", &headers, b"{\"body\":\"\xff\"}");
    assert_eq!(not_text.refusal(), refused(400, "invalid_request"));
    let page = server.read("/v1/posts/5/comments");
    let texts: Vec<&str> =
        page["items"].as_array().unwrap().iter().map(|item| item["body"].as_str().unwrap()).collect();
    assert_eq!(texts.len(), 6);
    assert_eq!(texts[1], "\u{1f600}".repeat(10_000));
    assert_eq!(texts[1], texts[2]);
}

#[test]
fn replies_have_a_depth() {
    let server = with_post();
    let mut above = id(&server.comment(2, 5, "0", &body("0")));
    for depth in 1..=50 {
        let written = server.comment(2, 5, &depth.to_string(), &reply("x", &above));
        assert_eq!((written.status, &written.json()["depth"]), (201, &json!(depth)));
        above = id(&written);
    }
    assert_eq!(server.comment(2, 5, "51", &reply("x", &above)).refusal(), refused(422, "invalid_reply"));
    // A tree as deep as they come, in one answer that parsers take.
    let mut node = server.read("/v1/posts/5/comments?view=tree&depth=50")["items"][0].take();
    for depth in 0..=50 {
        assert_eq!(node["depth"], depth);
        assert_eq!(node["replies"].as_array().unwrap().len(), usize::from(depth < 50));
        node = node["replies"].get_mut(0).map(Value::take).unwrap_or_default();
    }
}

#[test]
fn edits_are_guarded_by_the_version() {
    let server = with_post();
    let comment = id(&server.comment(2, 5, "k", &body("one")));
    server.clock.advance(1_000);
    let edited = server.edit(2, &comment, "\"1\"", &body("two"));
    assert_eq!(edited.status, 200);
    assert!(edited.header("etag").unwrap().starts_with("\"2."), "{edited:?}");
    assert_eq!(edited.header("kinfolk-changed"), Some("true"));
    let expected = json!({"id": comment, "post": "5", "author": "2", "body": "two", "version": 2,
        "created_at": NOW, "edited_at": "2026-11-15T08:00:01.123Z", "status": "active", "depth": 0,
        "reply_count": 0});
    assert_eq!(edited.json(), expected);
    let token = edited.header("kinfolk-token").unwrap();
    let path = format!("/v1/comments/{comment}");
    let read = server.request("GET", &path, &[("kinfolk-token", token)], b"");
    assert_eq!((read.json(), read.header("etag")), (expected, edited.header("etag")));

    let stale = [
        "\"1\"",
        "\"3\"",
        "W/\"1\"",
        "\"1-gzip\"",
        "\"1\", \"3\"",
        "\"\"",
        "\"02\"",
        "\"x\"",
        "\"99999999999999999999\"",
    ];
    for stale in stale {
        let answer = server.edit(2, &comment, stale, &body("x"));
        assert_eq!(answer.refusal(), refused(412, "version_conflict"), "{stale}");
        assert!(answer.text().contains("version 2"), "{}", answer.text());
    }
    for wrong in ["2", "\"2", "'2'", "\"2\" \"3\"", ""] {
        let answer = server.edit(2, &comment, wrong, &body("x"));
        assert_eq!(answer.refusal(), refused(400, "invalid_request"), "{wrong}");
        assert!(answer.text().contains("such as \\\"1\\\""), "{}", answer.text());
    }
    let headers = [("kinfolk-actor", "2"), ("content-type", "application/json")];
    let edit = |headers: &[(&str, &str)]| server.request("PATCH", &path, headers, body("x").as_bytes());
    let missing = edit(&headers);
    assert_eq!(missing.refusal(), refused(428, "version_required"));
    assert!(missing.text().contains("If-Match"), "{}", missing.text());
    let stale = edit(&[&headers[..], &[("if-match", "\"1\""), ("if-match", "\"3\"")]].concat());
    assert_eq!(stale.refusal(), refused(412, "version_conflict"), "several headers are one list");
    assert_eq!(server.edit(3, &comment, "\"2\"", &body("x")).refusal(), refused(403, "forbidden"));
    for (given, status, code) in [
        (body(" "), 422, "invalid_body"),
        (body("a\0"), 422, "invalid_body"),
        (reply("a", &comment), 400, "invalid_request"),
        ("{}".to_owned(), 400, "invalid_request"),
    ] {
        assert_eq!(server.edit(2, &comment, "\"2\"", &given).refusal(), refused(status, code), "{given}");
    }
    assert_eq!(server.read(&path)["version"], 2);
    // Edited comments can be edited again, also where the thread is locked.
    server.request("PUT", "/v1/posts/5/comments/lock", &[], b"");
    assert_eq!(server.edit(2, &comment, "\"2\"", &body("three")).json()["version"], 3);
    server.act(2, "DELETE", &path);
    assert_eq!(server.edit(2, &comment, "\"3\"", &body("x")).refusal(), refused(410, "comment_deleted"));
}

#[test]
fn of_edits_at_once_one_wins() {
    let server = with_post();
    let comment = id(&server.comment(2, 5, "k", &body("0")));
    let answers: Vec<Answer> = thread::scope(|scope| {
        let edit = |number: usize| server.edit(2, &comment, "\"1\"", &body(&number.to_string()));
        let editors: Vec<_> = (1..=8).map(|number| scope.spawn(move || edit(number))).collect();
        editors.into_iter().map(|editor| editor.join().unwrap()).collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!(won.len(), 1);
    assert!(lost.iter().all(|answer| answer.refusal() == refused(412, "version_conflict")));
    assert_eq!(server.read(&format!("/v1/comments/{comment}")), won[0].json());
}

#[test]
fn deleting_again_changes_nothing() {
    let server = with_post();
    let comment = id(&server.comment(2, 5, "k", &body("one")));
    let path = format!("/v1/comments/{comment}");
    assert_eq!(server.act(3, "DELETE", &path).refusal(), refused(403, "forbidden"));
    assert_eq!(server.request("DELETE", &path, &[], b"").refusal(), refused(400, "actor_required"));
    let deleted = server.act(2, "DELETE", &path);
    assert_eq!((deleted.status, deleted.header("kinfolk-changed")), (204, Some("true")));
    let again = server.act(2, "DELETE", &path);
    assert_eq!((again.status, again.header("kinfolk-changed")), (204, Some("false")));
    assert_eq!(server.act(3, "DELETE", &path).refusal(), refused(403, "forbidden"));
    assert_eq!(server.read("/v1/posts/5")["comment_count"], 0);
    assert_eq!(server.read("/v1/posts/5/comments")["items"][0]["status"], "deleted");
}

#[test]
fn moderators_remove_and_purge() {
    let server = with_post();
    let comment = id(&server.comment(2, 5, "k", &body("one")));
    let path = format!("/v1/comments/{comment}");
    let unknown = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
    for (given, status, code) in [
        ("", 400, "invalid_request"),
        ("{}", 400, "invalid_request"),
        (r#"{"reason":1}"#, 400, "invalid_request"),
        (r#"{"reason":"a","by":"b"}"#, 400, "invalid_request"),
        (r#"{"reason":" "}"#, 422, "invalid_body"),
        (r#"{"reason":"\u0000"}"#, 422, "invalid_body"),
    ] {
        assert_eq!(server.remove(&comment, given).refusal(), refused(status, code), "{given}");
    }
    assert_eq!(server.remove(unknown, r#"{"reason":"a"}"#).refusal(), refused(404, "not_found"));
    assert_eq!(server.remove("7", r#"{"reason":"a"}"#).refusal(), refused(400, "invalid_id"));
    let removed = server.remove(&comment, r#"{"reason":"rude"}"#);
    assert_eq!(
        (removed.status, removed.body.len(), removed.header("kinfolk-changed")),
        (204, 0, Some("true"))
    );
    let again = server.remove(&comment, r#"{"reason":"other"}"#);
    assert_eq!((again.status, again.header("kinfolk-changed")), (204, Some("false")));
    // With authentication off everybody is a moderator.
    let seen = server.read(&path);
    assert_eq!([&seen["status"], &seen["body"], &seen["reason"]], ["removed", "one", "rude"]);

    assert_eq!(purge(&server, unknown).refusal(), refused(404, "not_found"));
    let with_body = server.request("POST", &format!("{path}/purge"), &[], br#"{"reason":"a"}"#);
    assert_eq!(with_body.refusal(), refused(400, "invalid_request"));
    assert_eq!(purge(&server, &comment).header("kinfolk-changed"), Some("true"));
    assert_eq!(purge(&server, &comment).header("kinfolk-changed"), Some("false"));
    let seen = server.read(&path);
    assert_eq!((&seen["status"], seen.get("body")), (&json!("purged"), None));
    assert_eq!(server.get(&format!("{path}/history")).refusal(), refused(410, "comment_deleted"));
    assert!(!server.get("/v1/changes").text().contains("one"));
}

#[test]
fn a_locked_thread_takes_no_comments() {
    let server = with_post();
    let lock = |method: &str| server.request(method, "/v1/posts/5/comments/lock", &[], b"");
    let locked = lock("PUT");
    assert_eq!((locked.status, locked.header("kinfolk-changed")), (204, Some("true")));
    assert_eq!(lock("PUT").header("kinfolk-changed"), Some("false"));
    assert_eq!(server.comment(2, 5, "k", &body("a")).refusal(), refused(423, "thread_locked"));
    assert_eq!(server.read("/v1/posts/5")["comments_locked"], true);
    assert_eq!(server.read("/v1/posts/5/comments"), json!({"items": []}));
    assert_eq!(lock("DELETE").header("kinfolk-changed"), Some("true"));
    assert_eq!(lock("DELETE").header("kinfolk-changed"), Some("false"));
    assert_eq!(server.comment(2, 5, "k", &body("a")).status, 201);
    for method in ["PUT", "DELETE"] {
        let missing = server.request(method, "/v1/posts/6/comments/lock", &[], b"");
        assert_eq!(missing.refusal(), refused(404, "not_found"));
        let given = server.request(method, "/v1/posts/5/comments/lock", &[], br#"{"reason":"a"}"#);
        assert_eq!(given.refusal(), refused(400, "invalid_request"));
    }
}

#[test]
fn comments_are_counted_by_operation() {
    let server = with_post();
    let comment = id(&server.comment(2, 5, "k", &body("a")));
    server.comment(2, 5, "k", &body("b"));
    server.edit(2, &comment, "\"1\"", &body("b"));
    for path in ["/v1/posts/5/comments", "/v1/users/2/comments", &format!("/v1/comments/{comment}/history")] {
        server.read(path);
    }
    server.act(2, "DELETE", &format!("/v1/comments/{comment}"));
    server.remove(&comment, r#"{"reason":"a"}"#);
    purge(&server, &comment);
    let metrics = server.get("/metrics");
    let counted = |operation: &str| -> Option<Value> {
        let name =
            format!("kinfolk_request_duration_seconds_count{{protocol=\"rest\",operation=\"{operation}\"}} ");
        metrics.text().lines().find_map(|line| line.strip_prefix(&name)).map(Value::from)
    };
    assert_eq!(
        ["comment", "edit_comment", "delete_comment", "moderate", "comments"].map(counted),
        ["2", "1", "1", "2", "3"].map(|count| Some(Value::from(count)))
    );
    assert!(metrics.text().contains("operation=\"comment\",code=\"idempotency_conflict\"} 1"));
}
