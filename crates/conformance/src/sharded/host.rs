//! A host: the shards that it holds, the follower side of their users, and how far that was projected from each source.

use std::collections::BTreeMap;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::{EdgeKind, Id, Sequence, Shard};

use super::lists::Lists;
use super::source::Source;

/// A host of some shards.
#[derive(Clone, Debug)]
pub(super) struct Host {
    /// Also those that have moved away, which are closed and remain as they were.
    pub(super) holdings: BTreeMap<Shard, Holding>,
    /// For each source: changes up to here are in the follower side of all open shards. Contiguous, never jumped.
    pub(super) marks: Vec<Sequence>,
    /// Counts the times that marks were lowered on purpose. Otherwise a mark that was seen is seen for good.
    pub(super) generation: u64,
}

/// A shard on a host.
#[derive(Clone, Debug)]
pub(super) struct Holding {
    pub(super) is_open: bool,
    /// Rises with every move.
    pub(super) term: u64,
    pub(super) source: Source,
    pub(super) followers: Lists,
    pub(super) follower_counts: BTreeMap<(EdgeKind, Id), u64>,
}

impl Holding {
    pub(super) fn new(source: Source) -> Self {
        Self { is_open: true, term: 1, source, followers: Lists::default(), follower_counts: BTreeMap::new() }
    }

    /// Brings the follower side up to date. Counts change with the rows that changed.
    pub(super) fn project(&mut self, change: &Change) {
        match change.body {
            ChangeBody::Followed { kind, edge } => {
                if self.followers.insert((kind, edge.followee), edge.follower, change.at) {
                    *self.follower_counts.entry((kind, edge.followee)).or_default() += 1;
                }
            }
            ChangeBody::Unfollowed { kind, edge, .. } => {
                if self.followers.remove((kind, edge.followee), edge.follower) {
                    *self.follower_counts.entry((kind, edge.followee)).or_default() -= 1;
                }
            }
            _ => unreachable!("this store has edges only"),
        }
    }

    /// Counts a change without a look at the rows.
    pub(super) fn count_blindly(&mut self, change: &Change) {
        let (ChangeBody::Followed { kind, edge } | ChangeBody::Unfollowed { kind, edge, .. }) = change.body
        else {
            return;
        };
        let count = self.follower_counts.entry((kind, edge.followee)).or_default();
        match change.body {
            ChangeBody::Followed { .. } => *count += 1,
            _ => *count = count.saturating_sub(1),
        }
    }
}

impl Host {
    pub(super) fn new(shards: u16) -> Self {
        Self { holdings: BTreeMap::new(), marks: vec![Sequence::START; usize::from(shards)], generation: 0 }
    }

    pub(super) fn mark(&self, source: Shard) -> Sequence {
        self.marks[usize::from(source.0)]
    }

    pub(super) fn set_mark(&mut self, source: Shard, mark: Sequence) {
        self.marks[usize::from(source.0)] = mark;
    }

    /// The shard, if it is open here.
    pub(super) fn open(&self, shard: Shard) -> Option<&Holding> {
        self.holdings.get(&shard).filter(|holding| holding.is_open)
    }

    pub(super) fn open_mut(&mut self, shard: Shard) -> Option<&mut Holding> {
        self.holdings.get_mut(&shard).filter(|holding| holding.is_open)
    }
}
