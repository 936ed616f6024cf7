//! Real relays, projections and brokers that are killed and stopped while others write: the follower side and the topic end up with
//! exactly what was written. Repair is off.

use std::num::NonZeroU16;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kinfolk_conformance::{block_on, edge};
use kinfolk_core::IdKind;
use kinfolk_core::graph::EdgeAction;
use kinfolk_fleet::{Fleet, Kafka, NewDeployment, Projection, Relay, Settings, ShardStatus, TopicSource};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use rustix::process::{Pid, Signal, kill_process};

use crate::audits::{TOPIC, audit, audit_topic, converge};
use crate::deployments::{Databases, asked, process, servers, settings_of_process};
use crate::kafka::{Cluster, admin, brokers, options};
use crate::processes::{Acknowledged, Random, USERS, write};
use crate::workers::eventually;

const IDS: IdKind = IdKind::Integer;
const SHARDS: u16 = 4;

/// What a process that the test starts from its own binary does.
const ROLE: &str = "KINFOLK_FLEET_ROLE";
const BROKERS: &str = "BROKERS";

/// Relays or projects until it is killed.
#[test]
fn a_role_of_its_own() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let settings = Settings { role: role.clone(), ..settings_of_process() };
    let fleet = eventually(|| Fleet::open(settings.clone()));
    let brokers = std::env::var(BROKERS).unwrap();
    // On all of them, up to three.
    let replication = brokers.split(',').count().min(3) as u16;
    let kafka = Kafka { replication, ..Kafka::new(brokers) };
    let _relay = (role == "relay").then(|| eventually(|| block_on(Relay::start(&fleet, &kafka))));
    if role == "project" {
        let source = eventually(|| block_on(TopicSource::start(&fleet, &kafka)));
        Projection::start(&fleet, &Arc::new(source)).detach();
    }
    loop {
        std::thread::park();
    }
}

/// A process in a role, until it is dropped.
struct Role(Child);

impl Role {
    fn start(settings: &Settings, brokers: &str, role: &str) -> Self {
        let mut command = process(settings, "relay_faults::a_role_of_its_own");
        command.env(ROLE, role).env(BROKERS, brokers).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Threads that write all the time, and what was acknowledged to them.
struct Load {
    ends: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    acknowledged: Arc<Mutex<Acknowledged>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Load {
    fn start(store: &Fleet) -> Self {
        let (ends, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let acknowledged = Arc::new(Mutex::new(Acknowledged::default()));
        let thread = |seed| {
            let (store, ends, count) = (store.clone(), Arc::clone(&ends), Arc::clone(&count));
            let acknowledged = Arc::clone(&acknowledged);
            std::thread::spawn(move || {
                let mut random = Random(seed);
                while !ends.load(Ordering::Relaxed) {
                    let from = random.below(USERS);
                    let to = (from + 1 + random.below(USERS - 1)) % USERS;
                    let action = if random.below(2) == 0 { EdgeAction::Follow } else { EdgeAction::Unfollow };
                    let written = write(&store, action, from, to).expect("writes go on");
                    count.fetch_add(1, Ordering::Relaxed);
                    if written.1 {
                        let change = (written.0, action, edge(IDS, from, to));
                        acknowledged.lock().unwrap().changes.push(change);
                    }
                    // So many writers are enough to keep everybody in the middle of something.
                    std::thread::sleep(Duration::from_millis(2));
                }
            })
        };
        let threads = (0..4).map(thread).collect();
        Self { ends, count, acknowledged, threads }
    }

    /// Waits for so many more writes.
    fn wait_for(&self, writes: u64) {
        let until = self.count.load(Ordering::Relaxed) + writes;
        while self.count.load(Ordering::Relaxed) < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(self) -> Acknowledged {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        std::mem::take(&mut *self.acknowledged.lock().unwrap())
    }
}

/// A deployment with brokers of its own, two relays and two projections.
struct Fixture {
    roles: Vec<Role>,
    store: Fleet,
    settings: Settings,
    cluster: Cluster,
    _databases: Databases,
}

const ROLES: [&str; 4] = ["relay", "relay", "project", "project"];

impl Fixture {
    fn start(brokers_settings: &[&str]) -> Option<Self> {
        let (servers, _) = servers().zip(brokers())?;
        let databases = Databases::create(&servers);
        let settings = databases.settings();
        Fleet::init(&settings, NewDeployment { id_kind: IDS, shards: NonZeroU16::new(SHARDS).unwrap() })
            .unwrap();
        let cluster = Cluster::start(brokers_settings);
        let store = Fleet::open(settings.clone()).unwrap();
        let mut fixture = Self { roles: Vec::new(), store, settings, cluster, _databases: databases };
        fixture.roles = ROLES.map(|role| fixture.role(role)).into();
        Some(fixture)
    }

    fn role(&self, role: &str) -> Role {
        Role::start(&self.settings, self.cluster.brokers(), role)
    }

    /// Kills a process or a broker, and starts it again.
    fn kill(&mut self, victim: usize) {
        if victim < ROLES.len() {
            self.roles[victim] = self.role(ROLES[victim]);
        } else {
            self.signal(victim, Signal::KILL);
            self.cluster.restart();
        }
    }

    fn signal(&self, victim: usize, signal: Signal) {
        match self.roles.get(victim) {
            Some(role) => role.signal(signal),
            None => self.cluster.signal(victim - ROLES.len(), signal),
        }
    }

    /// Whether rows, counts and log tell one story.
    fn audit(&self, acknowledged: &Acknowledged) {
        audit(&self.store, acknowledged);
        let report = self.store.verify(false, &|_| {}).unwrap();
        assert_eq!(report.difference_count, 0, "{report:?}");
    }

    /// The oldest message of the first partition.
    fn oldest(&self) -> i64 {
        let consumer: BaseConsumer =
            ClientConfig::new().set("bootstrap.servers", self.cluster.brokers()).create().unwrap();
        consumer.fetch_watermarks(TOPIC, 0, Duration::from_secs(10)).map_or(0, |(oldest, _)| oldest)
    }
}

fn name(victim: usize) -> &'static str {
    ROLES.get(victim).copied().unwrap_or("broker")
}

/// `KINFOLK_FLEET_FAULTS` says how many faults, `KINFOLK_FLEET_BROKERS` on how many brokers.
#[test]
fn relays_projections_and_brokers_that_fail_lose_and_double_nothing() {
    let count = asked("KINFOLK_FLEET_BROKERS", 1);
    let Some(mut fixture) = Fixture::start(&[&format!("brokers={count}")]) else { return };
    let faults = asked("KINFOLK_FLEET_FAULTS", 10);
    let load = Load::start(&fixture.store);
    let mut random = Random(20_261_119);
    let victims = ROLES.len() + fixture.cluster.len();
    let mut done = 0;
    // Three of ten faults are stops, longer than every timeout in recorded runs. Meanwhile others are killed.
    while done < faults {
        let stopped = random.below(victims as u64) as usize;
        let seconds = if faults < 50 { 5 } else { 5 + random.below(26) };
        let until = Instant::now() + Duration::from_secs(seconds);
        println!("fault {done}: {} stopped for {seconds} s", name(stopped));
        fixture.signal(stopped, Signal::STOP);
        done += 1;
        for _ in 0..(faults - done).min(2 + u64::from(done % 3 == 1)) {
            load.wait_for(50 + random.below(400));
            let killed = (stopped + 1 + random.below(victims as u64 - 1) as usize) % victims;
            println!("fault {done}: {} killed", name(killed));
            fixture.kill(killed);
            done += 1;
        }
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        fixture.signal(stopped, Signal::CONT);
    }
    load.wait_for(100);
    let acknowledged = load.end();
    let took = converge(&fixture.store);
    println!("{faults} faults, {} changes; converged {took:?} after the last", acknowledged.changes.len());
    fixture.audit(&acknowledged);
    audit_topic(&fixture.store, fixture.cluster.brokers());
}

/// The brokers are away for as long as `KINFOLK_FLEET_OUTAGE` says, in seconds: writes go on, the lag can be seen, and afterwards the
/// topic has everything.
#[test]
fn kafka_may_be_away() {
    let Some(mut fixture) = Fixture::start(&[]) else { return };
    let load = Load::start(&fixture.store);
    load.wait_for(200);
    fixture.cluster.signal(0, Signal::KILL);
    let outage = Duration::from_secs(asked("KINFOLK_FLEET_OUTAGE", 12));
    let (began, mut written) = (Instant::now(), 0);
    while began.elapsed() < outage {
        load.wait_for(50);
        written += 50;
    }
    let status = block_on(fixture.store.status()).unwrap();
    let answers: Vec<_> = status.hosts.iter().map(|host| host.condition.as_ref()).collect();
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let behind: u64 = status.shards.iter().filter_map(ShardStatus::relay_behind).sum();
    let hidden = answers.iter().filter_map(|answer| answer.ok()?.changes_behind).max();
    println!(
        "{written} writes in {outage:?} without brokers; {behind} changes not relayed, {hidden:?} not projected"
    );
    // About every other write changes something.
    assert!(behind > written / 8, "{behind}");
    fixture.cluster.restart();
    load.wait_for(100);
    let acknowledged = load.end();
    println!("converged after {:?}", converge(&fixture.store));
    fixture.audit(&acknowledged);
    audit_topic(&fixture.store, fixture.cluster.brokers());
}

/// Messages expire after a second, and the topic is emptied and made anew under load. Projections have what is missing read from the
/// logs.
#[test]
fn a_topic_that_loses_messages_costs_nothing() {
    let expiry = ["log.retention.ms=1000", "log.roll.ms=200", "log.retention.check.interval.ms=300"];
    let settings = [expiry.as_slice(), &["log.initial.task.delay.ms=300"]].concat();
    let Some(fixture) = Fixture::start(&settings) else { return };
    let admin = admin(fixture.cluster.brokers());
    let load = Load::start(&fixture.store);
    for _ in 0..asked("KINFOLK_FLEET_LOSSES", 1) {
        while fixture.oldest() == 0 {
            load.wait_for(50);
        }
        let mut ends = TopicPartitionList::new();
        for partition in 0..i32::from(SHARDS) {
            ends.add_partition_offset(TOPIC, partition, Offset::End).unwrap();
        }
        block_on(admin.delete_records(&ends, &options())).unwrap();
        load.wait_for(300);
        let deleted = block_on(admin.delete_topics(&[TOPIC], &options())).unwrap();
        assert!(deleted.iter().all(Result::is_ok), "{deleted:?}");
        load.wait_for(1_000);
    }
    let acknowledged = load.end();
    println!("converged after {:?}", converge(&fixture.store));
    fixture.audit(&acknowledged);
}
