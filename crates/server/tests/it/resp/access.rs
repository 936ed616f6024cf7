//! Who may call what, over every command of the table.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinfolk_conformance::SimulatedClock;
use kinfolk_core::{Clock, IdKind, SystemClock, Timestamp};
use kinfolk_server::resp::RespSettings;
use kinfolk_server::resp::table::{ActorRule, Command};
use kinfolk_server::{
    Access, AccessSettings, Capability, KeyFile, LimitSettings, NewKey, Rate, Scope, TokenSettings,
};

use super::super::backing::HAS_CONTENT;
use super::super::store::WatchedStore;
use super::client::{Client, encode_words};
use super::server::{Server, Setup};

const COMMANDS: &[Command<WatchedStore>] = Command::ALL;

/// A server that wants API keys, with a key that may read, one that may write, and one that may read 20 times an
/// hour.
pub(super) struct Guarded {
    pub server: Server,
    pub reader: String,
    writer: String,
    limited: String,
    keys: PathBuf,
    _folder: tempfile::TempDir,
}

impl Guarded {
    /// A client with the key that is limited.
    fn limited_client(&self) -> Client {
        let mut client = self.server.connect();
        assert_eq!(client.call(&format!("AUTH {}", self.limited)), "+OK");
        client
    }

    /// Revokes the key that may read.
    fn revoke_reader(&self) {
        let mut keys = KeyFile::read_or_new(&self.keys).unwrap();
        keys.revoke(self.reader.split('_').nth(1).unwrap()).unwrap();
        keys.write(&self.keys).unwrap();
        self.server.service.access.poll();
    }

    /// How many requests that key has left.
    fn left(&self) -> u32 {
        let caller = self.server.service.access.authenticate(&self.limited).unwrap();
        caller.budget.state().unwrap().remaining
    }
}

pub(super) fn guarded(settings: RespSettings) -> Guarded {
    guarded_by(settings, &(Arc::new(SystemClock) as _))
}

/// A guarded server whose credentials end by a clock.
fn guarded_by(settings: RespSettings, clock: &Arc<dyn Clock>) -> Guarded {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("keys.toml");
    let mut keys = KeyFile::read_or_new(&path).unwrap();
    let now = Timestamp::from_millis(1_794_729_600_000);
    let mut add = |name: &str, scope: Scope, limit: Option<Rate>| {
        keys.add(
            NewKey { name: name.to_owned(), scopes: [scope].into_iter().collect(), limit, not_after: None },
            now,
        )
        .unwrap()
    };
    let (reader, writer) = (add("reader", Scope::Read, None), add("writer", Scope::Write, None));
    let limited = add("limited", Scope::Read, Some(Rate::per_hour(1).with_burst(20)));
    keys.write(&path).unwrap();
    let tokens = TokenSettings {
        keys_file: Some(fixture("test-only-ed-public.pem")),
        secret_file: None,
        algorithms: vec!["EdDSA".to_owned()],
        audiences: vec!["kinfolk".to_owned()],
        issuers: Vec::new(),
        leeway: Duration::ZERO,
        allow_moderate: false,
    };
    let settings_of_access = AccessSettings {
        id_kind: IdKind::Integer,
        keys_file: Some(path.clone()),
        tokens: Some(tokens),
        limits: LimitSettings {
            key: None,
            user: Some(Rate::per_second(50).with_burst(100)),
            changes: Some(Rate::per_hour(1_000).with_burst(400)),
            author_comments: None,
            parent_comments: None,
            budgets_max: 100_000,
        },
        shared_budgets: None,
    };
    let access = Access::with_clock(&settings_of_access, clock);
    let server = Server::with(Setup { settings, access: access.unwrap(), ..Setup::default() });
    Guarded { server, reader, writer, limited, keys: path, _folder: folder }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/fixtures").join(name)
}

/// A token of an end user, until the year 2100.
pub(super) fn token(user: u64) -> String {
    token_until(user, 4_102_444_800)
}

fn token_until(user: u64, seconds: u64) -> String {
    let key = std::fs::read(fixture("test-only-ed.pem")).unwrap();
    let key = jsonwebtoken::EncodingKey::from_ed_pem(&key).unwrap();
    let header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::EdDSA);
    let claims = serde_json::json!({ "sub": user.to_string(), "aud": "kinfolk", "exp": seconds });
    jsonwebtoken::encode(&header, &claims, &key).unwrap()
}

pub(super) fn usual() -> RespSettings {
    RespSettings { threads: 1, ..RespSettings::default() }
}

#[test]
fn without_credentials_every_command_is_refused() {
    let guarded = guarded(usual());
    for command in COMMANDS {
        let mut client = guarded.server.connect();
        client.send(&encode_words(std::iter::once(command.name).chain(command.example.iter().copied())));
        let reply = client.reply();
        let free = matches!(command.name, "quit" | "reset");
        let refused = reply.starts_with("-NOAUTH ") || reply.starts_with("-WRONGPASS ");
        assert_eq!(!refused, free, "{}: {reply}", command.name);
    }
    let mut client = guarded.server.connect();
    assert_eq!(client.call("NONSENSE"), "-NOAUTH authentication required");
}

#[test]
fn without_its_scope_every_command_is_refused() {
    let guarded = guarded(usual());
    for command in COMMANDS {
        for (key, scope) in [(&guarded.reader, Scope::Read), (&guarded.writer, Scope::Write)] {
            let mut client = guarded.server.connect();
            assert_eq!(client.call(&format!("AUTH {key}")), "+OK");
            client.send(&encode_words(std::iter::once(command.name).chain(command.example.iter().copied())));
            let reply = client.reply();
            let allowed = command.scope.is_none_or(|needed| needed == scope);
            assert_eq!(!reply.starts_with("-NOPERM "), allowed, "{} with {scope:?}: {reply}", command.name);
        }
    }
}

#[test]
fn every_command_that_speaks_for_a_user_is_refused_to_another() {
    let guarded = guarded(usual());
    let is_served = |command: &&Command<_>| HAS_CONTENT || command.capability != Some(Capability::Feeds);
    for command in COMMANDS.iter().filter(|command| command.scope.is_some()).filter(is_served) {
        for user in [7, 8] {
            let mut client = guarded.server.connect();
            assert_eq!(client.call(&format!("AUTH user {}", token(user))), "+OK");
            client.send(&encode_words(std::iter::once(command.name).chain(command.example.iter().copied())));
            let reply = client.reply();
            let allowed = match command.actor_rule() {
                ActorRule::Anyone => command.scope != Some(Scope::Admin),
                ActorRule::Service => false,
                ActorRule::Actor | ActorRule::ActorKey | ActorRule::Viewer => user == 7,
            };
            assert_eq!(!reply.starts_with("-NOPERM "), allowed, "{} as {user}: {reply}", command.name);
        }
    }
    // Neither does a transaction help.
    let mut client = guarded.server.connect();
    let replies = client.call_all(&[
        &format!("AUTH {}", token(8)),
        "MULTI",
        "SADD following:7 9",
        "SADD following:8 9",
        "EXEC",
    ]);
    assert_eq!(replies[4], "[-NOPERM a user acts only as itself, 1]");
}

#[test]
fn every_way_to_say_who_is_calling() {
    let guarded = guarded(usual());
    let key = &guarded.reader;
    for command in
        [format!("AUTH {key}"), format!("AUTH default {key}"), format!("HELLO 2 AUTH default {key}")]
    {
        let mut client = guarded.server.connect();
        assert!(!client.call(&command).starts_with('-'));
        assert_eq!(client.call("SCARD following:1"), "0");
        assert_eq!(client.call("RESET"), "+RESET");
        assert!(client.call("SCARD following:1").starts_with("-NOAUTH "));
    }
    let mut client = guarded.server.connect();
    // In one pipeline, with a frame behind it that only known callers may send.
    let members = "2 ".repeat(900);
    let replies = client.call_all(&[&format!("AUTH {key}"), &format!("SMISMEMBER following:1 {members}")]);
    assert_eq!(replies[0], "+OK");
    assert!(replies[1].starts_with("[0, "));
}

#[test]
fn a_wrong_credential_is_refused_and_not_repeated() {
    let guarded = guarded(usual());
    let mut client = guarded.server.connect();
    for command in ["AUTH hunter2hunter2", "AUTH name hunter2hunter2", "HELLO 3 AUTH name hunter2hunter2"] {
        let reply = client.call(command);
        assert!(reply.starts_with("-WRONGPASS ") && !reply.contains("hunter2"), "{reply}");
    }
    assert!(client.call("HELLO 3").starts_with("-NOAUTH "));
    assert!(client.call("AUTH a b hunter2hunter2").starts_with("-ERR "));
}

#[test]
fn strangers_have_smaller_frames_and_little_time() {
    let unauthenticated_max = Duration::from_millis(100);
    let guarded = guarded(RespSettings { unauthenticated_max, ..usual() });
    for too_large in ["*11\r\n", "*2\r\n$4\r\nAUTH\r\n$16385\r\n"] {
        let mut client = guarded.server.connect();
        client.send(too_large.as_bytes());
        assert!(client.reply().starts_with("-ERR Protocol error: "));
        client.assert_closed();
    }
    let mut silent = guarded.server.connect();
    silent.assert_closed();
    // Nor does it help to say something from time to time.
    let mut talkative = guarded.server.connect();
    let patience = Instant::now() + Duration::from_secs(30);
    while talkative.stream.write_all(&encode_words(["RESET"].into_iter())).is_ok()
        && talkative.try_reply().is_some()
    {
        assert!(Instant::now() < patience, "a stranger holds a connection");
    }
    let mut known = guarded.server.connect();
    assert_eq!(known.call(&format!("AUTH {}", guarded.reader)), "+OK");
    guarded.server.connect().assert_closed();
    assert_eq!(known.call("SCARD following:1"), "0");
}

#[test]
fn another_caller_in_a_pipeline_has_its_own_scopes() {
    let guarded = guarded(usual());
    let reader = &guarded.reader;
    for change in [format!("AUTH {reader}"), format!("HELLO 2 AUTH default {reader}")] {
        let change = change.as_str();
        let pipelines: [&[&str]; 3] = [
            &["FOLLOW 7 1", change, "FOLLOW 5 6"],
            &["MULTI", "FOLLOW 7 1", change, "FOLLOW 5 6", "EXEC"],
            &["FOLLOW 7 1", "MULTI", change, "EXEC", "FOLLOW 5 6"],
        ];
        for pipeline in pipelines {
            let mut client = guarded.server.connect();
            assert_eq!(client.call(&format!("AUTH {}", token(7))), "+OK");
            let replies = client.call_all(pipeline);
            assert!(replies.last().unwrap().contains("-NOPERM this needs the scope write"), "{replies:?}");
            assert_eq!(client.call("FOLLOWS 5 6"), "0");
        }
    }
}

#[test]
fn another_caller_in_a_pipeline_has_its_own_budget() {
    let guarded = guarded(usual());
    let mut client = guarded.server.connect();
    assert_eq!(client.call(&format!("AUTH {}", guarded.reader)), "+OK");
    let change = format!("AUTH {}", guarded.limited);
    let mut pipeline = vec!["SCARD following:1", &change];
    pipeline.extend(["PING"; 21]);
    let replies = client.call_all(&pipeline);
    assert_eq!(replies[21], "+PONG");
    assert!(replies[22].starts_with("-LIMIT "), "{replies:?}");
}

#[test]
fn a_refused_write_costs_the_user_nothing() {
    let guarded = guarded(usual());
    let mut client = guarded.server.connect();
    assert_eq!(client.call(&format!("AUTH {}", guarded.writer)), "+OK");
    let followees: String = (2..=10_002).map(|id| format!(" {id}")).collect();
    assert!(client.call(&format!("SADD following:1{followees}")).starts_with("-ERR 10001 commands"));
    assert_eq!(client.call("SADD following:1 2"), "1");
}

#[test]
fn a_key_that_is_revoked_ends_its_connections() {
    let guarded = guarded(usual());
    let open = |key: &str, behind: &str| {
        let mut client = guarded.server.connect();
        assert_eq!(client.call(&format!("AUTH {key}")), "+OK");
        client.send(behind.as_bytes());
        client
    };
    let mut other = open(&guarded.writer, "");
    // Silent, within a command, within a transaction.
    let mut ended =
        ["", "*2\r\n$4\r\nECHO\r\n$5\r\nhe", "MULTI\r\n"].map(|behind| open(&guarded.reader, behind));
    assert_eq!(ended[2].reply(), "+OK");
    guarded.revoke_reader();
    for client in &mut ended {
        assert_eq!(client.reply(), "-NOAUTH the credential was revoked; use another");
        client.assert_closed();
    }
    assert_eq!(other.call("PING"), "+PONG");
}

#[test]
fn a_token_that_expires_ends_its_connections() {
    let clock = Arc::new(SimulatedClock::default());
    let guarded = guarded_by(usual(), &(Arc::clone(&clock) as _));
    let soon = token_until(7, clock.now().millis() / 1_000 + 1);
    let open = |token: &str| {
        let mut client = guarded.server.connect();
        assert_eq!(client.call(&format!("AUTH {token}")), "+OK");
        client
    };
    let (mut silent, mut later) = (open(&soon), open(&token(7)));
    let mut renewed = open(&soon);
    assert_eq!(renewed.call(&format!("AUTH {}", token(7))), "+OK");
    clock.advance(1_000);
    assert_eq!(silent.reply(), "-NOAUTH the credential has expired; get a new one");
    silent.assert_closed();
    assert_eq!([later.call("PING"), renewed.call("PING")], ["+PONG", "+PONG"]);
}

#[test]
fn whatever_an_expired_caller_sends_is_refused_and_ends_the_connection() {
    let clock = Arc::new(SimulatedClock::default());
    let guarded = guarded_by(usual(), &(Arc::clone(&clock) as _));
    // So far ahead that nothing but the command itself can notice the end.
    let hour = token_until(7, clock.now().millis() / 1_000 + 3_600);
    let open = || {
        let mut client = guarded.server.connect();
        assert_eq!(client.call(&format!("AUTH {hour}")), "+OK");
        client
    };
    let mut clients: Vec<_> = COMMANDS.iter().map(|command| (command, open())).collect();
    let mut transaction = open();
    assert_eq!(transaction.call_all(&["MULTI", "PING"]), ["+OK", "+QUEUED"]);
    clock.advance(3_600_000);
    for (command, client) in &mut clients {
        if command.is_open {
            // These are for clients who are not known, too: this one may say who else it is.
            let expected = if command.name == "quit" { None } else { Some("+OK".to_owned()) };
            let first = encode_words([command.name].into_iter());
            let login = encode_words(["AUTH", &guarded.reader].into_iter());
            client.send(&[first, login].concat());
            client.reply();
            assert_eq!(client.try_reply(), expected, "{}", command.name);
            continue;
        }
        let words = std::iter::once(command.name).chain(command.example.iter().copied());
        client.send(&[encode_words(words), encode_words(["PING"].into_iter())].concat());
        let reply = client.reply();
        assert!(reply.starts_with("-NOAUTH the credential has expired"), "{}: {reply}", command.name);
        client.assert_closed();
    }
    transaction.send(&encode_words(["EXEC"].into_iter()));
    assert!(transaction.reply().starts_with("-NOAUTH the credential has expired"));
    transaction.assert_closed();
}

#[test]
fn a_long_walk_costs_as_many_requests() {
    let guarded = guarded(usual());
    let mut writer = guarded.server.connect();
    assert_eq!(writer.call(&format!("AUTH {}", guarded.writer)), "+OK");
    let follows: Vec<String> = (1_000..3_000).map(|id| format!("SADD following:{id} 500 501")).collect();
    let follows: Vec<&str> = follows.iter().map(String::as_str).collect();
    assert!(writer.call_all(&follows).iter().all(|reply| reply == "2"));

    let left = || guarded.left();
    let mut client = guarded.limited_client();
    for (command, cost) in [
        ("SCARD followers:500", 1),
        ("SMEMBERS followers:500", 3),
        ("SINTERCARD 1 followers:500", 3),
        ("SINTER followers:500 followers:501", 5),
        ("SSCAN followers:500 0 COUNT 999", 2),
        ("SINTERCARD 2 followers:500 followers:501", 5),
    ] {
        let before = left();
        assert!(!client.call(command).starts_with('-'), "{command}");
        assert_eq!(before - left(), cost, "{command}");
    }
    assert_eq!(left(), 1);
    assert!(client.call("SMEMBERS followers:500").starts_with("-LIMIT "));
}

#[test]
fn an_overlap_costs_as_many_requests_as_it_has_rows() {
    let guarded = guarded(usual());
    let mut writer = guarded.server.connect();
    assert_eq!(writer.call(&format!("AUTH {}", guarded.writer)), "+OK");
    let members: Vec<String> = (1_000..2_000).map(|id| id.to_string()).collect();
    for follower in [1, 2] {
        assert_eq!(writer.call(&format!("SADD following:{follower} {}", members.join(" "))), "1000");
    }
    let left = || guarded.left();
    let mut client = guarded.limited_client();
    // The smallest set counts, once for each set.
    for (command, cost) in [
        ("COMMON 1 2", 3),
        ("COMMON 1 2 LIMIT 1", 3),
        ("COMMON 1 2 3", 1),
        ("KNOWN 1 5000", 1),
        ("SUGGEST 1", 1),
    ] {
        let before = left();
        assert!(!client.call(command).starts_with('-'), "{command}");
        assert_eq!(before - left(), cost, "{command}");
    }
    // Friends are an overlap of both sides of one user.
    let befriend: Vec<String> = members.iter().map(|member| format!("FOLLOW {member} 1")).collect();
    let befriend: Vec<&str> = befriend.iter().map(String::as_str).collect();
    assert_eq!(writer.call_all(&befriend).len(), members.len());
    for (command, cost) in [("FRIENDS 1 LIMIT 1", 3), ("FRIENDS 2 LIMIT 1", 1), ("FOLLOWERS 1 LIMIT 1", 1)] {
        let before = left();
        assert!(!client.call(command).starts_with('-'), "{command}");
        assert_eq!(before - left(), cost, "{command}");
    }
    // A call that is refused for its form costs no more than that.
    let before = left();
    assert!(client.call(&format!("COMMON {}", "1 ".repeat(200))).contains("send at most 10"));
    assert_eq!(before - left(), 1);
}

#[test]
fn one_caller_has_only_so_many_connections() {
    let guarded = guarded(RespSettings { user_connections_max: 2, ..usual() });
    let login = format!("AUTH {}", token(7));
    let (mut one, mut two, mut three) =
        (guarded.server.connect(), guarded.server.connect(), guarded.server.connect());
    assert_eq!([one.call(&login), two.call(&login)], ["+OK", "+OK"]);
    assert!(three.call(&login).starts_with("-ERR too many connections of this caller"));
    assert!(three.call("PING").starts_with("-NOAUTH "));
    // It may say again who it is, and others are not hurt.
    assert_eq!(one.call(&login), "+OK");
    assert_eq!(guarded.server.connect().call(&format!("AUTH {}", token(8))), "+OK");
    assert_eq!(two.call("RESET"), "+RESET");
    assert_eq!(three.call(&login), "+OK");
    assert!(two.call(&login).starts_with("-ERR too many"));
    // The place becomes free when the server has noticed that its connection has ended.
    drop(one);
    let patience = Instant::now() + Duration::from_secs(30);
    while two.call(&login) != "+OK" {
        two = guarded.server.connect();
        assert!(Instant::now() < patience, "a place is lost");
    }
}
