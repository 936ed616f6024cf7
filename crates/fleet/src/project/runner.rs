//! Projection as a task of a process: one loop for each host, until it is dropped.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::{Frontier, Position, Shard};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::apply::{Applied, apply};
use super::{ChangeSource, LogSource, SourceBatch};
use crate::Fleet;
use crate::background::Background;
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::log::marks;
use crate::postgres::Failure;
use crate::read::Sampled;

/// Changes that one transaction applies at most.
const BATCH_MAX: usize = 2_000;

/// The time between two looks for marks that stand still.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// How often hosts are looked for that were added to the fleet.
const NEW_HOSTS_EVERY: Duration = Duration::from_millis(500);

/// Projects the logs of all sources to every host while it is kept. Any number of processes may do so at once.
///
/// A transaction that is in the middle when it ends is rolled back by its host, or committed: both are fine.
pub struct Projection {
    task: Background,
}

impl Projection {
    /// Starts to project what a source brings.
    pub fn start<S: ChangeSource>(fleet: &Fleet, source: &Arc<S>) -> Self {
        let (shared, source) = (Arc::clone(&fleet.shared), Arc::clone(source));
        let project = move || project(Arc::clone(&shared), Arc::clone(&source));
        Self { task: Background::start(fleet.handle(), "projection", project) }
    }

    /// Lets it run until the store is dropped.
    pub fn detach(self) {
        self.task.detach();
    }
}

/// Keeps a loop for each host, those that are added later included.
async fn project<S: ChangeSource>(shared: Arc<Shared>, source: Arc<S>) {
    let mut loops = Vec::new();
    loop {
        for host in loops.len()..shared.topology().hosts.len() {
            let (shared, source) = (Arc::clone(&shared), Arc::clone(&source));
            let project = move || {
                let (shared, source) = (Arc::clone(&shared), Arc::clone(&source));
                let target = HostTarget { shared: Arc::clone(&shared), host };
                async move { TargetLoop::new(shared, target).run(&*source).await }
            };
            loops.push(Background::start(&Handle::current(), "projection to a host", project));
        }
        sleep(NEW_HOSTS_EVERY).await;
    }
}

/// How often changes are brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The pause after a round without changes.
    pub(crate) idle: Duration,
    /// After some changes there are more to come: a pause makes the next round larger, and all of them cheaper. A round asks every
    /// shard, however few have changed.
    pub(crate) busy: Duration,
    /// Whether a write through this process ends the pause.
    pub(crate) hears_of_writes: bool,
    /// How often the logs are read directly, whatever the source brings. While a topic changes hands, or its relay does, nobody may bring
    /// some changes for a second or two, and reads wait no longer than one.
    pub(crate) sweep: Option<Duration>,
}

/// What changes are brought to.
pub(crate) trait Target: Send + Sync {
    /// How often changes are brought to it.
    const PACE: Pace;

    /// What the source of changes knows it by.
    fn number(&self) -> usize;

    /// How far it shows each source.
    fn marks(&self, topology: &Topology) -> impl Future<Output = Result<Frontier, Failure>> + Send;

    /// Applies what follows on its marks.
    fn apply(
        &self,
        topology: &Topology,
        batches: Vec<SourceBatch>,
    ) -> impl Future<Output = Result<Applied, Failure>> + Send;
}

/// The follower side of a host.
struct HostTarget {
    shared: Arc<Shared>,
    host: usize,
}

impl Target for HostTarget {
    const PACE: Pace = Pace {
        idle: Duration::from_millis(5),
        busy: Duration::from_millis(10),
        hears_of_writes: true,
        sweep: Some(Duration::from_millis(250)),
    };

    fn number(&self) -> usize {
        self.host
    }

    async fn marks(&self, topology: &Topology) -> Result<Frontier, Failure> {
        let sources: Vec<Shard> = topology.shards().collect();
        let marks = marks(&self.shared, &topology.hosts[self.host], topology.epoch, &sources).await?;
        // Marks of another epoch: this process has not heard of it yet.
        if marks.iter().len() < sources.len() { Err(Failure::Moved) } else { Ok(marks) }
    }

    async fn apply(&self, topology: &Topology, batches: Vec<SourceBatch>) -> Result<Applied, Failure> {
        apply(&self.shared, topology, self.host, batches).await
    }
}

/// Brings changes to a target, again and again.
pub(crate) struct TargetLoop<T> {
    shared: Arc<Shared>,
    target: T,
    stalls: Stalls,
    /// Sources whose next changes are read from the log, because the source of changes has not brought them.
    from_log: BTreeSet<Shard>,
    swept_at: Instant,
}

impl<T: Target> TargetLoop<T> {
    pub(crate) fn new(shared: Arc<Shared>, target: T) -> Self {
        let (stalls, from_log, swept_at) = (Stalls::default(), BTreeSet::new(), Instant::now());
        Self { shared, target, stalls, from_log, swept_at }
    }

    pub(crate) async fn run<S: ChangeSource>(&mut self, source: &S) {
        let mut progress = self.shared.watch_progress();
        let mut samples = self.shared.staleness.watch();
        loop {
            progress.mark_unchanged();
            match self.round(source, &mut samples).await {
                Ok(0) if T::PACE.hears_of_writes => _ = timeout(T::PACE.idle, progress.changed()).await,
                Ok(0) => sleep(T::PACE.idle).await,
                Ok(count) => {
                    self.shared.announce_progress();
                    if count < BATCH_MAX {
                        sleep(T::PACE.busy).await;
                    }
                }
                Err(failure) => {
                    tracing::debug!(target = self.target.number(), ?failure, "changes could not be brought");
                    sleep(AFTER_FAILURE).await;
                    // Whether or not that succeeds, the next round finds out what is wrong.
                    _ = self.shared.reload_topology().await;
                }
            }
        }
    }

    /// Reads and applies what follows on the marks. Returns by how many changes they moved.
    async fn round<S: ChangeSource>(
        &mut self,
        source: &S,
        samples: &mut watch::Receiver<Sampled>,
    ) -> Result<usize, Failure> {
        let topology = self.shared.topology();
        let after = self.target.marks(&topology).await?;
        if self.stalls.is_due() && samples.has_changed().unwrap_or(false) {
            let (newest, is_moved) = {
                let sampled = samples.borrow_and_update();
                (sampled.newest.clone(), sampled.is_moved)
            };
            if is_moved {
                // Nobody brings the changes of a shard that is looked for on its old host.
                self.shared.reload_moved_shards().await?;
            }
            self.from_log.extend(self.stalls.look(&after, newest));
        }
        if T::PACE.sweep.is_some_and(|every| self.swept_at.elapsed() >= every) {
            self.from_log.extend(after.iter().map(|mark| mark.shard));
            self.swept_at = Instant::now();
        }
        let batches =
            source.changes(self.target.number(), &after, BATCH_MAX).await.map_err(Failure::Transient)?;
        let applied = self.apply(&topology, batches).await?;
        self.from_log.extend(applied.gaps);
        if self.from_log.is_empty() {
            return Ok(applied.changes);
        }
        let missing = after.iter().filter(|mark| self.from_log.contains(&mark.shard)).collect();
        let log = LogSource::of(Arc::clone(&self.shared));
        let batches =
            log.changes(self.target.number(), &missing, BATCH_MAX).await.map_err(Failure::Transient)?;
        if batches.iter().map(|batch| batch.changes.len()).sum::<usize>() < BATCH_MAX {
            // That was all.
            self.from_log.clear();
        }
        Ok(applied.changes + self.apply(&topology, batches).await?.changes)
    }

    async fn apply(&self, topology: &Topology, batches: Vec<SourceBatch>) -> Result<Applied, Failure> {
        if batches.is_empty() {
            return Ok(Applied::default());
        }
        self.target.apply(topology, batches).await
    }
}

/// Finds marks that stand still although the logs have more: nobody brings those changes, whatever the reason. A topic that
/// has lost them looks just like one without any.
#[derive(Default)]
struct Stalls {
    marks: Frontier,
    newest: Frontier,
    looked_at: Option<Instant>,
}

impl Stalls {
    /// Whether the last look is long enough ago: the samples of the hosts come one by one.
    fn is_due(&self) -> bool {
        self.looked_at.is_none_or(|at| at.elapsed() >= LOOK_EVERY)
    }

    /// Compares the marks with those at the last sample, and with the newest positions that it had found.
    fn look(&mut self, marks: &Frontier, newest: Frontier) -> Vec<Shard> {
        let stands_still = |mark: &Position| {
            self.marks.get(mark.shard) == Some(mark.sequence)
                && self.newest.get(mark.shard).is_some_and(|newest| newest > mark.sequence)
        };
        let stalled = marks.iter().filter(stands_still).map(|mark| mark.shard).collect();
        *self = Self { marks: marks.clone(), newest, looked_at: Some(Instant::now()) };
        stalled
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::Sequence;

    use super::*;

    fn frontier(first: u64, second: u64) -> Frontier {
        [Sequence(first).on(Shard(0)), Sequence(second).on(Shard(1))].into_iter().collect()
    }

    #[test]
    fn a_mark_that_stands_still_behind_its_log_is_stalled() {
        let mut stalls = Stalls::default();
        assert_eq!(stalls.look(&frontier(1, 1), frontier(5, 5)), []);
        assert_eq!(stalls.look(&frontier(1, 2), frontier(5, 5)), [Shard(0)], "the second moves");
        assert_eq!(stalls.look(&frontier(5, 5), frontier(5, 6)), []);
        assert_eq!(stalls.look(&frontier(5, 5), frontier(5, 6)), [Shard(1)], "the first has all there is");
    }
}
