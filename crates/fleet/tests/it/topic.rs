//! Kafka in the middle: the same cases and histories as without it, a topic that fits or is refused, and messages that are gone.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_conformance::suite::{self, CaseScope};
use kinfolk_conformance::{
    SEED, block_on, concurrent_histories, concurrent_histories_with_timeouts, graph_histories,
};
use kinfolk_core::graph::EdgeAction;
use kinfolk_core::{Error, IdKind};
use kinfolk_fleet::{
    Fleet, Kafka, LogSource, NewDeployment, Projection, Relay, Retention, Sasl, Settings, TopicSource,
};

use crate::conformance::all_pass;
use crate::deployments::{Databases, Projecting, Stores, patient, servers};
use crate::kafka::{Topic, brokers, new_name};
use crate::projection::write;

const IDS: IdKind = IdKind::Integer;

/// Stores whose follower side comes through Kafka.
fn stores() -> Option<Stores> {
    let (servers, _) = servers().zip(brokers())?;
    Some(Stores::new(servers, 4, Projecting::ByTopic).with_settings(patient))
}

/// With `KINFOLK_FLEET_SUITE=whole` in all settings, otherwise in one of them.
#[test]
fn the_suite_passes_through_kafka() {
    let Some(stores) = stores() else { return };
    let is_whole = std::env::var("KINFOLK_FLEET_SUITE").is_ok_and(|suite| suite == "whole");
    let make = |ids, clock| stores.make(ids, clock);
    for setting in CaseScope::all().take(if is_whole { usize::MAX } else { 1 }) {
        all_pass(&suite::graph(), setting, &make);
        all_pass(&suite::candidates(), setting, &make);
    }
}

#[test]
fn histories_through_kafka_agree_with_the_model() {
    let Some(stores) = stores() else { return };
    let make = |ids, clock| stores.make(ids, clock);
    graph_histories(&make, Some(&|store| stores.reopen(store)), 8, SEED);
    concurrent_histories(&make, 4, SEED);
    concurrent_histories_with_timeouts(&make, 2, SEED);
}

/// A deployment of 4 shards without any process.
fn deployment() -> Option<(Databases, Fleet)> {
    let databases = Databases::create(&servers()?);
    let settings = databases.settings();
    Fleet::init(&settings, NewDeployment { id_kind: IDS, shards: NonZeroU16::new(4).unwrap() }).unwrap();
    let fleet = Fleet::open(settings).unwrap();
    Some((databases, fleet))
}

#[test]
fn a_topic_that_does_not_fit_is_refused() {
    let Some((brokers, (_databases, fleet))) = brokers().zip(deployment()) else { return };
    let topic = Topic::create(&brokers, 3);
    let refusals = [
        block_on(Relay::start(&fleet, &topic.settings())).err(),
        block_on(TopicSource::start(&fleet, &topic.settings())).err(),
    ];
    for refused in refusals {
        let Some(Error::InvalidStore { detail }) = refused else { panic!("{refused:?}") };
        assert!(detail.contains("has 3 partitions, and the fleet has 4 shards"), "{detail}");
    }
    let on_many = Kafka { topic: new_name(), replication: 9, ..Kafka::new(&brokers) };
    let refused = block_on(Relay::start(&fleet, &on_many)).err();
    let Some(Error::InvalidStore { detail }) = refused else { panic!("{refused:?}") };
    assert!(detail.contains("on 9 brokers each"), "{detail}");
}

/// How many changes are in the topic, as the hosts remember it.
fn relayed(fleet: &Fleet) -> u64 {
    let shards = block_on(fleet.status()).unwrap().shards;
    shards.iter().filter_map(|shard| shard.relayed).map(|sequence| sequence.0).sum()
}

/// Waits for a relay to have sent so many changes.
fn wait_for_relayed(fleet: &Fleet, count: u64) {
    while relayed(fleet) < count {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_relay_that_stops_has_marked_what_it_has_sent() {
    let Some((brokers, (_databases, fleet))) = brokers().zip(deployment()) else { return };
    let topic = Topic::create(&brokers, 4);
    let relay = block_on(Relay::start(&fleet, &topic.settings())).unwrap();
    for number in 1..=20 {
        write(&fleet, EdgeAction::Follow, number, 0);
    }
    wait_for_relayed(&fleet, 1);
    block_on(relay.stop()).unwrap();
    for shard in block_on(fleet.status()).unwrap().shards {
        let marked = shard.relayed.map(|sequence| sequence.0 as i64);
        assert_eq!(marked, Some(topic.end(shard.shard.0.into())), "{shard:?}");
    }
    // The hosts end its sessions a moment later.
    while block_on(fleet.status()).unwrap().shards.iter().any(|shard| shard.relay.is_some()) {}
}

/// The log is kept for a relay from its first attempt on, although there is no broker.
#[test]
fn the_log_is_kept_for_a_relay_that_has_never_reached_kafka() {
    let Some((_databases, fleet)) = deployment() else { return };
    Projection::start(&fleet, &Arc::new(LogSource::new(&fleet))).detach();
    let relay = block_on(Relay::start(&fleet, &Kafka::new("127.0.0.1:1"))).unwrap();
    while block_on(fleet.status()).unwrap().shards.iter().any(|shard| shard.relayed.is_none()) {}
    for number in 1..=20 {
        write(&fleet, EdgeAction::Follow, number, 0);
    }
    while block_on(fleet.status()).unwrap().shards.iter().any(|shard| shard.projection_behind() != Some(0)) {}
    let nothing = Retention { age: Duration::ZERO, entries_max: 0 };
    let trimmed = block_on(fleet.trim_log(nothing)).unwrap();
    assert_eq!(trimmed.entries, 0, "{trimmed:?}");
    assert!(trimmed.shards_held_back > 0, "{trimmed:?}");
    while relay.condition().problem().is_none_or(|problem| !problem.contains("Kafka")) {}
}

/// A change that is missing in the log is not jumped: readers of the topic would wait for it.
#[test]
fn a_gap_in_the_log_is_not_relayed() {
    let Some((brokers, (databases, fleet))) = brokers().zip(deployment()) else { return };
    let topic = Topic::create(&brokers, 4);
    let changes: Vec<_> = (1..=5).map(|number| write(&fleet, EdgeAction::Follow, 1, 1 + number)).collect();
    let partition = changes[0].shard.0.into();
    let database = if databases.number(1, "SELECT count(*) FROM log") > 0 { 1 } else { 2 };
    databases.execute(database, "DELETE FROM log WHERE sequence = 3");
    let relay = block_on(Relay::start(&fleet, &topic.settings())).unwrap();
    while relay.condition().problem().is_none_or(|problem| !problem.contains("has a gap")) {}
    while relayed(&fleet) < 2 {}
    assert_eq!(topic.end(partition), 2);
    let repaired = fleet.verify(true, &|_| {}).unwrap();
    assert!(repaired.difference_count > 0, "{repaired:?}");
    wait_for_relayed(&fleet, 5);
    assert_eq!(topic.end(partition), 5);
}

/// Two relays share the shards, and one has them all once the other has gone.
#[test]
fn relays_share_the_shards() {
    let Some((brokers, (databases, fleet))) = brokers().zip(deployment()) else { return };
    let topic = Topic::create(&brokers, 4);
    let other = Fleet::open(databases.settings()).unwrap();
    let relays = [&fleet, &other].map(|fleet| block_on(Relay::start(fleet, &topic.settings())).unwrap());
    // Both are of one process, so that their sessions tell them apart.
    let sessions = |database| {
        let held = "SELECT count(DISTINCT pid) * 100 + count(*) FROM pg_locks
                    WHERE locktype = 'advisory' AND classid = 27495 AND granted
                      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        databases.number(database, held)
    };
    while [sessions(1), sessions(2)] != [202, 202] {
        std::thread::sleep(Duration::from_millis(20));
    }
    let [first, second] = relays;
    block_on(first.stop()).unwrap();
    while [sessions(1), sessions(2)] != [102, 102] {
        std::thread::sleep(Duration::from_millis(20));
    }
    block_on(second.stop()).unwrap();
}

#[test]
fn writes_are_refused_once_the_log_is_full() {
    let Some((databases, fleet)) = deployment() else { return };
    drop(fleet);
    let fleet = Fleet::open(Settings { log_changes_max: 10, ..databases.settings() }).unwrap();
    let refused = (1..).find_map(|number| {
        let commands =
            vec![kinfolk_core::graph::FollowerCommand { action: EdgeAction::Follow, followee: id(number) }];
        let request = kinfolk_core::graph::WriteRequest {
            kind: kinfolk_core::EdgeKind::Follow,
            follower: id(0),
            commands: commands.into(),
            following_limit: 1_000_000,
        };
        block_on(kinfolk_core::graph::EdgeStore::write_one(&fleet, request)).err()
    });
    assert!(matches!(refused, Some(Error::Unavailable { .. })), "{refused:?}");
}

fn id(number: u64) -> kinfolk_core::Id {
    kinfolk_conformance::user(IDS, number)
}

/// Encrypted, with a password, by both mechanisms; a wrong password sends nothing.
#[test]
fn brokers_can_ask_who_it_is() {
    let secure = ["KINFOLK_TEST_KAFKA_SECURE", "KINFOLK_TEST_KAFKA_CA"].map(|name| std::env::var(name).ok());
    let ([Some(secure), Some(ca)], Some(plain)) = (secure, brokers()) else { return };
    let Some((_databases, fleet)) = deployment() else { return };
    let mut sent = 0;
    for mechanism in ["PLAIN", "SCRAM-SHA-256"] {
        let topic = Topic::create(&plain, 4);
        let kafka = |password: &str| Kafka {
            brokers: secure.clone(),
            authorities: Some(ca.clone().into()),
            sasl: Some(Sasl {
                mechanism: mechanism.to_owned(),
                username: "kinfolk".to_owned(),
                password: password.to_owned(),
            }),
            ..topic.settings()
        };
        let stranger = block_on(Relay::start(&fleet, &kafka("wrong"))).unwrap();
        while stranger.condition().problem().is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(stranger);
        sent += 1;
        write(&fleet, EdgeAction::Follow, sent, 0);
        let relay = block_on(Relay::start(&fleet, &kafka("secret"))).unwrap();
        wait_for_relayed(&fleet, sent);
        block_on(relay.stop()).unwrap();
    }
}
