//! Writes to shards that take none for a moment, because they are being moved: they wait aside, so that the other shards of their host go
//! on. Those of a shard stay in their order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use kinfolk_core::Shard;
use kinfolk_core::graph::WriteRequest;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::batcher::{BATCH_COMMANDS_MAX, QUEUE_MAX, Run, overloaded};
use super::transaction::{BatchWriter, PAUSE_MAX, PAUSE_MIN};
use crate::postgres::Failure;

/// Runs that wait for their shards. While a shard has an entry, a task writes its runs, and nobody else does.
#[derive(Clone)]
pub(super) struct Aside {
    writer: BatchWriter,
    waiting: Arc<Mutex<BTreeMap<Shard, VecDeque<Run>>>>,
}

impl Aside {
    pub(super) fn new(writer: BatchWriter) -> Self {
        Self { writer, waiting: Arc::default() }
    }

    /// Returns a run that may be written now. One that follows on others of its shard waits behind them.
    pub(super) fn follow_on(&self, run: Run) -> Option<Run> {
        match self.waiting.lock().get_mut(&run.shard) {
            Some(queue) if queue.len() < QUEUE_MAX => queue.push_back(run),
            Some(_) => run.refuse(&overloaded()),
            None => return Some(run),
        }
        None
    }

    /// Sets a run aside whose shard was refused.
    pub(super) fn set(&self, run: Run) {
        let shard = run.shard;
        let Some(run) = self.follow_on(run) else { return };
        self.waiting.lock().insert(shard, [run].into());
        let aside = self.clone();
        tokio::spawn(async move {
            let written = tokio::spawn(aside.clone().write(shard)).await;
            if written.is_err() {
                // It has panicked. Those who wait are told that nobody knows.
                aside.waiting.lock().remove(&shard);
            }
        });
    }

    /// Writes the runs of a shard, wherever it is, until none is left.
    async fn write(self, shard: Shard) {
        let (mut batch, mut pause) = (VecDeque::new(), PAUSE_MIN);
        while let Some(deadline) = self.fill(shard, &mut batch) {
            let requests: Vec<&WriteRequest> = batch.iter().flat_map(|run: &Run| &run.requests).collect();
            let host = self.writer.shared.topology().host_of(shard);
            let results: Option<Vec<_>> =
                self.writer.write(host, deadline, &requests).await.into_iter().collect();
            if let Some(results) = results {
                let mut results = results.into_iter();
                for run in batch.drain(..) {
                    let own = results.by_ref().take(run.requests.len()).collect();
                    run.answer(own);
                }
                pause = PAUSE_MIN;
                continue;
            }
            while let Some(late) = batch.pop_front_if(|run| run.deadline <= Instant::now() + pause) {
                refuse_late(shard, late);
            }
            // Whether or not that succeeds, the next attempt finds out.
            _ = self.writer.shared.reload_topology().await;
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Adds runs to a batch while it is small, but for those that are late: their clients may have given up, and must not be
    /// surprised. Returns when the first of it is late, or forgets the shard if there is none.
    fn fill(&self, shard: Shard, batch: &mut VecDeque<Run>) -> Option<Instant> {
        let mut waiting = self.waiting.lock();
        let queue = waiting.get_mut(&shard)?;
        let now = Instant::now();
        let mut commands: usize = batch.iter().map(Run::commands).sum();
        while commands < BATCH_COMMANDS_MAX {
            let Some(next) = queue.pop_front() else { break };
            if next.deadline <= now {
                refuse_late(shard, next);
                continue;
            }
            commands += next.commands();
            batch.push_back(next);
        }
        let first = batch.front().map(|run| run.deadline);
        if first.is_none() {
            waiting.remove(&shard);
        }
        first
    }
}

fn refuse_late(shard: Shard, run: Run) {
    tracing::warn!(shard = shard.0, "a shard that is being moved takes no writes");
    run.refuse(&Failure::Moved.into_error());
}
