//! Brings the changes to the filters, as they are brought to the follower sides of the hosts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::Frontier;

use super::build::keep_filters;
use super::filter::Followed;
use super::saved::save_all;
use crate::Fleet;
use crate::background::Background;
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::postgres::Failure;
use crate::project::{Applied, ChangeSource, Pace, SourceBatch, Target, TargetLoop};

/// What filters may take, and where they are saved.
#[derive(Clone, Debug)]
pub struct FilterSettings {
    /// The memory of all filters together.
    pub bytes_max: u64,
    /// The folder that they are saved in, so that a process that starts again need not read all edges.
    pub folder: Option<PathBuf>,
}

/// Keeps the filters of a process while it is kept.
pub struct Filtering {
    shared: Arc<Shared>,
    settings: FilterSettings,
    tasks: Vec<Background>,
}

impl Filtering {
    /// Starts to make filters, and to follow what a source brings.
    pub fn start<S: ChangeSource>(fleet: &Fleet, source: &Arc<S>, settings: FilterSettings) -> Self {
        let shared = Arc::clone(&fleet.shared);
        shared.filters.keep();
        let (source, of_feed) = (Arc::clone(source), Arc::clone(&shared));
        let feed = move || {
            let (shared, source) = (Arc::clone(&of_feed), Arc::clone(&source));
            let target = FilterTarget { shared: Arc::clone(&shared) };
            async move { TargetLoop::new(shared, target).run(&*source).await }
        };
        let (of_keep, kept) = (Arc::clone(&shared), settings.clone());
        let keep = move || keep_filters(Arc::clone(&of_keep), kept.clone());
        let tasks = vec![
            Background::start(fleet.handle(), "feed of the filters", feed),
            Background::start(fleet.handle(), "filters", keep),
        ];
        Self { shared, settings, tasks }
    }

    /// Lets it run until the store is dropped.
    pub fn detach(self) {
        self.tasks.into_iter().for_each(Background::detach);
    }

    /// Ends it, and saves the filters. Blocks while it writes them.
    pub fn stop(self) {
        drop(self.tasks);
        if let Some(folder) = &self.settings.folder {
            save_all(&self.shared, folder);
        }
    }
}

/// All filters of the process.
struct FilterTarget {
    shared: Arc<Shared>,
}

impl Target for FilterTarget {
    const PACE: Pace = Pace {
        idle: Duration::from_millis(50),
        busy: Duration::from_millis(10),
        hears_of_writes: false,
        sweep: None,
    };

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
