//! The cache: sets answer when they are whole and new enough, and whatever happens to Redis, never anything wrong.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kinfolk_conformance::suite::{self, CaseScope};
use kinfolk_conformance::{SEED, block_on, edge, graph_histories, user};
use kinfolk_core::graph::{CheckStore, EdgeAction, EdgeStore, FollowerCommand, WriteRequest};
use kinfolk_core::{EdgeKind, Frontier, IdKind, SystemClock};
use kinfolk_fleet::{CacheFeed, CacheVerdict, FillOutcome, Fleet, LogSource, Settings, ShardVerdict};

use crate::conformance::all_pass;
use crate::deployments::{Databases, Projecting, Stores, patient, redis, servers};
use crate::nodes::{ask, keys, nodes};

const IDS: IdKind = IdKind::Integer;
const KIND: EdgeKind = EdgeKind::Follow;
const BYTES: u64 = 1 << 20;

/// Within this, what should happen has happened.
const PATIENCE: Duration = Duration::from_secs(60);

fn write(store: &Fleet, action: EdgeAction, from: u64, to: &[u64]) -> Frontier {
    let command = |&to| FollowerCommand { action, followee: user(IDS, to) };
    let request = WriteRequest {
        kind: KIND,
        follower: user(IDS, from),
        commands: to.iter().map(command).collect(),
        following_limit: 99_999,
    };
    block_on(store.write_one(request)).unwrap().position.into()
}

fn exists(store: &Fleet, from: u64, to: u64, at_least: &Frontier) -> bool {
    block_on(store.contains(KIND, &[edge(IDS, from, to)], at_least)).unwrap()[0]
}

fn verdicts(store: &Fleet, of: CacheVerdict) -> u64 {
    let state = store.layer_states().cache.unwrap();
    state.verdicts.into_iter().find(|(verdict, _)| *verdict == of).unwrap().1
}

fn fills(store: &Fleet, of: FillOutcome) -> u64 {
    let state = store.layer_states().cache.unwrap();
    state.fills.into_iter().find(|(outcome, _)| *outcome == of).unwrap().1
}

fn asked_shards(store: &Fleet) -> u64 {
    let counts = store.layer_states().shards;
    counts.into_iter().filter(|(verdict, _)| *verdict != ShardVerdict::Failed).map(|(_, count)| count).sum()
}

/// Waits until the cache itself answers a check, and returns what it says.
fn cached(store: &Fleet, from: u64, to: u64, at_least: &Frontier) -> bool {
    let began = Instant::now();
    loop {
        let asked = asked_shards(store);
        let answer = exists(store, from, to, at_least);
        if asked_shards(store) == asked {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "{:?}", store.layer_states());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A store with a cache, alone on its deployment, and what it is made of.
fn store(stores: &Stores) -> Fleet {
    stores.make(IDS, Arc::new(SystemClock))
}

fn stores(shards: u16) -> Option<(Stores, String)> {
    let (servers, nodes) = servers().zip(nodes())?;
    Some((Stores::new(servers, shards, Projecting::AtOnce).with_cache(&nodes), nodes))
}

/// The key of one user's set or mark, on a deployment that has had one epoch.
fn key_of(stores: &Stores, nodes: &str, of: u64, name: &str) -> String {
    let identity =
        stores.with_databases(IDS, |databases| databases.number(0, "SELECT identity FROM deployment"));
    let found = keys(nodes, &format!("{{{identity:x}.*:{name}:1:{}", user(IDS, of)));
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

#[test]
fn the_suite_passes_with_all_layers() {
    let Some((servers, nodes)) = servers().zip(nodes()) else { return };
    let stores = Stores::new(servers, 4, Projecting::Late(SEED))
        .with_settings(patient)
        .with_filters(BYTES)
        .with_cache(&nodes);
    let make = |ids, clock| stores.make(ids, clock);
    all_pass(&suite::graph(), CaseScope::all().next().unwrap(), &make);
    graph_histories(&make, Some(&|store| stores.reopen(store)), 8, SEED);
}

#[test]
fn a_set_answers_for_all_its_follower_and_follows_the_changes() {
    let Some((stores, _)) = stores(4) else { return };
    let store = store(&stores);
    let mut seen = write(&store, EdgeAction::Follow, 1, &[2, 3, 4]);
    assert!(exists(&store, 1, 2, &seen), "the shard says so: nothing is cached yet");
    assert!(cached(&store, 1, 2, &seen) && cached(&store, 1, 4, &seen) && !cached(&store, 1, 5, &seen));
    let stored = fills(&store, FillOutcome::Stored);
    seen.join(&write(&store, EdgeAction::Unfollow, 1, &[3]));
    assert!(!exists(&store, 1, 3, &seen));
    assert!(!cached(&store, 1, 3, &seen) && cached(&store, 1, 2, &seen));
    seen.join(&write(&store, EdgeAction::Follow, 1, &[5, 3]));
    assert!(cached(&store, 1, 3, &seen) && cached(&store, 1, 5, &seen));
    assert_eq!(fills(&store, FillOutcome::Stored), stored, "the set was changed, not read again");
}

#[test]
fn a_user_who_follows_nobody_is_cached_and_may_begin() {
    let Some((stores, nodes)) = stores(1) else { return };
    let store = store(&stores);
    let mut seen = write(&store, EdgeAction::Follow, 8, &[9]);
    assert!(!cached(&store, 1, 2, &seen));
    seen.join(&write(&store, EdgeAction::Follow, 1, &[2]));
    assert!(cached(&store, 1, 2, &seen) && !cached(&store, 1, 3, &seen));
    // A set that begins with its first member ends with its mark, not never.
    let left = ask(nodes.split(',').next().unwrap(), &["PTTL", &key_of(&stores, &nodes, 1, "set")]);
    assert!(left.parse::<i64>().unwrap() > 0, "{left}");
    seen.join(&write(&store, EdgeAction::Unfollow, 1, &[2]));
    assert!(!cached(&store, 1, 2, &seen));
    assert_eq!(fills(&store, FillOutcome::Stored), 1);
}

/// Checks of many followers are one command for each tag and one statement for each host.
#[test]
fn many_checks_at_once_are_answered_in_their_order() {
    let Some((stores, _)) = stores(8) else { return };
    let store = store(&stores);
    let mut seen = Frontier::default();
    for from in 0..40 {
        seen.join(&write(&store, EdgeAction::Follow, from, &[100 + from, 200]));
    }
    let pairs: Vec<_> = (0..400).map(|number| (number % 40, 100 + number / 7 % 101)).collect();
    let edges: Vec<_> = pairs.iter().map(|&(from, to)| edge(IDS, from, to)).collect();
    let expected: Vec<bool> = pairs.iter().map(|&(from, to)| to == 100 + from || to == 200).collect();
    let began = Instant::now();
    loop {
        let asked = asked_shards(&store);
        assert_eq!(block_on(store.contains(KIND, &edges, &seen)).unwrap(), expected);
        if asked_shards(&store) == asked {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{:?}", store.layer_states());
    }
    assert_eq!(fills(&store, FillOutcome::Stored), 40, "each follower is read once");
}

/// Redis may evict a key, and anybody may delete one: a set that is not what its mark says does not count.
#[test]
fn a_set_that_has_lost_something_is_not_believed() {
    let Some((stores, nodes)) = stores(2) else { return };
    let store = store(&stores);
    let seen = write(&store, EdgeAction::Follow, 1, &[2, 3]);
    let node = nodes.split(',').next().unwrap();
    type Damage<'a> = &'a dyn Fn(&str, &str) -> String;
    let damages: [Damage<'_>; 5] = [
        &|set, _| ask(node, &["SREM", set, &user(IDS, 2).to_string()]),
        &|set, _| ask(node, &["SADD", set, "77"]),
        &|set, _| ask(node, &["DEL", set]),
        &|_, mark| ask(node, &["DEL", mark]),
        &|_, mark| ask(node, &["SET", mark, "0123 999999 2"]),
    ];
    for (number, damage) in damages.iter().enumerate() {
        assert!(cached(&store, 1, 2, &seen));
        damage(&key_of(&stores, &nodes, 1, "set"), &key_of(&stores, &nodes, 1, "mark"));
        let absent = verdicts(&store, CacheVerdict::Absent);
        assert!(exists(&store, 1, 2, &seen) && !exists(&store, 1, 77, &seen), "damage {number}");
        assert!(verdicts(&store, CacheVerdict::Absent) > absent, "damage {number} was seen");
    }
    // A change finds the damage as well as a check.
    assert!(cached(&store, 1, 2, &seen));
    ask(node, &["DEL", &key_of(&stores, &nodes, 1, "set")]);
    let seen = write(&store, EdgeAction::Follow, 1, &[4]);
    assert!(cached(&store, 1, 2, &seen) && cached(&store, 1, 4, &seen));
}

#[test]
fn a_lost_watermark_takes_all_its_sets_with_it() {
    let Some((stores, nodes)) = stores(1) else { return };
    let store = store(&stores);
    let seen = write(&store, EdgeAction::Follow, 1, &[2]);
    assert!(cached(&store, 1, 2, &seen));
    let begun = store.layer_states().cache.unwrap().generations;
    let set = key_of(&stores, &nodes, 1, "set");
    let watermark = format!("{}:watermark", set.split_once(':').unwrap().0);
    ask(nodes.split(',').next().unwrap(), &["DEL", &watermark]);
    let absent = verdicts(&store, CacheVerdict::Absent);
    // Nobody tells the set of this one any more.
    let seen = write(&store, EdgeAction::Unfollow, 1, &[2]);
    assert!(!exists(&store, 1, 2, &seen));
    assert_eq!(verdicts(&store, CacheVerdict::Absent), absent + 1);
    assert!(!cached(&store, 1, 2, &seen));
    assert_eq!(store.layer_states().cache.unwrap().generations, begun + 1);
}

/// A set that is fed by nobody says only what it showed when it was read.
#[test]
fn a_cache_that_nobody_feeds_is_left_out() {
    let Some((servers, nodes)) = servers().zip(nodes()) else { return };
    let stores = Stores::new(servers, 1, Projecting::Never).with_cache(&nodes);
    let reader = store(&stores);
    let with_cache = |settings: Settings| Settings { redis: Some(redis(&nodes)), ..settings };
    let writer = Fleet::open(with_cache(stores.with_databases(IDS, Databases::settings))).unwrap();
    let feed = CacheFeed::start(&reader, &Arc::new(LogSource::new(&reader)));
    let seen = write(&writer, EdgeAction::Follow, 1, &[2]);
    assert!(cached(&reader, 1, 2, &seen));
    drop(feed);
    let gone = write(&writer, EdgeAction::Unfollow, 1, &[2]);
    assert!(!exists(&reader, 1, 2, &gone), "with its token");
    let began = Instant::now();
    while exists(&reader, 1, 2, Frontier::EMPTY) {
        assert!(began.elapsed() < Duration::from_secs(3), "without one, it is two seconds old at most");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(verdicts(&reader, CacheVerdict::Behind) > 0);
    // A feed that begins later finds the watermark where it is, and goes on from there.
    CacheFeed::start(&reader, &Arc::new(LogSource::new(&reader))).detach();
    assert!(!cached(&reader, 1, 2, &gone));
}

/// An old epoch has other keys.
#[test]
fn an_epoch_begins_with_nothing() {
    let Some((stores, _)) = stores(1) else { return };
    let first = store(&stores);
    let seen = write(&first, EdgeAction::Follow, 1, &[2]);
    assert!(cached(&first, 1, 2, &seen));
    let second = store(&stores);
    assert!(!exists(&second, 1, 2, Frontier::EMPTY));
    assert!(!cached(&second, 1, 2, Frontier::EMPTY));
}

/// Two processes feed the cache and write at once: a check with the token of a write is right in both.
#[test]
fn two_feeds_and_two_readers_agree() {
    let Some((servers, nodes)) = servers().zip(nodes()) else { return };
    let stores = Stores::new(servers, 2, Projecting::Late(SEED)).with_cache(&nodes);
    let reader = store(&stores);
    let with_cache = |settings: Settings| Settings { redis: Some(redis(&nodes)), ..settings };
    let writer = Fleet::open(with_cache(stores.with_databases(IDS, Databases::settings))).unwrap();
    CacheFeed::start(&writer, &Arc::new(LogSource::new(&writer))).detach();
    std::thread::scope(|scope| {
        for from in 0..6_u64 {
            let (reader, writer) = (&reader, &writer);
            scope.spawn(move || {
                for round in 0..150_u64 {
                    let to = 100 + round % 5;
                    let seen = write(writer, EdgeAction::Follow, from, &[to]);
                    assert!(exists(reader, from, to, &seen), "{from} {to}");
                    let seen = write(reader, EdgeAction::Unfollow, from, &[to]);
                    assert!(
                        !exists(writer, from, to, &seen) && !exists(reader, from, to, &seen),
                        "{from} {to}"
                    );
                }
            });
        }
    });
    let answered: u64 =
        [CacheVerdict::Yes, CacheVerdict::No].map(|verdict| verdicts(&reader, verdict)).iter().sum();
    println!("{answered} answers of the cache; {:?}", reader.layer_states());
}

/// A cache that has lost everything is filled from a file, and the changes since the file was made are brought to it.
#[test]
fn a_cache_is_warmed_from_a_file() {
    let Some((stores, nodes)) = stores(4) else { return };
    let store = store(&stores);
    let mut seen = Frontier::default();
    for from in 0..100 {
        seen.join(&write(&store, EdgeAction::Follow, from, &[from + 1, from + 2]));
    }
    let mut file = Vec::new();
    assert_eq!(store.save_sets(&mut file, &|_| {}).unwrap(), 100);
    // Since then, some have changed.
    for from in 0..20 {
        seen.join(&write(&store, EdgeAction::Unfollow, from, &[from + 1]));
        seen.join(&write(&store, EdgeAction::Follow, from, &[from + 3]));
    }
    let warmed = store.warm(&mut &file[..], &|_| {}).unwrap();
    assert_eq!((warmed.stored, warmed.failed), (100, 0), "{warmed:?}");
    for from in 0..100 {
        let changed = from < 20;
        assert_eq!(cached(&store, from, from + 1, &seen), !changed, "{from}");
        assert!(cached(&store, from, from + 2, &seen), "{from}");
        assert_eq!(cached(&store, from, from + 3, &seen), changed, "{from}");
    }
    assert_eq!(fills(&store, FillOutcome::Stored), 0, "no set was read from its shard");
    // Sets that are as new are there already; of a cache that has gone on, the file is too old.
    let again = store.warm(&mut &file[..], &|_| {}).unwrap();
    assert_eq!((again.stored, again.present + again.stale), (0, 100), "{again:?}");
    // Cut off, damaged, or of another epoch: an error that says so, and nothing wrong in the cache.
    let cut = store.warm(&mut &file[..file.len() - 5], &|_| {}).unwrap_err();
    assert!(cut.to_string().contains("damaged or cut off"), "{cut}");
    let other = stores.make(IDS, Arc::new(SystemClock));
    let refused = other.warm(&mut &file[..], &|_| {}).unwrap_err();
    assert!(refused.to_string().contains("another fleet, or from before a restore"), "{refused}");
    _ = nodes;
}

/// A replica that takes over holds a prefix of what its master did: the rest is brought again, and nothing is jumped.
#[test]
fn a_tag_that_has_gone_back_is_brought_forward_again() {
    let Some((stores, nodes)) = stores(1) else { return };
    let store = store(&stores);
    let node = nodes.split(',').next().unwrap();
    let mut seen = write(&store, EdgeAction::Follow, 1, &[2]);
    assert!(cached(&store, 1, 2, &seen));
    let set = key_of(&stores, &nodes, 1, "set");
    let tag = set.split_once(':').unwrap().0;
    let keys = [set.clone(), key_of(&stores, &nodes, 1, "mark"), format!("{tag}:watermark")];
    keys.iter().for_each(|key| _ = ask(node, &["COPY", key, &format!("{key}:before")]));
    seen.join(&write(&store, EdgeAction::Unfollow, 1, &[2]));
    seen.join(&write(&store, EdgeAction::Follow, 1, &[4]));
    assert!(!cached(&store, 1, 2, &seen) && cached(&store, 1, 4, &seen));
    keys.iter().for_each(|key| _ = ask(node, &["COPY", &format!("{key}:before"), key, "REPLACE"]));
    seen.join(&write(&store, EdgeAction::Follow, 1, &[3]));
    assert!(cached(&store, 1, 3, &seen) && !cached(&store, 1, 2, &seen) && cached(&store, 1, 4, &seen));
    assert_eq!(fills(&store, FillOutcome::Stored), 1, "the changes were brought again, not the set");
}

/// A fill that was read before a change and comes after it is refused.
#[test]
fn an_old_fill_does_not_bring_an_edge_back() {
    let Some((stores, nodes)) = stores(1) else { return };
    let store = store(&stores);
    let mut seen = write(&store, EdgeAction::Follow, 1, &[2]);
    let old = seen.iter().next().unwrap().sequence.to_string();
    assert!(cached(&store, 1, 2, &seen));
    let set = key_of(&stores, &nodes, 1, "set");
    let mark = key_of(&stores, &nodes, 1, "mark");
    let watermark = format!("{}:watermark", set.split_once(':').unwrap().0);
    seen.join(&write(&store, EdgeAction::Unfollow, 1, &[2]));
    assert!(!cached(&store, 1, 2, &seen));
    let fill = |position: &str| {
        let script = include_str!("../../src/cache/lua/fill.lua");
        let member = user(IDS, 2).to_string();
        let words =
            ["EVAL", script, "3", &watermark, &mark, &set, position, position, "99", "9999", "9999", &member];
        ask(nodes.split(',').next().unwrap(), &words)
    };
    assert_eq!(fill(&old), "0", "the watermark has passed it");
    assert!(!cached(&store, 1, 2, &seen));
    // The same script stores what is new enough.
    assert_eq!(fill("1000000"), "1");
    assert!(cached(&store, 1, 2, &seen));
}

#[test]
fn users_who_follow_nobody_any_more_have_no_set_to_save() {
    let Some((stores, _)) = stores(1) else { return };
    let store = store(&stores);
    write(&store, EdgeAction::Follow, 1, &[2]);
    write(&store, EdgeAction::Unfollow, 1, &[2]);
    let mut file = Vec::new();
    assert_eq!(store.save_sets(&mut file, &|_| {}).unwrap(), 0);
    assert_eq!(store.warm(&mut &file[..], &|_| {}).unwrap(), kinfolk_fleet::Warmed::default());
}
