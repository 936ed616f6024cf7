//! Checks while Redis, Kafka and the feed fail, and the hosts stay up: each answer is compared with what the acknowledged writes allow.
//! With a token nothing is stale, without one nothing is staler than two seconds, and nothing is ever wrong.
//!
//! Two stores check with filters and cache; a third one writes; a process of its own relays, projects and feeds the cache. Each has
//! connections and knowledge of its own. A fifth of the checks and more are of pairs that were changed within the last five seconds
//! through the store that writes.

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kinfolk_conformance::{block_on, edge, user};
use kinfolk_core::graph::{CheckStore, Edge, EdgeAction, EdgeStore, FollowerCommand, WriteRequest};
use kinfolk_core::{EdgeKind, Frontier, IdKind, Position};
use kinfolk_fleet::{CacheVerdict, FilterSettings, FilterVerdict, Fleet, NewDeployment, ShardVerdict};

use crate::deployments::{Databases, asked, servers};
use crate::history::{History, Read};
use crate::kafka::Cluster;
use crate::layer_faults::{LayerFault, Layers};
use crate::nodes::{Nodes, nodes};
use crate::processes::Random;
use crate::workers::{Worker, reader};

const KIND: EdgeKind = EdgeKind::Follow;
const IDS: IdKind = IdKind::Integer;
const SHARDS: u16 = 8;

/// Users whose pairs change all the time, and users who change only now and then.
const BUSY: u64 = 60;
const QUIET: u64 = 600;
/// Pairs of each user: the first half exists in the beginning.
const PAIRS: u64 = 24;

const WRITERS: u64 = 4;
const READERS: u64 = 3;
/// Rounds of all faults, at most.
const ROUNDS_MAX: u32 = 50;
/// Checks of one call, at most.
const BULK: u64 = 100;

/// What was changed within this is asked for more often.
const RECENT: Duration = Duration::from_secs(5);

/// Everything that can fail, and the stores.
struct Fixture {
    layers: Layers,
    readers: Vec<Fleet>,
    writer: Fleet,
    _databases: Databases,
}

impl Fixture {
    fn start(servers: &[String; 3]) -> Self {
        let nodes = Nodes::start(&["set-max-intset-entries=10000", "cluster-node-timeout=2000"]);
        let kafka = Cluster::start(&[]);
        let databases = Databases::create(servers);
        let settings = databases.settings();
        Fleet::init(&settings, NewDeployment { id_kind: IDS, shards: NonZeroU16::new(SHARDS).unwrap() })
            .unwrap();
        let worker = Worker::start(&settings, kafka.brokers(), nodes.addresses());
        let writer = Fleet::open(settings.clone()).unwrap();
        let filters = FilterSettings { bytes_max: 1 << 26, folder: None };
        let readers = [(), ()].map(|()| {
            let (fleet, filtering) = reader(&settings, kafka.brokers(), nodes.addresses(), filters.clone());
            filtering.detach();
            fleet
        });
        let layers = Layers { workers: vec![worker], nodes, kafka };
        Self { layers, readers: readers.into(), writer, _databases: databases }
    }

    /// How many checks each layer has answered.
    fn answers(&self) -> [u64; 3] {
        let mut sum = [0; 3];
        for state in self.readers.iter().map(Fleet::layer_states) {
            let filters = state.filters.unwrap().verdicts.into_iter();
            sum[0] += filters
                .filter(|(verdict, _)| *verdict == FilterVerdict::No)
                .map(|(_, count)| count)
                .sum::<u64>();
            let cache = state.cache.unwrap().verdicts.into_iter();
            let is_answer = |verdict| matches!(verdict, CacheVerdict::Yes | CacheVerdict::No);
            sum[1] += cache.filter(|(verdict, _)| is_answer(*verdict)).map(|(_, count)| count).sum::<u64>();
            let shards = state.shards.into_iter();
            sum[2] += shards
                .filter(|(verdict, _)| *verdict != ShardVerdict::Failed)
                .map(|(_, count)| count)
                .sum::<u64>();
        }
        sum
    }
}

/// A pair, by its follower and its number there.
type Pair = (u64, u64);

fn edge_of((follower, number): Pair) -> Edge {
    edge(IDS, follower, 1_000_000 + follower * PAIRS + number)
}

/// What all threads share.
struct Load {
    began: Instant,
    ends: AtomicBool,
    pairs: Vec<History>,
    /// What each writer has changed lately.
    recent: Vec<Mutex<Vec<(Instant, Pair)>>>,
    checks: AtomicU64,
    checks_of_recent: AtomicU64,
    checks_with_tokens: AtomicU64,
    /// Calls that were refused: the shard could not be asked.
    refused: AtomicU64,
    writes: AtomicU64,
    wrong: Mutex<Vec<String>>,
}

impl Load {
    fn new() -> Self {
        let exists = |index: u64| index % PAIRS < PAIRS / 2;
        Self {
            began: Instant::now(),
            ends: AtomicBool::new(false),
            pairs: (0..(BUSY + QUIET) * PAIRS).map(|index| History::new(exists(index))).collect(),
            recent: (0..WRITERS).map(|_| Mutex::default()).collect(),
            checks: AtomicU64::new(0),
            checks_of_recent: AtomicU64::new(0),
            checks_with_tokens: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            wrong: Mutex::default(),
        }
    }

    fn history(&self, (follower, number): Pair) -> &History {
        &self.pairs[(follower * PAIRS + number) as usize]
    }

    /// Makes the pairs that exist in the beginning.
    fn prepare(store: &Fleet) {
        for followers in (0..BUSY + QUIET).collect::<Vec<_>>().chunks(100) {
            let requests = followers.iter().map(|&follower| {
                let pairs = (0..PAIRS / 2).map(|number| (follower, number));
                request(follower, pairs.map(edge_of).map(|edge| (EdgeAction::Follow, edge)))
            });
            block_on(store.write(requests.collect())).into_iter().for_each(|receipt| _ = receipt.unwrap());
        }
    }

    /// Changes the pairs of one writer, until the end.
    fn write(&self, store: &Fleet, writer: u64) {
        let mut random = Random(writer + 1);
        while !self.ends.load(Ordering::Relaxed) {
            // Now and then somebody who is quiet.
            let among = if random.below(50) == 0 { BUSY..BUSY + QUIET } else { 0..BUSY };
            let count = (among.end - among.start) / WRITERS;
            let follower = among.start + random.below(count) * WRITERS + writer;
            let pair = (follower, random.below(PAIRS));
            let history = self.history(pair);
            let exists = !history.last();
            history.begin(exists);
            let position = self.try_until_acknowledged(store, pair, exists);
            history.acknowledge(position);
            self.writes.fetch_add(1, Ordering::Relaxed);
            let mut recent = self.recent[writer as usize].lock().unwrap();
            recent.push((Instant::now(), pair));
            if recent.len() > 2_000 {
                recent.drain(..1_000);
            }
            drop(recent);
            std::thread::sleep(Duration::from_millis(4));
        }
    }

    fn try_until_acknowledged(&self, store: &Fleet, pair: Pair, exists: bool) -> Position {
        let action = if exists { EdgeAction::Follow } else { EdgeAction::Unfollow };
        loop {
            match block_on(store.write_one(request(pair.0, [(action, edge_of(pair))]))) {
                Ok(receipt) => return receipt.position,
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// A pair to check, and what its caller has seen.
    fn choose(&self, random: &mut Random) -> (Pair, Option<Position>) {
        let pair = match random.below(100) {
            0..30 => self.recent_pair(random),
            30..45 => Some((random.below(BUSY), random.below(PAIRS))),
            _ => Some((BUSY + random.below(QUIET), random.below(PAIRS))),
        };
        let pair = pair.unwrap_or_else(|| (random.below(BUSY), random.below(PAIRS)));
        let seen = self.history(pair).newest();
        let token = seen.filter(|_| random.below(2) == 0).map(|(_, position)| position);
        (pair, token)
    }

    fn recent_pair(&self, random: &mut Random) -> Option<Pair> {
        let recent = self.recent[random.below(WRITERS) as usize].lock().unwrap();
        let (at, pair) = *recent.get(random.below(recent.len().max(1) as u64) as usize)?;
        // The newest ones, mostly.
        let (at, pair) = if at.elapsed() < RECENT { (at, pair) } else { *recent.last()? };
        (at.elapsed() < RECENT).then_some(pair)
    }

    /// Checks pairs, until the end.
    fn check(&self, store: &Fleet, reader: u64) {
        let mut random = Random(1_000 + reader);
        while !self.ends.load(Ordering::Relaxed) {
            let bulk = if random.below(4) == 0 { 1 } else { BULK };
            let with_tokens = random.below(2) == 0;
            let chosen: Vec<(Pair, Option<Position>)> = (0..bulk).map(|_| self.choose(&mut random)).collect();
            let mut token = Frontier::default();
            if with_tokens {
                chosen
                    .iter()
                    .filter_map(|(_, position)| *position)
                    .for_each(|position| token.advance(position));
            }
            let edges: Vec<Edge> = chosen.iter().map(|(pair, _)| edge_of(*pair)).collect();
            let began = Instant::now();
            let recent = chosen
                .iter()
                .filter(|(pair, _)| self.history(*pair).newest().is_some_and(|(at, _)| at.elapsed() < RECENT))
                .count();
            let found = match &edges[..] {
                // As a RESP connection asks.
                [edge] if let Some(answer) = store.contains_now(KIND, *edge, &token) => Ok(vec![answer]),
                edges => block_on(store.contains(KIND, edges, &token)),
            };
            let Ok(found) = found else {
                self.refused.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let ended = Instant::now();
            self.checks.fetch_add(bulk, Ordering::Relaxed);
            self.checks_of_recent.fetch_add(recent as u64, Ordering::Relaxed);
            self.checks_with_tokens.fetch_add(if with_tokens { bulk } else { 0 }, Ordering::Relaxed);
            for ((pair, _), answer) in chosen.into_iter().zip(found) {
                let shard = store.shard_of(user(IDS, pair.0));
                let token = token.get(shard).map(|sequence| sequence.on(shard));
                self.judge(pair, Read { began, ended, token }, answer);
            }
        }
    }

    fn judge(&self, pair: Pair, read: Read, answer: bool) {
        if !self.history(pair).allows(read, answer) {
            let history = self.history(pair).describe(read, self.began);
            self.wrong.lock().unwrap().push(format!("{pair:?} {answer} {history}"));
        }
    }
}

fn request(follower: u64, commands: impl IntoIterator<Item = (EdgeAction, Edge)>) -> WriteRequest {
    let command = |(action, edge): (EdgeAction, Edge)| FollowerCommand { action, followee: edge.followee };
    WriteRequest {
        kind: KIND,
        follower: user(IDS, follower),
        commands: commands.into_iter().map(command).collect(),
        following_limit: 10_000,
    }
}

/// When nobody has written for two seconds, every answer is the last state of its pair.
fn converged(fixture: &Fixture, load: &Load) {
    std::thread::sleep(Duration::from_millis(2_100));
    let began = Instant::now();
    let pairs: Vec<Pair> =
        (0..BUSY + QUIET).flat_map(|of| (0..PAIRS).map(move |number| (of, number))).collect();
    for (number, reader) in fixture.readers.iter().enumerate() {
        for pairs in pairs.chunks(500) {
            let edges: Vec<Edge> = pairs.iter().map(|&pair| edge_of(pair)).collect();
            let expected: Vec<bool> = pairs.iter().map(|&pair| load.history(pair).last()).collect();
            // A host may still be busy with what came before.
            let found = loop {
                match block_on(reader.contains(KIND, &edges, Frontier::EMPTY)) {
                    Ok(found) => break found,
                    Err(error) => assert!(began.elapsed() < Duration::from_secs(30), "{error}"),
                }
            };
            assert!(found == expected, "reader {number} does not show the last writes");
        }
    }
}

/// Checks go on while faults come one after another, in rounds of all kinds.
#[test]
fn answers_are_right_whatever_fails() {
    let Some(servers) = servers().filter(|_| nodes().is_some()) else { return };
    let (checks_min, answers_min) = (asked("KINFOLK_CHECKS", 1), asked("KINFOLK_CHECKS_BY_LAYER", 1));
    let lasts = Duration::from_secs(asked("KINFOLK_CHECK_FAULT_SECONDS", 2));
    let mut fixture = Fixture::start(&servers);
    Load::prepare(&fixture.writer);
    // From then on, everybody sees what was there in the beginning.
    std::thread::sleep(Duration::from_millis(2_100));
    let load = Load::new();
    let (writer, readers) = (fixture.writer.clone(), fixture.readers.clone());
    let mut by_fault: BTreeMap<LayerFault, [u64; 3]> = BTreeMap::new();
    let mut rounds = 0;
    std::thread::scope(|scope| {
        let load = &load;
        for number in 0..WRITERS {
            let writer = &writer;
            scope.spawn(move || load.write(writer, number));
        }
        for number in 0..READERS {
            let reader = &readers[number as usize % readers.len()];
            scope.spawn(move || load.check(reader, number));
        }
        // However the campaign ends, its threads do.
        let _end = EndOnDrop(&load.ends);
        let mut random = Random(20_261_117);
        let is_enough = |by_fault: &BTreeMap<LayerFault, [u64; 3]>| {
            let covers = |answers: &[u64; 3]| answers.iter().all(|&count| count >= answers_min);
            load.checks.load(Ordering::Relaxed) >= checks_min
                && LayerFault::ALL.iter().all(|fault| by_fault.get(fault).is_some_and(covers))
        };
        while !is_enough(&by_fault) && load.wrong.lock().unwrap().is_empty() {
            rounds += 1;
            assert!(rounds <= ROUNDS_MAX, "too few checks or answers of a layer: {by_fault:?}");
            for fault in LayerFault::ALL {
                let before = fixture.answers();
                fault.inject(&mut fixture.layers, &mut random, lasts);
                // What the fault has left behind belongs to it.
                std::thread::sleep(lasts / 2);
                let after = fixture.answers();
                let sum = by_fault.entry(fault).or_default();
                (0..3).for_each(|layer| sum[layer] += after[layer] - before[layer]);
            }
        }
    });
    report(&fixture, &load, &by_fault, rounds);
    let wrong = load.wrong.lock().unwrap();
    assert!(wrong.is_empty(), "{} answers are wrong, the first: {}", wrong.len(), wrong[0]);
    let checks = load.checks.load(Ordering::Relaxed);
    assert!(
        load.checks_of_recent.load(Ordering::Relaxed) * 5 >= checks,
        "too few checks are of recent changes"
    );
    drop(wrong);
    converged(&fixture, &load);
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn report(fixture: &Fixture, load: &Load, by_fault: &BTreeMap<LayerFault, [u64; 3]>, rounds: u32) {
    let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{} checks in {:?} and {rounds} rounds, {} of pairs changed within 5 s, {} with tokens, {} calls refused; {} writes; {} wrong",
        number(&load.checks),
        load.began.elapsed(),
        number(&load.checks_of_recent),
        number(&load.checks_with_tokens),
        number(&load.refused),
        number(&load.writes),
        load.wrong.lock().unwrap().len(),
    );
    for (fault, [filter, cache, shard]) in by_fault {
        println!("{fault:?}: {filter} answers of filters, {cache} of the cache, {shard} of the shards");
    }
    for reader in &fixture.readers {
        println!("{:?}", reader.layer_states());
    }
}
