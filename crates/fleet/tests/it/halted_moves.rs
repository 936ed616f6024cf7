//! A move that stands still, because its process has died or was stopped, costs the other shards nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kinfolk_conformance::{block_on, edge, user};
use kinfolk_core::graph::{EdgeAction, EdgeList, EdgeStore, FollowerCommand, Side, WriteRequest};
use kinfolk_core::{Error, Frontier};
use kinfolk_fleet::{Fleet, Settings};
use rustix::process::Signal;

use crate::deployments::{Databases, patient, signal};
use crate::moves::{
    IDS, KIND, MOVED, MoverProcess, already_there, audit_moved, deployment, move_to, until_free,
};
use crate::processes::{Acknowledged, USERS, open, write};

/// The database of host b, which has the shard.
const OLD: usize = 2;

fn set_state(databases: &Databases, state: &str) {
    databases.execute(OLD, &format!("UPDATE shards SET state = '{state}' WHERE shard = {}", MOVED.0));
}

/// Users of the shard that is moved, or of all others.
fn users(store: &Fleet, are_moved: bool) -> Vec<u64> {
    (0..USERS).filter(|&id| (store.shard_of(user(IDS, id)) == MOVED) == are_moved).collect()
}

fn request(action: EdgeAction, from: u64, to: u64) -> WriteRequest {
    let commands = vec![FollowerCommand { action, followee: user(IDS, to) }];
    WriteRequest { kind: KIND, follower: user(IDS, from), commands: commands.into(), following_limit: 1_000 }
}

#[test]
fn a_shard_that_takes_no_writes_holds_up_no_other() {
    let Some(databases) = deployment() else { return };
    let store = open(patient(databases.settings()));
    let (moved, others) = (users(&store, true), users(&store, false));
    set_state(&databases, "closing");
    let is_over = Arc::new(AtomicBool::new(false));
    let waiting = {
        let (store, is_over) = (store.clone(), Arc::clone(&is_over));
        let (from, to, other) = (moved[0], moved[1], others[0]);
        std::thread::spawn(move || {
            let follow = || request(EdgeAction::Follow, from, to);
            let unfollow = || request(EdgeAction::Unfollow, from, to);
            let elsewhere = |to| request(EdgeAction::Follow, other, to);
            let requests =
                vec![follow(), elsewhere(from), unfollow(), follow(), elsewhere(to), unfollow(), follow()];
            let receipts = block_on(store.write(requests));
            is_over.store(true, Ordering::Relaxed);
            receipts
        })
    };
    for &from in &others {
        let (_, changed) = write(&store, EdgeAction::Follow, from, moved[2]).unwrap();
        assert!(changed);
    }
    assert!(!is_over.load(Ordering::Relaxed));
    set_state(&databases, "open");
    let receipts: Vec<_> = waiting.join().unwrap().into_iter().map(Result::unwrap).collect();
    assert!(receipts.iter().all(|receipt| receipt.changed[0]), "each has found what the one before has left");
    let own: Vec<_> =
        receipts.iter().map(|receipt| receipt.position).filter(|position| position.shard == MOVED).collect();
    assert!(own.is_sorted() && own.len() == 5, "{own:?}");
    assert_eq!(store.verify(false, &|_| {}).unwrap().difference_count, 0);
}

#[test]
fn writes_to_a_shard_that_stays_closed_are_refused_in_time() {
    let Some(databases) = deployment() else { return };
    let mut settings = databases.settings();
    settings.timeouts.write = Duration::from_millis(300);
    let store = open(settings);
    let moved = users(&store, true);
    set_state(&databases, "closing");
    let requests: Vec<_> = moved[1..].iter().map(|&to| request(EdgeAction::Follow, moved[0], to)).collect();
    for receipt in block_on(store.write(requests)) {
        assert!(matches!(receipt, Err(Error::Unavailable { .. })), "{receipt:?}");
    }
    set_state(&databases, "open");
    assert!(write(&store, EdgeAction::Follow, moved[0], moved[1]).unwrap().1, "nothing was written before");
}

/// Longer than the bound of what the follower side may lack.
#[test]
fn a_shard_that_stays_closed_ends_no_reads_of_others() {
    let Some(databases) = deployment() else { return };
    let store = open(patient(databases.settings()));
    let (moved, others) = (users(&store, true), users(&store, false));
    let followers_of = |id: u64, after: &Frontier| {
        let list = EdgeList { kind: KIND, side: Side::Followers, of: user(IDS, id) };
        block_on(store.list(list, None, 1_000, after))
    };
    let (before, _) = write(&store, EdgeAction::Follow, moved[0], others[0]).unwrap();
    set_state(&databases, "closed");
    std::thread::sleep(Duration::from_secs(3));
    let mut after = Frontier::from(before);
    for &from in &others[1..] {
        after.advance(write(&store, EdgeAction::Follow, from, others[0]).unwrap().0);
    }
    assert_eq!(followers_of(others[0], &after).unwrap().len(), others.len());
    assert!(followers_of(others[0], Frontier::EMPTY).is_ok(), "the bound holds");
    assert!(matches!(followers_of(moved[0], Frontier::EMPTY), Err(Error::Unavailable { .. })));
    // What has been projected meanwhile is there when the shard is open again.
    let (position, _) = write(&store, EdgeAction::Follow, others[0], moved[0]).unwrap();
    set_state(&databases, "open");
    assert_eq!(followers_of(moved[0], &position.into()).unwrap().len(), 1);
    assert_eq!(store.verify(false, &|_| {}).unwrap().difference_count, 0);
}

#[test]
fn a_process_that_is_stopped_in_its_move_is_replaced() {
    replace_a_stopped_process(false);
}

/// When it wakes up, the shard is where it was in the beginning, with another term.
#[test]
fn a_process_that_wakes_up_after_the_shard_has_come_back_removes_nothing() {
    replace_a_stopped_process(true);
}

fn replace_a_stopped_process(comes_back: bool) {
    let Some(databases) = deployment() else { return };
    let store = open(databases.settings());
    let mut acknowledged = Acknowledged::default();
    for from in 0..USERS {
        let to = (from + 1) % USERS;
        let (position, _) = write(&store, EdgeAction::Follow, from, to).unwrap();
        acknowledged.changes.push((position, EdgeAction::Follow, edge(IDS, from, to)));
    }
    let mut mover = MoverProcess::start(&databases, "a");
    while block_on(store.moves()).unwrap().is_empty() {
        std::thread::yield_now();
    }
    signal(mover.0.id().into(), Signal::STOP);
    until_free(|| move_to(&store, "a").or_else(already_there)).unwrap();
    if comes_back {
        move_to(&store, "b").unwrap();
    }
    signal(mover.0.id().into(), Signal::CONT);
    // Whatever it was in the middle of, it changes nothing any more.
    mover.0.wait().unwrap();
    audit_moved(&databases, &store, &acknowledged, if comes_back { "b" } else { "a" });
}

/// As a process leaves it that dies after the catalog names the new host.
#[test]
fn what_is_left_of_a_shard_on_its_old_host_holds_up_nobody() {
    let Some(databases) = deployment() else { return };
    let store = open(patient(databases.settings()));
    let others = users(&store, false);
    move_to(&store, "a").unwrap();
    databases.execute(0, "INSERT INTO moves (shard, from_host, to_host, term) VALUES (1, 'b', 'a', 1)");
    databases.execute(
        OLD,
        "INSERT INTO outgoing (shard, mover) VALUES (1, 7);
         INSERT INTO shards (shard, epoch, term, state) SELECT 1, epoch, 1, 'closed' FROM shards LIMIT 1",
    );
    let mut after = Frontier::EMPTY.clone();
    for (&from, &to) in others.iter().zip(&others[1..]) {
        after.advance(write(&store, EdgeAction::Follow, from, to).unwrap().0);
        let list = EdgeList { kind: KIND, side: Side::Followers, of: user(IDS, to) };
        assert_eq!(block_on(store.list(list, None, 1_000, &after)).unwrap().len(), 1);
    }
    until_free(|| move_to(&store, "a")).unwrap();
    assert_eq!(databases.number(OLD, "SELECT count(*) FROM shards WHERE shard = 1"), 0);
    assert_eq!(block_on(store.moves()).unwrap(), []);
    assert_eq!(store.verify(false, &|_| {}).unwrap().difference_count, 0);
}

#[test]
fn a_shard_takes_writes_again_although_its_new_host_is_away() {
    let Some(databases) = deployment() else { return };
    let store = open(databases.settings());
    let moved = users(&store, true);
    write(&store, EdgeAction::Follow, moved[0], moved[1]).unwrap();
    // As a process leaves it that dies while the last changes are on their way.
    databases.execute(0, "INSERT INTO moves (shard, from_host, to_host, term) SELECT shard, host, 'a', term FROM shard_map WHERE shard = 1");
    databases.execute(OLD, "INSERT INTO outgoing (shard, mover) VALUES (1, 7)");
    set_state(&databases, "closing");
    let mut hosts = databases.settings().hosts;
    hosts.insert("a".to_owned(), "postgres://nobody@127.0.0.1:1/nothing".to_owned());
    let alone = Fleet::open(Settings { hosts, ..databases.settings() }).unwrap();
    let refused = alone.abort_move(MOVED).unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
    assert!(write(&store, EdgeAction::Unfollow, moved[0], moved[1]).unwrap().1);
    until_free(|| store.abort_move(MOVED)).unwrap();
    assert_eq!(block_on(store.moves()).unwrap(), []);
    assert_eq!(store.verify(false, &|_| {}).unwrap().difference_count, 0);
}
