//! The console, as a browser asks for it: who is let in, what its pages may not do, and which requests are refused.

use kinfolk_server::ConsoleSettings;
use kinfolk_server::Scope;
use kinfolk_server::rest::RestSettings;

use super::backing::HAS_CONTENT;
use super::rest::access::{Guarded, default_limits};
use super::rest::client::Answer;
use super::rest::server::Server;

const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml");
/// What a browser says of a form of the same site.
const OWN_PAGE: (&str, &str) = ("sec-fetch-site", "same-origin");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn settings() -> RestSettings {
    let console = ConsoleSettings { profile: "model", version: "1.2.3", settings: Vec::new() };
    RestSettings { console: Some(console), ..RestSettings::default() }
}

fn page(server: &Server, path: &str, cookies: &str) -> Answer {
    server.request("GET", path, &[HTML, ("cookie", cookies)], b"")
}

fn submit(server: &Server, path: &str, cookies: &str, fields: &str) -> Answer {
    server.request("POST", path, &[HTML, OWN_PAGE, FORM, ("cookie", cookies)], fields.as_bytes())
}

/// The cookie that an answer sets.
fn cookie(answer: &Answer, name: &str) -> String {
    let set = answer.headers.iter().filter(|(header, _)| header == "set-cookie");
    let found = set.filter_map(|(_, value)| value.split(';').next()).find(|pair| pair.starts_with(name));
    found.unwrap_or_else(|| panic!("no cookie {name}: {answer:?}")).to_owned()
}

fn sign_in(guarded: &Guarded, scopes: &[Scope]) -> String {
    let key = format!("key={}", guarded.key(scopes.iter().copied()));
    let answer = submit(&guarded.server, "/console/sign-in", "", &key);
    assert_eq!((answer.status, answer.header("location")), (303, Some("/console")), "{answer:?}");
    let set = answer.header("set-cookie").unwrap();
    assert!(
        set.contains("HttpOnly") && set.contains("SameSite=Strict") && set.contains("Path=/console"),
        "{set}"
    );
    cookie(&answer, "kinfolk_session=")
}

#[test]
fn the_console_is_served_where_it_is_on() {
    let server = Server::with(settings());
    let overview = page(&server, "/console", "");
    assert_eq!(overview.status, 200, "{overview:?}");
    assert_eq!(overview.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(overview.text().contains("Kinfolk 1.2.3 · model profile"), "{}", overview.text());
    let policy = overview.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");

    let stylesheet = server.get("/console/assets/console.css");
    let tag = stylesheet.header("etag").unwrap();
    let again = server.request("GET", "/console/assets/console.css", &[("if-none-match", tag)], b"");
    assert_eq!((stylesheet.status, again.status), (200, 304));

    let off = Server::start();
    assert_eq!(off.get("/console").refusal(), (404, "not_found".to_owned()));
}

#[test]
fn people_read_refusals_as_pages_and_programs_as_problems() {
    let server = Server::with(settings());
    let refused = page(&server, "/console/users/x", "");
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("400 invalid_id") && refused.text().contains("is not a valid id"),
        "{refused:?}"
    );
    assert_eq!(server.get("/console/users/x").refusal(), (400, "invalid_id".to_owned()));
    assert_eq!(page(&server, "/console/nothing", "").status, 404);

    let loading = Server::closed(settings());
    let page = page(&loading, "/console/users/1", "");
    assert_eq!((page.status, page.header("refresh")), (503, Some("2")), "{page:?}");
}

#[test]
fn a_user_has_a_page_and_a_picture() {
    let server = Server::with(settings());
    for target in 2..60 {
        server.follow(1, target);
        server.follow(target, 1);
        server.follow(target, 100 + target);
    }
    let text = page(&server, "/console/users/1", "kinfolk_actor=2");
    assert_eq!(text.status, 200);
    assert!(text.text().contains("follows this user since"), "{}", text.text());
    let picture = server.read("/console/users/1/graph.json");
    let nodes = picture["nodes"].as_array().unwrap();
    assert_eq!((nodes[0]["id"].as_str(), nodes[0]["kind"].as_str()), (Some("1"), Some("center")));
    assert!(nodes.len() > 40 && nodes.len() <= 150, "{}", nodes.len());
    let edges = picture["edges"].as_array().unwrap();
    assert!(edges.iter().any(|edge| edge[0] == "1") && edges.iter().any(|edge| edge[1] == "1"));

    // All pages of a list together have every entry once.
    let (mut seen, mut next) = (Vec::new(), Some("/console/users/1/followers".to_owned()));
    while let Some(address) = next {
        let answer = page(&server, &address, "");
        let rows = answer.text().split("<div class=\"row-main\">").skip(1);
        seen.extend(rows.map(|row| row.split('>').nth(1).unwrap().split('<').next().unwrap().to_owned()));
        let link =
            answer.text().split("rel=\"next\" href=\"").nth(1).map(|rest| rest.split('"').next().unwrap());
        next = link.map(|link| link.replace("&amp;", "&"));
    }
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((count, seen.len()), (58, 58));
}

#[test]
fn forms_write_as_the_chosen_user_and_pages_show_it() {
    let server = Server::with(settings());
    let chosen = submit(&server, "/console/act-as", "", "user=1&next=/console/users/2");
    assert_eq!(chosen.header("location"), Some("/console/users/2?done=acting_as"));
    let actor = cookie(&chosen, "kinfolk_actor=");
    let followed = submit(&server, "/console/users/2/follow", &actor, "next=https://example.org");
    assert_eq!((followed.status, followed.header("location")), (303, Some("/console/users/2?done=followed")));
    assert!(!cookie(&followed, "kinfolk_token=").is_empty());
    assert_eq!(server.read("/v1/users/1/following/2")["following"], true);
    assert!(page(&server, "/console/users/2?done=followed", &actor).text().contains("Followed."));
    let unfollowed = submit(&server, "/console/users/2/unfollow", &actor, "");
    assert_eq!(unfollowed.status, 303);
    assert_eq!(server.read("/v1/users/1/following/2")["following"], false);

    let nobody = submit(&server, "/console/users/2/follow", "", "");
    assert_eq!(nobody.status, 400, "{nobody:?}");
    assert!(nobody.text().contains("choose one first"), "{}", nobody.text());
    let self_follow = submit(&server, "/console/users/1/follow", &actor, "");
    assert_eq!(self_follow.status, 422);
}

#[test]
fn only_pages_of_the_console_change_anything() {
    let server = Server::with(settings());
    let from = |headers: &[(&str, &str)]| {
        let headers = [&[HTML, FORM, ("cookie", "kinfolk_actor=1")], headers].concat();
        server.request("POST", "/console/users/2/follow", &headers, b"").status
    };
    let site = |site| from(&[("sec-fetch-site", site)]);
    assert_eq!([site("cross-site"), site("same-site"), site("none")], [403; 3]);
    assert_eq!(from(&[]), 403, "a form says where it comes from");
    assert_eq!(from(&[("origin", "https://example.org")]), 403);
    assert_eq!(from(&[("origin", "null")]), 403);
    assert_eq!(server.read("/v1/users/1/following/2")["following"], false);
    assert_eq!(from(&[("origin", "http://localhost")]), 303, "an older browser says only its origin");
    assert_eq!(from(&[OWN_PAGE]), 303);
}

#[test]
fn other_sites_may_link_to_the_console_and_load_nothing_of_it() {
    let server = Server::with(settings());
    let from = |path: &str, site: &str, mode: &str| {
        let headers = [HTML, ("sec-fetch-site", site), ("sec-fetch-mode", mode)];
        server.request("GET", path, &headers, b"").status
    };
    let overview = |site, mode| from("/console", site, mode);
    assert_eq!([overview("cross-site", "no-cors"), overview("same-site", "cors")], [403; 2]);
    assert_eq!(
        [overview("cross-site", "navigate"), overview("same-origin", "cors"), overview("none", "navigate")],
        [200; 3]
    );
    // A frame navigates, too.
    for download in ["/console/admin/backup", "/v1/admin/backup"] {
        assert_eq!(from(download, "cross-site", "navigate"), 403, "{download}");
    }
}

#[test]
fn without_a_session_there_is_only_the_sign_in() {
    let guarded = Guarded::with(default_limits(), settings());
    for path in [
        "/console",
        "/console/users/1",
        "/console/users/1/followers",
        "/console/changes",
        "/console/admin",
        "/console/find?id=1",
    ] {
        let answer = page(&guarded.server, path, "");
        assert_eq!(answer.status, 303, "{path}");
        assert!(answer.header("location").unwrap().starts_with("/console/sign-in"), "{answer:?}");
    }
    for path in [
        "/console/live.json",
        "/console/changes/stream",
        "/console/users/1/graph.json",
        "/console/admin/backup",
    ] {
        assert_eq!(guarded.server.get(path).refusal(), (401, "unauthenticated".to_owned()), "{path}");
    }
    for path in ["/console/users/1/follow", "/console/act-as", "/console/admin/compact"] {
        assert_eq!(
            submit(&guarded.server, path, "", "").status,
            401,
            "{path}: a form is not sent again as something else"
        );
        let headers = [OWN_PAGE, FORM, ("authorization", "Bearer x")];
        assert_eq!(guarded.server.request("POST", path, &headers, b"").status, 401, "{path}");
    }
    let form = page(&guarded.server, "/console/sign-in", "");
    assert!(form.status == 200 && form.text().contains("API key"));
    for key in ["", "kf_unknown_0", "x"] {
        let refused = submit(&guarded.server, "/console/sign-in", "", &format!("key={key}"));
        assert!(refused.status == 401 && refused.header("set-cookie").is_none(), "{refused:?}");
    }
    let writer = format!("key={}", guarded.key([Scope::Write]));
    assert_eq!(submit(&guarded.server, "/console/sign-in", "", &writer).status, 401, "pages need to read");
    let admin = format!("Bearer {}", guarded.key([Scope::Read, Scope::Admin]));
    let refused = || {
        let metrics = guarded.server.request("GET", "/metrics", &[("authorization", &admin)], b"");
        let counted = metrics.text().lines().filter(|line| line.contains("unauthenticated"));
        let counted = counted.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        counted.sum::<f64>()
    };
    let before = refused();
    submit(&guarded.server, "/console/sign-in", "", "key=x");
    assert!(refused() > before, "refused keys are counted");
}

/// Another site may link to the sign-in of somebody who is signed in: it must lead to a page, not begin a download.
#[test]
fn a_sign_in_leads_to_pages_only() {
    let guarded = Guarded::with(default_limits(), settings());
    let session = sign_in(&guarded, &[Scope::Read, Scope::Admin]);
    for (next, target) in [
        ("/console/users/1?done=followed", "/console/users/1?done=followed"),
        ("/console/admin/backup", "/console/admin"),
        ("/console/changes/stream", "/console/changes"),
        ("/console/./admin/backup", "/console"),
        ("/console/users/../admin/backup", "/console"),
        ("/console/%2e/admin/backup", "/console"),
        ("//example.org/console", "/console"),
    ] {
        let encoded = next.replace('%', "%25").replace('?', "%3F").replace('=', "%3D");
        let path = format!("/console/sign-in?next={encoded}");
        let linked = [HTML, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        let followed = guarded.server.request("GET", &path, &linked, b"");
        assert_eq!(followed.header("refresh"), Some(&*format!("0; url={target}")), "{next}");
        let known = page(&guarded.server, &path, &session);
        assert_eq!((known.status, known.header("location")), (303, Some(target)), "{next}");
    }
}

#[test]
fn a_new_session_does_not_act_as_the_user_of_the_last_one() {
    let guarded = Guarded::with(default_limits(), settings());
    let key = format!("key={}", guarded.key([Scope::Read]));
    let answer = submit(&guarded.server, "/console/sign-in", "kinfolk_actor=7", &key);
    assert_eq!(cookie(&answer, "kinfolk_actor="), "kinfolk_actor=");
}

#[test]
fn a_session_is_what_its_key_allows_until_it_is_signed_out() {
    let guarded = Guarded::with(default_limits(), settings());
    let server = &guarded.server;
    let reader = sign_in(&guarded, &[Scope::Read]);
    let acting = format!("{reader}; kinfolk_actor=1");
    let overview = page(server, "/console", &acting);
    assert_eq!(overview.status, 200);
    assert!(!overview.text().contains("/console/admin"), "what a scope does not allow is not shown");
    for (path, fields) in
        [("/console/users/2/follow", ""), ("/console/admin/compact", ""), ("/console/posts/21/lock", "")]
    {
        let refused = submit(server, path, &acting, fields);
        let expected = if HAS_CONTENT || !path.contains("posts") { 403 } else { 501 };
        assert!(refused.status == 403 || refused.status == expected, "{path}: {refused:?}");
    }
    assert_eq!(page(server, "/console/admin", &acting).status, 403);

    let all = sign_in(&guarded, &Scope::ALL);
    let admin = page(server, "/console/admin", &all);
    assert!(admin.status == 200 && admin.text().contains("service-1"), "{admin:?}");
    let acting = format!("{all}; kinfolk_actor=1");
    assert_eq!(submit(server, "/console/users/2/follow", &acting, "").status, 303);

    let forged = format!("{}x", &all[..all.len() - 1]);
    assert_eq!(page(server, "/console", &forged).status, 303);
    assert_eq!(submit(server, "/console/sign-out", &all, "").status, 303);
    assert_eq!(page(server, "/console", &all).status, 303, "a copy of the cookie is of no use");
    assert_eq!(page(server, "/console", &reader).status, 200, "other sessions go on");
}

#[test]
fn text_of_users_is_never_markup() {
    if !HAS_CONTENT {
        return;
    }
    let server = Server::with(settings());
    let posted =
        server.post(r#"{"author":"1","id":"21","payload":{"title":"</pre><script>alert(1)</script>"}}"#);
    assert_eq!(posted.status, 201);
    let written = server.comment(2, 21, "k", r#"{"body":"<img src=x onerror=alert(1)> & \"quoted\""}"#);
    assert_eq!(written.status, 201);
    let text = page(&server, "/console/posts/21", "");
    assert_eq!(text.status, 200, "{text:?}");
    assert!(!text.text().contains("<script>") && !text.text().contains("<img src=x"), "{}", text.text());
    assert!(text.text().contains("&lt;img src=x onerror=alert(1)&gt; &amp; &quot;quoted&quot;"));
    let fragment = page(&server, "/console/posts/21?fragment=1", "");
    assert!(fragment.text().starts_with("<li>"), "{}", fragment.text());
}
