//! The bound of reads without a token: a follower side that is over two seconds behind is refused, and nothing else is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kinfolk_conformance::{SimulatedClock, block_on, edge, user};
use kinfolk_core::graph::{CheckStore, EdgeAction, EdgeList, EdgeStore, Side, UserSet};
use kinfolk_core::{EdgeKind, Error, Frontier, IdKind};
use kinfolk_fleet::{Fleet, LogSource, Projection, Settings};

use crate::deployments::{Projecting, Stores, servers};
use crate::projection::{followers_of_0, write};

const KIND: EdgeKind = EdgeKind::Follow;
const IDS: IdKind = IdKind::Integer;
const NOW: &Frontier = Frontier::EMPTY;

fn project(store: &Fleet) -> Projection {
    Projection::start(store, &Arc::new(LogSource::new(store)))
}

/// What comes from the truth alone.
fn own_sides_are_read(store: &Fleet) {
    assert_eq!(block_on(store.contains(KIND, &[edge(IDS, 2, 0)], NOW)).unwrap(), [true]);
    let list = EdgeList { kind: KIND, side: Side::Following, of: user(IDS, 2) };
    assert_eq!(block_on(store.list(list, None, 9, NOW)).unwrap().len(), 1);
    let sets = [1, 2].map(|number| UserSet { side: Side::Following, of: user(IDS, number) });
    assert_eq!(block_on(store.overlap(KIND, &sets, None, 9, NOW)).unwrap().count, 1);
}

/// What needs the follower side.
fn follower_sides_are_refused(store: &Fleet, seen: &Frontier) {
    let counts = block_on(store.counts(KIND, &[user(IDS, 0)], seen));
    assert!(matches!(counts, Err(Error::Unavailable { .. })), "{counts:?}");
    let friends = block_on(store.friends(KIND, user(IDS, 0), None, 9, seen));
    assert!(matches!(friends, Err(Error::Unavailable { .. })), "{friends:?}");
}

#[test]
fn a_follower_side_that_is_late_is_not_read() {
    late_sides_are_refused(None);
}

/// What is kept of an account that is read often is no older than the host may be.
#[test]
fn a_late_follower_side_of_a_hot_account_is_not_read() {
    late_sides_are_refused(Some(1));
}

fn late_sides_are_refused(hot_reads: Option<u32>) {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::Never)
        .with_settings(move |settings| Settings { hot_reads, ..settings });
    let store = stores.make(IDS, Arc::new(SimulatedClock::default()));
    let projection = project(&store);
    let first = write(&store, EdgeAction::Follow, 1, 0).into();
    assert_eq!(followers_of_0(&store, &first).unwrap(), 1);
    assert_eq!(block_on(store.not_ready()).unwrap(), None);

    drop(projection);
    // What it was in the middle of may still come; the write after that is not projected.
    let second = write(&store, EdgeAction::Follow, 2, 0).into();
    let acknowledged = Instant::now();
    let refused = loop {
        let began = Instant::now();
        match followers_of_0(&store, NOW) {
            Ok(1) => {
                assert!(began - acknowledged <= Duration::from_secs(2), "{:?}", began - acknowledged);
            }
            other => break other,
        }
    };
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    own_sides_are_read(&store);
    follower_sides_are_refused(&store, NOW);
    // The token of an older write says nothing about those of others.
    follower_sides_are_refused(&store, &first);
    let asked = followers_of_0(&store, &second);
    assert!(matches!(asked, Err(Error::NotYetVisible { .. })), "{asked:?}");
    assert_eq!(block_on(store.not_ready()).unwrap(), None, "writes and checks are served");

    let _projection = project(&store);
    assert_eq!(followers_of_0(&store, &second).unwrap(), 2);
    assert_eq!(followers_of_0(&store, NOW).unwrap(), 2);
}
