//! What must hold once nobody writes any more, whatever has failed before: log, lists, counts and topic tell one story, in which
//! everything that was acknowledged happens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use kinfolk_api::Event;
use kinfolk_conformance::block_on;
use kinfolk_core::changes::{Change, ChangeBody, ChangeLog};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeList, EdgeStore, Side};
use kinfolk_core::{EdgeKind, Frontier, Id, Sequence, Shard};
use kinfolk_fleet::Fleet;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::metadata::MetadataPartition;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::processes::Acknowledged;

const KIND: EdgeKind = EdgeKind::Follow;
pub const TOPIC: &str = "kinfolk.changes";

/// Everything must be right so soon after the last fault.
const CONVERGED: Duration = Duration::from_secs(30);

/// Whether log, lists and counts tell one story, in which everything that was acknowledged happens.
pub fn audit(store: &Fleet, acknowledged: &Acknowledged) {
    // Nobody writes any more, but the last transaction of a killed process may still end: the log is read until it is still.
    let mut newest = block_on(store.span()).unwrap().newest;
    while block_on(store.wait_for_changes(&newest)).unwrap() {
        newest = block_on(store.span()).unwrap().newest;
    }
    let log = whole_log(store);
    audit_order(&log);
    for (position, action, edge) in &acknowledged.changes {
        let found = log.get(&(position.shard, position.sequence)).map(about);
        assert_eq!(found, Some((*action, *edge)), "at {position}");
    }
    let mut edges: BTreeSet<Edge> = BTreeSet::new();
    for change in log.values() {
        let (action, edge) = about(change);
        let is_new = if action == EdgeAction::Follow { edges.insert(edge) } else { edges.remove(&edge) };
        assert!(is_new, "{change:?} changes nothing");
    }
    let users: BTreeSet<Id> =
        log.values().flat_map(|change| [about(change).1.follower, about(change).1.followee]).collect();
    for of in users {
        let counts = block_on(store.counts(KIND, &[of], &newest)).unwrap()[0];
        for side in [Side::Following, Side::Followers] {
            let list = block_on(store.list(EdgeList { kind: KIND, side, of }, None, 1_000, &newest)).unwrap();
            let mut found: Vec<Id> = list.iter().map(|entry| entry.id).collect();
            found.sort_unstable();
            let expected: Vec<Id> = match side {
                Side::Following => {
                    edges.iter().filter(|edge| edge.follower == of).map(|edge| edge.followee).collect()
                }
                Side::Followers => {
                    edges.iter().filter(|edge| edge.followee == of).map(|edge| edge.follower).collect()
                }
            };
            assert_eq!(found, expected, "{side:?} of {of}");
            assert_eq!(counts.on(side), expected.len() as u64, "{side:?} of {of}");
        }
    }
}

/// The sequences of a shard have no gaps, and its times never go back.
fn audit_order(log: &BTreeMap<(Shard, Sequence), Change>) {
    for ((shard, sequence), change) in log {
        let before = sequence.0.checked_sub(1).and_then(|before| log.get(&(*shard, Sequence(before))));
        assert!(before.is_some() || sequence.0 == 1, "shard {} has a gap before {sequence}", shard.0);
        assert!(before.is_none_or(|before| before.at <= change.at), "{change:?} is before {before:?}");
    }
}

pub fn about(change: &Change) -> (EdgeAction, Edge) {
    match change.body {
        ChangeBody::Followed { edge, .. } => (EdgeAction::Follow, edge),
        ChangeBody::Unfollowed { edge, .. } => (EdgeAction::Unfollow, edge),
        _ => panic!("{change:?}"),
    }
}

pub fn whole_log(store: &Fleet) -> BTreeMap<(Shard, Sequence), Change> {
    let (mut log, mut after) = (BTreeMap::new(), Frontier::default());
    loop {
        let page = block_on(store.changes(&after, 1_000)).unwrap();
        if page.changes.is_empty() {
            return log;
        }
        log.extend(
            page.changes
                .into_iter()
                .map(|change| ((change.position.shard, change.position.sequence), change)),
        );
        after = page.next;
    }
}

/// Waits until the topic and every host have all changes.
pub fn converge(store: &Fleet) -> Duration {
    let began = Instant::now();
    loop {
        let status = block_on(store.status()).unwrap();
        let is_done = status
            .shards
            .iter()
            .all(|shard| shard.relay_behind() == Some(0) && shard.projection_behind() == Some(0));
        if is_done {
            return began.elapsed();
        }
        assert!(began.elapsed() < CONVERGED, "{:?}", status.shards);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Reads the topic by the rule for its readers: each change is taken if it is the next one. It must amount to the log.
pub fn audit_topic(store: &Fleet, brokers: &str) {
    let log = whole_log(store);
    let consumer: BaseConsumer =
        ClientConfig::new().set("bootstrap.servers", brokers).set("group.id", "audit").create().unwrap();
    let mut partitions = TopicPartitionList::new();
    let mut left = BTreeMap::new();
    let known = consumer.fetch_metadata(Some(TOPIC), Duration::from_secs(10)).unwrap();
    for partition in known.topics()[0].partitions().iter().map(MetadataPartition::id) {
        partitions.add_partition_offset(TOPIC, partition, Offset::Beginning).unwrap();
        let limit = Duration::from_secs(10);
        let (low, high) = consumer.fetch_watermarks(TOPIC, partition, limit).unwrap();
        left.insert(partition, high - low);
    }
    consumer.assign(&partitions).unwrap();
    let mut taken: BTreeMap<Shard, Sequence> = BTreeMap::new();
    let mut messages = 0;
    while left.values().any(|&left| left > 0) {
        let message = consumer.poll(Duration::from_secs(30)).expect("a message").unwrap();
        messages += 1;
        *left.get_mut(&message.partition()).unwrap() -= 1;
        let event: Event = serde_json::from_slice(message.payload().unwrap()).unwrap();
        let shard = Shard(event.shard);
        let last = taken.entry(shard).or_default();
        if Sequence(event.sequence) != last.next() {
            continue;
        }
        *last = Sequence(event.sequence);
        let (action, edge) = about(&log[&(shard, *last)]);
        let expected = if action == EdgeAction::Follow { "follow" } else { "unfollow" };
        assert_eq!(event.r#type, expected);
        assert_eq!(event.follower.map(Id::from), Some(edge.follower));
        assert_eq!(event.followee.map(Id::from), Some(edge.followee));
    }
    let all: u64 = taken.values().map(|sequence| sequence.0).sum();
    assert_eq!(all, log.len() as u64, "the topic has every change of the log");
    println!("{messages} messages in the topic for {all} changes");
}
