//! Faults of what a deployment has beside its databases (Redis, Kafka, and the processes that relay, project and feed): what is
//! done, and how it is undone.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::kafka::Cluster;
use crate::nodes::{Nodes, ask};
use crate::processes::Random;
use crate::workers::Worker;

/// What a deployment has beside its databases.
pub struct Layers {
    pub workers: Vec<Worker>,
    pub nodes: Nodes,
    pub kafka: Cluster,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LayerFault {
    /// None, to compare with.
    Nothing,
    /// All of Redis forgets everything.
    Flushed,
    /// Slots are moved from one master to another.
    SlotsMoved,
    /// A master dies; its replica takes over; it comes back empty.
    MasterKilled,
    /// A master is stopped for longer than it takes to replace it, and goes on.
    MasterStopped,
    /// A replica takes over from a master that is well, and the master takes over again.
    FailedOver,
    /// Redis is full, and refuses writes.
    OutOfMemory,
    /// Redis forgets single keys, at random.
    Evicted,
    /// All processes that relay, project and feed the cache are stopped, and go on.
    FeedStopped,
    /// Kafka is stopped, and goes on.
    KafkaStopped,
}

impl LayerFault {
    pub const ALL: [Self; 10] = [
        Self::Nothing,
        Self::Flushed,
        Self::SlotsMoved,
        Self::MasterKilled,
        Self::MasterStopped,
        Self::FailedOver,
        Self::OutOfMemory,
        Self::Evicted,
        Self::FeedStopped,
        Self::KafkaStopped,
    ];

    /// Makes the fault last for about some time, and undoes it.
    pub fn inject(self, layers: &mut Layers, random: &mut Random, lasts: Duration) {
        match self {
            Self::Nothing => std::thread::sleep(lasts),
            Self::Flushed => flush(&layers.nodes, lasts),
            Self::SlotsMoved => move_slots(&layers.nodes, random),
            Self::MasterKilled => {
                let masters = layers.nodes.masters(0);
                let killed = masters[random.below(masters.len() as u64) as usize];
                layers.nodes.signal(killed, Signal::KILL);
                std::thread::sleep(lasts);
                layers.nodes.restart();
                layers.nodes.wait_until_whole(killed);
            }
            Self::MasterStopped => {
                let masters = layers.nodes.masters(0);
                let stopped = masters[random.below(masters.len() as u64) as usize];
                layers.nodes.signal(stopped, Signal::STOP);
                std::thread::sleep(lasts);
                layers.nodes.signal(stopped, Signal::CONT);
                layers.nodes.wait_until_whole(stopped);
            }
            Self::FailedOver => fail_over(&layers.nodes, lasts),
            Self::OutOfMemory => {
                let limit = |memory| set_on_all(&layers.nodes, &["CONFIG", "SET", "maxmemory", memory]);
                limit("1mb");
                std::thread::sleep(lasts);
                limit("0");
            }
            Self::Evicted => evict(&layers.nodes, random, lasts),
            Self::FeedStopped => {
                layers.workers.iter().for_each(|worker| worker.signal(Signal::STOP));
                std::thread::sleep(lasts);
                layers.workers.iter().for_each(|worker| worker.signal(Signal::CONT));
            }
            Self::KafkaStopped => {
                layers.kafka.signal(0, Signal::STOP);
                std::thread::sleep(lasts);
                layers.kafka.signal(0, Signal::CONT);
            }
        }
    }
}

fn set_on_all(nodes: &Nodes, words: &[&str]) {
    (0..nodes.len()).for_each(|node| _ = ask(nodes.address(node), words));
}

fn flush(nodes: &Nodes, lasts: Duration) {
    let began = Instant::now();
    while began.elapsed() < lasts {
        for node in nodes.masters(0) {
            ask(nodes.address(node), &["FLUSHALL"]);
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Moves a part of a master's slots to another one, key by key, as an operator does.
fn move_slots(nodes: &Nodes, random: &mut Random) {
    let masters = nodes.masters(0);
    let id = |node: usize| ask(nodes.address(node), &["CLUSTER", "MYID"]);
    let from = random.below(masters.len() as u64) as usize;
    let to = (from + 1) % masters.len();
    let began = Instant::now();
    loop {
        let output = Command::new("redis-cli")
            .args(["--cluster", "reshard", nodes.address(masters[from])])
            .args(["--cluster-from", &id(masters[from]), "--cluster-to", &id(masters[to])])
            .args(["--cluster-slots", "300", "--cluster-yes"])
            .output()
            .unwrap();
        if output.status.success() {
            return;
        }
        // After other faults, the nodes need a moment to agree about who is master.
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{printed}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Every replica takes over, and after a while those that were masters do.
fn fail_over(nodes: &Nodes, lasts: Duration) {
    for _ in 0..2 {
        let masters = nodes.masters(0);
        for node in (0..nodes.len()).filter(|node| !masters.contains(node)) {
            ask(nodes.address(node), &["CLUSTER", "FAILOVER"]);
        }
        std::thread::sleep(lasts / 2);
        nodes.wait_until_whole(0);
    }
}

fn evict(nodes: &Nodes, random: &mut Random, lasts: Duration) {
    let began = Instant::now();
    while began.elapsed() < lasts {
        let masters = nodes.masters(0);
        let node = nodes.address(masters[random.below(masters.len() as u64) as usize]);
        for _ in 0..20 {
            let key = ask(node, &["RANDOMKEY"]);
            if !key.is_empty() {
                ask(node, &["DEL", &key]);
            }
        }
    }
}
