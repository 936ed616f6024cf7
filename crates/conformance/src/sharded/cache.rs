//! The second layer of a check: complete sets of followees, kept up to date from the log and filled by reads.
//!
//! A shard's sets share a watermark. A fill reads a snapshot and stores it later; it is stored only if the snapshot's position
//! is at or past the watermark, as the changes between the two would never reach it.

use std::collections::{BTreeMap, BTreeSet};

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Id, Sequence};

/// The most fills that are under way.
const FILLS_MAX: usize = 8;

/// The cache of one shard.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    sets: BTreeMap<(EdgeKind, Id), CachedSet>,
    pub(super) watermark: Sequence,
    fills: Vec<Fill>,
}

#[derive(Clone, Debug)]
struct CachedSet {
    members: BTreeSet<Id>,
    version: Sequence,
}

/// A set on its way into the cache.
#[derive(Clone, Debug)]
struct Fill {
    of: (EdgeKind, Id),
    set: CachedSet,
}

impl Cache {
    /// Applies the change after its watermark. Sets that are newer ignore it.
    pub(super) fn apply(&mut self, change: &Change) {
        let sequence = change.position.sequence;
        assert_eq!(sequence, self.watermark.next(), "a cache leaves no gap");
        self.watermark = sequence;
        let (ChangeBody::Followed { kind, edge } | ChangeBody::Unfollowed { kind, edge, .. }) = change.body
        else {
            return;
        };
        let Some(set) = self.sets.get_mut(&(kind, edge.follower)) else { return };
        if set.version >= sequence {
            return;
        }
        match change.body {
            ChangeBody::Followed { .. } => _ = set.members.insert(edge.followee),
            _ => _ = set.members.remove(&edge.followee),
        }
        set.version = sequence;
    }

    /// Whether an edge exists, if a set covers what the reader has seen.
    pub(super) fn contains(&self, kind: EdgeKind, edge: Edge, at_least: Sequence) -> Option<bool> {
        let set = self.sets.get(&(kind, edge.follower))?;
        (set.version.max(self.watermark) >= at_least).then(|| set.members.contains(&edge.followee))
    }

    /// Begins to fill a set from a snapshot of the shard.
    pub(super) fn begin_fill(
        &mut self,
        of: (EdgeKind, Id),
        members: impl Iterator<Item = Id>,
        version: Sequence,
    ) {
        if self.fills.len() < FILLS_MAX {
            let set = CachedSet { members: members.collect(), version };
            self.fills.push(Fill { of, set });
        }
    }

    /// Stores the oldest fill, unless the cache has gone past its snapshot; `carelessly` stores it all the same.
    pub(super) fn end_fill(&mut self, carelessly: bool) {
        if self.fills.is_empty() {
            return;
        }
        let Fill { of, set } = self.fills.remove(0);
        let is_newest = self.sets.get(&of).is_none_or(|known| known.version <= set.version);
        if carelessly || (set.version >= self.watermark && is_newest) {
            self.sets.insert(of, set);
        }
    }
}
