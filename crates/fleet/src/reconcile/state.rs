//! What a reconciler has done so far, for operators.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Fleet;

/// What the reconciler of a process has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReconcileState {
    /// Rows that were compared.
    pub rows: u64,
    /// Ranges whose rows were read, because their checksums differed.
    pub ranges_differed: u64,
    /// Differences that were found, each once for as long as it lasts.
    pub differences: u64,
    /// Differences that were repaired.
    pub repaired: u64,
    /// Differences that were found and wait for their second look.
    pub waiting: u64,
    /// The time since every shard was compared, or since the start.
    pub pass_age: Duration,
}

/// Counts what a reconciler does.
#[derive(Default)]
pub(crate) struct Reconciled {
    pub(super) rows: AtomicU64,
    pub(super) ranges_differed: AtomicU64,
    pub(super) differences: AtomicU64,
    pub(super) repaired: AtomicU64,
    pub(super) waiting: AtomicU64,
    /// The end of the last pass, or the start. None where nothing is reconciled.
    passed: Mutex<Option<Instant>>,
}

impl Reconciled {
    pub(super) fn start(&self) {
        *self.passed.lock() = Some(Instant::now());
    }

    /// Every shard was compared.
    pub(super) fn passed(&self) {
        *self.passed.lock() = Some(Instant::now());
    }

    fn state(&self) -> Option<ReconcileState> {
        let passed = (*self.passed.lock())?;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Some(ReconcileState {
            rows: count(&self.rows),
            ranges_differed: count(&self.ranges_differed),
            differences: count(&self.differences),
            repaired: count(&self.repaired),
            waiting: count(&self.waiting),
            pass_age: passed.elapsed(),
        })
    }
}

impl Fleet {
    /// What the reconciler of this process has done so far, if there is one.
    pub fn reconcile_state(&self) -> Option<ReconcileState> {
        self.shared.reconciled.state()
    }
}
