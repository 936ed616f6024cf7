//! One batcher for each lane: it takes all that waits, and has one transaction in flight.
//!
//! A lane is some of the shards of a host. With a batcher for each shard, a fleet of 256 shards would seldom find two requests to
//! commit together; a few large transactions at once are what a host does best.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::graph::{Receipt, WriteRequest};
use kinfolk_core::{Error, Result};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::transaction::BatchWriter;
use crate::fleet::Shared;

/// Lanes of each host: so many transactions of one process are in flight there. One is written while the other is synced; more made
/// each of them smaller, and all of them slower.
const LANES: usize = 2;

/// Runs that wait for one lane; more are refused. One transaction of a client can have 10,000.
const QUEUE_MAX: usize = 16_384;

/// Commands of one transaction, unless one run alone has more: the locks of its shards are held for a few milliseconds.
const BATCH_COMMANDS_MAX: usize = 1_000;

/// When a refused request may be sent again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Requests of one follower that came one after another: they are committed together.
struct Run {
    requests: Vec<WriteRequest>,
    reply: oneshot::Sender<Vec<Result<Receipt>>>,
}

impl Run {
    fn commands(&self) -> usize {
        self.requests.iter().map(|request| request.commands.len()).sum()
    }
}

/// A run that was handed over.
struct Waiting {
    /// How many requests it has.
    count: usize,
    /// Where their receipts will come from, unless they were refused.
    receipts: Option<oneshot::Receiver<Vec<Result<Receipt>>>>,
}

/// Which shards share a batcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Lane {
    /// The index of their host.
    host: usize,
    number: usize,
}

/// The batchers of all lanes. Each is started by the first write of its lane.
pub(crate) struct Writers {
    shared: Arc<Shared>,
    runtime: Handle,
    queues: Mutex<BTreeMap<Lane, mpsc::Sender<Run>>>,
}

impl Writers {
    pub(crate) fn new(shared: Arc<Shared>, runtime: &Handle) -> Self {
        Self { shared, runtime: runtime.clone(), queues: Mutex::default() }
    }

    /// Applies requests, each by itself. One result for each, in order.
    pub(crate) async fn write(&self, requests: Vec<WriteRequest>) -> Vec<Result<Receipt>> {
        let replies: Vec<_> = runs(requests).into_iter().map(|requests| self.enqueue(requests)).collect();
        let mut results = Vec::new();
        for Waiting { count, receipts } in replies {
            match receipts {
                Some(receipts) => match receipts.await {
                    Ok(receipts) => results.extend(receipts),
                    // The batcher has ended in the middle of a commit, perhaps.
                    Err(_) => results.extend((0..count).map(|_| Err(Error::Closed))),
                },
                None => {
                    results.extend((0..count).map(|_| Err(Error::Overloaded { retry_after: RETRY_AFTER })));
                }
            }
        }
        results
    }

    /// Hands a run to its batcher, unless too many wait.
    fn enqueue(&self, requests: Vec<WriteRequest>) -> Waiting {
        let count = requests.len();
        let topology = self.shared.topology();
        let shard = topology.shard_of(requests[0].follower);
        // Hosts have their shards in turn.
        let number = usize::from(shard.0) / topology.hosts.len() % LANES;
        let lane = Lane { host: topology.host_of(shard), number };
        let (reply, receipts) = oneshot::channel();
        let sent = self.queue(lane).try_send(Run { requests, reply });
        Waiting { count, receipts: sent.is_ok().then_some(receipts) }
    }

    fn queue(&self, lane: Lane) -> mpsc::Sender<Run> {
        let mut queues = self.queues.lock();
        // A batcher that has ended has panicked: its requests were answered, and the next one starts afresh.
        if let Some(sender) = queues.get(&lane).filter(|sender| !sender.is_closed()) {
            return sender.clone();
        }
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        self.runtime.spawn(work(BatchWriter::new(Arc::clone(&self.shared)), receiver));
        queues.insert(lane, sender.clone());
        sender
    }
}

/// Requests of one follower that come one after another, together. No run is empty.
fn runs(requests: Vec<WriteRequest>) -> Vec<Vec<WriteRequest>> {
    let mut runs: Vec<Vec<WriteRequest>> = Vec::new();
    for request in requests {
        match runs.last_mut() {
            Some(run) if run[0].follower == request.follower => run.push(request),
            _ => runs.push(vec![request]),
        }
    }
    runs
}

/// Commits batches until the store is dropped.
async fn work(writer: BatchWriter, mut queue: mpsc::Receiver<Run>) {
    while let Some(first) = queue.recv().await {
        let mut commands = first.commands();
        let mut batch = vec![first];
        while commands < BATCH_COMMANDS_MAX {
            let Ok(run) = queue.try_recv() else { break };
            commands += run.commands();
            batch.push(run);
        }
        let requests: Vec<&WriteRequest> = batch.iter().flat_map(|run| &run.requests).collect();
        let mut results = writer.write(&requests).await.into_iter();
        for run in batch {
            let own = results.by_ref().take(run.requests.len()).collect();
            // The caller may have disconnected; dropping its receipts is fine.
            _ = run.reply.send(own);
        }
    }
}
