//! Imports: what counts, that nothing shows before all of it is staged, and that a stopped one goes on where it was.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Stdio;
use std::sync::Arc;

use kinfolk_conformance::{SimulatedClock, block_on, edge, user};
use kinfolk_core::bulk::{ImportOptions, ImportReport};
use kinfolk_core::changes::{ChangeBody, ChangeLog};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeList, EdgeStore, Side};
use kinfolk_core::{EdgeKind, Error, Frontier, IdKind, Timestamp};
use kinfolk_fleet::{Fleet, LogSource, NewDeployment, Projection};

use crate::deployments::{Databases, Projecting, Stores, process, servers, settings_of_process};
use crate::projection::write;

const KIND: EdgeKind = EdgeKind::Follow;

fn options(fingerprint: &str) -> ImportOptions {
    ImportOptions { kind: KIND, following_limit: None, fingerprint: fingerprint.into(), sort_memory: 1 << 20 }
}

fn empty_store(stores: &Stores, ids: IdKind) -> Arc<Fleet> {
    Arc::new(stores.make(ids, Arc::new(SimulatedClock::default())))
}

/// Edges of 100 users, each in its place.
fn many(ids: IdKind, count: u64) -> impl Iterator<Item = Edge> {
    (0..count).map(move |number| edge(ids, number % 100, 1_000 + number / 100))
}

fn import(store: &Arc<Fleet>, name: &str, edges: impl Iterator<Item = Edge>) -> ImportReport {
    let mut import = store.import(&options(name)).unwrap();
    let taken = import.taken() as usize;
    edges.skip(taken).for_each(|edge| import.push(edge, None).unwrap());
    import.finish(&|_| {}).unwrap()
}

fn staged(stores: &Stores, ids: IdKind) -> i64 {
    let text = "SELECT (SELECT count(*) FROM staged_edges) + (SELECT count(*) FROM import)";
    stores.with_databases(ids, |databases| databases.number(1, text) + databases.number(2, text))
}

fn following(store: &Fleet, ids: IdKind, number: u64, at_least: &Frontier) -> Vec<(u64, kinfolk_core::Id)> {
    let list = EdgeList { kind: KIND, side: Side::Following, of: user(ids, number) };
    let entries = block_on(store.list(list, None, 1_000, at_least)).unwrap();
    entries.into_iter().map(|entry| (entry.since.millis(), entry.id)).collect()
}

/// The rules of the embedded store: an edge that exists stays, of several lines the earliest counts, and a follower with too
/// many edges keeps the earliest.
#[test]
fn the_earliest_edges_count_and_existing_ones_stay() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::AtOnce);
    for ids in [IdKind::Integer, IdKind::Uuid] {
        let clock = Arc::new(SimulatedClock::default());
        let store = Arc::new(stores.make(ids, Arc::<SimulatedClock>::clone(&clock)));
        let first = edge(ids, 1, 2);
        let request = kinfolk_core::graph::WriteRequest {
            kind: KIND,
            follower: first.follower,
            commands: [kinfolk_core::graph::FollowerCommand {
                action: EdgeAction::Follow,
                followee: first.followee,
            }]
            .into(),
            following_limit: 9,
        };
        block_on(store.write_one(request)).unwrap();
        let existing = following(&store, ids, 1, Frontier::EMPTY);
        clock.advance(1_000);
        let limited = ImportOptions { following_limit: Some(3), ..options("rules") };
        let mut import = store.import(&limited).unwrap();
        let lines = [
            (1, 2, Some(5)),
            (1, 1, None),
            (1, 9, None),
            (1, 4, Some(70)),
            (1, 3, Some(80)),
            (1, 3, Some(60)),
            (7, 1, Some(50)),
        ];
        for (from, to, since) in lines {
            import.push(edge(ids, from, to), since.map(Timestamp::from_millis)).unwrap();
        }
        let report = import.finish(&|_| {}).unwrap();
        let seen = report.frontier.clone();
        let expected =
            ImportReport { added: 3, self_follows: 1, duplicates: 2, over_limit: 1, frontier: seen.clone() };
        assert_eq!(report, expected);
        let expected = [existing[0], (70, user(ids, 4)), (60, user(ids, 3))];
        assert_eq!(following(&store, ids, 1, &seen), expected);
        let followers = EdgeList { kind: KIND, side: Side::Followers, of: user(ids, 3) };
        let listed = block_on(store.list(followers, None, 9, &seen)).unwrap();
        assert_eq!((listed[0].since.millis(), listed[0].id), (60, user(ids, 1)), "projected with its time");
        let counts = block_on(store.counts(KIND, &[user(ids, 1)], &seen)).unwrap()[0];
        assert_eq!((counts.following, counts.followers), (3, 1));
        let log = block_on(store.changes(&Frontier::default(), 100)).unwrap().changes;
        let follows = log.iter().filter(|change| matches!(change.body, ChangeBody::Followed { .. })).count();
        assert_eq!((follows, log.len()), (4, 4), "an import is ordinary follows in the log");
        assert_eq!(staged(&stores, ids), 0);
    }
}

#[test]
fn what_was_staged_is_not_read_again_and_shows_only_in_the_end() {
    let Some(servers) = servers() else { return };
    let ids = IdKind::Integer;
    let stores = Stores::new(servers, 4, Projecting::AtOnce);
    let store = empty_store(&stores, ids);
    let mut first = store.import(&options("long")).unwrap();
    assert!(matches!(store.import(&options("other")), Err(Error::InUse { .. })));
    many(ids, 60_000).for_each(|edge| first.push(edge, None).unwrap());
    drop(first);
    assert_eq!(following(&store, ids, 1, Frontier::EMPTY), [], "nothing is applied yet");
    let resumed = store.import(&options("long")).unwrap();
    assert_eq!(resumed.taken(), 50_000);
    drop(resumed);
    let report = import(&store, "long", many(ids, 60_000));
    assert_eq!((report.added, report.duplicates), (60_000, 0));
    assert_eq!(following(&store, ids, 1, &report.frontier).len(), 600);
    assert_eq!(
        import(&store, "long", many(ids, 60_000)).duplicates,
        60_000,
        "a second time it is another import"
    );
}

/// A process that stops between two chunks: what is applied is not applied again, even if it was changed since.
#[test]
fn every_edge_is_applied_once() {
    let Some(servers) = servers() else { return };
    let ids = IdKind::Integer;
    let stores = Stores::new(servers, 1, Projecting::AtOnce);
    let store = empty_store(&stores, ids);
    let mut stopped = store.import(&options("once")).unwrap();
    many(ids, 5_000).for_each(|edge| stopped.push(edge, None).unwrap());
    let chunks = Cell::new(0);
    let stop_after_two = |_| {
        chunks.set(chunks.get() + 1);
        assert!(chunks.get() < 2, "stopped");
    };
    catch_unwind(AssertUnwindSafe(|| stopped.finish(&stop_after_two))).unwrap_err();
    assert!(!following(&store, ids, 0, Frontier::EMPTY).is_empty());
    write(&store, EdgeAction::Unfollow, 0, 1_000);
    let report = import(&store, "once", many(ids, 5_000));
    assert_eq!((report.added, report.duplicates), (5_000, 0));
    assert_eq!(following(&store, ids, 0, &report.frontier).len(), 49, "an unfollow meanwhile is not undone");
}

#[test]
fn other_inputs_and_given_up_ones_leave_nothing_staged() {
    let Some(servers) = servers() else { return };
    let ids = IdKind::Integer;
    let stores = Stores::new(servers, 2, Projecting::Never);
    let store = empty_store(&stores, ids);
    let mut given_up = store.import(&options("one")).unwrap();
    many(ids, 50_000).for_each(|edge| given_up.push(edge, None).unwrap());
    assert!(staged(&stores, ids) > 0);
    given_up.abandon().unwrap();
    assert_eq!(staged(&stores, ids), 0);

    // Stopped while it was staged: another import drops it.
    let mut stopped = store.import(&options("two")).unwrap();
    many(ids, 50_000).for_each(|edge| stopped.push(edge, None).unwrap());
    drop(stopped);
    assert_eq!(import(&store, "three", many(ids, 10)).added, 10);
    assert_eq!(staged(&stores, ids), 0);

    // Stopped while it was applied: it has happened, so that another import completes it first.
    let mut stopped = store.import(&options("four")).unwrap();
    many(ids, 5_000).for_each(|edge| stopped.push(edge, None).unwrap());
    catch_unwind(AssertUnwindSafe(|| stopped.finish(&|_| panic!("stopped")))).unwrap_err();
    assert_eq!(import(&store, "five", many(ids, 5_000)).duplicates, 5_000);
    assert_eq!(staged(&stores, ids), 0);
}

/// Set for a process that imports until it is killed.
const CHILD: &str = "KINFOLK_FLEET_IMPORT";
const CHILD_EDGES: u64 = 120_000;
/// By how much further it gets before the next kill. Half of the edges are on each host, and each is counted twice.
const STEP: i64 = 15_000;

#[test]
fn a_process_that_imports() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let store = Arc::new(Fleet::open(settings_of_process()).unwrap());
    let report = import(&store, "killed", many(IdKind::Integer, CHILD_EDGES));
    assert_eq!((report.added, report.duplicates), (CHILD_EDGES, 0));
}

#[test]
fn an_import_that_is_killed_is_completed_by_the_next_run() {
    let Some(servers) = servers() else { return };
    let databases = Databases::create(&servers);
    let settings = databases.settings();
    let shards = NonZeroU16::new(4).unwrap();
    Fleet::init(&settings, NewDeployment { id_kind: IdKind::Integer, shards }).unwrap();
    let store = Arc::new(Fleet::open(settings.clone()).unwrap());
    Projection::start(&store, &Arc::new(LogSource::new(&store))).detach();
    let mut kills = 0;
    for run in 1.. {
        let mut process = process(&settings, "imports::a_process_that_imports")
            .env(CHILD, "1")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Killed further on each time, so that it is hit while it stages and while it applies.
        let progress = "SELECT (SELECT count(*) FROM staged_edges) + (SELECT count(*) FROM log)";
        let is_over = loop {
            match process.try_wait().unwrap() {
                Some(status) => break status.success(),
                None if databases.number(1, progress) > run * STEP => {
                    process.kill().unwrap();
                    process.wait().unwrap();
                    kills += 1;
                    break false;
                }
                None => {}
            }
        };
        if is_over {
            break;
        }
    }
    println!("{kills} kills");
    assert!(kills > 2, "{kills} kills");
    let expected: BTreeMap<u64, usize> = (0..100).map(|number| (number, 1_200)).collect();
    let newest = block_on(store.span()).unwrap().newest;
    let sequences: u64 = newest.iter().map(|position| position.sequence.0).sum();
    assert_eq!(sequences, CHILD_EDGES, "each edge has one entry in the log");
    for (number, count) in expected {
        let of = [user(IdKind::Integer, number)];
        // The projection of so many edges takes a while.
        let counts = loop {
            match block_on(store.counts(KIND, &of, &newest)) {
                Err(Error::NotYetVisible { .. } | Error::Unavailable { .. }) => {}
                other => break other.unwrap()[0],
            }
        };
        assert_eq!(counts.following as usize, count);
    }
}
