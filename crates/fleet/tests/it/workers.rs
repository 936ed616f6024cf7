//! Processes that relay, project and feed the cache, and stores that check by filters and cache.

use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinfolk_conformance::block_on;
use kinfolk_core::Result;
use kinfolk_fleet::{
    CacheFeed, FilterSettings, Filtering, Fleet, Kafka, Projection, Redis, Relay, Settings, TopicSource,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::deployments::{process, settings_of_process};

/// Set for the process that the test starts from its own binary.
const CHILD: &str = "KINFOLK_FLEET_FEED";
const BROKERS: &str = "BROKERS";
const NODES: &str = "NODES";

fn redis(nodes: &str) -> Redis {
    // Sets end soon, so that there are always some to be filled.
    let keep = Duration::from_secs(5);
    Redis { keep, fills_per_second: 300, ..Redis::new(nodes.split(',')) }
}

/// A topic on all brokers, up to three.
fn kafka(brokers: &str) -> Kafka {
    Kafka { replication: brokers.split(',').count().min(3) as u16, ..Kafka::new(brokers) }
}

/// Tries again for a minute what needs servers that may just be starting.
pub fn eventually<T>(attempt: impl Fn() -> Result<T>) -> T {
    let began = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) => assert!(began.elapsed() < Duration::from_secs(60), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Relays, projects and feeds the cache until it is killed.
#[test]
fn a_worker_of_its_own() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let redis = redis(&std::env::var(NODES).unwrap());
    let settings = Settings { role: "all".to_owned(), redis: Some(redis), ..settings_of_process() };
    let fleet = eventually(|| Fleet::open(settings.clone()));
    let kafka = kafka(&std::env::var(BROKERS).unwrap());
    let _relay = eventually(|| block_on(Relay::start(&fleet, &kafka)));
    let source = Arc::new(eventually(|| block_on(TopicSource::start(&fleet, &kafka))));
    Projection::start(&fleet, &source).detach();
    CacheFeed::start(&fleet, &source).detach();
    loop {
        std::thread::park();
    }
}

/// A process that relays, projects and feeds, until it is dropped.
pub struct Worker(Child);

impl Worker {
    pub fn start(settings: &Settings, brokers: &str, nodes: &str) -> Self {
        let mut command = process(settings, "workers::a_worker_of_its_own");
        command.env(CHILD, "1").env(BROKERS, brokers).env(NODES, nodes).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A store that checks by filters, which the topic feeds, and by the cache.
pub fn reader(
    settings: &Settings,
    brokers: &str,
    nodes: &str,
    filters: FilterSettings,
) -> (Fleet, Filtering) {
    let redis = Some(redis(nodes));
    let fleet = eventually(|| Fleet::open(Settings { redis: redis.clone(), ..settings.clone() }));
    // The topic is there once the relay has made it.
    let source = eventually(|| block_on(TopicSource::start_whole(&fleet, &kafka(brokers))));
    let filtering = Filtering::start(&fleet, &Arc::new(source), filters);
    (fleet, filtering)
}
