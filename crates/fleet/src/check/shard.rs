//! The last layer of checks: the shard itself. Checks that come while others are under way wait for each other and go together, so that
//! a host is asked few large questions instead of many small ones, however many checks come.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::{join_all, try_join_all};
use kinfolk_core::graph::Edge;
use kinfolk_core::histogram::{Histogram, HistogramSnapshot};
use kinfolk_core::{EdgeKind, Epoch, Error, Frontier, Result, names};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::layers::{CheckLayer, Checks};
use crate::fleet::Shared;
use crate::read::Reader;

/// Statements that a process has under way on a host at once, for each kind of edges.
const STATEMENTS_MAX: usize = 4;

/// Checks of one statement, about.
const CHECKS_MAX: usize = 1_000;

/// Checks of one kind that wait for one host; more are refused.
const WAITING_MAX: usize = 50_000;

/// When a refused check may be made again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// What the shards have said of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardVerdict {
    /// The edge exists.
    Yes,
    /// It does not exist.
    No,
    /// Its host has not answered, or is asked for too much.
    Failed,
}

names! { ShardVerdict { Yes => "yes", No => "no", Failed => "failed" } }

/// What the shards have said so far, and how long it took.
#[derive(Default)]
pub(crate) struct ShardCounts {
    verdicts: [AtomicU64; ShardVerdict::ALL.len()],
    times: Histogram,
}

impl ShardCounts {
    fn add(&self, verdict: ShardVerdict, count: usize) {
        self.verdicts[verdict as usize].fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn verdicts(&self) -> [(ShardVerdict, u64); ShardVerdict::ALL.len()] {
        ShardVerdict::ALL.map(|verdict| (verdict, self.verdicts[verdict as usize].load(Ordering::Relaxed)))
    }

    pub(crate) fn times(&self) -> HistogramSnapshot {
        let mut snapshot = HistogramSnapshot::default();
        self.times.add_to(&mut snapshot);
        snapshot
    }
}

/// Checks of one kind on one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Destination {
    host: usize,
    kind: EdgeKind,
}

/// Edges that are asked for together, and who waits for them.
struct Waiting {
    edges: Vec<Edge>,
    /// What the caller has seen, and in which epoch.
    at_least: Frontier,
    epoch: Epoch,
    reply: oneshot::Sender<Result<Vec<bool>>>,
}

/// What waits for a destination.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// How many edges that are.
    edges: usize,
    /// How many statements are under way.
    running: usize,
}

/// Asks the shards.
pub(crate) struct ShardLayer(Arc<Gathering>);

struct Gathering {
    shared: Arc<Shared>,
    queues: Mutex<BTreeMap<Destination, Queue>>,
}

impl ShardLayer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(Arc::new(Gathering { shared, queues: Mutex::default() }))
    }
}

impl CheckLayer for ShardLayer {
    async fn contains(&self, checks: Checks) -> Result<Vec<bool>> {
        let began = Instant::now();
        let counts = &self.0.shared.shard_counts;
        let count = checks.asked.len();
        let found = self.0.ask(checks).await;
        counts.times.observe(count as u64, began.elapsed());
        match &found {
            Ok(found) => {
                let exist = found.iter().filter(|exists| **exists).count();
                counts.add(ShardVerdict::Yes, exist);
                counts.add(ShardVerdict::No, count - exist);
            }
            Err(_) => counts.add(ShardVerdict::Failed, count),
        }
        found
    }
}

impl Gathering {
    async fn ask(self: &Arc<Self>, checks: Checks) -> Result<Vec<bool>> {
        let Checks { topology, kind, at_least, asked } = checks;
        let epoch = topology.epoch;
        let is_visible = asked.iter().all(|asked| {
            let known = self.shared.staleness.newest_of(topology.epoch, asked.shard);
            let own = self.shared.acknowledged.get(topology.epoch, asked.shard);
            at_least.get(asked.shard).is_none_or(|seen| seen <= known.max(own))
        });
        let mut by_host: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, asked) in asked.iter().enumerate() {
            by_host.entry(topology.host_of(asked.shard)).or_default().push(index);
        }
        let parts = by_host.into_iter().map(|(host, indexes)| {
            let edges: Vec<Edge> = indexes.iter().map(|&index| asked[index].edge).collect();
            let (destination, at_least) = (Destination { host, kind }, at_least.clone());
            async move {
                // One that may have to wait for its position waits alone.
                let (reply, answered) = oneshot::channel();
                let waiting = Waiting { edges, at_least, epoch, reply };
                if is_visible {
                    self.enqueue(destination, waiting)?;
                } else {
                    self.ask_alone(kind, waiting).await;
                }
                let found = answered.await.unwrap_or(Err(Error::Closed))?;
                Ok::<_, Error>(indexes.into_iter().zip(found))
            }
        });
        let mut found = vec![false; asked.len()];
        let parts = try_join_all(parts).await?;
        parts.into_iter().flatten().for_each(|(index, exists)| found[index] = exists);
        Ok(found)
    }

    /// Lets edges wait for a statement. While fewer than may be are under way, one begins at once.
    fn enqueue(self: &Arc<Self>, to: Destination, waiting: Waiting) -> Result<()> {
        let mut queues = self.queues.lock();
        let queue = queues.entry(to).or_default();
        if queue.edges + waiting.edges.len() > WAITING_MAX {
            return Err(Error::Overloaded { retry_after: RETRY_AFTER });
        }
        queue.edges += waiting.edges.len();
        queue.waiting.push_back(waiting);
        if queue.running < STATEMENTS_MAX {
            queue.running += 1;
            tokio::spawn(Arc::clone(self).work(to));
        }
        Ok(())
    }

    /// Asks one question after another, until nothing waits.
    async fn work(self: Arc<Self>, of: Destination) {
        let mut running = Running { gathering: &self, of, is_over: false };
        while let Some(batch) = running.next() {
            let edges: Arc<[Edge]> = batch.iter().flat_map(|waiting| waiting.edges.iter().copied()).collect();
            let mut at_least = Frontier::default();
            batch.iter().for_each(|waiting| at_least.join(&waiting.at_least));
            // Those of one batch are of one epoch.
            let Some(epoch) = batch.first().map(|first| first.epoch) else { continue };
            let found = match exist(&self.shared, of.kind, edges, (epoch, at_least)).await {
                Ok(found) => found,
                // What one of them has seen is the reason, which is none for the others.
                Err(Error::NotYetVisible { .. } | Error::TokenFromOtherEpoch) => {
                    join_all(batch.into_iter().map(|waiting| self.ask_alone(of.kind, waiting))).await;
                    continue;
                }
                Err(error) => {
                    batch.into_iter().for_each(|waiting| _ = waiting.reply.send(Err(error.clone())));
                    continue;
                }
            };
            let mut at = 0;
            for Waiting { edges, reply, .. } in batch {
                let own = at..at + edges.len();
                at = own.end;
                // Who has asked may be gone.
                _ = reply.send(Ok(found[own].to_vec()));
            }
        }
    }

    async fn ask_alone(&self, kind: EdgeKind, Waiting { edges, at_least, epoch, reply }: Waiting) {
        // Who has asked may be gone.
        _ = reply.send(exist(&self.shared, kind, edges.into(), (epoch, at_least)).await);
    }
}

/// A task that asks questions. If it ends before it has found nothing to ask, another may take its place.
struct Running<'a> {
    gathering: &'a Gathering,
    of: Destination,
    is_over: bool,
}

impl Running<'_> {
    /// What waits, up to one statement's worth.
    fn next(&mut self) -> Option<Vec<Waiting>> {
        let mut queues = self.gathering.queues.lock();
        let queue = queues.entry(self.of).or_default();
        let (mut batch, mut edges) = (Vec::new(), 0);
        let epoch = queue.waiting.front().map(|first| first.epoch);
        while edges < CHECKS_MAX
            && let Some(waiting) = queue.waiting.pop_front_if(|next| Some(next.epoch) == epoch)
        {
            queue.edges -= waiting.edges.len();
            // Who has asked may be gone.
            if !waiting.reply.is_closed() {
                edges += waiting.edges.len();
                batch.push(waiting);
            }
        }
        if batch.is_empty() && queue.waiting.is_empty() {
            queue.running -= 1;
            self.is_over = true;
            return None;
        }
        Some(batch)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.gathering.queues.lock().entry(self.of).or_default().running -= 1;
        }
    }
}

/// Whether edges exist, as the primary keys of their shards say, where at least what was seen in an epoch is shown.
async fn exist(
    shared: &Arc<Shared>,
    kind: EdgeKind,
    edges: Arc<[Edge]>,
    (epoch, at_least): (Epoch, Frontier),
) -> Result<Vec<bool>> {
    let since = Reader::run_in(Arc::clone(shared), epoch, at_least, move |reader| {
        let edges = Arc::clone(&edges);
        async move { reader.since(kind, &edges).await }
    });
    Ok(since.await?.into_iter().map(|since| since.is_some()).collect())
}
