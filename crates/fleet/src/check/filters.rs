//! The filters of a process, by shard, and what they say of a check.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use kinfolk_core::histogram::{Histogram, HistogramSnapshot};
use kinfolk_core::{EdgeKind, Epoch, Frontier, Result, Shard, names};
use parking_lot::RwLock;
use tokio::sync::watch;

use super::filter::Filter;
use super::layers::{Asked, CheckLayer, Checks};
use crate::fleet::Shared;

/// The filters of one epoch.
#[derive(Default)]
pub(crate) struct Filters {
    known: RwLock<Known>,
    are_kept: AtomicBool,
    /// Whether every shard was looked at once: what can have a filter soon has it.
    are_made: watch::Sender<bool>,
    counts: [AtomicU64; FilterVerdict::ALL.len()],
    times: Histogram,
    damaged: AtomicU64,
}

#[derive(Default)]
struct Known {
    epoch: Option<Epoch>,
    by_shard: BTreeMap<Shard, Arc<Filter>>,
}

/// What a filter says of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterVerdict {
    /// It does not exist.
    No,
    /// It may exist.
    Perhaps,
    /// The shard has no filter.
    Uncovered,
    /// The filter lacks what the check must show, or nobody knows what that is.
    Behind,
}

names! { FilterVerdict { No => "no", Perhaps => "perhaps", Uncovered => "uncovered", Behind => "behind" } }

/// Asks the filters first.
pub(crate) struct FilterLayer<N> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) next: N,
}

impl<N> FilterLayer<N> {
    /// What is known without waiting for anybody.
    pub(crate) fn answers_now(&self, epoch: Epoch, kind: EdgeKind, asked: &Asked) -> Option<bool> {
        let (filters, began) = (&self.shared.filters, Instant::now());
        let is_excluded = filters.judge(epoch, kind, asked) == FilterVerdict::No;
        if is_excluded {
            filters.count(FilterVerdict::No);
            filters.times.observe(1, began.elapsed());
        }
        is_excluded.then_some(false)
    }
}

impl<N: CheckLayer> CheckLayer for FilterLayer<N> {
    async fn contains(&self, checks: Checks) -> Result<Vec<bool>> {
        let filters = &self.shared.filters;
        if !filters.are_kept() {
            return self.next.contains(checks).await;
        }
        let began = Instant::now();
        let answer = |asked: &Asked| {
            let verdict = filters.judge(checks.topology.epoch, checks.kind, asked);
            filters.count(verdict);
            (verdict == FilterVerdict::No).then_some(false)
        };
        let answers: Vec<Option<bool>> = checks.asked.iter().map(answer).collect();
        let count = answers.len() as u64;
        if count > 0 {
            // Each by itself: they are made one after another.
            filters.times.observe(count, began.elapsed() / count as u32);
        }
        checks.pass_on(answers, &self.next).await
    }
}

impl Filters {
    fn judge(&self, epoch: Epoch, kind: EdgeKind, asked: &Asked) -> FilterVerdict {
        let known = self.known.read();
        let filter = known.by_shard.get(&asked.shard).filter(|_| known.epoch == Some(epoch));
        let Some(filter) = filter else { return FilterVerdict::Uncovered };
        // The position first: the bits are at least as new.
        let position = filter.position();
        if asked.needed.is_none_or(|needed| position < needed) {
            return FilterVerdict::Behind;
        }
        if filter.may_have(kind, asked.edge) { FilterVerdict::Perhaps } else { FilterVerdict::No }
    }

    fn count(&self, verdict: FilterVerdict) {
        self.counts[verdict as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Whether this process has or makes filters at all.
    pub(super) fn are_kept(&self) -> bool {
        self.are_kept.load(Ordering::Relaxed)
    }

    /// From now on filters are made.
    pub(super) fn keep(&self) {
        self.are_kept.store(true, Ordering::Relaxed);
    }

    /// Every shard was looked at.
    pub(super) fn note_made(&self) {
        self.are_made.send_replace(true);
    }

    /// Waits until every shard was looked at, if filters are made at all.
    pub(crate) async fn made(&self) {
        if self.are_kept() {
            // The sender is this.
            _ = self.are_made.subscribe().wait_for(|made| *made).await;
        }
    }

    pub(crate) fn times(&self) -> HistogramSnapshot {
        let mut snapshot = HistogramSnapshot::default();
        self.times.add_to(&mut snapshot);
        snapshot
    }

    /// How many shards have filters, and their memory.
    pub(crate) fn size(&self) -> (usize, u64) {
        let known = self.known.read();
        (known.by_shard.len(), known.by_shard.values().map(|filter| filter.bytes()).sum())
    }

    /// A filter was found to deny an edge that exists.
    pub(super) fn note_damage(&self) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
    }

    /// How many filters were found damaged.
    pub(crate) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// How often each was said.
    pub(crate) fn counts(&self) -> [(FilterVerdict, u64); FilterVerdict::ALL.len()] {
        FilterVerdict::ALL.map(|verdict| (verdict, self.counts[verdict as usize].load(Ordering::Relaxed)))
    }

    /// How far each filter is. Those of another epoch are dropped.
    pub(super) fn positions(&self, epoch: Epoch) -> Frontier {
        if self.known.read().epoch != Some(epoch) {
            *self.known.write() = Known { epoch: Some(epoch), ..Known::default() };
        }
        let known = self.known.read();
        known.by_shard.iter().map(|(shard, filter)| filter.position().on(*shard)).collect()
    }

    pub(super) fn get(&self, epoch: Epoch, shard: Shard) -> Option<Arc<Filter>> {
        let known = self.known.read();
        known.by_shard.get(&shard).filter(|_| known.epoch == Some(epoch)).map(Arc::clone)
    }

    /// Puts a filter in the place of the one before.
    pub(super) fn put(&self, epoch: Epoch, shard: Shard, filter: Filter) {
        let mut known = self.known.write();
        if known.epoch == Some(epoch) {
            known.by_shard.insert(shard, Arc::new(filter));
        }
    }

    pub(super) fn remove(&self, shard: Shard) {
        self.known.write().by_shard.remove(&shard);
    }

    /// The memory of all filters but one.
    pub(super) fn bytes_without(&self, shard: Shard) -> u64 {
        let known = self.known.read();
        known.by_shard.iter().filter(|(other, _)| **other != shard).map(|(_, filter)| filter.bytes()).sum()
    }
}
