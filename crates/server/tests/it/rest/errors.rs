//! What is wrong with a request, whatever the route: each has its problem document.

use std::time::Duration;

use kinfolk_server::rest::RestSettings;

use super::client::Answer;
use super::server::Server;

#[test]
fn unknown_addresses_and_methods() {
    let server = Server::start();
    for path in ["/", "/v1", "/v1/users", "/v1/users/1", "/v1/users/1/follow/2", "/v2/check"] {
        assert_eq!(server.get(path).refusal(), (404, "not_found".to_owned()), "{path}");
    }
    let wrong = server.get("/v1/users/1/follow");
    assert_eq!(wrong.refusal(), (405, "method_not_allowed".to_owned()));
    let mut allowed: Vec<&str> = wrong.header("allow").unwrap().split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["DELETE", "POST"]);
    assert_eq!(
        server.request("PUT", "/v1/check", &[], b"").refusal(),
        (405, "method_not_allowed".to_owned())
    );
}

#[test]
fn head_and_options() {
    let server = Server::start();
    let head = server.request("HEAD", "/v1/users/1/counts", &[], b"");
    assert_eq!((head.status, head.header("content-length").is_some()), (200, true));
    let options = server.request("OPTIONS", "/v1/users/1/counts", &[("origin", "http://elsewhere")], b"");
    assert_eq!((options.status, options.header("allow")), (204, Some("GET,HEAD")));
    assert_eq!(options.header("access-control-allow-origin"), None);
}

#[test]
fn pages_of_allowed_origins_only() {
    let origin = "https://app.example";
    let server = Server::with(RestSettings {
        allowed_origins: vec![origin.parse().unwrap()],
        ..RestSettings::default()
    });
    let preflight = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "kinfolk-actor"),
    ];
    let allowed = server.request("OPTIONS", "/v1/users/1/follow", &preflight, b"");
    assert_eq!(allowed.header("access-control-allow-origin"), Some(origin));
    let act = |origin| {
        let headers = [("kinfolk-actor", "1"), ("origin", origin)];
        server.request("POST", "/v1/users/2/follow", &headers, b"").status
    };
    // Without authentication nothing but the origin tells a page's request from a program's.
    assert_eq!(
        [act(origin), act("http://localhost"), act("https://evil.example"), act("null")],
        [204, 204, 403, 403]
    );
}

#[test]
fn without_authentication_only_names_of_this_machine() {
    let settings = RestSettings {
        allowed_origins: vec!["https://app.example".parse().unwrap()],
        ..RestSettings::default()
    };
    let server = Server::with(settings);
    let ask = |host: &str| {
        let mut connection = server.connect();
        connection.write(format!("GET /v1/users/1/counts HTTP/1.1\r\n{host}\r\n").as_bytes()).unwrap();
        connection.answer("GET").unwrap()
    };
    for host in ["localhost", "LocalHost:7400", "127.0.0.1", "127.8.9.1:1", "[::1]:7400", "app.example:80"] {
        assert_eq!(ask(&format!("host: {host}\r\n")).status, 200, "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:7400",
        "localhost.evil.example",
        "10.0.0.1",
        "[::2]",
        "app.example.evil",
    ] {
        let refused = ask(&format!("host: {host}\r\norigin: http://{host}\r\n"));
        assert_eq!(refused.refusal(), (403, "forbidden".to_owned()), "{host}");
    }
    assert_eq!(ask("").status, 403);
}

#[test]
fn media_types_and_sizes() {
    let server = Server::with(RestSettings { body_bytes_max: 1_000, ..RestSettings::default() });
    let check = |headers: &[(&str, &str)], body: &[u8]| server.request("POST", "/v1/check", headers, body);
    let body = br#"{"pairs":[]}"#;
    for media_type in ["application/json", "Application/JSON; charset=utf-8"] {
        assert_eq!(check(&[("content-type", media_type)], body).status, 200);
    }
    for headers in [&[][..], &[("content-type", "text/plain")], &[("content-type", "application/jsonp")]] {
        assert_eq!(check(headers, body).refusal(), (415, "unsupported_media_type".to_owned()));
    }
    let large = vec![b' '; 1_001];
    let refused = check(&[("content-type", "application/json")], &large);
    assert_eq!(refused.refusal(), (413, "too_large".to_owned()));

    // Nothing says beforehand how much comes.
    let mut connection = server.connect();
    let headers = [("content-type", "application/json"), ("transfer-encoding", "chunked")];
    connection.begin("POST", "/v1/check", &headers);
    let chunk = format!("{:x}\r\n{}\r\n", large.len(), " ".repeat(large.len()));
    connection.write(chunk.as_bytes()).unwrap();
    assert_eq!(connection.answer("POST").unwrap().refusal(), (413, "too_large".to_owned()));
}

#[test]
fn broken_paths() {
    let server = Server::start();
    for (path, code) in [
        ("/v1/users/%ff/counts", "invalid_request"),
        ("/v1/users/%zz/counts", "invalid_id"),
        ("/v1/users/%31%00/counts", "invalid_id"),
        ("/v1/users/1%2f2/counts", "invalid_id"),
        ("/v1/users/%C3%A9/counts", "invalid_id"),
        ("/v1/users/-1/counts", "invalid_id"),
    ] {
        assert_eq!(server.get(path).refusal(), (400, code.to_owned()), "{path}");
    }
    assert_eq!(server.read("/v1/users/%31/counts")["id"], "1");
}

#[test]
fn requests_have_names() {
    let server = Server::start();
    let named = server.request("GET", "/healthz", &[("x-request-id", "mine-7")], b"");
    assert_eq!(named.header("x-request-id"), Some("mine-7"));
    let failed = server.request("GET", "/nowhere", &[("x-request-id", "mine-8")], b"");
    failed.problem();
    assert_eq!(failed.header("x-request-id"), Some("mine-8"));
    let ids = ["two words", &"x".repeat(129)].map(|bad| {
        let answer = server.request("GET", "/healthz", &[("x-request-id", bad)], b"");
        answer.header("x-request-id").unwrap().to_owned()
    });
    assert!(ids[0] != ids[1] && ids.iter().all(|id| id.len() < 60 && !id.contains(' ')), "{ids:?}");
}

#[test]
fn a_body_that_never_comes_is_given_up() {
    let settings = RestSettings { request_timeout: Duration::from_millis(50), ..RestSettings::default() };
    let server = Server::with(settings);
    let mut connection = server.connect();
    let headers = [("content-type", "application/json"), ("content-length", "100")];
    connection.begin("POST", "/v1/check", &headers);
    let refused = connection.answer("POST").unwrap();
    assert_eq!(refused.refusal(), (408, "request_timeout".to_owned()));
    assert_eq!(refused.header("connection"), Some("close"));
    assert!(connection.is_closed());
}

#[test]
fn only_large_answers_are_compressed() {
    let server = Server::start();
    let gzip = |path: &str| server.request("GET", path, &[("accept-encoding", "gzip")], b"");
    let is_gzip = |answer: &Answer| answer.header("content-encoding") == Some("gzip");
    (2..100).for_each(|target| drop(server.follow(1, target)));
    assert!(!is_gzip(&gzip("/v1/users/1/counts")));
    assert!(!is_gzip(&gzip("/v1/admin/export")));
    assert!(!is_gzip(&server.get("/v1/users/1/following?limit=98")));
    let large = gzip("/v1/users/1/following?limit=98");
    assert!(is_gzip(&large) && large.body.starts_with(&[0x1f, 0x8b]));
}
