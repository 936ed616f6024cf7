//! A host is replaced by its backup, and a new epoch begins while all processes run: the truth of that host is what the backup has, the
//! other host loses nothing, and lists, counts, checks of all layers and the topic agree exactly.

use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kinfolk_conformance::{block_on, edge};
use kinfolk_core::changes::ChangeLog;
use kinfolk_core::graph::{CheckStore, Edge, EdgeAction};
use kinfolk_core::{Deployment, EdgeKind, Error, Frontier, IdKind, Position, Token};
use kinfolk_fleet::{
    CacheFeed, CacheVerdict, FilterSettings, FilterVerdict, Filtering, Fleet, NewDeployment, Projection,
    Relay, Settings, TopicSource,
};

use crate::audits::{about, audit, converge, whole_log};
use crate::deployments::{Databases, redis, servers};
use crate::kafka::{Topic, brokers};
use crate::nodes::nodes;
use crate::pairs::Server;
use crate::processes::Random;
use crate::story::{Outcome, Story};

const KIND: EdgeKind = EdgeKind::Follow;
const IDS: IdKind = IdKind::Integer;
const SHARDS: u16 = 4;
const USERS: u64 = 32;
const WRITERS: u64 = 4;

/// Within this, what should happen has happened.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something holds.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Writes all the time while some work is done, and until so many more writes are acknowledged.
fn write_during(store: &Fleet, seed: u64, more: u64, work: impl FnOnce()) -> Story {
    let (is_over, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut all = Story::default();
    std::thread::scope(|scope| {
        let write = |writer| {
            let (is_over, acknowledged) = (&is_over, &acknowledged);
            scope.spawn(move || {
                let (mut story, mut random) = (Story::default(), Random(seed + writer));
                while !is_over.load(Ordering::Relaxed) {
                    let from = random.below(USERS / WRITERS) * WRITERS + writer;
                    let to = (from + 1 + random.below(USERS - 1)) % USERS;
                    let action = if random.below(5) < 3 { EdgeAction::Follow } else { EdgeAction::Unfollow };
                    let outcome = story.write(store, action, edge(IDS, from, to));
                    assert!(matches!(outcome, Outcome::Acknowledged(_)), "{outcome:?}");
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                }
                story
            })
        };
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        work();
        let until = acknowledged.load(Ordering::Relaxed) + more;
        wait_until("writes go on", || acknowledged.load(Ordering::Relaxed) >= until);
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| all.append(writer.join().unwrap()));
    });
    all
}

fn pairs() -> Vec<Edge> {
    let others = |from| (0..USERS).filter(move |to| *to != from).map(move |to| edge(IDS, from, to));
    (0..USERS).flat_map(others).collect()
}

fn edges_of_log(store: &Fleet) -> BTreeSet<Edge> {
    let mut edges = BTreeSet::new();
    for (action, edge) in whole_log(store).values().map(about) {
        _ = if action == EdgeAction::Follow { edges.insert(edge) } else { edges.remove(&edge) };
    }
    edges
}

/// How many checks filters and cache have answered.
fn answers(store: &Fleet) -> [u64; 2] {
    let state = store.layer_states();
    let of_filters = state.filters.unwrap().verdicts.into_iter();
    let of_cache = state.cache.unwrap().verdicts.into_iter();
    let is_answer = |verdict| matches!(verdict, CacheVerdict::Yes | CacheVerdict::No);
    [
        of_filters.filter(|(verdict, _)| *verdict == FilterVerdict::No).map(|(_, count)| count).sum(),
        of_cache.filter(|(verdict, _)| is_answer(*verdict)).map(|(_, count)| count).sum(),
    ]
}

/// Every check of a store is what the log says, until filters and cache have answered some of them.
fn check_all(store: &Fleet, seen: &Frontier) {
    let (expected, pairs, before) = (edges_of_log(store), pairs(), answers(store));
    let expected: Vec<bool> = pairs.iter().map(|edge| expected.contains(edge)).collect();
    wait_until("every layer answers", || {
        for token in [Frontier::EMPTY, seen] {
            assert_eq!(block_on(store.contains(KIND, &pairs, token)).unwrap(), expected);
        }
        answers(store).iter().zip(before).all(|(after, before)| *after > before)
    });
}

/// A deployment whose first host can be restored, with everything that runs on it.
struct Fixture {
    reader: Fleet,
    writer: Fleet,
    _relay: Relay,
    _worker: Fleet,
    _topic: Topic,
    databases: Databases,
    server: Server,
}

impl Fixture {
    fn start() -> Option<Self> {
        let ((servers, brokers), nodes) = servers().zip(brokers()).zip(nodes())?;
        let server = Server::start(&["max_connections=200"]);
        let databases = Databases::create(&[servers[0].clone(), server.url().to_owned(), servers[2].clone()]);
        let shards = NonZeroU16::new(SHARDS).unwrap();
        Fleet::init(&databases.settings(), NewDeployment { id_kind: IDS, shards }).unwrap();
        let topic = Topic::create(&brokers, i32::from(SHARDS));
        let settings = Settings { redis: Some(redis(&nodes)), ..databases.settings() };
        let worker = Fleet::open(settings.clone()).unwrap();
        let relay = block_on(Relay::start(&worker, &topic.settings())).unwrap();
        let source = Arc::new(block_on(TopicSource::start(&worker, &topic.settings())).unwrap());
        Projection::start(&worker, &source).detach();
        CacheFeed::start(&worker, &source).detach();
        let reader = Fleet::open(settings).unwrap();
        let source = block_on(TopicSource::start_whole(&reader, &topic.settings())).unwrap();
        let filters = FilterSettings { bytes_max: 1 << 24, folder: None };
        Filtering::start(&reader, &Arc::new(source), filters).detach();
        let writer = Fleet::open(databases.settings()).unwrap();
        Some(Self { reader, writer, _relay: relay, _worker: worker, _topic: topic, databases, server })
    }

    /// Lists, counts and the topic's marks agree with the log, which has exactly these changes.
    fn audit(&self, story: &Story) {
        converge(&self.reader);
        audit(&self.reader, &story.changes());
        story.check(&self.reader);
        let report = self.reader.verify(false, &|_| {}).unwrap();
        assert_eq!(report.difference_count, 0, "{report:?}");
    }
}

/// What is left of a story when each shard ends at a position.
fn kept(story: Story, newest: &Frontier) -> Story {
    let is_kept =
        |position: &Position| newest.get(position.shard).is_some_and(|last| position.sequence <= last);
    let keep = |told: Vec<(Position, EdgeAction, Edge)>| {
        told.into_iter().filter(|(position, ..)| is_kept(position)).collect()
    };
    Story { acknowledged: keep(story.acknowledged), unchanged: keep(story.unchanged), ..story }
}

#[test]
fn everything_agrees_with_a_restored_backup() {
    let Some(mut fixture) = Fixture::start() else { return };
    let server = &fixture.server;
    let mut story = write_during(&fixture.writer, 1, 500, || server.back_up("copy"));
    story.append(write_during(&fixture.writer, 2, 500, || {}));
    fixture.audit(&story);
    let before = block_on(fixture.reader.span()).unwrap().newest;
    check_all(&fixture.reader, &before);
    let old = Token { epoch: fixture.reader.epoch(), frontier: before.clone() };

    fixture.server.restore("copy");
    // The first connections may still lead to the server that was replaced.
    let began = Instant::now();
    while let Err(error) = block_on(fixture.writer.begin_epoch()) {
        assert!(began.elapsed() < PATIENCE, "{error}");
    }
    // A process that has not heard of it finds out.
    let refused = |answer| matches!(answer, Err(Error::TokenFromOtherEpoch));
    let reader = &fixture.reader;
    wait_until("old tokens are refused", || refused(block_on(reader.contains(KIND, &pairs(), &before))));
    assert!(matches!(old.frontier_in(reader.epoch()), Err(Error::TokenFromOtherEpoch)));

    let newest = block_on(reader.span()).unwrap().newest;
    let lost = |position: &Position| position.sequence.0 - newest.get(position.shard).unwrap_or_default().0;
    // Shards are spread over the hosts in turn.
    let lost_of = |host: u16| -> u64 {
        before.iter().filter(|position| position.shard.0 % 2 == host).map(|position| lost(&position)).sum()
    };
    let (of_backup, of_other) = (lost_of(0), lost_of(1));
    println!("the backup has lost {of_backup} changes of its host, and {of_other} of the other one");
    assert!(of_backup > 0 && of_other == 0);
    let mut story = kept(story, &newest);
    fixture.audit(&story);
    check_all(reader, &newest);

    // Positions that were lost are those of other changes now.
    story.append(write_during(&fixture.writer, 3, 1_000, || {}));
    fixture.audit(&story);
    check_all(reader, &block_on(reader.span()).unwrap().newest);
    assert!(fixture.databases.number(1, "SELECT count(*) FROM log") > 0);
}
