//! What is kept of the log: by age, by size, and never less than a host still needs.

use std::sync::Arc;
use std::time::Duration;

use kinfolk_conformance::{SEED, SimulatedClock, block_on, graph_trims};
use kinfolk_core::changes::ChangeLog;
use kinfolk_core::graph::EdgeAction;
use kinfolk_core::{Error, Frontier, IdKind, Sequence, Shard};
use kinfolk_fleet::{Fleet, LogSource, Projection, Retention, Trimmed};

use crate::deployments::{Projecting, Stores, servers};
use crate::projection::write;

const LONG: Duration = Duration::from_secs(3_600);

#[test]
fn the_oldest_changes_go_but_not_before_every_host_shows_them() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 1, Projecting::Never);
    let clock = Arc::new(SimulatedClock::default());
    let store = stores.make(IdKind::Integer, Arc::<SimulatedClock>::clone(&clock));
    for number in 1..=20 {
        write(&store, EdgeAction::Follow, number, 0);
        clock.advance(60_000);
    }
    let by_size = Retention { age: LONG, entries_max: 15 };
    let held_back = block_on(store.trim_log(by_size)).unwrap();
    assert_eq!(held_back, Trimmed { entries: 0, shards_held_back: 1 }, "no host shows anything yet");

    Projection::start(&store, &Arc::new(LogSource::new(&store))).detach();
    let projected = || {
        let marks = |database| {
            stores.with_databases(IdKind::Integer, |databases| {
                databases.number(database, "SELECT min(sequence) FROM projected")
            })
        };
        // The deployment has one shard, on the first host; a host without shards has marks, too.
        marks(1) == 20 && marks(2) == 20
    };
    while !projected() {}
    assert_eq!(block_on(store.trim_log(by_size)).unwrap().entries, 5);
    // The last ten of twenty were written within ten minutes.
    let by_age = Retention { age: Duration::from_secs(10 * 60), entries_max: 1_000 };
    assert_eq!(block_on(store.trim_log(by_age)).unwrap().entries, 5);
    let span = block_on(store.span()).unwrap();
    assert_eq!((span.trimmed.to_string(), span.newest.to_string()), ("0-10".into(), "0-20".into()));

    let page = block_on(store.changes(&Frontier::default(), 100)).unwrap();
    assert_eq!(page.changes.len(), 10, "a shard that is not named starts at the oldest kept");
    let expired = block_on(store.changes(&Sequence(9).on(Shard(0)).into(), 100));
    assert!(matches!(expired, Err(Error::PositionExpired { .. })), "{expired:?}");
    assert_eq!(block_on(store.changes(&Sequence(10).on(Shard(0)).into(), 100)).unwrap().changes.len(), 10);

    // Everything is too old: the last one stays, and sequences go on from it.
    clock.advance(LONG.as_millis() as u64 * 2);
    assert_eq!(block_on(store.trim_log(Retention { age: LONG, entries_max: 0 })).unwrap().entries, 9);
    assert_eq!(write(&store, EdgeAction::Follow, 99, 0).sequence, Sequence(21));
}

#[test]
fn what_is_kept_can_be_read_while_the_log_is_trimmed() {
    let Some(servers) = servers() else { return };
    for projecting in [Projecting::AtOnce, Projecting::Late(SEED)] {
        let stores = Stores::new(servers.clone(), 4, projecting);
        let retention = Retention { age: LONG, entries_max: 3 };
        let trim = |store: &Fleet| {
            block_on(store.trim_log(retention)).unwrap();
        };
        graph_trims(&|ids, clock| stores.make(ids, clock), &trim, 3, SEED);
    }
}
