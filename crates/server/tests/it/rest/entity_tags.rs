//! Entity tags: they name representations, and versions that edits are based on. Bodies of requests that are compressed.

use serde_json::json;

use super::client::Answer;
use super::server::Server;

fn with_comment() -> (Server, String, String) {
    let server = Server::start();
    assert_eq!(server.post(r#"{"id":"5","author":"1"}"#).status, 201);
    let written = server.comment(2, 5, "k", r#"{"body":"one"}"#);
    let id = written.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/comments/{id}");
    (server, id, path)
}

fn tag(answer: &Answer) -> String {
    answer.header("etag").unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

#[test]
fn a_tag_changes_whenever_the_representation_does() {
    let (server, id, path) = with_comment();
    let mut tags = vec![tag(&server.get(&path))];
    let mut changed = |what: &str| {
        let read = server.get(&path);
        assert!(!tags.contains(&tag(&read)), "{what}: {read:?}");
        assert_eq!(tag(&read), tag(&server.get(&path)), "{what}");
        tags.push(tag(&read));
    };
    server.comment(3, 5, "reply", &json!({"body": "yes", "reply_to": id}).to_string());
    changed("a reply");
    server.edit(2, &id, "\"1\"", r#"{"body":"two"}"#);
    changed("an edit");
    server.act(2, "DELETE", &path);
    changed("a deletion");
    server.remove(&id, r#"{"reason":"rude"}"#);
    changed("a removal");
    assert!(tags[..2].iter().all(|tag| tag.starts_with("\"1.")), "{tags:?}");
    assert!(tags[2..].iter().all(|tag| tag.starts_with("\"2.")), "{tags:?}");

    let post = tag(&server.get("/v1/posts/5"));
    assert_eq!(tag(&server.get("/v1/posts/5")), post);
    server.comment(3, 5, "another", r#"{"body":"more"}"#);
    let counted = tag(&server.get("/v1/posts/5"));
    server.request("PUT", "/v1/posts/5/comments/lock", &[], b"");
    let locked = tag(&server.get("/v1/posts/5"));
    assert!(post != counted && counted != locked);
}

#[test]
fn a_client_that_has_the_representation_gets_304() {
    let (server, id, path) = with_comment();
    for path in [path.as_str(), "/v1/posts/5", "/openapi.json"] {
        let read = server.get(path);
        let known = tag(&read);
        assert_eq!(read.header("cache-control"), Some("private, no-cache"));
        let inner = known.trim_matches('"');
        for sent in [
            known.clone(),
            format!("W/{known}"),
            format!("\"other\", {known}"),
            format!("\"{inner}-gzip\""),
            format!("W/\"{inner};gzip\""),
            "*".to_owned(),
        ] {
            for method in ["GET", "HEAD"] {
                let again = server.request(method, path, &[("if-none-match", &sent)], b"");
                assert_eq!((again.status, again.body.len()), (304, 0), "{method} {path} {sent}");
                assert!(tag(&again).contains(inner), "{sent}: {again:?}");
                assert_eq!(again.header("content-type"), None);
            }
        }
        for sent in ["\"1\"", "\"other\"", inner, ""] {
            let again = server.request("GET", path, &[("if-none-match", sent)], b"");
            assert_eq!((again.status, &again.body), (200, &read.body), "{path} {sent}");
        }
    }
    let known = tag(&server.get(&path));
    server.comment(3, 5, "reply", &json!({"body": "yes", "reply_to": id}).to_string());
    assert_eq!(server.request("GET", &path, &[("if-none-match", &known)], b"").status, 200);
    // What is not there has no representation.
    let missing = server.request("GET", "/v1/posts/6", &[("if-none-match", "*")], b"");
    assert_eq!(missing.refusal(), (404, "not_found".to_owned()));
}

#[test]
fn a_compressed_representation_has_a_weak_tag() {
    let (server, ..) = with_comment();
    let body = json!({ "body": "long ".repeat(1_500) }).to_string();
    let written = server.comment(2, 5, "long", &body);
    let path = written.header("location").unwrap();
    let plain = server.get(path);
    let gzip = server.request("GET", path, &[("accept-encoding", "gzip")], b"");
    assert_eq!((plain.header("content-encoding"), gzip.header("content-encoding")), (None, Some("gzip")));
    assert_eq!(tag(&gzip), format!("W/{}", tag(&plain)));
    assert_eq!(gzip.header("vary"), Some("accept-encoding"));
    let known = [("if-none-match", gzip.header("etag").unwrap()), ("accept-encoding", "gzip")];
    let again = server.request("GET", path, &known, b"");
    assert_eq!((again.status, tag(&again)), (304, tag(&gzip)), "as the client has it");
    let id = path.rsplit('/').next().unwrap();
    assert_eq!(server.edit(2, id, &tag(&gzip), r#"{"body":"short"}"#).status, 200);
}

#[test]
fn an_edit_takes_what_a_proxy_makes_of_a_tag() {
    let (server, id, path) = with_comment();
    let sent: &[fn(&str, u64) -> String] = &[
        |tag, _| tag.to_owned(),
        |_, version| format!("\"{version}\""),
        |_, version| format!("W/\"{version}\""),
        |_, version| format!("\"{version}-gzip\""),
        |_, version| format!("\"{version};gzip\""),
        |tag, _| format!("W/{tag}"),
        |tag, _| format!("\"{}--gzip\"", tag.trim_matches('"')),
        |_, version| format!("\"7000\", W/\"x\", \"{version}\""),
        |_, _| "*".to_owned(),
    ];
    for (sent, version) in sent.iter().zip(1_u64..) {
        let seen = tag(&server.get(&path));
        // A reply changes the representation and not the version.
        server.comment(3, 5, &version.to_string(), &json!({"body": "yes", "reply_to": id}).to_string());
        assert_ne!(tag(&server.get(&path)), seen);
        let sent = sent(&seen, version);
        let edited = server.edit(2, &id, &sent, &json!({ "body": version.to_string() }).to_string());
        assert_eq!((edited.status, &edited.json()["version"]), (200, &json!(version + 1)), "{sent}");
        assert_eq!(tag(&edited), tag(&server.get(&path)));
        let stale = server.edit(2, &id, &format!("{seen}, \"{version}-gzip\""), r#"{"body":"stale"}"#);
        assert_eq!(stale.refusal(), (412, "version_conflict".to_owned()), "{sent}");
    }
    let absent = "/v1/comments/0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
    let headers = [("kinfolk-actor", "2"), ("if-match", "*"), ("content-type", "application/json")];
    assert_eq!(server.request("PATCH", absent, &headers, br#"{"body":"a"}"#).status, 404);
}

#[test]
fn compressed_bodies_are_refused() {
    let server = Server::start();
    let send = |path: &str, coding: &str, body: &[u8]| {
        let headers = [("content-type", "application/json"), ("content-encoding", coding)];
        server.request("POST", path, &headers, body)
    };
    for path in ["/v1/check", "/v1/posts", "/v1/admin/import"] {
        for coding in ["gzip", "GZIP", "br", "identity, gzip", "gzip, identity"] {
            let answer = send(path, coding, b"\x1f\x8b\x08\0\0\0\0\0\0\x03");
            assert_eq!(answer.refusal(), (415, "unsupported_media_type".to_owned()), "{path} {coding}");
            assert_eq!(answer.header("accept-encoding"), Some("identity"));
            assert!(answer.text().contains("Content-Encoding"), "{}", answer.text());
        }
    }
    assert_eq!(send("/v1/check", "identity", br#"{"pairs":[[1,2]]}"#).status, 200);
}
