//! Who may call what, tried on every route that the document has: so a route that is added is tried as well.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use jsonwebtoken::{EncodingKey, Header};
use kinfolk_core::{Clock, IdKind, SystemClock};
use kinfolk_server::rest::RestSettings;
use kinfolk_server::{
    Access, AccessSettings, KeyFile, LimitSettings, NewKey, Rate, Scope, Scopes, TokenSettings,
};
use serde_json::{Value, json};

use super::super::backing::HAS_CONTENT;
use super::client::Answer;
use super::document::operations;
use super::server::Server;

const SECRET: &str = "a shared secret of the tests that is long enough";

/// Posts of user 1: one to be read and commented, one to be deleted, one to be locked.
const POSTS: [&str; 3] = ["21", "22", "23"];

/// The limits of a server by default.
pub(crate) fn default_limits() -> LimitSettings {
    LimitSettings {
        key: None,
        user: Some(Rate::per_second(50).with_burst(100)),
        changes: Some(Rate::per_hour(1_000).with_burst(400)),
        author_comments: Some(Rate::per_minute(30)),
        parent_comments: Some(Rate::per_second(100).with_burst(1_000)),
        budgets_max: 100_000,
    }
}

/// A server that wants credentials, and some to show to it.
pub(crate) struct Guarded {
    pub server: Server,
    pub document: Value,
    keys: BTreeMap<Vec<&'static str>, String>,
    folder: tempfile::TempDir,
}

impl Guarded {
    pub(crate) fn start(limits: LimitSettings) -> Self {
        Self::with(limits, RestSettings::default())
    }

    pub(crate) fn with(limits: LimitSettings, settings: RestSettings) -> Self {
        let server = Server::closed(settings);
        let folder = tempfile::tempdir().unwrap();
        let (keys_file, secret_file) = (folder.path().join("keys.toml"), folder.path().join("secret"));
        fs::write(&secret_file, SECRET).unwrap();
        let keys = make_keys(&keys_file);
        let tokens = TokenSettings {
            keys_file: None,
            secret_file: Some(secret_file),
            algorithms: vec!["HS256".to_owned()],
            audiences: vec!["kinfolk".to_owned()],
            issuers: Vec::new(),
            leeway: Duration::from_secs(30),
            allow_moderate: true,
        };
        let settings = AccessSettings {
            id_kind: IdKind::Integer,
            keys_file: Some(keys_file),
            tokens: Some(tokens),
            limits,
            shared_budgets: None,
        };
        server.open(IdKind::Integer, Access::new(&settings).unwrap());
        let document = server.read("/openapi.json");
        let guarded = Self { server, document, keys, folder };
        if HAS_CONTENT {
            POSTS.iter().for_each(|post| guarded.post("1", post));
        }
        guarded
    }

    /// A service registers a post of a user.
    pub(crate) fn post(&self, author: &str, id: &str) {
        let authorization = format!("Bearer {}", self.key(Scope::ALL));
        let body = json!({"author": author, "id": id}).to_string();
        assert_eq!(self.server.post_with(&[("authorization", &authorization)], &body).status, 201);
    }

    /// A service writes a comment of a user. Answers its id.
    pub(crate) fn comment(&self, author: &str, post: &str, key: &str) -> String {
        let authorization = format!("Bearer {}", self.key([Scope::Write]));
        let headers = [
            ("authorization", authorization.as_str()),
            ("kinfolk-actor", author),
            ("idempotency-key", key),
            ("content-type", "application/json"),
        ];
        let path = format!("/v1/posts/{post}/comments");
        let written = self.server.request("POST", &path, &headers, br#"{"body":"a"}"#);
        assert_eq!(written.status, 201, "{written:?}");
        written.json()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn key(&self, scopes: impl IntoIterator<Item = Scope>) -> &str {
        let names: Vec<_> = scopes.into_iter().map(Scope::name).collect();
        &self.keys[&names]
    }

    /// All documented routes that the store can serve, for which callers need something.
    pub(crate) fn routes(&self) -> Vec<Route> {
        let operations = operations(&self.document);
        let served = operations.iter().filter(|(_, _, operation)| operation["x-not-available"] != true);
        let mut routes: Vec<Route> = served.filter_map(Route::new).collect();
        assert!(routes.len() >= if HAS_CONTENT { 40 } else { 20 }, "{}", routes.len());
        // Each has a comment of its own: some of them end it.
        for (number, route) in routes.iter_mut().enumerate() {
            if route.path.contains("{comment}") {
                let comment = self.comment("1", POSTS[0], &format!("of route {number}"));
                route.path = route.path.replace("{comment}", &comment);
            }
        }
        routes
    }

    pub(crate) fn call(&self, route: &Route, credential: Option<&str>, more: &[(&str, &str)]) -> Answer {
        let authorization = credential.map(|credential| format!("Bearer {credential}"));
        let mut headers = [route.headers, more].concat();
        headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
        headers.extend(route.body.map(|_| ("content-type", "application/json")));
        let body = route.body.unwrap_or_default().as_bytes();
        if route.is_endless {
            let mut connection = self.server.connect();
            connection.begin(&route.method, &route.path, &headers);
            let (status, headers) = connection.head().unwrap();
            // The body of a refusal is read; that of a success has no end.
            if status == 200 {
                return Answer { status, headers, body: Vec::new() };
            }
        }
        self.server.request(&route.method, &route.path, &headers, body)
    }
}

/// A key for each set of scopes.
fn make_keys(path: &Path) -> BTreeMap<Vec<&'static str>, String> {
    let mut file = KeyFile::default();
    let mut keys = BTreeMap::new();
    for set in 0..1_u32 << Scope::ALL.len() {
        let in_set = |scope: &Scope| set & (1 << *scope as u32) != 0;
        let scopes: Vec<Scope> = Scope::ALL.into_iter().filter(in_set).collect();
        let Ok(key) = file.add(new_key(&format!("service-{set}"), &scopes), SystemClock.now()) else {
            continue;
        };
        keys.insert(scopes.into_iter().map(Scope::name).collect(), key);
    }
    file.write(path).unwrap();
    keys
}

fn new_key(name: &str, scopes: &[Scope]) -> NewKey {
    let scopes: Scopes = scopes.iter().copied().collect();
    NewKey { name: name.to_owned(), scopes, limit: None, not_after: None }
}

/// The token of an end user.
pub(crate) fn token(user: &str, scope: &str) -> String {
    token_until(user, scope, SystemClock.now().millis() / 1_000 + 600)
}

fn token_until(user: &str, scope: &str, end: u64) -> String {
    let claims = json!({"sub": user, "aud": "kinfolk", "exp": end, "scope": scope});
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    jsonwebtoken::encode(&Header::default(), &claims, &key).unwrap()
}

/// A route, and a valid request to it about user 1, who may need to act.
pub(crate) struct Route {
    pub method: String,
    pub path: String,
    scope: Scope,
    audience: String,
    acts: bool,
    /// Whether what is answered depends on who views, whom a service must name.
    views: bool,
    headers: &'static [(&'static str, &'static str)],
    body: Option<&'static str>,
    is_endless: bool,
}

impl Route {
    fn new((method, path, operation): &(String, String, &Value)) -> Option<Self> {
        let audience = operation["x-audience"].as_str().unwrap().to_owned();
        let Some(scope) = operation.get("x-scope") else {
            assert_eq!((audience.as_str(), &operation["security"]), ("everybody", &json!([])), "{path}");
            return None;
        };
        assert!(operation["security"][0]["bearer"].is_array(), "{path}");
        let names_actor = operation["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .any(|parameter| parameter["in"] == "header" && parameter["name"] == "Kinfolk-Actor");
        // A read may have a viewer by that header, but this one has it as a parameter.
        let acts = names_actor && scope == "write";
        // Acting on oneself is refused for another reason, unless it is one's own followers or suggestions.
        let id = if acts && !is_of_actor(path) { "2" } else { "1" };
        let id = match (path.as_str(), method.as_str()) {
            ("/v1/posts/{id}", "get") | ("/v1/posts/{id}/comments" | "/v1/posts/{id}/comments/tree", _) => {
                POSTS[0]
            }
            ("/v1/posts/{id}", _) => POSTS[1],
            ("/v1/posts/{id}/comments/lock", _) => POSTS[2],
            _ => id,
        };
        let mut address = path.replace("{id}", id);
        for name in ["{follower}", "{target}", "{other}"] {
            address = address.replace(name, "3");
        }
        assert!(!address.replace("{comment}", "").contains('{'), "{path}: give it a value here");
        address.push_str(match path.as_str() {
            "/v1/users/{id}/relationships" | "/v1/counts" | "/v1/common" => "?id=3",
            "/v1/users/{id}/known-followers" => "?viewer=1",
            _ => "",
        });
        Some(Self {
            method: method.to_uppercase(),
            path: address,
            scope: Scope::ALL.into_iter().find(|known| scope == known.name()).unwrap(),
            audience,
            acts,
            views: path.ends_with("/history"),
            headers: match (method.as_str(), path.as_str()) {
                ("post", "/v1/posts/{id}/comments") => &[("idempotency-key", "of the route")],
                ("patch", _) => &[("if-match", "\"1\"")],
                _ => &[],
            },
            body: match (method.as_str(), path.as_str()) {
                ("post", "/v1/check") => Some(r#"{"pairs":[[1,2]]}"#),
                ("post", "/v1/posts") => Some("{}"),
                ("post", "/v1/posts/{id}/comments") | ("patch", _) => Some(r#"{"body":"a"}"#),
                ("post", "/v1/comments/{comment}/remove") => Some(r#"{"reason":"a"}"#),
                _ => None,
            },
            is_endless: path.ends_with("/stream") || path.ends_with("/backup"),
        })
    }

    /// Who acts or views, where somebody must.
    fn actor<'a>(&self, user: &'a str) -> Vec<(&'static str, &'a str)> {
        if self.acts || self.views { vec![("kinfolk-actor", user)] } else { Vec::new() }
    }
}

/// Whether the path names whose followers, suggestions, post or comment they are, who must be the actor.
fn is_of_actor(path: &str) -> bool {
    let owned = ["/followers/", "/suggestions/", "/posts/", "/v1/comments/"];
    owned.iter().any(|part| path.contains(part)) && !path.ends_with("/comments")
}

#[test]
fn no_credentials() {
    let guarded = Guarded::start(default_limits());
    let stale = "not a key and not a token";
    for route in guarded.routes() {
        for credential in [None, Some(stale), Some("")] {
            let answer = guarded.call(&route, credential, &route.actor("1"));
            assert_eq!(
                answer.refusal(),
                (401, "unauthenticated".to_owned()),
                "{} {}",
                route.method,
                route.path
            );
            assert!(answer.header("www-authenticate").is_some());
        }
        let key = guarded.key(Scope::ALL);
        for value in [format!("Basic {key}"), key.to_owned(), "Bearer".to_owned()] {
            let answer = guarded.call(&route, None, &[("authorization", value.as_str())]);
            assert_eq!(answer.status, 401, "{} {}", route.method, route.path);
        }
    }
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(guarded.server.get(path).status, 200);
    }
}

#[test]
fn an_expired_credential() {
    let guarded = Guarded::start(default_limits());
    let expired = token_until("1", "", SystemClock.now().millis() / 1_000 - 600);
    for route in guarded.routes() {
        let answer = guarded.call(&route, Some(&expired), &[]);
        assert_eq!(answer.refusal(), (401, "unauthenticated".to_owned()), "{} {}", route.method, route.path);
    }
}

#[test]
fn a_missing_scope() {
    let guarded = Guarded::start(default_limits());
    for route in guarded.routes() {
        let others = Scope::ALL.into_iter().filter(|scope| *scope != route.scope);
        let answer = guarded.call(&route, Some(guarded.key(others)), &route.actor("1"));
        assert_eq!(answer.refusal(), (403, "forbidden".to_owned()), "{} {}", route.method, route.path);
        let answer = guarded.call(&route, Some(guarded.key([route.scope])), &route.actor("1"));
        assert!([200, 201, 204].contains(&answer.status), "{} {}: {answer:?}", route.method, route.path);
        let other = if route.scope == Scope::Read { "kinfolk:write" } else { "kinfolk:read" };
        let answer = guarded.call(&route, Some(&token("1", other)), &[]);
        assert_eq!(answer.refusal(), (403, "forbidden".to_owned()), "{} {}", route.method, route.path);
    }
}

#[test]
fn the_wrong_user() {
    let guarded = Guarded::start(default_limits());
    let (own, foreign) = (token("1", ""), token("7", ""));
    for route in guarded.routes() {
        let of_own = guarded.call(&route, Some(&own), &[]).status;
        let of_foreign = guarded.call(&route, Some(&foreign), &[]).status;
        let expected = match route.audience.as_str() {
            "services" => [403, 403],
            // Users are no moderators unless their token says so.
            _ if route.scope == Scope::Moderate => [403, 403],
            "oneself" => [200, 403],
            "callers" if !route.acts => [200, 200],
            // Who acts is the user itself; only its own followers, suggestions and posts are named in the path.
            "callers" if is_of_actor(&route.path) => [if route.body.is_some() { 200 } else { 204 }, 403],
            "callers" if route.body.is_some() => [201, 201],
            "callers" => [204, 204],
            other => panic!("{other}"),
        };
        assert_eq!([of_own, of_foreign], expected, "{} {}", route.method, route.path);
        if route.acts {
            let pretends = guarded.call(&route, Some(&foreign), &route.actor("1"));
            assert_eq!(pretends.refusal(), (403, "forbidden".to_owned()), "{} {}", route.method, route.path);
        }
        if route.scope == Scope::Moderate {
            let moderator = token("7", "kinfolk:moderate");
            let answer = guarded.call(&route, Some(&moderator), &[]);
            assert_eq!(answer.status, 204, "{} {}", route.method, route.path);
            let pretends = guarded.call(&route, Some(&moderator), &[("Kinfolk-Actor", "1")]);
            assert_eq!(pretends.refusal(), (403, "forbidden".to_owned()), "{} {}", route.method, route.path);
        }
    }
}

#[test]
fn users_act_as_themselves() {
    let guarded = Guarded::start(default_limits());
    let headers = [("authorization", &*format!("Bearer {}", token("1", "")))];
    assert_eq!(guarded.server.request("POST", "/v1/users/2/follow", &headers, b"").status, 204);
    let counts = guarded.server.request("GET", "/v1/users/1/counts", &headers, b"");
    assert_eq!(counts.json()["following"], 1);
    let service = [("authorization", &*format!("Bearer {}", guarded.key(Scope::ALL)))];
    let unnamed = guarded.server.request("POST", "/v1/users/2/follow", &service, b"");
    assert_eq!(unnamed.refusal(), (400, "actor_required".to_owned()));
}

#[test]
fn users_view_as_themselves() {
    let guarded = Guarded::start(default_limits());
    let authorization = format!("Bearer {}", token("1", ""));
    let status = |path: &str, actor: Option<&str>| {
        let mut headers = vec![("authorization", authorization.as_str())];
        headers.extend(actor.map(|actor| ("kinfolk-actor", actor)));
        guarded.server.request("GET", path, &headers, b"").status
    };
    let known = "/v1/users/9/known-followers";
    assert_eq!([status(known, None), status(known, Some("1")), status(known, Some("2"))], [200, 200, 403]);
    assert_eq!(status("/v1/users/9/known-followers?viewer=2", None), 403);
    assert_eq!(status("/v1/users/9/known-followers?viewer=1", Some("2")), 403);
    assert_eq!(
        [status("/v1/users/1/suggestions", None), status("/v1/users/2/suggestions", None)],
        [200, 403]
    );
    if HAS_CONTENT {
        assert_eq!([status("/v1/users/1/feed", None), status("/v1/users/2/feed", None)], [200, 403]);
        assert_eq!(status("/v1/users/2/posts", None), 200);
    }
}

#[test]
fn overlaps_cost_as_many_requests_as_they_have_rows() {
    let limits = LimitSettings { user: Some(Rate::per_hour(7)), changes: None, ..default_limits() };
    let guarded = Guarded::start(limits);
    let service = format!("Bearer {}", guarded.key(Scope::ALL));
    let mut connection = guarded.server.connect();
    for target in 1_000..1_500 {
        let headers = [("authorization", service.as_str()), ("kinfolk-actor", &*target.to_string())];
        assert_eq!(connection.request("POST", "/v1/users/1/follow", &headers, b"").status, 204);
        for actor in ["1", "2"] {
            let headers = [("authorization", service.as_str()), ("kinfolk-actor", actor)];
            let path = format!("/v1/users/{target}/follow");
            assert_eq!(connection.request("POST", &path, &headers, b"").status, 204);
        }
    }
    let headers = [("authorization", &*format!("Bearer {}", token("1", "")))];
    let left = |path| {
        let answer = guarded.server.request("GET", path, &headers, b"");
        (answer.status, answer.header("ratelimit-remaining").unwrap().to_owned())
    };
    // The smallest set counts, once for each set; friends are an overlap of both sides of one user.
    assert_eq!(left("/v1/users/1/friends?limit=1"), (200, "5".to_owned()));
    assert_eq!(left("/v1/users/1/common/2?limit=1"), (200, "3".to_owned()));
    assert_eq!(left("/v1/users/9/known-followers"), (200, "2".to_owned()));
    assert_eq!(left("/v1/common?id=1&id=2"), (200, "0".to_owned()));
}

#[test]
fn budgets_are_told_and_end() {
    let limits = LimitSettings { user: Some(Rate::per_hour(2)), ..default_limits() };
    let guarded = Guarded::start(limits);
    let headers = [("authorization", &*format!("Bearer {}", token("1", "")))];
    let ask = || guarded.server.request("GET", "/v1/users/1/counts", &headers, b"");
    let left = |answer: &Answer| answer.header("ratelimit-remaining").map(str::to_owned);
    let (first, second, third) = (ask(), ask(), ask());
    assert_eq!([first.status, second.status, third.status], [200, 200, 429]);
    assert_eq!(
        [left(&first), left(&second), left(&third)],
        ["1", "0", "0"].map(|left| Some(left.to_owned()))
    );
    assert_eq!(third.problem(), "rate_limited");
    assert_eq!(third.header("ratelimit-limit"), Some("2"));
    let seconds = |name| third.header(name).unwrap().parse::<u64>().unwrap();
    assert!(seconds("retry-after") > 0 && seconds("ratelimit-reset") >= seconds("retry-after"));
}

#[test]
fn a_revoked_key_ends_its_streams() {
    let ending = end_of_a_stream(|path| KeyFile::default().write(path).unwrap());
    assert!(ending.contains("unauthenticated"), "{ending}");
}

#[test]
fn a_key_without_its_scope_ends_its_streams() {
    let ending = end_of_a_stream(|path| {
        let keys = fs::read_to_string(path).unwrap();
        assert!(keys.contains("\"read\""), "{keys}");
        fs::write(path, keys.replace("\"read\"", "\"write\"")).unwrap();
    });
    assert!(ending.contains("forbidden"), "{ending}");
}

/// What a stream says after its file of keys was changed, up to its end.
fn end_of_a_stream(change: impl FnOnce(&Path)) -> String {
    let guarded = Guarded::start(default_limits());
    let mut connection = guarded.server.connect();
    let authorization = format!("Bearer {}", guarded.key([Scope::Read]));
    connection.begin("GET", "/v1/changes/stream", &[("authorization", &authorization)]);
    assert_eq!(connection.head().unwrap().0, 200);
    change(&guarded.folder.path().join("keys.toml"));
    guarded.server.door.service().unwrap().access.reload().unwrap();
    // Something must happen for the stream to look: here it is a change by a user.
    let headers = [("authorization", &*format!("Bearer {}", token("1", "")))];
    assert_eq!(guarded.server.request("POST", "/v1/users/2/follow", &headers, b"").status, 204);
    let mut text = Vec::new();
    while let Some(chunk) = connection.chunk().unwrap() {
        text.extend(chunk);
    }
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("event: problem") && !text.contains("event: follow"), "{text}");
    text
}

#[test]
fn what_is_asked_is_counted() {
    let guarded = Guarded::start(default_limits());
    let headers = [("authorization", &*format!("Bearer {}", guarded.key([Scope::Read])))];
    guarded.server.request("GET", "/v1/users/1/counts", &headers, b"");
    guarded.server.request("GET", "/v1/users/x/counts", &headers, b"");
    let metrics = guarded.server.request("GET", "/metrics", &headers, b"");
    assert_eq!(metrics.status, 200);
    let text = metrics.text();
    assert!(text.contains("kinfolk_test"), "{text}");
    assert!(text.lines().any(|line| line.contains("invalid_id") && line.ends_with(" 1")), "{text}");
    let counted = |line: &str| line.contains("counts") && line.contains("_count") && line.ends_with(" 2");
    assert!(text.lines().any(counted), "{text}");
}
