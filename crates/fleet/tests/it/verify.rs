//! Exports and verification: every edge once and in order, and each sort of difference is found and repaired.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kinfolk_conformance::{SimulatedClock, block_on, user};
use kinfolk_core::bulk::VerifyReport;
use kinfolk_core::changes::{ChangeBody, ChangeLog};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeList, EdgeStore, Side};
use kinfolk_core::{EdgeKind, Frontier, Id, IdKind, Timestamp};
use kinfolk_fleet::{Fleet, LogSource, Projection};

use crate::deployments::{Databases, Projecting, Stores, servers};
use crate::projection::write;

const IDS: IdKind = IdKind::Integer;
const KIND: EdgeKind = EdgeKind::Follow;
const USERS: u64 = 40;

/// Users 0 to 39, each following the next five.
pub fn populated(stores: &Stores) -> Arc<Fleet> {
    let store = Arc::new(stores.make(IDS, Arc::new(SimulatedClock::default())));
    for from in 0..USERS {
        for step in 1..=5 {
            write(&store, EdgeAction::Follow, from, (from + step) % USERS);
        }
    }
    wait_until_projected(&store);
    store
}

/// Any list of the follower side waits for all marks of its host.
pub fn wait_until_projected(store: &Fleet) {
    let newest = block_on(store.span()).unwrap().newest;
    for number in 0..USERS {
        let of = user(IDS, number);
        block_on(store.list(EdgeList { kind: KIND, side: Side::Followers, of }, None, 1, &newest)).unwrap();
    }
}

pub fn verify(store: &Fleet, repair: bool) -> VerifyReport {
    store.verify(repair, &|_| {}).unwrap()
}

pub fn in_both(databases: &Databases, sql: &str) {
    databases.execute(1, sql);
    databases.execute(2, sql);
}

/// The whole follower side is gone, and comes back by one command while others write.
#[test]
fn the_follower_side_is_rebuilt_under_load() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::AtOnce);
    let store = populated(&stores);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                let action = if round % 2 == 0 { EdgeAction::Unfollow } else { EdgeAction::Follow };
                for number in 0..USERS {
                    write(&store, action, number, (number + 1) % USERS);
                }
                if ends.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        stores.with_databases(IDS, |databases| in_both(databases, "TRUNCATE followers, follower_counts"));
        let report = verify(&store, true);
        assert!(report.repaired && report.difference_count >= USERS * 4, "{report:?}");
        ends.store(true, Ordering::Relaxed);
    });
    wait_until_projected(&store);
    assert_eq!(verify(&store, false).difference_count, 0);
}

#[test]
fn an_export_has_every_edge_once_and_in_order() {
    let Some(servers) = servers() else { return };
    for shards in [1, 4, 64] {
        let stores = Stores::new(servers.clone(), shards, Projecting::Never);
        for ids in [IDS, IdKind::Uuid] {
            let store = Arc::new(stores.make(ids, Arc::new(SimulatedClock::default())));
            let options = kinfolk_core::bulk::ImportOptions {
                kind: KIND,
                following_limit: None,
                fingerprint: "exported".into(),
                sort_memory: 0,
            };
            let mut import = store.import(&options).unwrap();
            let mut expected: Vec<(Edge, Timestamp)> = Vec::new();
            // More than the pages of one shard hold.
            for number in 0..3_000 * u64::from(shards).min(4) {
                let edge = kinfolk_conformance::edge(ids, number % 97, 100 + number / 97);
                let since = Timestamp::from_millis(1 + number);
                import.push(edge, Some(since)).unwrap();
                expected.push((edge, since));
            }
            import.finish(&|_| {}).unwrap();
            expected.sort_unstable();
            let exported: Vec<_> = store.edges(KIND).unwrap().map(Result::unwrap).collect();
            assert_eq!(exported, expected);
            assert_eq!(store.edges(EdgeKind::Block).unwrap().count(), 0);
        }
    }
}

#[test]
fn a_sound_fleet_has_no_differences() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::AtOnce);
    let report = verify(&populated(&stores), false);
    assert_eq!(report.differences, [] as [String; 0]);
    assert_eq!((report.edges, report.users, report.difference_count), (USERS * 5, USERS, 0));
}

/// What each sort of damage is, and what it is called in the report.
const DAMAGE: [(&str, &str); 8] = [
    ("UPDATE users SET following = following + 3 WHERE id % 7 = 1", "followees"),
    ("DELETE FROM users WHERE id % 7 = 2", "followees"),
    ("INSERT INTO users SELECT shard, 1, 1000 + shard, 4, 0 FROM shards", "followees"),
    ("UPDATE follower_counts SET count = count - 1 WHERE followee % 7 = 3", "followers"),
    ("INSERT INTO follower_counts SELECT shard, 1, 1000 + shard, 0, 4 FROM shards", "followers"),
    ("DELETE FROM followers WHERE follower % 7 = 4", "follower side"),
    ("UPDATE followers SET since = since + 9 WHERE follower % 7 = 5", "follower side"),
    (
        "INSERT INTO followers SELECT shard, kind, followee, follower + 500, since, source, sequence
         FROM followers WHERE follower % 7 = 6",
        "follower side",
    ),
];

#[test]
fn each_sort_of_difference_is_found_and_repaired() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::AtOnce);
    let store = populated(&stores);
    for (damage, name) in DAMAGE {
        stores.with_databases(IDS, |databases| in_both(databases, damage));
        let found = verify(&store, false);
        assert!(found.difference_count > 0 && !found.repaired, "{damage}: {found:?}");
        assert!(found.differences.iter().any(|text| text.contains(name)), "{damage}: {found:?}");
        let again = verify(&store, false);
        assert_eq!(again.difference_count, found.difference_count, "looking repairs nothing: {damage}");
        let repaired = verify(&store, true);
        assert!(repaired.repaired && repaired.difference_count > 0, "{damage}: {repaired:?}");
        assert_eq!(verify(&store, false).difference_count, 0, "{damage}");
    }
    let newest = block_on(store.span()).unwrap().newest;
    for number in 0..USERS {
        let counts = block_on(store.counts(KIND, &[user(IDS, number)], &newest)).unwrap()[0];
        assert_eq!((counts.following, counts.followers), (5, 5), "of {number}");
    }
}

/// The log of one shard loses changes that no host shows yet: projection stops at the gap until it is filled, and the edges are
/// taken from the truth.
#[test]
fn a_gap_in_a_log_is_found_and_filled() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 1, Projecting::Never);
    let store = Arc::new(stores.make(IDS, Arc::new(SimulatedClock::default())));
    for number in 1..=30 {
        write(&store, EdgeAction::Follow, number, 0);
    }
    let lose = "DELETE FROM log WHERE sequence BETWEEN 10 AND 12";
    stores.with_databases(IDS, |databases| databases.execute(1, lose));
    let found = verify(&store, false);
    assert_eq!(found.differences, ["the log of shard 0 goes from 9 to 13"]);
    assert!(verify(&store, true).repaired);
    let log = block_on(store.changes(&Frontier::default(), 100)).unwrap().changes;
    let lost = log.iter().filter(|change| matches!(change.body, ChangeBody::Imported { .. })).count();
    assert_eq!((log.len(), lost), (30, 3), "consumers are told to read the graph afresh");

    Projection::start(&store, &Arc::new(LogSource::new(&store))).detach();
    let newest = block_on(store.span()).unwrap().newest;
    let followers = EdgeList { kind: KIND, side: Side::Followers, of: user(IDS, 0) };
    let listed = || -> Vec<Id> {
        let entries = block_on(store.list(followers, None, 100, &newest)).unwrap();
        entries.into_iter().map(|entry| entry.id).collect()
    };
    assert_eq!(listed().len(), 27);
    assert_eq!(verify(&store, true).difference_count, 3, "the edges whose changes were lost");
    assert_eq!(listed().len(), 30);
    assert_eq!(block_on(store.counts(KIND, &[user(IDS, 0)], &newest)).unwrap()[0].followers, 30);
}

/// Verification beside writes and a projection that is late: nothing is a difference that is only on its way.
#[test]
fn changes_on_their_way_are_not_differences() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::Late(7));
    let store = populated(&stores);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..600 {
                let action = if round % 2 == 0 { EdgeAction::Unfollow } else { EdgeAction::Follow };
                let from = round / 2 % USERS;
                write(&store, action, from, (from + 1) % USERS);
            }
        });
        while !writer.is_finished() {
            let report = verify(&store, true);
            assert_eq!(report.difference_count, 0, "{report:?}");
        }
    });
    wait_until_projected(&store);
    assert_eq!(verify(&store, false).difference_count, 0);
}
