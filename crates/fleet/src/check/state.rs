//! What the layers have done so far, for operators.

use kinfolk_core::histogram::HistogramSnapshot;

use super::{FilterVerdict, ShardVerdict};
use crate::Fleet;
use crate::cache::CacheState;

/// The layers of checks as a process sees them.
#[derive(Clone, Debug)]
pub struct LayerStates {
    /// The filters, if the process keeps any.
    pub filters: Option<FilterState>,
    /// The cache, if the fleet has one.
    pub cache: Option<CacheState>,
    /// What the shards have said of checks.
    pub shards: [(ShardVerdict, u64); ShardVerdict::ALL.len()],
}

/// The filters of a process.
#[derive(Clone, Debug)]
pub struct FilterState {
    /// What they have said of checks.
    pub verdicts: [(FilterVerdict, u64); FilterVerdict::ALL.len()],
    /// How many shards have one.
    pub shards: usize,
    /// Their memory.
    pub bytes: u64,
    /// How many were found to deny an edge that exists.
    pub damaged: u64,
}

impl Fleet {
    /// What the layers of checks have done so far.
    pub fn layer_states(&self) -> LayerStates {
        let filters = &self.shared.filters;
        let state = || {
            let (shards, bytes) = filters.size();
            FilterState { verdicts: filters.counts(), shards, bytes, damaged: filters.damaged() }
        };
        LayerStates {
            filters: filters.are_kept().then(state),
            cache: self.shared.cache.as_ref().map(crate::cache::Cache::state),
            shards: self.shared.shard_counts.verdicts(),
        }
    }

    /// How long each layer took for checks, by its name.
    pub fn layer_times(&self) -> Vec<(&'static str, HistogramSnapshot)> {
        let filters = &self.shared.filters;
        let filter = filters.are_kept().then(|| ("check_filter", filters.times()));
        let cache = self.shared.cache.as_ref().map(|cache| ("check_cache", cache.times()));
        let shard = ("check_shard", self.shared.shard_counts.times());
        filter.into_iter().chain(cache).chain([shard]).collect()
    }
}
