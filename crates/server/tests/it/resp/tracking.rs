//! Client-side caching: what a client has read is invalidated when it changes, however it was written.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_conformance::block_on;
use kinfolk_core::graph::{EdgeAction, EdgeStore, FollowerCommand, WriteRequest};
use kinfolk_core::{EdgeKind, Error, Id};
use kinfolk_server::resp::RespSettings;

use super::super::store::WatchedStore;
use super::access::{guarded, token, usual};
use super::client::Client;
use super::server::{Server, Setup};

const EVERYTHING: &str = ">[\"invalidate\", null]";

/// A server and its store, which can be written to as another process or protocol does.
struct Scene {
    server: Server,
    store: WatchedStore,
}

impl Scene {
    fn new() -> Self {
        Self::with(Setup::default())
    }

    fn with(setup: Setup) -> Self {
        let mut store = None;
        let server = Server::on(setup, |watched| {
            store = Some(watched.clone());
            watched
        });
        Self { server, store: store.unwrap() }
    }

    /// A client that caches.
    fn tracking(&self, options: &str) -> Client {
        let mut client = self.server.connect();
        client.hello_three();
        assert_eq!(client.call(&format!("CLIENT TRACKING ON {options}")), "+OK");
        client
    }

    /// A client that hears of all keys with a prefix. When the feed begins, it may have to drop everything once.
    fn listening(&self, options: &str) -> Client {
        static NEXT: AtomicU64 = AtomicU64::new(90_000);
        let mark = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut client = self.tracking(options);
        client.send_all(&["PING"]);
        // The feed has begun when this is replied.
        while client.reply() != "+PONG" {}
        self.follow(mark, mark + 10_000);
        let marks = [format!("following:{mark}"), format!("followers:{}", mark + 10_000)];
        let mut left: Vec<String> = marks.into_iter().filter(|mark| is_wanted(options, mark)).collect();
        while !left.is_empty() {
            let message = client.reply();
            left.retain(|mark| !message.contains(mark));
        }
        client
    }

    /// Writes past the protocol.
    fn write(&self, action: EdgeAction, follower: u64, followee: u64) {
        let command = FollowerCommand { action, followee: Id::Integer(followee) };
        let request = WriteRequest {
            kind: EdgeKind::Follow,
            follower: Id::Integer(follower),
            commands: [command].into_iter().collect(),
            following_limit: 10_000,
        };
        let written = block_on(self.store.write(vec![request]));
        assert!(written.iter().all(Result::is_ok), "{written:?}");
    }

    fn follow(&self, follower: u64, followee: u64) {
        self.write(EdgeAction::Follow, follower, followee);
    }
}

/// Whether options of `CLIENT TRACKING` are about a key.
fn is_wanted(options: &str, key: &str) -> bool {
    let mut prefixes = options.split("PREFIX ").skip(1).peekable();
    prefixes.peek().is_none() || prefixes.any(|prefix| key.starts_with(prefix.trim()))
}

/// Waits until all of these keys are invalidated, in one message or several, and nothing else is.
fn expect(client: &mut Client, keys: &[&str]) {
    let mut left: BTreeSet<&str> = keys.iter().copied().collect();
    while !left.is_empty() {
        let push = client.reply();
        assert!(push.starts_with(">[\"invalidate\", ["), "{push}");
        for name in push.split('"').filter(|part| part.starts_with("follow")) {
            assert!(left.remove(name), "{name} in {push}, but {left:?} are left");
        }
    }
}

fn invalidated(keys: &[&str]) -> String {
    let keys: Vec<_> = keys.iter().map(|key| format!("{key:?}")).collect();
    format!(">[\"invalidate\", [{}]]", keys.join(", "))
}

#[test]
fn what_was_read_is_invalidated_once_by_a_write_of_any_kind() {
    let scene = Scene::new();
    let mut client = scene.tracking("");
    let mut other = scene.server.connect();
    assert_eq!(client.call("SISMEMBER following:1 2"), "0");
    assert_eq!(other.call("SADD following:1 2"), "1");
    assert_eq!(client.reply(), invalidated(&["following:1"]));
    // It is not read again, so that nobody cares.
    other.call("SADD following:1 3");
    assert_eq!(client.call_all(&["SCARD followers:4", "SMISMEMBER following:005 4 6"]), ["0", "[0, 0]"]);
    scene.follow(1, 9);
    scene.follow(5, 4);
    expect(&mut client, &["followers:4", "following:005"]);
    assert_eq!(client.call("SISMEMBER following:5 4"), "1");
    // A write that changes nothing invalidates nothing.
    assert_eq!(other.call_all(&["SADD following:5 4", "SREM following:5 77"]), ["0", "0"]);
    assert_eq!(client.call("SCARD following:6"), "0");
    scene.follow(6, 7);
    assert_eq!(client.reply(), invalidated(&["following:6"]));
}

#[test]
fn all_that_reads_sets_is_tracked_and_nothing_else() {
    let scene = Scene::new();
    let mut client = scene.tracking("");
    let reads = [
        "SISMEMBER following:10 2",
        "SMISMEMBER following:11 2 3",
        "SCARD following:12",
        "SMEMBERS following:13",
        "SINTER following:14 following:15",
        "SINTERCARD 2 following:16 following:17 LIMIT 5",
        "SSCAN following:18 0",
        "EXISTS following:19 following:20",
        "TYPE following:21",
        "MULTI",
        "SISMEMBER following:22 2",
        "EXEC",
    ];
    client.call_all(&reads);
    for follower in 10..23 {
        scene.follow(follower, 2);
        assert_eq!(client.reply(), invalidated(&[&format!("following:{follower}")]));
    }
    // Writes and commands without a key are not reads of one.
    client.call_all(&["SREM following:30 2", "FOLLOWS 30 2", "COUNTS 30", "PING", "SCARD following:31"]);
    scene.follow(30, 2);
    scene.follow(31, 2);
    assert_eq!(client.reply(), invalidated(&["following:31"]));
}

#[test]
fn a_client_hears_of_its_own_writes_with_their_replies() {
    let scene = Scene::new();
    let mut client = scene.tracking("");
    client.call("SISMEMBER following:1 2");
    client.call("SCARD followers:2");
    client.send_all(&["SADD following:1 2"]);
    assert_eq!(client.reply(), "1");
    expect(&mut client, &["following:1", "followers:2"]);
    assert_eq!(client.call("SISMEMBER following:1 2"), "1");
}

#[test]
fn a_change_is_sent_once() {
    let scene = Scene::new();
    let mut client = scene.tracking("");
    let mut other = scene.server.connect();
    for round in 0..200 {
        client.call("SCARD following:1");
        other.call(&format!("SADD following:1 {}", round + 2));
        assert_eq!(client.reply(), invalidated(&["following:1"]), "{round}");
    }
    // A message that came twice would be in the way of this reply.
    assert_eq!(client.call("SCARD following:1"), "200");
    assert_eq!(client.call("SCARD following:2"), "0");
}

#[test]
fn a_client_need_not_hear_of_its_own_writes() {
    let scene = Scene::new();
    for options in ["NOLOOP", "BCAST NOLOOP"] {
        let mut client = if options == "NOLOOP" { scene.tracking(options) } else { scene.listening(options) };
        let mut other = scene.server.connect();
        client.call("SCARD followers:2");
        // Some change nothing, some do: only the latter are its own.
        client.call_all(&[
            "SADD following:1 2 3",
            "MULTI",
            "SADD following:1 2 4 5",
            "SREM following:1 2",
            "EXEC",
        ]);
        client.call("SCARD followers:2");
        other.call("SADD following:7 2");
        let others = if options == "NOLOOP" { &["followers:2"][..] } else { &["followers:2", "following:7"] };
        expect(&mut client, others);
        client.call("CLIENT TRACKING OFF");
        other.call_all(&["SREM following:1 3 4 5", "SREM following:7 2"]);
    }
}

#[test]
fn a_client_may_choose_what_it_caches() {
    let scene = Scene::new();
    let mut client = scene.tracking("OPTIN");
    client.call("SCARD following:1");
    assert_eq!(client.call("CLIENT CACHING YES"), "+OK");
    client.call_all(&["SCARD following:2", "SCARD following:3"]);
    client.call_all(&["CLIENT CACHING YES", "MULTI", "SCARD following:4", "SCARD following:5", "EXEC"]);
    client.call("SCARD following:6");
    (1..=6).for_each(|follower| scene.follow(follower, 9));
    expect(&mut client, &["following:2", "following:4", "following:5"]);
    let mut client = scene.tracking("OPTOUT");
    client.call_all(&["CLIENT CACHING NO", "SCARD following:11", "SCARD following:12"]);
    scene.follow(11, 9);
    scene.follow(12, 9);
    assert_eq!(client.reply(), invalidated(&["following:12"]));
}

#[test]
fn a_client_may_hear_of_all_keys_with_a_prefix() {
    let scene = Scene::new();
    let mut client = scene.listening("BCAST PREFIX following:1 PREFIX followers:");
    scene.follow(2, 3);
    assert_eq!(client.reply(), invalidated(&["followers:3"]));
    scene.follow(12, 4);
    expect(&mut client, &["following:12", "followers:4"]);
    let mut all = scene.listening("BCAST");
    scene.follow(5, 6);
    expect(&mut all, &["following:5", "followers:6"]);
}

#[test]
fn nothing_is_sent_to_clients_that_do_not_track() {
    let scene = Scene::new();
    for (user, end) in (1..).zip(["CLIENT TRACKING OFF", "RESET", "HELLO 2"]) {
        let mut client = scene.tracking("");
        let read = format!("SCARD following:{user}");
        client.call(&read);
        client.send_all(&[end, "HELLO 3"]);
        client.reply();
        client.reply();
        assert_eq!(client.call("CLIENT GETREDIR"), "-1", "{end}");
        scene.follow(user, 9);
        assert_eq!(client.call(&read), "1");
    }
}

#[test]
fn clients_drop_everything_where_changes_may_have_been_missed() {
    let scene = Scene::new();
    let mut client = scene.tracking("");
    let mut idle = scene.tracking("");
    client.call("SCARD following:1");
    scene.server.watch.restore();
    // The feed notices with the next change.
    scene.follow(8, 9);
    assert_eq!(client.reply(), EVERYTHING);
    // It begins again.
    loop {
        client.call("SCARD following:2");
        scene.follow(2, 3);
        let push = client.reply();
        scene.write(EdgeAction::Unfollow, 2, 3);
        if push == invalidated(&["following:2"]) {
            break;
        }
        assert_eq!(push, EVERYTHING);
    }
    assert_eq!(idle.call("PING"), "+PONG", "it has cached nothing");
}

#[test]
fn the_table_is_bounded() {
    let settings = RespSettings { tracking_items_max: 100, ..usual() };
    let scene = Scene::with(Setup { settings, ..Setup::default() });
    let mut client = scene.tracking("");
    let reads: Vec<String> = (0..1_000).map(|id| format!("SCARD following:{}", id + 1)).collect();
    let reads: Vec<&str> = reads.iter().map(String::as_str).collect();
    client.send_all(&reads);
    let (mut replies, mut forgotten) = (0, 0);
    while replies < 1_000 || forgotten < 900 {
        match client.reply() {
            push if push.starts_with('>') => forgotten += push.matches("following:").count(),
            _ => replies += 1,
        }
    }
    let info = client.call("INFO");
    assert!(info.contains("tracking_total_items:100\r\n"), "{info}");
    assert!(info.contains("tracking_clients:1\r\n"), "{info}");
}

#[test]
fn tracking_describes_itself() {
    let scene = Scene::new();
    let mut client = scene.server.connect();
    client.hello_three();
    let off = "{\"flags\": ~[\"off\"], \"prefixes\": [], \"redirect\": -1}";
    assert_eq!(client.call("CLIENT TRACKINGINFO"), off);
    client.call_all(&["CLIENT TRACKING ON OPTIN NOLOOP", "CLIENT CACHING YES"]);
    let on =
        "{\"flags\": ~[\"caching-yes\", \"noloop\", \"on\", \"optin\"], \"prefixes\": [], \"redirect\": 0}";
    assert_eq!(client.call("CLIENT TRACKINGINFO"), on);
    client.call_all(&["CLIENT TRACKING OFF", "CLIENT TRACKING ON BCAST PREFIX following:"]);
    let on = "{\"flags\": ~[\"bcast\", \"on\"], \"prefixes\": [\"following:\"], \"redirect\": 0}";
    assert_eq!(client.call("CLIENT TRACKINGINFO"), on);
}

#[test]
fn wrong_calls_change_nothing() {
    let scene = Scene::new();
    let mut client = scene.server.connect();
    let two = client.call("CLIENT TRACKING ON");
    assert!(two.starts_with("-ERR client tracking needs version 3"), "{two}");
    client.hello_three();
    for (call, error) in [
        ("CLIENT TRACKING", "-ERR"),
        ("CLIENT TRACKING MAYBE", "-ERR syntax error"),
        ("CLIENT TRACKING ON NONSENSE", "-ERR syntax error"),
        ("CLIENT TRACKING ON PREFIX", "-ERR syntax error"),
        ("CLIENT TRACKING ON PREFIX a", "-ERR PREFIX option requires BCAST"),
        ("CLIENT TRACKING ON BCAST PREFIX a PREFIX ab", "-ERR prefix 'ab' overlaps"),
        ("CLIENT TRACKING ON BCAST OPTIN", "-ERR OPTIN and OPTOUT are not compatible with BCAST"),
        ("CLIENT TRACKING ON OPTIN OPTOUT", "-ERR you can't specify both"),
        ("CLIENT TRACKING ON REDIRECT 5", "-ERR REDIRECT is not supported"),
        ("CLIENT CACHING YES", "-ERR CLIENT CACHING can be called only"),
    ] {
        let reply = client.call(call);
        assert!(reply.starts_with(error), "{call}: {reply}");
    }
    assert_eq!(client.call("CLIENT GETREDIR"), "-1");
    client.call("CLIENT TRACKING ON OPTIN");
    for (call, error) in [
        ("CLIENT TRACKING ON", "-ERR you can't switch"),
        ("CLIENT TRACKING ON BCAST", "-ERR you can't switch"),
        ("CLIENT CACHING NO", "-ERR CLIENT CACHING NO is only valid"),
        ("CLIENT CACHING PERHAPS", "-ERR syntax error"),
    ] {
        let reply = client.call(call);
        assert!(reply.starts_with(error), "{call}: {reply}");
    }
    assert_eq!(client.call("CLIENT TRACKING ON OPTIN NOLOOP"), "+OK");
}

#[test]
fn users_hear_of_what_they_read_and_of_nothing_else() {
    let guarded = guarded(usual());
    let mut user = guarded.server.connect();
    user.call(&format!("AUTH {}", token(7)));
    user.hello_three();
    let refused = user.call("CLIENT TRACKING ON BCAST");
    assert!(refused.starts_with("-NOPERM this is for services only"), "{refused}");
    assert_eq!(user.call("CLIENT TRACKING ON"), "+OK");
    user.call("SCARD following:7");
    user.call("SADD following:7 8");
    assert_eq!(user.reply(), invalidated(&["following:7"]));
    let mut service = guarded.server.connect();
    service.call(&format!("AUTH {}", guarded.reader));
    service.hello_three();
    assert_eq!(service.call("CLIENT TRACKING ON BCAST"), "+OK");
}

#[test]
fn a_log_that_can_not_be_read_drops_caches_until_it_can() {
    let scene = Scene::new();
    let mut client = scene.tracking("");
    client.call("SCARD following:1");
    scene.server.watch.refuse_watching(Error::TimedOut);
    assert_eq!(client.reply(), EVERYTHING);
    // What is cached while the feed rests is dropped when it begins again, or invalidated after that.
    client.call("SCARD following:1");
    scene.follow(1, 2);
    let push = client.reply();
    assert!(push == EVERYTHING || push == invalidated(&["following:1"]), "{push}");
}

/// A client with a cache of whether users follow others.
struct Cache {
    client: Client,
    known: HashMap<String, String>,
}

impl Cache {
    fn read(&mut self, follower: u64, followee: u64) {
        let call = format!("SISMEMBER following:{follower} {followee}");
        if self.known.contains_key(&call) {
            return;
        }
        self.client.send_all(&[&call]);
        let reply = self.reply();
        self.known.insert(call, reply);
    }

    /// The next reply; what is invalidated before it is dropped.
    fn reply(&mut self) -> String {
        loop {
            match self.client.reply() {
                push if push.starts_with('>') => self.drop_keys(&push),
                reply => return reply,
            }
        }
    }

    fn drop_keys(&mut self, push: &str) {
        if push == EVERYTHING {
            self.known.clear();
        }
        let keys: Vec<&str> = push.split('"').filter(|part| part.starts_with("follow")).collect();
        self.known.retain(|call, _| !keys.iter().any(|key| call.contains(&format!(" {key} "))));
    }
}

#[test]
fn caches_are_right_in_the_end_whatever_races() {
    const USERS: u64 = 8;
    const ROUNDS: u64 = 400;
    let settings = RespSettings { threads: 2, ..usual() };
    let scene = Scene::with(Setup { settings, ..Setup::default() });
    let caches: Vec<Cache> = std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut writer = scene.server.connect();
            for round in 0..ROUNDS {
                let (follower, followee) = (round * 7 % USERS + 1, round * 5 % USERS + 101);
                writer.call(&format!("SADD following:{follower} {followee}"));
                writer.call(&format!("SREM following:{} {followee}", round * 3 % USERS + 1));
            }
        });
        threads.spawn(|| {
            for round in 0..ROUNDS {
                let action = if round % 2 == 0 { EdgeAction::Follow } else { EdgeAction::Unfollow };
                scene.write(action, round * 11 % USERS + 1, round * 13 % USERS + 101);
            }
        });
        let readers: Vec<_> = (0..3)
            .map(|number| {
                let scene = &scene;
                threads.spawn(move || {
                    let mut cache = Cache { client: scene.tracking(""), known: HashMap::new() };
                    for round in 0..ROUNDS * 2 {
                        cache.read((round * 3 + number) % USERS + 1, round * 7 % USERS + 101);
                    }
                    cache
                })
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    let mut truth = scene.server.connect();
    for mut cache in caches {
        loop {
            let calls: Vec<String> = cache.known.keys().cloned().collect();
            let is_stale = |call: &String| truth.call(call) != cache.known[call];
            if !calls.iter().any(is_stale) {
                break;
            }
            // It must still be told.
            let push = cache.client.reply();
            cache.drop_keys(&push);
        }
    }
}

#[test]
fn tracking_that_is_switched_on_again_drops_what_was_cached() {
    let scene = Scene::new();
    let mut client = scene.tracking("");
    client.call("SCARD following:1");
    client.send_all(&["CLIENT TRACKING ON NOLOOP"]);
    assert_eq!([client.reply(), client.reply()], ["+OK", EVERYTHING]);
    client.call("SCARD following:1");
    scene.follow(1, 2);
    assert_eq!(client.reply(), invalidated(&["following:1"]));
}

#[test]
fn what_caching_says_is_about_one_command() {
    let scene = Scene::new();
    let mut client = scene.tracking("OPTOUT");
    for (number, command) in [(1, "SADD following:100 2"), (2, "NONSENSE"), (3, "SCARD"), (4, "EXEC")] {
        let read = format!("SCARD following:{number}");
        client.call_all(&["CLIENT CACHING NO", command, &read]);
        scene.follow(number, 9);
        assert_eq!(client.reply(), invalidated(&[&format!("following:{number}")]), "{command}");
    }
}

#[test]
fn a_key_is_invalidated_by_every_name_that_the_client_has_used() {
    let scene = Scene::new();
    for options in ["", "BCAST PREFIX following:"] {
        let mut client = if options.is_empty() { scene.tracking(options) } else { scene.listening(options) };
        client.call_all(&["SCARD following:7", "SCARD following:007"]);
        scene.follow(7, 9);
        expect(&mut client, &["following:7", "following:007"]);
        scene.write(EdgeAction::Unfollow, 7, 9);
        client.call("CLIENT TRACKING OFF");
    }
    let long = format!("SCARD following:{}7", "0".repeat(50));
    assert!(scene.server.connect().call(&long).contains("at most 40 digits"));
}

#[test]
fn a_writer_that_does_not_hear_of_itself_hears_of_others() {
    let scene = Scene::new();
    let mut client = scene.tracking("NOLOOP");
    let mut other = scene.server.connect();
    client.call("SCARD following:1");
    for round in 0..100 {
        client.call(&format!("SADD following:1 {}", 1_000 + round));
    }
    other.call("SADD following:1 2");
    assert_eq!(client.reply(), invalidated(&["following:1"]));
}
