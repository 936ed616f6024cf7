//! Brings the changes to the filters, as they are brought to the follower sides of the hosts.

use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::Frontier;
use tokio::task::AbortHandle;

use super::build::keep_filters;
use super::filter::Followed;
use crate::Fleet;
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::postgres::Failure;
use crate::project::{Applied, ChangeSource, SourceBatch, Target, TargetLoop};

/// How often a process looks for changes.
const IDLE: Duration = Duration::from_millis(50);

/// Keeps the filters of a process while it is kept.
#[derive(Debug)]
pub struct Filtering {
    tasks: Vec<AbortHandle>,
}

impl Filtering {
    /// Starts to make filters of at most so many bytes together, and to follow what a source brings.
    pub fn start<S: ChangeSource>(fleet: &Fleet, source: &Arc<S>, bytes_max: u64) -> Self {
        let target = FilterTarget { shared: Arc::clone(&fleet.shared) };
        let mut feed = TargetLoop::new(Arc::clone(&fleet.shared), target);
        let source = Arc::clone(source);
        let tasks = vec![
            fleet.handle().spawn(async move { feed.run(&*source).await }).abort_handle(),
            fleet.handle().spawn(keep_filters(Arc::clone(&fleet.shared), bytes_max)).abort_handle(),
        ];
        Self { tasks }
    }

    /// Lets it run until the store is dropped.
    pub fn detach(mut self) {
        self.tasks.clear();
    }
}

impl Drop for Filtering {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// All filters of the process.
struct FilterTarget {
    shared: Arc<Shared>,
}

impl Target for FilterTarget {
    const IDLE: Duration = IDLE;

    fn number(&self) -> usize {
        0
    }

    async fn marks(&self, topology: &Topology) -> Result<Frontier, Failure> {
        Ok(self.shared.filters.positions(topology.epoch))
    }

    async fn apply(&self, topology: &Topology, batches: Vec<SourceBatch>) -> Result<Applied, Failure> {
        let mut applied = Applied::default();
        for mut batch in batches {
            let filter = self.shared.filters.get(topology.epoch, batch.source);
            let Some(filter) = filter.filter(|_| batch.epoch == topology.epoch) else { continue };
            batch.changes.sort_by_key(|logged| logged.change.position.sequence);
            match filter.follow(&batch.changes) {
                Followed::Changes(changes) => applied.changes += changes,
                Followed::Gap(changes) => {
                    applied.changes += changes;
                    applied.gaps.push(batch.source);
                }
                Followed::Unknown => self.shared.filters.remove(batch.source),
            }
        }
        Ok(applied)
    }
}
