//! One batcher for each host: it takes all that waits, and has one transaction in flight.
//!
//! With a batcher for each shard, a fleet of 256 shards would seldom find two requests to commit together. One large transaction
//! after another is cheaper than several smaller ones at once; a host works for several processes at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::graph::{Receipt, WriteRequest};
use kinfolk_core::{Error, Result, Shard};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::aside::Aside;
use super::transaction::BatchWriter;
use crate::catalog::Topology;
use crate::fleet::Shared;

/// Runs that wait for one host; more are refused. One transaction of a client can have 10,000.
pub(super) const QUEUE_MAX: usize = 16_384;

/// Commands of one transaction, unless one run alone has more: the locks of its shards are held for a few milliseconds.
pub(super) const BATCH_COMMANDS_MAX: usize = 1_000;

/// When a refused request may be sent again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Requests of one follower that came one after another: they are committed together.
pub(super) struct Run {
    pub(super) shard: Shard,
    pub(super) requests: Vec<WriteRequest>,
    /// From then on it is not tried again.
    pub(super) deadline: Instant,
    reply: oneshot::Sender<Vec<Result<Receipt>>>,
}

impl Run {
    pub(super) fn commands(&self) -> usize {
        self.requests.iter().map(|request| request.commands.len()).sum()
    }

    pub(super) fn answer(self, receipts: Vec<Result<Receipt>>) {
        // The caller may have disconnected; dropping its receipts is fine.
        _ = self.reply.send(receipts);
    }

    /// The same answer to all of its requests.
    pub(super) fn refuse(self, error: &Error) {
        let refused = self.requests.iter().map(|_| Err(error.clone())).collect();
        self.answer(refused);
    }
}

/// The error of a request that finds the queue full.
pub(super) fn overloaded() -> Error {
    Error::Overloaded { retry_after: RETRY_AFTER }
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
        // One map for all of them: those of one follower go the same way.
        let topology = self.shared.topology();
        let enqueue = |requests| self.enqueue(&topology, requests);
        let replies: Vec<_> = runs(requests).into_iter().map(enqueue).collect();
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

    fn enqueue(&self, topology: &Topology, requests: Vec<WriteRequest>) -> Waiting {
        Waiting { count: requests.len(), receipts: self.hand_over(topology, requests) }
    }

    /// Hands a run to its batcher, unless too many wait, or the log of its shard is full.
    fn hand_over(
        &self,
        topology: &Topology,
        requests: Vec<WriteRequest>,
    ) -> Result<oneshot::Receiver<Vec<Result<Receipt>>>> {
        let shard = topology.shard_of(requests[0].follower);
        self.shared.staleness.require_room(shard)?;
        let (reply, receipts) = oneshot::channel();
        let deadline = Instant::now() + self.shared.settings.timeouts.write;
        let sent = self.queue(topology.host_of(shard)).try_send(Run { shard, requests, deadline, reply });
        sent.map(|()| receipts).map_err(|_| overloaded())
    }

    fn queue(&self, host: usize) -> mpsc::Sender<Run> {
        let mut queues = self.queues.lock();
        // A batcher that has ended has panicked: its requests were answered, and the next one starts afresh.
        if let Some(sender) = queues.get(&host).filter(|sender| !sender.is_closed()) {
            return sender.clone();
        }
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        self.runtime.spawn(work(host, BatchWriter::new(Arc::clone(&self.shared)), receiver));
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
async fn work(host: usize, writer: BatchWriter, mut queue: mpsc::Receiver<Run>) {
    let aside = Aside::new(writer.clone());
    while let Some(first) = queue.recv().await {
        let (mut batch, mut commands, mut next) = (Vec::new(), 0, Some(first));
        while let Some(run) = next {
            commands += run.commands();
            batch.extend(aside.follow_on(run));
            next = if commands < BATCH_COMMANDS_MAX { queue.try_recv().ok() } else { None };
        }
        let requests: Vec<&WriteRequest> = batch.iter().flat_map(|run| &run.requests).collect();
        let deadline = Instant::now() + writer.shared.settings.timeouts.write;
        let mut results = writer.write(host, deadline, &requests).await.into_iter();
        for run in batch {
            let own: Vec<_> = results.by_ref().take(run.requests.len()).collect();
            match own.into_iter().collect() {
                Some(receipts) => run.answer(receipts),
                None => aside.set(run),
            }
        }
    }
}
