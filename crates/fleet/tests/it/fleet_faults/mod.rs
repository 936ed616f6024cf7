//! The whole fleet while anything fails: two hosts with synchronous standbys, a catalog, a Redis Cluster, Kafka, two processes that
//! relay, project and feed, one store that writes through proxies and two that read by filters and cache.
//!
//! Every answer is compared at once with what the writes allow: with a token nothing is stale, without one nothing is staler than two
//! seconds. In the end the log explains everything that writers were told, and rows, counts, topic and checks agree with it. Nothing
//! repairs anything.
//!
//! `KINFOLK_FLEET_FAULTS` faults are chosen by `KINFOLK_FLEET_SEED`, over at least `KINFOLK_FLEET_OPERATIONS` operations, on
//! `KINFOLK_FLEET_BROKERS` brokers. `KINFOLK_FLEET_ONLY` names the kinds to choose from, with commas between them.

mod clock;
mod faults;
mod load;
mod services;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use kinfolk_conformance::block_on;
use kinfolk_core::changes::ChangeLog;
use kinfolk_core::graph::{Edge, EdgeAction};
use kinfolk_fleet::{FilterSettings, Filtering, Fleet, NewDeployment, Settings};

use self::clock::JumpingClock;
use self::faults::Fault;
use self::load::{IDS, Load, Users};
use self::services::{Service, watch_redis, watch_topic};
use crate::audits::{about, audit, audit_topic, converge, whole_log};
use crate::deployments::{Databases, asked, servers};
use crate::kafka::{Cluster, brokers, new_name};
use crate::layer_faults::Layers;
use crate::lost_commits::Proxies;
use crate::nodes::{Nodes, nodes};
use crate::pairs::{Pair, Server};
use crate::processes::Random;
use crate::story::Story;
use crate::workers::{Worker, reader};

const SHARDS: u16 = 8;

/// Writers of each host.
const WRITERS: usize = 2;

/// From so many faults on, they last longer.
const LONG: u64 = 20;

/// After a fault was undone, everything is served again within this.
const SERVED: Duration = Duration::from_secs(30);

/// So long after the last write, every answer shows it.
const STALENESS: Duration = Duration::from_millis(2_100);

/// Everything that can fail, and the stores.
pub struct Fixture {
    layers: Layers,
    writer: Fleet,
    readers: [Arc<RwLock<Fleet>>; 2],
    filtering: [Option<Filtering>; 2],
    filters: PathBuf,
    clock: Arc<JumpingClock>,
    proxies: Proxies,
    settings: Settings,
    databases: Databases,
    pairs: [Pair; 2],
    catalog: Server,
}

impl Fixture {
    fn start() -> Self {
        let own = ["max_connections=300"];
        let redis = ["set-max-intset-entries=10000", "cluster-node-timeout=2000"];
        let count = asked("KINFOLK_FLEET_BROKERS", 1);
        let (catalog, pairs, nodes, kafka) = std::thread::scope(|scope| {
            let pairs = [(), ()].map(|()| scope.spawn(|| Pair::start(&own)));
            let nodes = scope.spawn(|| Nodes::start(&redis));
            let kafka = scope.spawn(|| Cluster::start(&[&format!("brokers={count}")]));
            let catalog = Server::start(&own);
            (catalog, pairs.map(|pair| pair.join().unwrap()), nodes.join().unwrap(), kafka.join().unwrap())
        });
        let urls = [catalog.url(), pairs[0].url(), pairs[1].url()].map(str::to_owned);
        let databases = Databases::create_on_own(&urls);
        let settings = databases.settings();
        let shards = NonZeroU16::new(SHARDS).unwrap();
        Fleet::init(&settings, NewDeployment { id_kind: IDS, shards }).unwrap();
        let worker = || Worker::start(&settings, kafka.brokers(), nodes.addresses());
        let workers = vec![worker(), worker()];
        let (proxies, clock) = (Proxies::cutting(0), Arc::new(JumpingClock::default()));
        let of_writer = proxies.before_hosts(settings.clone());
        let writer = Fleet::open_with_clock(of_writer, Arc::clone(&clock) as Arc<_>).unwrap();
        let filters = std::env::temp_dir().join(format!("fleet-filters-{}", new_name()));
        let reader = |index| {
            let saved = saved_filters(&filters, index);
            reader(&settings, kafka.brokers(), nodes.addresses(), saved)
        };
        let [(one, of_one), (two, of_two)] = [0, 1].map(reader);
        Self {
            layers: Layers { workers, nodes, kafka },
            writer,
            readers: [one, two].map(|reader| Arc::new(RwLock::new(reader))),
            filtering: [Some(of_one), Some(of_two)],
            filters,
            clock,
            proxies,
            settings,
            databases,
            pairs,
            catalog,
        }
    }

    fn start_worker(&self) -> Worker {
        Worker::start(&self.settings, self.layers.kafka.brokers(), self.layers.nodes.addresses())
    }

    /// As a process that is restarted: it saves its filters, which are then damaged, and starts with them.
    fn restart_reader_with_damaged_filters(&mut self, index: usize) {
        self.filtering[index].take().unwrap().stop();
        let saved = saved_filters(&self.filters, index);
        for file in std::fs::read_dir(saved.folder.as_ref().unwrap()).unwrap() {
            let path = file.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
        let Layers { kafka, nodes, .. } = &self.layers;
        let (fleet, filtering) = reader(&self.settings, kafka.brokers(), nodes.addresses(), saved);
        *self.readers[index].write().unwrap() = fleet;
        self.filtering[index] = Some(filtering);
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // They may never have been saved.
        _ = std::fs::remove_dir_all(&self.filters);
    }
}

fn saved_filters(folder: &std::path::Path, reader: usize) -> FilterSettings {
    FilterSettings { bytes_max: 1 << 24, folder: Some(folder.join(reader.to_string())) }
}

/// What the faults of one kind have interrupted, at most.
#[derive(Default)]
struct Interruptions {
    count: u64,
    write: Duration,
    check: Duration,
    followers: Duration,
    redis: Duration,
    topic: Duration,
}

impl Interruptions {
    fn add(&mut self, found: &[(Service, Duration)]) {
        self.count += 1;
        for (service, longest) in found {
            let known = match service {
                Service::Write(_) => &mut self.write,
                Service::Check(_) => &mut self.check,
                Service::Followers(_) => &mut self.followers,
                Service::Redis => &mut self.redis,
                Service::Topic => &mut self.topic,
            };
            *known = (*known).max(*longest);
        }
    }
}

impl std::fmt::Display for Interruptions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { count, write, check, followers, redis, topic } = self;
        let seconds = [write, check, followers, redis, topic].map(Duration::as_secs_f64);
        let [write, check, followers, redis, topic] = seconds;
        write!(
            out,
            "{count} times; the longest without a write {write:.1} s, a check {check:.1} s, followers {followers:.1} s, \
             Redis {redis:.1} s, the topic {topic:.1} s"
        )
    }
}

/// The next fault: all kinds in an order of the seed, then again in another one.
fn next_fault(left: &mut Vec<Fault>, random: &mut Random) -> Fault {
    if left.is_empty() {
        *left = Fault::all();
    }
    left.swap_remove(random.below(left.len() as u64) as usize)
}

/// Makes faults under load. Returns what each kind has interrupted.
fn make_faults(fixture: &mut Fixture, load: &Load, seed: u64) -> BTreeMap<Fault, Interruptions> {
    let (count, operations) = (asked("KINFOLK_FLEET_FAULTS", 8), asked("KINFOLK_FLEET_OPERATIONS", 1));
    let (mut random, mut left) = (Random(seed), Vec::new());
    let mut by_fault: BTreeMap<Fault, Interruptions> = BTreeMap::new();
    for number in 0..count {
        let fault = next_fault(&mut left, &mut random);
        let lasts = fault.lasts(count >= LONG, &mut random);
        println!("{:7.1} s: fault {number}, {fault:?} for {lasts:?}", load.seconds());
        load.services.begin();
        fault.inject(fixture, &mut random, lasts);
        let undone = Instant::now();
        while let missing @ [_, ..] = &load.services.missing_since(undone)[..] {
            assert!(undone.elapsed() < SERVED, "{missing:?} is not served after {fault:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut interruptions = Interruptions::default();
        interruptions.add(&load.services.interruptions());
        println!(
            "{:7.1} s: all served {:?} after it was undone; {interruptions}",
            load.seconds(),
            undone.elapsed()
        );
        by_fault.entry(fault).or_default().add(&load.services.interruptions());
        while load.operations() < operations * (number + 1) / count && load.wrong.lock().unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(20));
        }
        if !load.wrong.lock().unwrap().is_empty() {
            break;
        }
    }
    by_fault
}

/// Runs the load while faults are made. Returns what the writers were told.
fn run(fixture: &mut Fixture, load: &Load, seed: u64) -> (Story, BTreeMap<Fault, Interruptions>) {
    let (writer, readers) = (fixture.writer.clone(), fixture.readers.clone());
    let users = Users::by_host(&writer);
    let everybody: Vec<u64> = users.iter().flat_map(|users| users.followers.clone()).collect();
    let (mut story, nodes) = (Story::default(), fixture.layers.nodes.addresses().to_owned());
    let status = readers[0].read().unwrap().clone();
    let by_fault = std::thread::scope(|scope| {
        let (writer, readers, users, everybody) = (&writer, &readers, &users, &everybody);
        let mut writers = Vec::new();
        for (host, users) in users.iter().enumerate() {
            for part in 0..WRITERS {
                let own: Vec<u64> = users.followers.iter().copied().skip(part).step_by(WRITERS).collect();
                let seed = seed + (10 * host + part) as u64;
                writers.push(scope.spawn(move || load.write(writer, host, &own, seed)));
            }
            scope.spawn(move || {
                load.check(&readers[0], Some(host), &users.followers, seed + 100 + host as u64);
            });
            scope.spawn(move || load.list(&readers[1], host, users, seed + 200 + host as u64));
        }
        scope.spawn(move || load.check(&readers[1], None, everybody, seed + 300));
        scope.spawn(|| watch_redis(load, &nodes));
        scope.spawn(|| watch_topic(load, &status));
        // However the campaign ends, its threads do.
        let end = EndOnDrop(load);
        let by_fault = make_faults(fixture, load, seed);
        drop(end);
        writers.into_iter().for_each(|writer| story.append(writer.join().unwrap()));
        by_fault
    });
    (story, by_fault)
}

struct EndOnDrop<'a>(&'a Load);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[test]
fn the_fleet_is_right_whatever_fails() {
    if servers().and(nodes()).and(brokers()).is_none() {
        return;
    }
    let seed = asked("KINFOLK_FLEET_SEED", 20_261_118);
    let mut fixture = Fixture::start();
    let load = Load::new();
    let (story, by_fault) = run(&mut fixture, &load, seed);
    report(&load, &story, &by_fault, seed);
    let wrong = std::mem::take(&mut *load.wrong.lock().unwrap());
    assert!(wrong.is_empty(), "{} answers are wrong, the first: {}", wrong.len(), wrong[0]);
    let store = fixture.readers[0].read().unwrap().clone();
    println!("converged {:?} after the end", converge(&store));
    audit(&store, &story.changes());
    story.check(&store);
    let report = store.verify(false, &|_| {}).unwrap();
    assert_eq!(report.difference_count, 0, "{report:?}");
    audit_topic(&store, fixture.layers.kafka.brokers());
    let mut edges: BTreeSet<Edge> = BTreeSet::new();
    for (action, edge) in whole_log(&store).values().map(about) {
        _ = if action == EdgeAction::Follow { edges.insert(edge) } else { edges.remove(&edge) };
    }
    let newest = block_on(store.span()).unwrap().newest;
    std::thread::sleep(STALENESS);
    for reader in &fixture.readers {
        load.settled(&reader.read().unwrap(), &edges, &newest);
    }
}

fn report(load: &Load, story: &Story, by_fault: &BTreeMap<Fault, Interruptions>, seed: u64) {
    let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let counts = &load.counts;
    println!(
        "seed {seed}: {} operations in {:.0} s: {} writes acknowledged ({} changes), {} unknown, {} refused; {} checks, {} lists, \
         {} counts, {} calls with tokens, {} reads refused; {} wrong",
        load.operations(),
        load.seconds(),
        number(&counts.writes),
        story.acknowledged.len(),
        story.unknown.len(),
        story.refused,
        number(&counts.checks),
        number(&counts.lists),
        number(&counts.counts),
        number(&counts.with_tokens),
        number(&counts.refused_reads),
        load.wrong.lock().unwrap().len(),
    );
    for (fault, interruptions) in by_fault {
        println!("{fault:?}: {interruptions}");
    }
}
