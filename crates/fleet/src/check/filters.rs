//! The filters of a process, by shard, and what they say of a check.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Epoch, Frontier, Sequence, Shard, names};
use parking_lot::RwLock;

use super::filter::Filter;

/// The filters of one epoch.
#[derive(Default)]
pub(crate) struct Filters {
    known: RwLock<Known>,
    counts: [AtomicU64; Verdict::ALL.len()],
}

#[derive(Default)]
struct Known {
    epoch: Option<Epoch>,
    by_shard: BTreeMap<Shard, Arc<Filter>>,
}

/// What a filter says of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does not exist.
    No,
    /// It may exist.
    Perhaps,
    /// The shard has no filter.
    Uncovered,
    /// The filter lacks what the check must show, or nobody knows what that is.
    Behind,
}

names! { Verdict { No => "no", Perhaps => "perhaps", Uncovered => "uncovered", Behind => "behind" } }

/// A check, and what its answer must show.
pub(super) struct Asked {
    pub(super) epoch: Epoch,
    pub(super) shard: Shard,
    pub(super) kind: EdgeKind,
    pub(super) edge: Edge,
    /// The newest position of the shard of at most two seconds ago. None if nobody knows it.
    pub(super) recent: Option<Sequence>,
    /// What the caller has seen of the shard.
    pub(super) at_least: Sequence,
}

impl Filters {
    pub(super) fn judge(&self, asked: &Asked) -> Verdict {
        let known = self.known.read();
        let filter = known.by_shard.get(&asked.shard).filter(|_| known.epoch == Some(asked.epoch));
        let Some(filter) = filter else { return Verdict::Uncovered };
        // The position first: the bits are at least as new.
        let position = filter.position();
        if asked.recent.is_none_or(|recent| position < recent) || position < asked.at_least {
            return Verdict::Behind;
        }
        if filter.may_have(asked.kind, asked.edge) { Verdict::Perhaps } else { Verdict::No }
    }

    pub(super) fn count(&self, verdict: Verdict) {
        self.counts[verdict as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often each was said.
    pub(crate) fn counts(&self) -> [(Verdict, u64); Verdict::ALL.len()] {
        Verdict::ALL.map(|verdict| (verdict, self.counts[verdict as usize].load(Ordering::Relaxed)))
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
