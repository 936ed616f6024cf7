//! The reference for histories of stores with any number of shards: one [`Model`] for the truth of each.

use std::num::NonZeroU16;

use kinfolk_core::changes::Change;
use kinfolk_core::graph::{Receipt, WriteRequest};
use kinfolk_core::{Result, Shard, Timestamp};

use crate::model::Model;

/// The truth of every shard.
pub(crate) struct Reference {
    count: NonZeroU16,
    shards: Vec<Model>,
}

impl Reference {
    pub(crate) fn new(count: NonZeroU16) -> Self {
        Self { count, shards: (0..count.get()).map(|shard| Model::of_shard(Shard(shard))).collect() }
    }

    /// The truth that the logs of all shards describe.
    pub(crate) fn replay(count: NonZeroU16, changes: impl IntoIterator<Item = Change>) -> Self {
        let mut reference = Self::new(count);
        for change in changes {
            reference.shards[usize::from(change.position.shard.0)].apply(change);
        }
        reference
    }

    /// Applies requests, each by itself and on the shard of its follower.
    pub(crate) fn write_all(&mut self, requests: &[WriteRequest], now: Timestamp) -> Vec<Result<Receipt>> {
        let write = |request: &WriteRequest| {
            let shard = Shard::of(request.follower, self.count);
            self.shards[usize::from(shard.0)].write(request, now)
        };
        requests.iter().map(write).collect()
    }

    /// The whole graph.
    pub(crate) fn graph(&self) -> Model {
        match &self.shards[..] {
            [only] => only.clone(),
            shards => Model::replay(shards.iter().flat_map(|shard| shard.changes.iter().cloned())),
        }
    }
}
