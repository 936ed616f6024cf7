//! Topics and brokers for tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kinfolk_conformance::block_on;
use kinfolk_fleet::Kafka;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rustix::process::Signal;

use crate::deployments::{signal, stack};

/// Names brokers that tests may share, without encryption.
const BROKERS: &str = "KINFOLK_TEST_KAFKA";

/// The brokers to test with. Without them there is nothing to test, unless `KINFOLK_REQUIRE_KAFKA` is set.
pub fn brokers() -> Option<String> {
    let named = std::env::var(BROKERS).ok();
    let is_required = std::env::var_os("KINFOLK_REQUIRE_KAFKA").is_some();
    assert!(named.is_some() || !is_required, "set {BROKERS} to the address of a broker");
    named
}

/// A name that no other topic has.
pub fn new_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("test.{}.{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

pub fn admin(brokers: &str) -> AdminClient<DefaultClientContext> {
    ClientConfig::new().set("bootstrap.servers", brokers).create().unwrap()
}

pub fn options() -> AdminOptions {
    let limit = Some(Duration::from_secs(30));
    AdminOptions::new().request_timeout(limit).operation_timeout(limit)
}

/// A topic of one test, removed in the end.
pub struct Topic {
    brokers: String,
    name: String,
}

impl Topic {
    pub fn create(brokers: &str, partitions: i32) -> Self {
        let topic = Self { brokers: brokers.to_owned(), name: new_name() };
        let new = NewTopic::new(&topic.name, partitions, TopicReplication::Fixed(1));
        let created = block_on(admin(brokers).create_topics([&new], &options())).unwrap();
        assert!(created.iter().all(Result::is_ok), "{created:?}");
        topic
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many messages a partition has had.
    pub fn end(&self, partition: i32) -> i64 {
        let consumer: BaseConsumer =
            ClientConfig::new().set("bootstrap.servers", &self.brokers).create().unwrap();
        consumer.fetch_watermarks(&self.name, partition, Duration::from_secs(30)).unwrap().1
    }

    /// The settings of a process that uses it.
    pub fn settings(&self) -> Kafka {
        Kafka { topic: self.name.clone(), ..Kafka::new(&self.brokers) }
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        // Its broker may have gone before.
        _ = block_on(admin(&self.brokers).delete_topics(&[&self.name], &options()));
    }
}

/// Brokers of one test, which may be killed.
pub struct Cluster {
    folder: PathBuf,
    facts: BTreeMap<String, String>,
}

impl Cluster {
    pub fn start(settings: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("fleet-kafka-{}", new_name()));
        let facts = stack("kafka", "start", &folder, settings);
        Self { folder, facts }
    }

    pub fn brokers(&self) -> &str {
        &self.facts[BROKERS]
    }

    pub fn len(&self) -> usize {
        self.facts["KAFKA_PIDS"].split(',').count()
    }

    pub fn signal(&self, node: usize, sent: Signal) {
        let process = self.facts["KAFKA_PIDS"].split(',').nth(node).unwrap();
        signal(process.parse().unwrap(), sent);
        // A broker that is still ending can't be started again.
        while sent == Signal::KILL && Path::new("/proc").join(process).exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts the brokers that were killed, on their data.
    pub fn restart(&mut self) {
        self.facts = stack("kafka", "restart", &self.folder, &[]);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        stack("kafka", "stop", &self.folder, &[]);
    }
}
