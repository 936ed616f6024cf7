//! Who may do and see what with comments where credentials are wanted, and how many comments may be written. That every route is
//! guarded is tried with all others.

use std::time::Duration;

use kinfolk_core::Error;
use kinfolk_server::{LimitSettings, Rate, Scope};
use serde_json::{Value, json};

use super::access::{Guarded, default_limits, token};
use super::client::Answer;

const POST: &str = "21";

/// A caller, and whom it names as the actor.
struct As<'a> {
    guarded: &'a Guarded,
    authorization: String,
    actor: Option<&'static str>,
}

impl<'a> As<'a> {
    fn new(guarded: &'a Guarded, credential: &str, actor: Option<&'static str>) -> Self {
        Self { guarded, authorization: format!("Bearer {credential}"), actor }
    }

    fn call(&self, method: &str, path: &str, more: &[(&str, &str)], body: &str) -> Answer {
        let mut headers = [more, &[("authorization", self.authorization.as_str())]].concat();
        headers.extend(self.actor.map(|actor| ("kinfolk-actor", actor)));
        if !body.is_empty() {
            headers.push(("content-type", "application/json"));
        }
        self.guarded.server.request(method, path, &headers, body.as_bytes())
    }

    fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], "")
    }

    fn comment(&self, post: &str, key: &str, text: &str) -> Answer {
        let body = json!({ "body": text }).to_string();
        self.call("POST", &format!("/v1/posts/{post}/comments"), &[("idempotency-key", key)], &body)
    }
}

#[test]
fn users_comment_as_themselves_and_services_for_anybody() {
    let guarded = Guarded::start(default_limits());
    let user = token("1", "");
    let service = guarded.key([Scope::Write]);
    let author = |credential: &str, actor| {
        let answer = As::new(&guarded, credential, actor).comment(POST, "k", "a");
        if answer.status < 300 {
            answer.json()["author"].as_str().unwrap().to_owned()
        } else {
            answer.problem()
        }
    };
    assert_eq!(author(&user, None), "1");
    assert_eq!(author(&user, Some("1")), "1");
    assert_eq!(author(&user, Some("2")), "forbidden");
    assert_eq!(author(service, None), "actor_required");
    assert_eq!(author(service, Some("5")), "5");
    // Who moderates need not be a user, and may not write or edit for that.
    assert_eq!(author(guarded.key([Scope::Moderate]), Some("5")), "forbidden");
    let comment = guarded.comment("2", POST, "k");
    let path = format!("/v1/comments/{comment}");
    let edit = |credential: &str, actor| {
        As::new(&guarded, credential, actor)
            .call("PATCH", &path, &[("if-match", "\"1\"")], r#"{"body":"b"}"#)
            .status
    };
    assert_eq!(edit(&user, None), 403);
    assert_eq!(edit(guarded.key(Scope::ALL), Some("1")), 403);
    assert_eq!(edit(service, Some("2")), 200);
    assert_eq!(
        As::new(&guarded, guarded.key(Scope::ALL), Some("1")).call("DELETE", &path, &[], "").status,
        403
    );
    assert_eq!(As::new(&guarded, &token("2", ""), None).call("DELETE", &path, &[], "").status, 204);
}

#[test]
fn what_was_taken_back_is_for_moderators() {
    let guarded = Guarded::start(default_limits());
    let (deleted, removed) = (guarded.comment("1", POST, "d"), guarded.comment("1", POST, "r"));
    let moderator = As::new(&guarded, guarded.key([Scope::Read, Scope::Moderate]), None);
    let user_moderator = token("9", "kinfolk:read kinfolk:moderate");
    let user_moderator = As::new(&guarded, &user_moderator, None);
    let author = As::new(&guarded, &token("1", ""), None);
    let stranger = As::new(&guarded, &token("7", ""), None);
    let service = As::new(&guarded, guarded.key([Scope::Read]), Some("1"));
    let for_somebody = As::new(&guarded, guarded.key([Scope::Read, Scope::Moderate]), Some("1"));
    assert_eq!(author.call("DELETE", &format!("/v1/comments/{deleted}"), &[], "").status, 204);
    let path = format!("/v1/comments/{removed}/remove");
    assert_eq!(moderator.call("POST", &path, &[], r#"{"reason":"rude"}"#).status, 204);

    let seen = |item: &Value| [item.get("body").cloned(), item.get("reason").cloned()];
    for (id, status, reason) in [(&deleted, "deleted", None), (&removed, "removed", Some(json!("rude")))] {
        for (who, expected) in [
            (&moderator, [Some(json!("a")), reason.clone()]),
            (&user_moderator, [Some(json!("a")), reason]),
            (&author, [None, None]),
            (&stranger, [None, None]),
            (&service, [None, None]),
            (&for_somebody, [None, None]),
        ] {
            let one = who.get(&format!("/v1/comments/{id}")).json();
            assert_eq!((&one["status"], seen(&one)), (&json!(status), expected.clone()));
            for query in ["?order=oldest", "?order=newest", "?view=tree"] {
                let page = who.get(&format!("/v1/posts/{POST}/comments{query}")).json();
                let found = page["items"].as_array().unwrap().iter().find(|item| item["id"] == **id).unwrap();
                assert_eq!(seen(found), expected, "{query}");
            }
            let history = who.get(&format!("/v1/comments/{id}/history"));
            assert_eq!(history.status, if expected[0].is_some() { 200 } else { 403 });
        }
    }
}

#[test]
fn who_moderated_is_recorded_for_moderators_and_in_the_log() {
    let guarded = Guarded::start(default_limits());
    let key = guarded.key([Scope::Read, Scope::Moderate]);
    let moderator = As::new(&guarded, key, None);
    let for_a_user = As::new(&guarded, key, Some("9"));
    let user_moderator = As::new(&guarded, &token("8", "kinfolk:read kinfolk:moderate"), None);
    let author = As::new(&guarded, &token("1", ""), None);
    let remove = |who: &As<'_>, comment: &str| {
        who.call("POST", &format!("/v1/comments/{comment}/remove"), &[], r#"{"reason":"rude"}"#)
    };
    let purge = |who: &As<'_>, comment: &str| {
        who.call("POST", &format!("/v1/comments/{comment}/purge"), &[], "").status
    };
    let seen = |who: &As<'_>, comment: &str| {
        let shown = who.get(&format!("/v1/comments/{comment}")).json();
        shown.get("removed_by").map(|by| by.as_str().unwrap().to_owned())
    };
    // The key of these scopes is called after their bits.
    for (who, recorded) in
        [(&moderator, "key:service-5"), (&for_a_user, "user:9"), (&user_moderator, "user:8")]
    {
        let comment = guarded.comment("1", POST, recorded);
        assert_eq!(remove(who, &comment).status, 204);
        assert_eq!(seen(&moderator, &comment).as_deref(), Some(recorded));
        assert_eq!(seen(&user_moderator, &comment).as_deref(), Some(recorded));
        assert_eq!([seen(&author, &comment), seen(&for_a_user, &comment)], [None, None]);
        // The first stays, and a later purge counts.
        assert_eq!(remove(&user_moderator, &comment).header("kinfolk-changed"), Some("false"));
        assert_eq!(seen(&moderator, &comment).as_deref(), Some(recorded));
        assert_eq!(purge(&for_a_user, &comment), 204);
        assert_eq!(seen(&moderator, &comment).as_deref(), Some("user:9"));
        let log = moderator.get("/v1/changes?limit=1000").json();
        let told: Vec<_> =
            log["items"].as_array().unwrap().iter().filter(|item| item["comment"] == comment).collect();
        let told: Vec<_> =
            told.iter().map(|item| (item["type"].as_str(), item.get("removed_by").cloned())).collect();
        let expected = [
            (Some("comment"), None),
            (Some("comment_removed"), Some(json!(recorded))),
            (Some("comment_purged"), Some(json!("user:9"))),
        ];
        assert_eq!(told, expected);
    }
    let deleted = guarded.comment("1", POST, "d");
    assert_eq!(author.call("DELETE", &format!("/v1/comments/{deleted}"), &[], "").status, 204);
    assert_eq!(seen(&moderator, &deleted), None, "its author is no moderator");
    // A user moderates as itself only.
    let other = As::new(&guarded, &token("8", "kinfolk:read kinfolk:moderate"), Some("9"));
    assert_eq!(purge(&other, &deleted), 403);
    let malformed = As::new(&guarded, key, Some("x"));
    assert_eq!(purge(&malformed, &deleted), 400);
}

#[test]
fn the_history_of_an_active_comment_is_for_its_author() {
    let guarded = Guarded::start(default_limits());
    let path = format!("/v1/comments/{}/history", guarded.comment("1", POST, "k"));
    let status = |credential: &str, actor| As::new(&guarded, credential, actor).get(&path).status;
    let (author, stranger, service) = (token("1", ""), token("7", ""), guarded.key([Scope::Read]));
    assert_eq!(
        [status(&author, None), status(&author, Some("1")), status(&author, Some("7"))],
        [200, 200, 403]
    );
    assert_eq!([status(&stranger, None), status(&stranger, Some("1"))], [403, 403]);
    assert_eq!(
        [status(service, None), status(service, Some("7")), status(service, Some("1"))],
        [403, 403, 200]
    );
    assert_eq!(status(guarded.key([Scope::Read, Scope::Moderate]), None), 200);
}

fn limited(author: Option<Rate>, parent: Option<Rate>) -> Guarded {
    let limits = LimitSettings {
        author_comments: author,
        parent_comments: parent,
        changes: None,
        user: None,
        ..default_limits()
    };
    Guarded::start(limits)
}

#[test]
fn an_author_writes_only_so_many_comments() {
    let guarded = limited(Some(Rate::per_hour(1).with_burst(3)), None);
    let user = As::new(&guarded, &token("1", ""), None);
    let service = As::new(&guarded, guarded.key([Scope::Write]), Some("1"));
    // What was refused, or repeats another, costs nothing.
    for _ in 0..5 {
        assert_eq!(user.comment(POST, "k", " ").status, 422);
        assert_eq!(user.comment("99", "k", "a").status, 404);
    }
    assert_eq!(user.comment(POST, "a", "a").status, 201);
    for _ in 0..5 {
        assert_eq!(user.comment(POST, "a", "a").status, 200);
        assert_eq!(user.comment(POST, "a", "b").status, 409);
    }
    // Whoever acts for the author, and wherever it writes.
    assert_eq!(service.comment("22", "b", "a").status, 201);
    assert_eq!(user.comment("23", "c", "a").status, 201);
    let refused = user.comment(POST, "d", "a");
    assert_eq!(refused.refusal(), (429, "rate_limited".to_owned()));
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=3_600).contains(&wait), "{wait}");
    assert_eq!(service.comment(POST, "d", "a").status, 429);
    // There is no place for a repetition either until there is one for a comment.
    assert_eq!(user.comment(POST, "a", "a").status, 429);
    assert_eq!(As::new(&guarded, &token("2", ""), None).comment(POST, "d", "a").status, 201);
}

#[test]
fn a_comment_of_unknown_outcome_counts() {
    let refuse_next = |guarded: &Guarded, error, refusal: (u16, &str)| {
        guarded.server.watch.refuse_next(error);
        let refused = As::new(guarded, &token("1", ""), None).comment(POST, "a", "a").refusal();
        assert_eq!(refused, (refusal.0, refusal.1.to_owned()));
    };
    let once = Some(Rate::per_hour(1).with_burst(1));
    for guarded in [limited(once, None), limited(None, once)] {
        let user = As::new(&guarded, &token("1", ""), None);
        // Nothing was written, and the comment costs nothing.
        let retry_after = Duration::from_secs(1);
        let unreachable = Error::Unavailable { what: "a host".to_owned(), retry_after };
        refuse_next(&guarded, unreachable, (503, "unavailable"));
        // It may have been written: giving the budget back would let a client write as much as it likes.
        refuse_next(&guarded, Error::TimedOut, (504, "timed_out"));
        assert_eq!(user.comment(POST, "b", "b").refusal(), (429, "rate_limited".to_owned()));
    }
}

#[test]
fn a_thread_takes_only_so_many_comments() {
    let guarded = limited(None, Some(Rate::per_hour(1).with_burst(2)));
    let service = |actor| As::new(&guarded, guarded.key([Scope::Write]), Some(actor));
    assert_eq!(
        [service("1").comment(POST, "a", "a").status, service("2").comment(POST, "a", "a").status],
        [201; 2]
    );
    let refused = service("3").comment(POST, "a", "a");
    assert_eq!(refused.refusal(), (429, "rate_limited".to_owned()));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(service("3").comment("22", "a", "a").status, 201);
}

#[test]
fn edits_and_deletions_are_changes_of_their_author() {
    let limits = LimitSettings { changes: Some(Rate::per_hour(1).with_burst(5)), ..default_limits() };
    let guarded = Guarded::start(limits);
    // Three posts were registered at the start, and comments are not among the changes.
    let comment = guarded.comment("1", POST, "k");
    let user = As::new(&guarded, &token("1", ""), None);
    let path = format!("/v1/comments/{comment}");
    let edit = |seen| user.call("PATCH", &path, &[("if-match", seen)], r#"{"body":"b"}"#).status;
    assert_eq!([edit("\"1\""), edit("\"2\""), edit("\"3\"")], [200, 200, 429]);
    assert_eq!(user.call("DELETE", &path, &[], "").refusal(), (429, "rate_limited".to_owned()));
    guarded.comment("1", POST, "l");
}
