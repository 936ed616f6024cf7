//! The follower side: what waits for it and what does not, two owners at once, and gaps that must not be jumped.

use std::sync::Arc;

use kinfolk_conformance::{SimulatedClock, block_on, edge, user};
use kinfolk_core::changes::ChangeLog;
use kinfolk_core::graph::{CheckStore, EdgeAction, EdgeList, EdgeStore, FollowerCommand, Side, WriteRequest};
use kinfolk_core::{EdgeKind, Error, Frontier, Id, IdKind, Position};
use kinfolk_fleet::{Fleet, LogSource, Projection};

use crate::deployments::{Projecting, Stores, servers};
use crate::late::Late;

const KIND: EdgeKind = EdgeKind::Follow;
const IDS: IdKind = IdKind::Integer;

fn id(number: u64) -> Id {
    user(IDS, number)
}

pub fn write(store: &Fleet, action: EdgeAction, from: u64, to: u64) -> Position {
    let commands = vec![FollowerCommand { action, followee: id(to) }];
    let request =
        WriteRequest { kind: KIND, follower: id(from), commands: commands.into(), following_limit: 1_000 };
    block_on(store.write_one(request)).expect("a write").position
}

pub fn followers_of_0(store: &Fleet, at_least: &Frontier) -> kinfolk_core::Result<usize> {
    let list = EdgeList { kind: KIND, side: Side::Followers, of: id(0) };
    Ok(block_on(store.list(list, None, 1_000, at_least))?.len())
}

fn empty_store(stores: &Stores) -> Fleet {
    stores.make(IDS, Arc::new(SimulatedClock::default()))
}

/// A follower's own check needs only its own shard.
#[test]
fn a_check_does_not_wait_for_the_follower_side() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::Never);
    let store = empty_store(&stores);
    assert_eq!(followers_of_0(&store, Frontier::EMPTY).unwrap(), 0);
    write(&store, EdgeAction::Follow, 1, 0);
    assert_eq!(followers_of_0(&store, Frontier::EMPTY).unwrap(), 0, "without a token nothing waits");
    for number in 2..=4 {
        let seen = write(&store, EdgeAction::Follow, number, 0).into();
        let found = block_on(store.contains(KIND, &[edge(IDS, number, 0)], &seen));
        assert!(matches!(found.as_deref(), Ok([true])), "{found:?}");
        let listed = followers_of_0(&store, &seen);
        assert!(matches!(listed, Err(Error::NotYetVisible { .. })), "{listed:?}");
    }
    Projection::start(&store, &Arc::new(LogSource::new(&store))).detach();
    let seen = block_on(store.span()).unwrap().newest;
    assert_eq!(followers_of_0(&store, &seen).unwrap(), 4);
}

/// Three owners of all sources, two of which bring changes late, twice and with gaps.
#[test]
fn several_owners_of_one_source_are_harmless() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::AtOnce);
    let store = empty_store(&stores);
    let others = [stores.open_beside(3), stores.open_beside(4)];
    let mut follows = [false; 20];
    let mut random = 1_u64;
    for round in 0..400 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let number = 1 + (random >> 33) as usize % 19;
        follows[number] = !follows[number];
        let action = if follows[number] { EdgeAction::Follow } else { EdgeAction::Unfollow };
        let seen = write(&store, action, number as u64, 0).into();
        if round % 40 == 0 {
            followers_of_0(&store, &seen).unwrap();
        }
    }
    let seen = block_on(store.span()).unwrap().newest;
    let expected = follows.iter().filter(|&&follows| follows).count();
    for store in others.iter().chain([&store]) {
        assert_eq!(followers_of_0(store, &seen).unwrap(), expected);
        let counts = block_on(store.counts(KIND, &[id(0)], &seen)).unwrap();
        assert_eq!(counts[0].followers, expected as u64);
    }
}

/// A source that leaves out the first of all changes: it must come from the log.
#[test]
fn a_gap_is_filled_from_the_log() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 1, Projecting::Never);
    let store = empty_store(&stores);
    for number in 1..=30 {
        write(&store, EdgeAction::Follow, number, 0);
    }
    Projection::start(&store, &Arc::new(Late::with_gaps(LogSource::new(&store)))).detach();
    let seen = block_on(store.span()).unwrap().newest;
    assert_eq!(followers_of_0(&store, &seen).unwrap(), 30);
}
