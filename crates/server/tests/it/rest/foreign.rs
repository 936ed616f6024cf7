//! Requests in the name of somebody else, and of web pages that nobody has allowed, tried on every route that the
//! document has.

use kinfolk_server::LimitSettings;
use kinfolk_server::rest::RestSettings;
use serde_json::Value;

use super::access::{Guarded, default_limits, token};
use super::document::operations;
use super::server::Server;

/// All documented routes, those for everybody too.
fn every_route(document: &Value) -> Vec<(String, String)> {
    let names = ["{id}", "{follower}", "{target}", "{other}"];
    let address = |path: String| {
        let path = names.iter().fold(path, |path, name| path.replace(name, "1"));
        path.replace("{comment}", "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")
    };
    let routes =
        operations(document).into_iter().map(|(method, path, _)| (method.to_uppercase(), address(path)));
    let routes: Vec<_> = routes.collect();
    assert!(routes.iter().any(|(_, path)| path == "/healthz") && routes.len() >= 44, "{}", routes.len());
    routes
}

#[test]
fn a_named_actor_who_is_not_the_user_is_refused_on_every_route() {
    let guarded = Guarded::start(LimitSettings { user: None, changes: None, ..default_limits() });
    let user = format!("Bearer {}", token("1", "kinfolk:read kinfolk:write kinfolk:moderate"));
    for (method, path) in every_route(&guarded.document) {
        for actor in ["7", "01x", "somebody", ""] {
            let headers = [("authorization", user.as_str()), ("kinfolk-actor", actor)];
            let answer = guarded.server.request(&method, &path, &headers, b"");
            assert_eq!(answer.refusal(), (403, "forbidden".to_owned()), "{method} {path} as {actor:?}");
        }
        // Only what names the user itself leaves a choice.
        let twice = [("authorization", user.as_str()), ("kinfolk-actor", "1"), ("kinfolk-actor", "7")];
        let status = guarded.server.request(&method, &path, &twice, b"").status;
        assert!([400, 403].contains(&status), "{method} {path}: {status}");
    }
    for route in guarded.routes() {
        let named = guarded.call(&route, Some(&token("1", "")), &[("kinfolk-actor", "1")]).status;
        let unnamed = guarded.call(&route, Some(&token("1", "")), &[]).status;
        // What the first call has changed can be called again.
        let same = named == unnamed || [named, unnamed] == [201, 200] || [named, unnamed] == [200, 412];
        assert!(same, "{} {}: {named}, {unnamed}", route.method, route.path);
    }
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        for credential in [user.as_str(), "Bearer stale", "Basic x"] {
            let headers = [("authorization", credential), ("kinfolk-actor", "1")];
            assert_eq!(guarded.server.request("GET", path, &headers, b"").status, 200, "{path}");
        }
    }
}

#[test]
fn without_authentication_no_foreign_page_reaches_any_route() {
    let allowed = "https://app.example";
    let settings =
        RestSettings { allowed_origins: vec![allowed.parse().unwrap()], ..RestSettings::default() };
    let server = Server::with(settings);
    let own = format!("http://{}", server.address);
    let ask = |method: &str, path: &str, host: &str, origins: &[&str]| {
        let mut headers = vec![("host", host)];
        headers.extend(origins.iter().map(|origin| ("origin", *origin)));
        let mut connection = server.connect();
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        connection
            .write(format!("{method} {path} HTTP/1.1\r\n{lines}content-length: 0\r\n\r\n").as_bytes())
            .unwrap();
        connection
    };
    for (method, path) in every_route(&server.read("/openapi.json")) {
        let address = server.address.to_string();
        for (host, origins) in [
            (address.as_str(), &["https://evil.example"][..]),
            (&address, &["null"]),
            (&address, &[""]),
            (&address, &["http://localhost"]),
            (&address, &["https://app.example.evil"]),
            (&address, &[allowed, "https://evil.example"]),
            // A name of the page's own that leads here.
            ("evil.example:7400", &["http://evil.example:7400"]),
        ] {
            let answer = ask(&method, &path, host, origins).answer(&method).unwrap();
            assert_eq!(
                answer.refusal(),
                (403, "forbidden".to_owned()),
                "{method} {path}: {host} {origins:?}"
            );
        }
        for origins in [&[own.as_str()][..], &[allowed], &[]] {
            let (status, _) = ask(&method, &path, &address, origins).head().unwrap();
            assert_ne!(status, 403, "{method} {path}: {origins:?}");
        }
    }
}
