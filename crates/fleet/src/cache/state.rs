//! What operators want to know about the cache, as one process sees it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::histogram::HistogramSnapshot;
use kinfolk_core::{Frontier, Sequence, Shard};

use super::{Cache, CacheVerdict, FillOutcome};

/// What the feed of a process has found when it last looked at the watermarks.
#[derive(Default)]
pub(super) struct FeedState {
    behind: AtomicU64,
    unknown: AtomicU64,
    given_up: AtomicU64,
}

impl FeedState {
    /// Notes the lowest watermark of each shard that has any, beside the newest changes, and how many tags nobody could ask.
    pub(super) fn note(&self, lowest: &BTreeMap<Shard, Sequence>, newest: &Frontier, unknown: u64) {
        let behind = |(shard, reached): (&Shard, &Sequence)| {
            newest.get(*shard).map_or(0, |newest| newest.0.saturating_sub(reached.0))
        };
        self.behind.store(lowest.iter().map(behind).max().unwrap_or(0), Ordering::Relaxed);
        self.unknown.store(unknown, Ordering::Relaxed);
    }

    pub(super) fn give_up(&self, tags: u64) {
        self.given_up.fetch_add(tags, Ordering::Relaxed);
    }
}

/// The cache as a process sees it.
#[derive(Clone, Debug)]
pub struct CacheState {
    /// Nodes that serve slots.
    pub nodes: usize,
    /// Those of them that are left out, because they have failed.
    pub nodes_left_out: usize,
    /// What became of checks.
    pub verdicts: [(CacheVerdict, u64); CacheVerdict::ALL.len()],
    /// What became of fills.
    pub fills: [(FillOutcome, u64); FillOutcome::ALL.len()],
    /// How many changes the watermark that is furthest behind lacks, where this process feeds the cache.
    pub changes_behind: u64,
    /// Tags whose nodes did not answer.
    pub tags_unknown: u64,
    /// Tags that were given up because they were too far behind, so far.
    pub tags_given_up: u64,
    /// Generations that fills of this process have begun: each time, the watermark of a tag was not there.
    pub generations: u64,
}

impl Cache {
    pub(crate) fn times(&self) -> HistogramSnapshot {
        self.counts.times()
    }

    pub(crate) fn state(&self) -> CacheState {
        let (nodes, nodes_left_out) = self.cluster.nodes();
        CacheState {
            nodes,
            nodes_left_out,
            verdicts: self.counts.verdicts(),
            fills: self.fills.outcomes(),
            changes_behind: self.feed.behind.load(Ordering::Relaxed),
            tags_unknown: self.feed.unknown.load(Ordering::Relaxed),
            tags_given_up: self.feed.given_up.load(Ordering::Relaxed),
            generations: self.fills.generations(),
        }
    }
}
