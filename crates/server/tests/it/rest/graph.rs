//! The routes of the graph: writes, lists, checks, counts, and tokens between them.

use kinfolk_conformance::user;
use kinfolk_core::{Epoch, IdKind, Keyring, Sequence, Shard, SigningKey, Token};
use kinfolk_server::Access;
use kinfolk_server::rest::RestSettings;
use serde_json::{Value, json};

use super::server::Server;

#[test]
fn follow_unfollow_and_remove_follower() {
    let server = Server::start();
    server.follow(1, 2);
    server.follow(1, 2);
    assert_eq!(server.read("/v1/users/1/counts"), json!({"id": "1", "following": 1, "followers": 0}));
    assert_eq!(server.act(1, "DELETE", "/v1/users/2/follow").status, 204);
    let again = server.act(1, "DELETE", "/v1/users/2/follow");
    assert_eq!((again.status, again.body.len()), (204, 0));
    assert!(again.header("kinfolk-token").is_some());
    assert_eq!(server.read("/v1/users/1/counts")["following"], 0);

    server.follow(1, 2);
    assert_eq!(server.act(1, "DELETE", "/v1/users/2/followers/1").refusal(), (403, "forbidden".to_owned()));
    assert_eq!(server.act(2, "DELETE", "/v1/users/2/followers/1").status, 204);
    assert_eq!(server.read("/v1/users/2/counts")["followers"], 0);
}

#[test]
fn refused_writes() {
    let server = Server::start();
    let refusal = |actor, path: &str| server.act(actor, "POST", path).refusal();
    assert_eq!(refusal(1, "/v1/users/1/follow"), (422, "self_follow".to_owned()));
    assert_eq!(refusal(1, "/v1/users/x/follow"), (400, "invalid_id".to_owned()));
    assert_eq!(refusal(1, "/v1/users/9223372036854775808/follow"), (400, "invalid_id".to_owned()));
    assert_eq!(refusal(1, "/v1/users/2/follow?kind=block"), (400, "invalid_request".to_owned()));

    let unnamed = server.request("POST", "/v1/users/2/follow", &[], b"");
    assert_eq!(unnamed.refusal(), (400, "actor_required".to_owned()));
    let nobody = server.request("POST", "/v1/users/2/follow", &[("kinfolk-actor", "me")], b"");
    assert_eq!(nobody.refusal(), (400, "invalid_id".to_owned()));
    let two = [("kinfolk-actor", "1"), ("kinfolk-actor", "3")];
    let two = server.request("POST", "/v1/users/2/follow", &two, b"");
    assert_eq!(two.refusal(), (400, "invalid_request".to_owned()));
    let actor = [("kinfolk-actor", "1")];
    let body = server.request("POST", "/v1/users/2/follow", &actor, br#"{"kind":"block"}"#);
    assert_eq!(body.refusal(), (400, "invalid_request".to_owned()));
    assert_eq!(server.request("POST", "/v1/users/2/follow", &actor, b"{}").status, 204);
}

#[test]
fn the_following_limit() {
    let server = Server::start();
    let mut connection = server.connect();
    for target in 2..=2_001 {
        let path = format!("/v1/users/{target}/follow");
        assert_eq!(connection.request("POST", &path, &[("kinfolk-actor", "1")], b"").status, 204);
    }
    let over = connection.request("POST", "/v1/users/9000/follow", &[("kinfolk-actor", "1")], b"");
    assert_eq!(over.refusal(), (422, "following_limit".to_owned()));
}

#[test]
fn lists_are_walked_by_cursor_and_by_link() {
    let server = Server::start();
    for target in 2..=8 {
        server.clock.advance(1);
        server.follow(1, target);
        server.follow(target, 1);
    }
    for list in ["following", "followers", "friends"] {
        let (mut path, mut found) = (format!("/v1/users/1/{list}?limit=3"), Vec::new());
        loop {
            let answer = server.get(&path);
            let page = answer.json();
            found.extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()));
            let Some(next) = page.get("next") else {
                assert_eq!(answer.header("link"), None);
                break;
            };
            let next = next.as_str().unwrap();
            path = format!("/v1/users/1/{list}?limit=3&cursor={next}");
            assert_eq!(answer.header("link"), Some(format!("<{path}>; rel=\"next\"").as_str()));
        }
        assert_eq!(found, ["8", "7", "6", "5", "4", "3", "2"], "{list}");
    }
    let page = server.read("/v1/users/1/following?limit=1");
    assert_eq!(page["items"], json!([{"id": "8", "since": "2026-11-15T08:00:00.130Z"}]));
    assert_eq!(server.read("/v1/users/77/followers"), json!({"items": []}));
}

#[test]
fn refused_pages() {
    let server = Server::start();
    (2..=5).for_each(|target| drop(server.follow(1, target)));
    let refusal = |path: &str| server.get(path).refusal();
    for limit in ["0", "1001", "99999999999999999999999"] {
        let path = format!("/v1/users/1/following?limit={limit}");
        assert_eq!(refusal(&path), (400, "limit_out_of_range".to_owned()));
    }
    for query in
        ["limit=", "limit=-1", "limit=1.0", "limit=2&limit=2", "cursor=&cursor=", "offset=3", "limit=%ff"]
    {
        let path = format!("/v1/users/1/following?{query}");
        assert_eq!(refusal(&path), (400, "invalid_request".to_owned()), "{query}");
    }
    let next = server.read("/v1/users/1/following?limit=2")["next"].as_str().unwrap().to_owned();
    for path in [
        format!("/v1/users/1/followers?cursor={next}"),
        format!("/v1/users/2/following?cursor={next}"),
        format!("/v1/users/1/following?cursor=x{next}"),
        "/v1/users/1/following?cursor=".to_owned(),
    ] {
        assert_eq!(refusal(&path), (400, "invalid_cursor".to_owned()), "{path}");
    }
}

#[test]
fn one_check_and_many() {
    let server = Server::start();
    server.follow(1, 2);
    let following = server.read("/v1/users/1/following/2");
    assert_eq!(following, json!({"following": true, "since": "2026-11-15T08:00:00.123Z"}));
    assert_eq!(server.read("/v1/users/2/following/1"), json!({"following": false}));
    let checked = server.check(r#"{"pairs":[["1","2"],[2,1],[1,"02"]]}"#);
    assert_eq!(checked.json(), json!({"results": [true, false, true]}));
    assert_eq!(server.check(r#"{"pairs":[]}"#).json(), json!({"results": []}));

    let pairs = |count: usize| json!({ "pairs": vec![["1", "2"]; count] }).to_string();
    assert_eq!(server.check(&pairs(1_000)).json()["results"].as_array().unwrap().len(), 1_000);
    assert_eq!(server.check(&pairs(1_001)).refusal(), (400, "too_many".to_owned()));
    assert_eq!(server.check(r#"{"pairs":[["1","x"]]}"#).refusal(), (400, "invalid_id".to_owned()));
    let unknown = server.check(r#"{"pairs":[],"kind":"follow"}"#);
    assert_eq!(unknown.refusal(), (400, "invalid_request".to_owned()));
    assert!(unknown.json()["detail"].as_str().unwrap().contains("`kind`"));
    for body in ["", "{", "[]", "null", r#"{"pairs":[[1.0,2]]}"#, r#"{"pairs":{}}"#] {
        assert_eq!(server.check(body).refusal(), (400, "invalid_request".to_owned()), "{body}");
    }
}

#[test]
fn relationships_and_counts() {
    let server = Server::start();
    server.follow(1, 2);
    server.follow(2, 1);
    server.follow(3, 1);
    let since = "2026-11-15T08:00:00.123Z";
    assert_eq!(
        server.read("/v1/users/1/relationships?id=3&id=2&id=4"),
        json!({"items": [
            {"id": "3", "following": false, "followed_by": true, "mutual": false},
            {"id": "2", "following": true, "followed_by": true, "mutual": true, "since": since},
            {"id": "4", "following": false, "followed_by": false, "mutual": false},
        ]})
    );
    assert_eq!(
        server.read("/v1/counts?id=9&id=1"),
        json!({"items": [
            {"id": "9", "following": 0, "followers": 0},
            {"id": "1", "following": 1, "followers": 2},
        ]})
    );
    for path in ["/v1/counts", "/v1/users/1/relationships", "/v1/counts?id=1&ids=2"] {
        assert_eq!(server.get(path).refusal(), (400, "invalid_request".to_owned()), "{path}");
    }
    let many = "id=1&".repeat(101);
    for path in [format!("/v1/counts?{many}"), format!("/v1/users/1/relationships?{many}")] {
        assert_eq!(server.get(&path).refusal(), (400, "too_many".to_owned()));
    }
}

#[test]
fn tokens_make_reads_fresh() {
    let server = Server::start();
    let token = server.follow(1, 2);
    let read = |token: &str| {
        let check = [("kinfolk-token", token), ("content-type", "application/json")];
        [
            server.request("GET", "/v1/users/1/following", &[("kinfolk-token", token)], b""),
            server.request("GET", "/v1/users/1/following/2", &[("kinfolk-token", token)], b""),
            server.request("GET", "/v1/users/1/relationships?id=2", &[("kinfolk-token", token)], b""),
            server.request("GET", "/v1/users/1/counts", &[("kinfolk-token", token)], b""),
            server.request("POST", "/v1/check", &check, br#"{"pairs":[[1,2]]}"#),
        ]
    };
    read(&token).iter().for_each(|answer| assert_eq!(answer.status, 200));

    let sealed = |key, epoch, position| {
        let keys = Keyring::new(SigningKey::new([key; 32]), []);
        let frontier = Sequence(position).on(Shard::ONLY).into();
        Token { epoch: Epoch(epoch), frontier }.encode(&keys)
    };
    for answer in read(&sealed(7, 1, 99)) {
        assert_eq!(answer.refusal(), (503, "not_yet_visible".to_owned()));
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    for bad in [sealed(8, 1, 1), sealed(7, 2, 1), "nonsense".to_owned(), String::new()] {
        for answer in read(&bad) {
            assert_eq!(answer.refusal(), (400, "invalid_token".to_owned()), "{bad}");
        }
    }
}

#[test]
fn deployments_with_uuids() {
    let server = Server::closed(RestSettings::default());
    server.open(IdKind::Uuid, Access::open());
    let [a, b] = [1, 2].map(|number| user(IdKind::Uuid, number).to_string());
    let actor = [("kinfolk-actor", a.as_str())];
    assert_eq!(server.request("POST", &format!("/v1/users/{b}/follow"), &actor, b"").status, 204);
    let page = server.read(&format!("/v1/users/{b}/followers"));
    assert_eq!(page["items"][0]["id"], Value::from(a.clone()));
    assert_eq!(server.check(&json!({"pairs": [[a, b]]}).to_string()).json(), json!({"results": [true]}));
    assert_eq!(server.check(r#"{"pairs":[[1,2]]}"#).refusal(), (400, "invalid_id".to_owned()));
    assert_eq!(server.get("/v1/users/1/counts").refusal(), (400, "invalid_id".to_owned()));
}
