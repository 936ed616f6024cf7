//! Filters: they answer what is certain, and nothing that is too old or has been changed. The tests of the cache run the suite with both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kinfolk_conformance::{block_on, edge, user};
use kinfolk_core::graph::{CheckStore, Edge, EdgeAction, EdgeStore, FollowerCommand, WriteRequest};
use kinfolk_core::{EdgeKind, Frontier, IdKind, SystemClock};
use kinfolk_fleet::{FilterSettings, FilterVerdict, Filtering, Fleet, LogSource, TopicSource};

use crate::deployments::{Databases, Projecting, Stores, servers};
use crate::kafka::brokers;

const IDS: IdKind = IdKind::Integer;
const KIND: EdgeKind = EdgeKind::Follow;
const BYTES: u64 = 1 << 20;

fn settings() -> FilterSettings {
    FilterSettings { bytes_max: BYTES, folder: None }
}

/// Within this, what should happen has happened.
const PATIENCE: Duration = Duration::from_secs(60);

fn write(store: &Fleet, action: EdgeAction, from: u64, to: u64) -> Frontier {
    let commands = vec![FollowerCommand { action, followee: user(IDS, to) }];
    let request = WriteRequest {
        kind: KIND,
        follower: user(IDS, from),
        commands: commands.into(),
        following_limit: 99_999,
    };
    block_on(store.write_one(request)).unwrap().position.into()
}

fn count(store: &Fleet, verdict: FilterVerdict) -> u64 {
    store
        .layer_states()
        .filters
        .unwrap()
        .verdicts
        .into_iter()
        .find(|(counted, _)| *counted == verdict)
        .unwrap()
        .1
}

fn exists(store: &Fleet, edge: Edge, at_least: &Frontier) -> bool {
    block_on(store.contains(KIND, &[edge], at_least)).unwrap()[0]
}

fn says(store: &Fleet, from: u64, to: u64, at_least: &Frontier) -> Option<bool> {
    store.contains_now(KIND, edge(IDS, from, to), at_least)
}

/// Waits until the filters say "no" of all these edges without asking anybody.
fn wait_for_no(store: &Fleet, edges: &[(u64, u64)], at_least: &Frontier) {
    let began = Instant::now();
    while !edges.iter().all(|&(from, to)| says(store, from, to, at_least) == Some(false)) {
        assert!(began.elapsed() < PATIENCE, "{:?}", store.layer_states());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_does_not_exist_is_known_without_asking() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::Never).with_filters(BYTES);
    let store = stores.make(IDS, Arc::new(SystemClock));
    let mut seen = Frontier::default();
    for to in 1..=50 {
        seen.join(&write(&store, EdgeAction::Follow, 0, to));
    }
    wait_for_no(&store, &[51, 52, 53, 54].map(|to| (0, to)), &seen);
    assert_eq!(says(&store, 0, 1, &seen), None, "what exists is for the shard to say");
    let before = count(&store, FilterVerdict::No);
    let edges = [edge(IDS, 0, 51), edge(IDS, 0, 1), edge(IDS, 0, 52)];
    assert_eq!(block_on(store.contains(KIND, &edges, &seen)).unwrap(), [false, true, false]);
    assert_eq!(count(&store, FilterVerdict::No) - before, 2);
    // Unfollowed, it is passed on, and the shard says no.
    let after = write(&store, EdgeAction::Unfollow, 0, 1);
    assert!(!exists(&store, edge(IDS, 0, 1), &after));
}

#[test]
fn a_filter_has_what_was_there_before_it_and_begins_afresh_with_an_epoch() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 2, Projecting::Never).with_filters(BYTES);
    let store = stores.make(IDS, Arc::new(SystemClock));
    for from in 0..20 {
        write(&store, EdgeAction::Follow, from, from + 1);
    }
    let store = stores.reopen(store);
    let to_next = |step: u64| -> Vec<(u64, u64)> { (0..20).map(|from| (from, from + step)).collect() };
    wait_for_no(&store, &to_next(2), Frontier::EMPTY);
    assert!((0..20).all(|from| says(&store, from, from + 1, Frontier::EMPTY).is_none()));
    let empty = stores.make(IDS, Arc::new(SystemClock));
    wait_for_no(&empty, &to_next(1), Frontier::EMPTY);
}

#[test]
fn without_memory_nothing_is_covered() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 2, Projecting::Never).with_filters(100);
    let store = stores.make(IDS, Arc::new(SystemClock));
    for to in 1..=20 {
        let seen = write(&store, EdgeAction::Follow, 0, to);
        assert!(!exists(&store, edge(IDS, 0, to + 100), &seen));
    }
    assert_eq!((count(&store, FilterVerdict::No), count(&store, FilterVerdict::Uncovered)), (0, 20));
}

/// Another process writes without pause; each of its acknowledged writes is seen with its token, and without one two seconds
/// later at the latest.
fn answers_are_current(reader: &Fleet, writer: &Fleet) {
    const PAIRS: u64 = 8;
    let is_over = AtomicBool::new(false);
    let by_filter = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for from in 0..PAIRS {
            let (is_over, by_filter) = (&is_over, &by_filter);
            scope.spawn(move || {
                for to in 1_000_u64.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let pair = edge(IDS, from, to);
                    let absent = says(reader, from, to, Frontier::EMPTY);
                    by_filter.fetch_add(u64::from(absent == Some(false)), Ordering::Relaxed);
                    let seen = write(writer, EdgeAction::Follow, from, to);
                    assert!(exists(reader, pair, &seen), "{from} {to} {seen:?}");
                    let gone = write(writer, EdgeAction::Unfollow, from, to);
                    assert!(!exists(reader, pair, &gone), "{from} {to} {gone:?}");
                    let again = write(writer, EdgeAction::Follow, from, to);
                    assert_ne!(says(reader, from, to, &again), Some(false));
                }
            });
        }
        let began = Instant::now();
        while by_filter.load(Ordering::Relaxed) < 200 && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(50));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(by_filter.load(Ordering::Relaxed) >= 200, "{:?}", reader.layer_states());
    // Whatever the filter has heard: what was written two seconds ago is never denied.
    let written = Instant::now();
    write(writer, EdgeAction::Follow, 1, 999);
    while written.elapsed() < Duration::from_millis(2_100) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(exists(reader, edge(IDS, 1, 999), Frontier::EMPTY));
}

#[test]
fn answers_are_current_while_another_process_writes() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::AtOnce).with_filters(BYTES);
    let reader = stores.make(IDS, Arc::new(SystemClock));
    let writer = Fleet::open(stores.with_databases(IDS, Databases::settings)).unwrap();
    answers_are_current(&reader, &writer);
}

/// The feed stands still: from then on the shard is asked for everything that is changed.
#[test]
fn a_filter_that_nobody_feeds_is_left_out() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 1, Projecting::Never);
    let reader = stores.make(IDS, Arc::new(SystemClock));
    let writer = Fleet::open(stores.with_databases(IDS, Databases::settings)).unwrap();
    let filtering = Filtering::start(&reader, &Arc::new(LogSource::new(&reader)), settings());
    wait_for_no(&reader, &[(1, 2)], Frontier::EMPTY);
    drop(filtering);
    let seen = write(&writer, EdgeAction::Follow, 1, 2);
    assert_eq!(says(&reader, 1, 2, &seen), None, "it does not have what the caller has seen");
    let began = Instant::now();
    while says(&reader, 1, 2, Frontier::EMPTY).is_some() {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(exists(&reader, edge(IDS, 1, 2), Frontier::EMPTY));
}

#[test]
fn a_filter_is_fed_by_the_topic() {
    let Some((brokers, servers)) = brokers().zip(servers()) else { return };
    _ = brokers;
    let stores = Stores::new(servers, 4, Projecting::ByTopic);
    let reader = stores.make(IDS, Arc::new(SystemClock));
    let kafka = stores.kafka(IDS);
    let source = block_on(TopicSource::start_whole(&reader, &kafka)).unwrap();
    Filtering::start(&reader, &Arc::new(source), settings()).detach();
    let writer = Fleet::open(stores.with_databases(IDS, Databases::settings)).unwrap();
    answers_are_current(&reader, &writer);
}

/// What a damaged filter denies is found by comparing it with its shard, even if its file has the right checksum.
#[test]
fn a_filter_that_is_wrong_is_found_and_made_again() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 1, Projecting::Never);
    let store = stores.make(IDS, Arc::new(SystemClock));
    for to in 1..=50 {
        write(&store, EdgeAction::Follow, 0, to);
    }
    let folder = std::env::temp_dir().join(format!("filters-{}", std::process::id()));
    let saved = || FilterSettings { bytes_max: BYTES, folder: Some(folder.clone()) };
    let filtering = Filtering::start(&store, &Arc::new(LogSource::new(&store)), saved());
    wait_for_no(&store, &[(0, 51)], Frontier::EMPTY);
    filtering.stop();
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let (head, end) = (16 + 10 * 8, bytes.len() - 8);
    bytes[head..end].fill(0);
    let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(&file, bytes).unwrap();
    let store = stores.reopen(store);
    Filtering::start(&store, &Arc::new(LogSource::new(&store)), saved()).detach();
    let began = Instant::now();
    while store.layer_states().filters.unwrap().damaged == 0 {
        assert!(began.elapsed() < PATIENCE, "{:?}", store.layer_states());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(exists(&store, edge(IDS, 0, 1), Frontier::EMPTY));
    wait_for_no(&store, &[(0, 51)], Frontier::EMPTY);
    assert!((1..=50).all(|to| says(&store, 0, to, Frontier::EMPTY).is_none()), "the new one denies no edge");
    std::fs::remove_dir_all(&folder).unwrap();
}
