//! One batcher for each host: it takes all that waits, and has one transaction in flight.
//!
//! With a batcher for each shard, a fleet of 256 shards would seldom find two requests to commit together. One large transaction
//! after another is cheaper than several smaller ones at once; a host works for several processes at a time.

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

/// Runs that wait for one host; more are refused. One transaction of a client can have 10,000.
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
    /// Where their receipts will come from, or why there will be none.
    receipts: Result<oneshot::Receiver<Vec<Result<Receipt>>>>,
}

/// The batchers of all hosts. Each is started by the first write to its host.
pub(crate) struct Writers {
    shared: Arc<Shared>,
    runtime: Handle,
    /// By the index of the host.
    queues: Mutex<BTreeMap<usize, mpsc::Sender<Run>>>,
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
                Ok(receipts) => match receipts.await {
                    Ok(receipts) => results.extend(receipts),
                    // The batcher has ended in the middle of a commit, perhaps.
                    Err(_) => results.extend((0..count).map(|_| Err(Error::Closed))),
                },
                Err(error) => results.extend((0..count).map(|_| Err(error.clone()))),
            }
        }
        results
    }

    fn enqueue(&self, requests: Vec<WriteRequest>) -> Waiting {
        Waiting { count: requests.len(), receipts: self.hand_over(requests) }
    }

    /// Hands a run to its batcher, unless too many wait, or the log of its shard is full.
    fn hand_over(&self, requests: Vec<WriteRequest>) -> Result<oneshot::Receiver<Vec<Result<Receipt>>>> {
        let topology = self.shared.topology();
        let shard = topology.shard_of(requests[0].follower);
        self.shared.staleness.require_room(shard)?;
        let (reply, receipts) = oneshot::channel();
        let sent = self.queue(topology.host_of(shard)).try_send(Run { requests, reply });
        sent.map(|()| receipts).map_err(|_| Error::Overloaded { retry_after: RETRY_AFTER })
    }

    fn queue(&self, host: usize) -> mpsc::Sender<Run> {
        let mut queues = self.queues.lock();
        // A batcher that has ended has panicked: its requests were answered, and the next one starts afresh.
        if let Some(sender) = queues.get(&host).filter(|sender| !sender.is_closed()) {
            return sender.clone();
        }
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        self.runtime.spawn(work(BatchWriter::new(Arc::clone(&self.shared)), receiver));
        queues.insert(host, sender.clone());
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
