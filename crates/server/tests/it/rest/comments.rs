//! Threads as they are read: in order, as trees, by author, and the history of one comment. Writing has a file of its own.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client::Answer;
use super::server::Server;

/// A server with post 5 of user 1.
fn with_post() -> Server {
    let server = Server::start();
    assert_eq!(server.post(r#"{"id":"5","author":"1"}"#).status, 201);
    server
}

/// Writes comments, each with the number of the one that it answers, if any. Answers their ids.
fn write(server: &Server, replies: &[Option<usize>]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for (number, above) in replies.iter().enumerate() {
        let mut body = json!({"body": number.to_string()});
        if let Some(above) = above {
            body["reply_to"] = json!(ids[*above]);
        }
        let written = server.comment(number as u64 % 3 + 1, 5, &number.to_string(), &body.to_string());
        assert_eq!(written.status, 201, "{written:?}");
        ids.push(written.json()["id"].as_str().unwrap().to_owned());
    }
    ids
}

fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// Where the next page is, by the header, which must agree with the cursor in the body.
fn next(answer: &Answer) -> Option<String> {
    let link = answer.header("link").map(|link| {
        let (address, relation) = link.split_once('>').unwrap();
        assert_eq!(relation, "; rel=\"next\"");
        address.trim_start_matches('<').to_owned()
    });
    let cursor = answer.json().get("next").map(|next| format!("cursor={}", next.as_str().unwrap()));
    assert_eq!(link.is_some(), cursor.is_some());
    assert!(link.iter().zip(&cursor).all(|(link, cursor)| link.ends_with(cursor)));
    link
}

/// A whole list, page by page.
fn walk(server: &Server, path: &str, limit: usize) -> Vec<String> {
    let separator = if path.contains('?') { '&' } else { '?' };
    let (mut found, mut address) = (Vec::new(), Some(format!("{path}{separator}limit={limit}")));
    while let Some(current) = address {
        let answer = server.get(&current);
        let page = ids(&answer.json());
        assert!(page.len() <= limit);
        found.extend(page);
        address = next(&answer);
    }
    found
}

#[test]
fn walks_meet_every_comment_once() {
    let server = with_post();
    let all = write(&server, &[None; 23]);
    let reversed: Vec<String> = all.iter().rev().cloned().collect();
    let of_two: Vec<String> = all.iter().skip(1).step_by(3).rev().cloned().collect();
    for limit in [1, 2, 7, 22, 23, 1_000] {
        for (path, expected) in [
            ("/v1/posts/5/comments", &all),
            ("/v1/posts/5/comments?order=oldest", &all),
            ("/v1/posts/5/comments?order=newest", &reversed),
            ("/v1/posts/5/comments?view=tree", &all),
            ("/v1/users/2/comments", &of_two),
        ] {
            assert_eq!(walk(&server, path, limit), *expected, "{path} {limit}");
        }
    }
    // In the middle of walks: what was deleted keeps its place, and what is newer does not disturb.
    let page = server.read("/v1/posts/5/comments?order=newest&limit=5");
    server.act(2, "DELETE", &format!("/v1/comments/{}", all[4]));
    server.comment(1, 5, "late", r#"{"body":"late"}"#);
    let cursor = page["next"].as_str().unwrap();
    let rest = server.read(&format!("/v1/posts/5/comments?order=newest&cursor={cursor}"));
    assert_eq!(ids(&rest), reversed[5..]);
    // A user's list has only what is active.
    assert_eq!(
        ids(&server.read("/v1/users/2/comments")),
        of_two.iter().filter(|id| **id != all[4]).cloned().collect::<Vec<_>>()
    );
}

#[test]
fn parameters_fit_together() {
    let server = with_post();
    server.post(r#"{"id":"6","author":"1"}"#);
    let all = write(&server, &[None, None, Some(0), Some(0), Some(0)]);
    let cursor = |query: &str| {
        server.read(&format!("/v1/posts/5/comments?{query}"))["next"].as_str().unwrap().to_owned()
    };
    let (oldest, newest, tree) =
        (cursor("limit=1"), cursor("limit=1&order=newest"), cursor("limit=1&view=tree"));
    let thread = "/v1/posts/5/comments";
    for (path, query, code) in [
        (thread, "view=tree&order=oldest".to_owned(), "invalid_request"),
        (thread, "view=tree&order=newest".to_owned(), "invalid_request"),
        (thread, "depth=1".to_owned(), "invalid_request"),
        (thread, "replies=1".to_owned(), "invalid_request"),
        (thread, "order=newest&replies=1".to_owned(), "invalid_request"),
        (thread, "view=list".to_owned(), "invalid_request"),
        (thread, "view=".to_owned(), "invalid_request"),
        (thread, "order=random".to_owned(), "invalid_request"),
        (thread, "order=".to_owned(), "invalid_request"),
        (thread, "order=newest&order=newest".to_owned(), "invalid_request"),
        (thread, "view=tree&depth=51".to_owned(), "invalid_request"),
        (thread, "view=tree&depth=256".to_owned(), "invalid_request"),
        (thread, "view=tree&depth=99999999999999999999".to_owned(), "invalid_request"),
        (thread, "view=tree&depth=-1".to_owned(), "invalid_request"),
        (thread, "view=tree&replies=0".to_owned(), "limit_out_of_range"),
        (thread, "view=tree&replies=1001".to_owned(), "limit_out_of_range"),
        (thread, "view=tree&limit=0".to_owned(), "limit_out_of_range"),
        ("/v1/posts/5/comments/tree", "order=oldest".to_owned(), "invalid_request"),
        ("/v1/posts/5/comments/tree", "view=tree".to_owned(), "invalid_request"),
        ("/v1/posts/5/comments/tree", "depth=51".to_owned(), "invalid_request"),
        ("/v1/posts/5/comments/tree", "replies=0".to_owned(), "limit_out_of_range"),
        ("/v1/posts/5/comments/tree", format!("cursor={oldest}"), "invalid_cursor"),
        (thread, "limit=0".to_owned(), "limit_out_of_range"),
        (thread, "limit=1001".to_owned(), "limit_out_of_range"),
        (thread, "limit=x".to_owned(), "invalid_request"),
        (thread, "viewer=1".to_owned(), "invalid_request"),
        (thread, "cursor=x".to_owned(), "invalid_cursor"),
        (thread, format!("cursor={newest}"), "invalid_cursor"),
        (thread, format!("cursor={tree}"), "invalid_cursor"),
        (thread, format!("order=newest&cursor={oldest}"), "invalid_cursor"),
        (thread, format!("view=tree&cursor={oldest}"), "invalid_cursor"),
        ("/v1/posts/6/comments", format!("cursor={oldest}"), "invalid_cursor"),
        ("/v1/posts/6/comments", format!("view=tree&cursor={tree}"), "invalid_cursor"),
        ("/v1/users/1/comments", format!("cursor={newest}"), "invalid_cursor"),
        ("/v1/users/1/comments", "limit=0".to_owned(), "limit_out_of_range"),
        ("/v1/users/1/comments", "order=oldest".to_owned(), "invalid_request"),
        (&format!("/v1/comments/{}/history", all[0]), format!("cursor={oldest}"), "invalid_cursor"),
        (&format!("/v1/comments/{}/history", all[0]), "limit=1001".to_owned(), "limit_out_of_range"),
        (&format!("/v1/comments/{}/history", all[0]), "order=newest".to_owned(), "invalid_request"),
        (&format!("/v1/comments/{}", all[0]), "limit=1".to_owned(), "invalid_request"),
    ] {
        let address = format!("{path}?{query}");
        assert_eq!(server.get(&address).refusal(), (400, code.to_owned()), "{address}");
    }
    let refused = server.get("/v1/posts/5/comments?depth=1");
    assert!(refused.text().contains("/comments/tree"), "{}", refused.text());
    for path in ["/v1/posts/7/comments", "/v1/posts/7/comments?view=tree", "/v1/posts/7/comments/tree"] {
        assert_eq!(server.get(path).refusal(), (404, "not_found".to_owned()));
    }
    assert_eq!(server.read("/v1/posts/6/comments"), json!({"items": []}));
    assert_eq!(server.read("/v1/users/9/comments"), json!({"items": []}));
}

/// Collects all comments of a tree, following every cursor: each with the one that it was found under.
fn climb(server: &Server, query: &str) -> BTreeMap<String, Option<String>> {
    let mut found = BTreeMap::new();
    let mut cursors: Vec<(Option<String>, String)> = vec![(None, String::new())];
    while let Some((under, cursor)) = cursors.pop() {
        let page = server.read(&format!("/v1/posts/5/comments?view=tree&{query}{cursor}"));
        let mut open = vec![(under, page)];
        while let Some((under, mut branch)) = open.pop() {
            if let Some(next) = branch.get("next") {
                cursors.push((under.clone(), format!("&cursor={}", next.as_str().unwrap())));
            }
            let children = if branch.get("items").is_some() { "items" } else { "replies" };
            for child in branch[children].take().as_array().unwrap() {
                let id = child["id"].as_str().unwrap().to_owned();
                assert_eq!(child.get("reply_to").and_then(Value::as_str), under.as_deref(), "{id}");
                assert!(found.insert(id.clone(), under.clone()).is_none(), "{id} twice");
                open.push((Some(id), child.clone()));
            }
        }
    }
    found
}

#[test]
fn a_tree_has_every_comment_once() {
    let server = with_post();
    // Ten at the top; of the others some have many replies and some are deep.
    let above: Vec<Option<usize>> = (0..60_usize)
        .map(|number| match number {
            0..10 => None,
            10..25 => Some(0),
            25..35 => Some(number - 1),
            _ => Some(number / 3),
        })
        .collect();
    let all = write(&server, &above);
    let expected: BTreeMap<String, Option<String>> = all
        .iter()
        .zip(&above)
        .map(|(id, above)| (id.clone(), above.map(|above| all[above].clone())))
        .collect();
    for query in [
        "limit=50",
        "limit=1&depth=0",
        "limit=3&depth=1&replies=1",
        "limit=1000&depth=50&replies=1000",
        "limit=7&depth=2&replies=2",
        "limit=10&depth=50&replies=2",
    ] {
        assert_eq!(climb(&server, query), expected, "{query}");
    }
}

#[test]
fn a_tree_shows_what_was_asked_for() {
    let server = with_post();
    let all = write(&server, &[None, Some(0), Some(0), Some(0), Some(1), Some(4), None]);
    server.act(2, "DELETE", &format!("/v1/comments/{}", all[1]));
    let page = server.read("/v1/posts/5/comments?view=tree&depth=2&replies=2&limit=1");
    let top = &page["items"][0];
    assert_eq!(ids(&page), all[..1]);
    assert!(page.get("next").is_some() && top.get("next").is_some());
    assert_eq!((&top["reply_count"], &top["depth"]), (&json!(3), &json!(0)));
    let replies = top["replies"].as_array().unwrap();
    assert_eq!([&replies[0]["id"], &replies[1]["id"]], [&all[1], &all[2]]);
    assert_eq!((replies.len(), replies[1]["replies"].as_array().unwrap().len()), (2, 0));
    assert_eq!((replies[1].get("next"), &replies[1]["reply_count"]), (None, &json!(0)));
    // The tombstone keeps its replies; below the depth asked for there is a cursor only.
    assert_eq!(replies[0]["status"], "deleted");
    let below = &replies[0]["replies"][0];
    assert_eq!((&below["id"], below["replies"].as_array().unwrap().len()), (&json!(all[4]), 0));
    let on = format!("/v1/posts/5/comments?view=tree&cursor={}", below["next"].as_str().unwrap());
    assert_eq!(ids(&server.read(&on)), all[5..6]);
    let on = format!("/v1/posts/5/comments?view=tree&cursor={}", top["next"].as_str().unwrap());
    assert_eq!(ids(&server.read(&on)), all[3..4]);
    let link = next(&server.get("/v1/posts/5/comments?view=tree&depth=2&replies=2&limit=1")).unwrap();
    assert!(link.starts_with("/v1/posts/5/comments?view=tree&depth=2&replies=2&limit=1&cursor="), "{link}");
    // The tree has a path of its own; with `view=tree` it is the same.
    let of_path = server.get("/v1/posts/5/comments/tree?depth=2&replies=2&limit=1");
    assert_eq!(of_path.json(), page);
    let link = next(&of_path).unwrap();
    assert!(link.starts_with("/v1/posts/5/comments/tree?depth=2&replies=2&limit=1&cursor="), "{link}");
    assert_eq!(server.read("/v1/posts/5/comments/tree"), server.read("/v1/posts/5/comments?view=tree"));
}

/// Whatever is asked for, what fits is there: no reader has to ask for each branch.
#[test]
fn a_tree_that_fits_comes_whole() {
    let server = with_post();
    let replies: Vec<Option<usize>> =
        (0..120).map(|number: usize| (number >= 40).then(|| number - 40)).collect();
    write(&server, &replies);
    for replies in [1, 3, 100, 1_000] {
        let query = format!("/v1/posts/5/comments?view=tree&limit=50&depth=2&replies={replies}");
        let page = server.read(&query);
        let whole = page.to_string();
        assert_eq!(whole.matches("\"id\"").count(), 120, "{replies} replies");
        assert!(!whole.contains("\"next\""));
    }
}

/// Texts may be long: pages end by their bytes then, and walks still meet everything once.
#[test]
fn pages_end_where_their_texts_are_too_long() {
    const PAGE_BYTES_MAX: usize = 1 << 20;
    let server = with_post();
    let text = "\u{1f600}".repeat(10_000);
    let first = server.comment(1, 5, "first", &json!({"body": "short"}).to_string());
    let first = first.json()["id"].as_str().unwrap().to_owned();
    let mut written = vec![first.clone()];
    for number in 0..60 {
        let body = json!({"body": text, "reply_to": first}).to_string();
        let answer = server.comment(1, 5, &number.to_string(), &body);
        assert_eq!(answer.status, 201);
        written.push(answer.json()["id"].as_str().unwrap().to_owned());
    }
    for version in 1..=40 {
        let answer = server.edit(1, &first, &format!("\"{version}\""), &json!({"body": text}).to_string());
        assert_eq!(answer.status, 200);
    }
    let texts = |page: &str| page.matches(&text).count() * text.len();
    let history = format!("/v1/comments/{first}/history?limit=1000");
    for (path, items) in [
        ("/v1/posts/5/comments?limit=1000", 61),
        ("/v1/posts/5/comments?order=newest&limit=1000", 61),
        ("/v1/users/1/comments?limit=1000", 61),
        (history.as_str(), 41),
    ] {
        let (mut met, mut address) = (0, Some(path.to_owned()));
        while let Some(current) = address {
            let answer = server.get(&current);
            let page = answer.json()["items"].as_array().unwrap().len();
            let bytes = texts(answer.text());
            assert!(page > 0 && bytes > 0 && bytes <= PAGE_BYTES_MAX, "{path}: {bytes} bytes");
            met += page;
            address = next(&answer);
        }
        assert_eq!(met, items, "{path}");
    }
    let tree = server.get("/v1/posts/5/comments?view=tree&replies=1000");
    assert!(texts(tree.text()) <= PAGE_BYTES_MAX);
    let met = climb(&server, "replies=1000");
    assert_eq!(met.into_keys().collect::<Vec<_>>(), written);
}

#[test]
fn history_is_told_in_pages() {
    let server = with_post();
    let comment = write(&server, &[None]).remove(0);
    for version in 1..=4 {
        server.clock.advance(1_000);
        let body = json!({"body": format!("text {version}")}).to_string();
        assert_eq!(server.edit(1, &comment, &format!("\"{version}\""), &body).status, 200);
    }
    let path = format!("/v1/comments/{comment}/history");
    let whole = server.read(&path);
    assert_eq!(
        whole["items"].as_array().unwrap()[..2],
        [
            json!({"version": 1, "at": "2026-11-15T08:00:00.123Z", "body": "0"}),
            json!({"version": 2, "at": "2026-11-15T08:00:01.123Z", "body": "text 1"}),
        ]
    );
    for limit in [1, 2, 5] {
        let (mut versions, mut address) = (Vec::new(), Some(format!("{path}?limit={limit}")));
        while let Some(current) = address {
            let answer = server.get(&current);
            let page = answer.json();
            versions.extend(page["items"].as_array().unwrap().iter().map(|item| item["version"].clone()));
            address = next(&answer);
        }
        assert_eq!(versions, [1, 2, 3, 4, 5]);
    }
}

#[test]
fn a_thread_goes_with_its_post_and_its_comments_stay() {
    let server = with_post();
    let comment = write(&server, &[None]).remove(0);
    server.act(1, "DELETE", "/v1/posts/5");
    for path in ["/v1/posts/5/comments", "/v1/posts/5/comments?view=tree"] {
        assert_eq!(server.get(path).refusal(), (404, "not_found".to_owned()));
    }
    let late = server.comment(1, 5, "late", r#"{"body":"late"}"#);
    assert_eq!(late.refusal(), (404, "not_found".to_owned()));
    assert_eq!(server.read(&format!("/v1/comments/{comment}"))["body"], "0");
    assert_eq!(ids(&server.read("/v1/users/1/comments")), [comment.as_str()]);
    assert_eq!(server.remove(&comment, r#"{"reason":"a"}"#).status, 204);
}

#[test]
fn with_uuids_comments_have_ids_of_their_own() {
    let server = Server::closed(kinfolk_server::rest::RestSettings::default());
    server.open(kinfolk_core::IdKind::Uuid, kinfolk_server::Access::open());
    let (user, post) = ("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c");
    server.post(&json!({"author": user, "id": post}).to_string());
    let headers = [("kinfolk-actor", user), ("idempotency-key", "k"), ("content-type", "application/json")];
    let thread = format!("/v1/posts/{post}/comments");
    let written = server.request("POST", &thread, &headers, br#"{"body":"a"}"#).json();
    assert_eq!((&written["post"], &written["author"]), (&json!(post), &json!(user)));
    assert_eq!(server.read(&thread)["items"][0], written);
    assert_eq!(server.read(&format!("/v1/users/{user}/comments"))["items"][0], written);
    assert_eq!(server.get("/v1/posts/5/comments").refusal(), (400, "invalid_id".to_owned()));
}
