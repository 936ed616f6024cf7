//! Restores: a backup has lost the newest changes of some shards, and a new epoch makes everything agree with what is left.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroU16;

use kinfolk_conformance::{SEED, block_on, graph_restores};
use kinfolk_core::changes::{Change, ChangeBody, ChangeLog};
use kinfolk_core::graph::{CheckStore, Edge, EdgeAction, EdgeStore, FollowerCommand, WriteRequest};
use kinfolk_core::{Deployment, EdgeKind, Error, Frontier, Id, IdKind, Sequence, Shard, Timestamp};
use kinfolk_fleet::{Fleet, NewDeployment};

use crate::deployments::{Databases, Projecting, Stores, servers};

/// The most changes of a shard that a restore loses.
const LOST_MAX: u64 = 6;

/// Puts every shard back to where it was some changes ago, as a restored backup does, and begins a new epoch.
fn restore(store: &Fleet, databases: &Databases, random: &mut u64) {
    let log = block_on(store.changes(&Frontier::default(), 100_000)).unwrap().changes;
    let newest = block_on(store.span()).unwrap().newest;
    for position in newest.iter() {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let lost = (*random >> 33) % (LOST_MAX.min(position.sequence.0) + 1);
        let kept = Sequence(position.sequence.0 - lost);
        // Shards are spread over the hosts in turn.
        let database = 1 + usize::from(position.shard.0 % 2);
        databases.execute(database, &rewind(position.shard, kept, &log));
    }
    block_on(store.begin_epoch()).unwrap();
}

/// SQL that leaves a shard as it was at a sequence.
fn rewind(Shard(shard): Shard, kept: Sequence, log: &[Change]) -> String {
    let mut edges: BTreeMap<(EdgeKind, Edge), (Timestamp, Sequence)> = BTreeMap::new();
    let mut following: BTreeMap<(EdgeKind, Id), u64> = BTreeMap::new();
    let own =
        log.iter().filter(|change| change.position.shard.0 == shard && change.position.sequence <= kept);
    for change in own {
        match change.body {
            ChangeBody::Followed { kind, edge } => {
                edges.insert((kind, edge), (change.at, change.position.sequence));
                *following.entry((kind, edge.follower)).or_default() += 1;
            }
            ChangeBody::Unfollowed { kind, edge, .. } => {
                edges.remove(&(kind, edge));
                *following.entry((kind, edge.follower)).or_default() -= 1;
            }
            _ => panic!("{change:?}"),
        }
    }
    let mut script = format!(
        "BEGIN; DELETE FROM following WHERE shard = {shard}; DELETE FROM users WHERE shard = {shard};
         DELETE FROM log WHERE shard = {shard} AND sequence > {kept};"
    );
    for ((kind, edge), (since, sequence)) in edges {
        let (kind, Edge { follower, followee }, since) = (kind.number(), edge, since.millis());
        script.push_str(&format!(
            "INSERT INTO following VALUES ({shard}, {kind}, '{follower}', '{followee}', {since}, {sequence});"
        ));
    }
    for ((kind, id), count) in following {
        script
            .push_str(&format!("INSERT INTO users VALUES ({shard}, {}, '{id}', {count}, 0);", kind.number()));
    }
    script + "COMMIT"
}

#[test]
fn everything_agrees_with_what_a_restore_has_left() {
    let Some(servers) = servers() else { return };
    for projecting in [Projecting::AtOnce, Projecting::Late(SEED)] {
        let stores = Stores::new(servers.clone(), 4, projecting);
        let random = RefCell::new(SEED);
        let restore = |store: &Fleet| {
            stores.with_databases(store.id_kind(), |databases| {
                restore(store, databases, &mut random.borrow_mut());
            });
        };
        graph_restores(&|ids, clock| stores.make(ids, clock), &restore, 12, SEED);
    }
}

#[test]
fn what_was_seen_in_another_epoch_is_refused_by_processes_that_have_not_heard_of_the_new_one() {
    let Some(servers) = servers() else { return };
    let databases = Databases::create(&servers);
    let shards = NonZeroU16::new(4).unwrap();
    Fleet::init(&databases.settings(), NewDeployment { id_kind: IdKind::Integer, shards }).unwrap();
    let [one, two, three] = std::array::from_fn(|_| Fleet::open(databases.settings()).unwrap());
    let (kind, edge) = (EdgeKind::Follow, Edge { follower: Id::Integer(1), followee: Id::Integer(2) });
    let command = FollowerCommand { action: EdgeAction::Follow, followee: edge.followee };
    let request =
        WriteRequest { kind, follower: edge.follower, commands: [command].into(), following_limit: 10 };
    let written = block_on(one.write(vec![request])).remove(0).unwrap();
    let seen = Frontier::from(written.position);
    block_on(three.begin_epoch()).unwrap();
    let refused = |error: Option<Error>| matches!(error, Some(Error::TokenFromOtherEpoch));
    assert!(refused(block_on(one.contains(kind, &[edge], &seen)).err()));
    assert!(refused(block_on(two.changes(&seen, 10)).err()));
    for store in [&one, &two] {
        assert_eq!(store.epoch(), three.epoch());
        assert_eq!(block_on(store.contains(kind, &[edge], Frontier::EMPTY)).unwrap(), [true]);
    }
}
