//! What the kept answers have done so far, for operators.

use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::names;

use crate::Fleet;

/// How a read of a hot account was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotVerdict {
    /// From a kept answer.
    Kept,
    /// By a statement that another reader has begun.
    Shared,
    /// By a statement that later readers share.
    Read,
    /// By a statement of its own: there was no room, or the host did not show yet what the token covers.
    Passed,
}

names! { HotVerdict { Kept => "kept", Shared => "shared", Read => "read", Passed => "passed" } }

/// How often each was so.
#[derive(Default)]
pub(super) struct Verdicts([AtomicU64; HotVerdict::ALL.len()]);

impl Verdicts {
    pub(super) fn add(&self, verdict: HotVerdict) {
        self.0[verdict as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> [u64; HotVerdict::ALL.len()] {
        HotVerdict::ALL.map(|verdict| self.0[verdict as usize].load(Ordering::Relaxed))
    }
}

/// The hot accounts of a process.
#[derive(Clone, Debug)]
pub struct HotState {
    /// Reads of first pages and of counts, by how they were answered. Those of accounts that are not hot are not counted.
    pub verdicts: [(HotVerdict, u64); HotVerdict::ALL.len()],
    /// First pages and counts that are kept.
    pub entries: usize,
}

impl Fleet {
    /// What was kept of hot accounts, and what became of their reads so far.
    pub fn hot_state(&self) -> HotState {
        let hot = &self.shared.hot;
        let ((pages, of_pages), (counts, of_counts)) = (hot.first_pages.state(), hot.counts.state());
        let both = |verdict: HotVerdict| of_pages[verdict as usize] + of_counts[verdict as usize];
        HotState {
            verdicts: HotVerdict::ALL.map(|verdict| (verdict, both(verdict))),
            entries: pages + counts,
        }
    }
}
