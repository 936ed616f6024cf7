//! The nodes together: which one serves a slot, and calls of several at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use kinfolk_core::Result;
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::connection::Access;
use super::node::{Node, code};
use super::slots::{SLOTS, SlotRange, ranges};
use super::{Command, Redis, Reply, Unanswered};
use crate::postgres::Encryption;

/// The map of the slots is read so often, and at once where a node has said that it is old, but not more often than that.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// How long a node may take to say where the slots are.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// Slots and the node that serves them.
struct Served {
    first: u16,
    last: u16,
    node: Arc<Node>,
}

/// A cluster of Redis, or a single server.
pub(crate) struct Cluster {
    access: Arc<Access>,
    /// By address.
    nodes: Mutex<BTreeMap<String, Arc<Node>>>,
    /// In the order of the slots. Empty until a node has answered.
    served: RwLock<Arc<[Served]>>,
    is_old: Notify,
    /// Whether no node has answered when the map was last read.
    is_lost: AtomicBool,
}

impl Cluster {
    /// A cluster, whose nodes are looked for from now on until it is dropped.
    pub(crate) fn start(
        settings: &Redis,
        scripts: &'static [&'static str],
        runtime: &Handle,
    ) -> Result<Arc<Self>> {
        settings.require_valid()?;
        let encryption = Encryption::new(settings.authorities.as_deref())?;
        let cluster = Arc::new(Self {
            access: Arc::new(Access { settings: settings.clone(), encryption, scripts }),
            nodes: Mutex::default(),
            served: RwLock::new(Arc::new([])),
            is_old: Notify::new(),
            is_lost: AtomicBool::new(false),
        });
        runtime.spawn(look(Arc::downgrade(&cluster)));
        Ok(cluster)
    }

    /// The reply to each command, or why there is none. A node gets all of its commands at once.
    pub(crate) async fn call(
        &self,
        commands: &[Command],
        limit: Duration,
    ) -> Vec<std::result::Result<Reply, Unanswered>> {
        let served = Arc::clone(&self.served.read());
        let mut by_node: BTreeMap<&str, (&Arc<Node>, Vec<usize>)> = BTreeMap::new();
        let mut replies = vec![Err(Unanswered::Unreachable); commands.len()];
        for (index, command) in commands.iter().enumerate() {
            if let Some(node) = node_of(&served, command.slot) {
                by_node.entry(&node.address).or_insert_with(|| (node, Vec::new())).1.push(index);
            }
        }
        let calls = by_node.into_values().map(|(node, indexes)| async move {
            let own: Vec<&Command> = indexes.iter().map(|&index| &commands[index]).collect();
            (node.call(&own, limit).await, indexes)
        });
        let mut is_old = served.is_empty();
        for (answered, indexes) in join_all(calls).await {
            match answered {
                Ok(own) => {
                    indexes.into_iter().zip(own).for_each(|(index, reply)| replies[index] = judged(reply));
                }
                Err(reason) => indexes.into_iter().for_each(|index| replies[index] = Err(reason)),
            }
        }
        is_old |= replies.iter().any(|reply| {
            matches!(reply, Err(Unanswered::Moved | Unanswered::Unreachable | Unanswered::TimedOut))
        });
        if is_old {
            self.is_old.notify_one();
        }
        replies
    }

    /// The nodes that serve slots, and how many of them are left out.
    pub(crate) fn nodes(&self) -> (usize, usize) {
        let served = Arc::clone(&self.served.read());
        let nodes: BTreeMap<&str, &Node> =
            served.iter().map(|served| (served.node.address.as_str(), &*served.node)).collect();
        (nodes.len(), nodes.values().filter(|node| node.is_left_out()).count())
    }

    /// Asks for the map of the slots, one node after another, those that are known to serve first.
    async fn read_map(&self) {
        let mut asked: Vec<Arc<Node>> =
            self.served.read().iter().map(|served| Arc::clone(&served.node)).collect();
        asked.extend(self.access.settings.nodes.iter().map(|address| self.node(address)));
        asked.sort_by_key(|node| node.is_left_out());
        let mut known = BTreeSet::new();
        asked.retain(|node| known.insert(node.address.clone()));
        for node in asked {
            let Some(reply) = node.ask(&["CLUSTER", "SLOTS"], LOOK_MAX).await else { continue };
            let found = match &reply {
                // A single server, which serves everything.
                Reply::Error(error) if error.contains("cluster support disabled") => {
                    Some(vec![SlotRange { first: 0, last: SLOTS - 1, address: node.address.clone() }])
                }
                reply => ranges(reply, &node.address),
            };
            // A node that has just started knows of no slots.
            let Some(found) = found.filter(|found| !found.is_empty()) else { continue };
            let served = |range: SlotRange| Served {
                first: range.first,
                last: range.last,
                node: self.node(&range.address),
            };
            let served: Arc<[Served]> = found.into_iter().map(served).collect();
            let addresses: BTreeSet<&String> = served.iter().map(|served| &served.node.address).collect();
            let seeds = &self.access.settings.nodes;
            self.nodes.lock().retain(|address, _| addresses.contains(address) || seeds.contains(address));
            if self.served.read().is_empty() {
                tracing::info!(nodes = addresses.len(), "found Redis");
            }
            *self.served.write() = served;
            self.is_lost.store(false, Ordering::Relaxed);
            return;
        }
        if !self.is_lost.swap(true, Ordering::Relaxed) {
            let problem = self.nodes.lock().values().find_map(|node| node.problem());
            tracing::warn!(
                reason = problem.unwrap_or_default(),
                "no node of Redis says where the slots are: checks ask the shards; check redis.nodes, redis.password and redis.ca_file"
            );
        }
    }

    fn node(&self, address: &str) -> Arc<Node> {
        let new = || Arc::new(Node::new(address.to_owned(), Arc::clone(&self.access)));
        Arc::clone(self.nodes.lock().entry(address.to_owned()).or_insert_with(new))
    }
}

/// Reads the map again and again.
async fn look(cluster: Weak<Cluster>) {
    while let Some(known) = cluster.upgrade() {
        known.read_map().await;
        sleep(LOOK_PAUSE).await;
        // Early or not, the map is read again.
        _ = timeout(LOOK_EVERY, known.is_old.notified()).await;
    }
}

fn node_of(served: &[Served], slot: u16) -> Option<&Arc<Node>> {
    let after = served.partition_point(|served| served.first <= slot);
    let found = served.get(after.checked_sub(1)?)?;
    (slot <= found.last).then_some(&found.node)
}

/// What an error of a node means.
fn judged(reply: Reply) -> std::result::Result<Reply, Unanswered> {
    match code(&reply) {
        None => Ok(reply),
        Some("MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN") => Err(Unanswered::Moved),
        Some("LOADING" | "MASTERDOWN" | "NOSCRIPT") => Err(Unanswered::Unreachable),
        Some(_) => {
            tracing::debug!(?reply, "Redis refuses a command");
            Err(Unanswered::Refused)
        }
    }
}
