//! Projection as a task of a process: one loop for each host, until it is dropped.

use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::Shard;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::apply::{apply, marks};
use super::{ChangeSource, LogSource};
use crate::Fleet;
use crate::fleet::Shared;
use crate::postgres::Failure;

/// Changes that one transaction applies at most.
const BATCH_MAX: usize = 2_000;

/// How often a loop looks for changes that other processes have written.
const IDLE: Duration = Duration::from_millis(5);

/// After some changes there are more to come: a pause makes the next round larger, and all of them cheaper. A round asks every
/// shard, however few have changed.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// The pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Projects the logs of all sources to every host while it is kept. Any number of processes may do so at once.
#[derive(Debug)]
pub struct Projection {
    tasks: Vec<AbortHandle>,
}

impl Projection {
    /// Starts to project what a source brings.
    pub fn start<S: ChangeSource>(fleet: &Fleet, source: &Arc<S>) -> Self {
        let hosts = 0..fleet.shared.topology().hosts.len();
        let task = |host| {
            let (shared, source) = (Arc::clone(&fleet.shared), Arc::clone(source));
            fleet.handle().spawn(async move { HostLoop { shared, host }.run(&*source).await }).abort_handle()
        };
        Self { tasks: hosts.map(task).collect() }
    }

    /// Lets it run until the store is dropped.
    pub fn detach(mut self) {
        self.tasks.clear();
    }
}

impl Drop for Projection {
    fn drop(&mut self) {
        // A transaction in the middle is rolled back by its host, or committed: both are fine.
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

struct HostLoop {
    shared: Arc<Shared>,
    host: usize,
}

impl HostLoop {
    async fn run<S: ChangeSource>(&self, source: &S) {
        let mut progress = self.shared.watch_progress();
        loop {
            progress.mark_unchanged();
            match self.round(source).await {
                Ok(0) => _ = timeout(IDLE, progress.changed()).await,
                Ok(count) => {
                    self.shared.announce_progress();
                    if count < BATCH_MAX {
                        tokio::time::sleep(BUSY_PAUSE).await;
                    }
                }
                Err(failure) => {
                    tracing::debug!(host = self.host, ?failure, "projection failed and is tried again");
                    tokio::time::sleep(AFTER_FAILURE).await;
                    // Whether or not that succeeds, the next round finds out what is wrong.
                    _ = self.shared.reload_topology().await;
                }
            }
        }
    }

    /// Reads and applies what follows on the marks. Returns by how many changes they moved.
    async fn round<S: ChangeSource>(&self, source: &S) -> Result<usize, Failure> {
        let topology = self.shared.topology();
        let host = &topology.hosts[self.host];
        let sources: Vec<Shard> = topology.shards().collect();
        let after = marks(&self.shared, host, topology.epoch, &sources).await?;
        if after.iter().len() < sources.len() {
            // Marks of another epoch: this process has not heard of it yet.
            return Err(Failure::Moved);
        }
        let batches = source.changes(&after, BATCH_MAX).await.map_err(Failure::Transient)?;
        if batches.is_empty() {
            return Ok(0);
        }
        let applied = apply(&self.shared, &topology, self.host, batches).await?;
        if applied.gaps.is_empty() {
            return Ok(applied.changes);
        }
        let missing = after.iter().filter(|mark| applied.gaps.contains(&mark.shard)).collect();
        let log = LogSource::of(Arc::clone(&self.shared));
        let batches = log.changes(&missing, BATCH_MAX).await.map_err(Failure::Transient)?;
        let filled = apply(&self.shared, &topology, self.host, batches).await?;
        Ok(applied.changes + filled.changes)
    }
}
