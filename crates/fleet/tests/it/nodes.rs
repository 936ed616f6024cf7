//! Nodes of Redis for tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::deployments::{signal, stack};
use crate::kafka::new_name;

/// Names the nodes of a cluster that tests may share.
const NODES: &str = "KINFOLK_TEST_REDIS_CLUSTER";

/// The nodes to test with. Without them there is nothing to test, unless `KINFOLK_REQUIRE_REDIS` is set.
pub fn nodes() -> Option<String> {
    let named = std::env::var(NODES).ok();
    let is_required = std::env::var_os("KINFOLK_REQUIRE_REDIS").is_some();
    assert!(named.is_some() || !is_required, "set {NODES} to the addresses of a Redis Cluster");
    named
}

/// What a node replies to a command, which is sent on to the node of its keys. Lines of a list are lines.
pub fn ask(node: &str, words: &[&str]) -> String {
    let (host, port) = node.rsplit_once(':').unwrap();
    let output = Command::new("redis-cli").args(["-c", "-h", host, "-p", port]).args(words).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The keys of all nodes that fit a pattern.
pub fn keys(nodes: &str, pattern: &str) -> Vec<String> {
    let of_node = |node: &str| -> Vec<String> {
        let found = ask(node, &["--scan", "--pattern", pattern]);
        found.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let mut keys: Vec<String> = nodes.split(',').flat_map(of_node).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// A cluster of one test, whose nodes may be killed: three masters and a replica of each.
pub struct Nodes {
    folder: PathBuf,
    facts: BTreeMap<String, String>,
}

impl Nodes {
    pub fn start(settings: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("fleet-redis-{}", new_name()));
        let facts = stack("cluster", "start", &folder, settings);
        Self { folder, facts }
    }

    pub fn addresses(&self) -> &str {
        &self.facts[NODES]
    }

    pub fn address(&self, node: usize) -> &str {
        self.addresses().split(',').nth(node).unwrap()
    }

    pub fn len(&self) -> usize {
        self.addresses().split(',').count()
    }

    fn process(&self, node: usize) -> &str {
        self.facts["CLUSTER_PIDS"].split(',').nth(node).unwrap()
    }

    pub fn signal(&self, node: usize, sent: Signal) {
        let process = self.process(node);
        signal(process.parse().unwrap(), sent);
        // A node that is still ending can't be started again.
        while sent == Signal::KILL && Path::new("/proc").join(process).exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts the nodes that were killed, empty.
    pub fn restart(&mut self) {
        self.facts = stack("cluster", "restart", &self.folder, &[]);
    }

    /// Which nodes are masters that serve slots, by the numbers that they have here, as one of them says.
    pub fn masters(&self, asked: usize) -> Vec<usize> {
        let known = ask(self.address(asked), &["CLUSTER", "NODES"]);
        let is_master = |node: &usize| {
            known.lines().any(|line| {
                line.contains(&format!("{}@", self.address(*node)))
                    && line.contains("master")
                    && !line.contains("fail")
                    && line.split(' ').count() > 8
            })
        };
        (0..self.len()).filter(is_master).collect()
    }

    /// Waits until a node says that every slot is served.
    pub fn wait_until_whole(&self, asked: usize) {
        let began = Instant::now();
        while !ask(self.address(asked), &["CLUSTER", "INFO"]).contains("cluster_state:ok") {
            assert!(began.elapsed() < Duration::from_secs(60), "the cluster stays broken");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        stack("cluster", "stop", &self.folder, &[]);
    }
}
