//! The reconciler: compares what is derived with the truth all the time, at a bounded pace, and repairs what has differed for a
//! while.
//!
//! A shard is walked by the process that has its lock. Two at once would be harmless: a difference is repaired in a transaction
//! that looks at it once more, under the locks of those who change it.

mod pace;
mod run;
mod state;
mod turns;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use self::run::Run;
pub use self::state::ReconcileState;
pub(crate) use self::state::Reconciled;
use crate::Fleet;
use crate::background::Background;

/// How a process reconciles.
#[derive(Clone, Copy, Debug)]
pub struct Reconciling {
    /// Rows that are compared in a second, at most. With 0, nothing is.
    pub rows_per_second: u32,
    /// What differs is repaired if it still does so long after it was found.
    pub delay: Duration,
}

impl Reconciling {
    /// The usual delay, at some pace.
    pub fn new(rows_per_second: u32) -> Self {
        Self { rows_per_second, delay: Duration::from_secs(30) }
    }
}

/// Reconciles all shards while it is kept. Any number of processes may do so; they share the shards.
pub struct Reconciler(Option<Background>);

impl Reconciler {
    /// Starts to reconcile a fleet.
    pub fn start(fleet: &Fleet, reconciling: Reconciling) -> Self {
        if reconciling.rows_per_second == 0 {
            return Self(None);
        }
        fleet.shared.reconciled.start();
        let shared = Arc::clone(&fleet.shared);
        let run = move || {
            let run = Run::new(Arc::clone(&shared), reconciling);
            async move { run.run().await }
        };
        Self(Some(Background::start(fleet.handle(), "reconciler", run)))
    }

    /// Lets it run until the store is dropped.
    pub fn detach(self) {
        self.0.into_iter().for_each(Background::detach);
    }
}
