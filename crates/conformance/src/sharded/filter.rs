//! The first layer of a check: keys that may exist, and how far they are complete. It answers only "no".

use std::collections::BTreeSet;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Sequence};

/// The filter of one shard. As a Bloom filter does, it keeps what was removed.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    keys: BTreeSet<(EdgeKind, Edge)>,
    /// All keys of changes up to here are in it.
    pub(super) mark: Sequence,
}

impl Filter {
    /// Applies the change after its mark.
    pub(super) fn apply(&mut self, change: &Change) {
        assert_eq!(change.position.sequence, self.mark.next(), "a filter leaves no gap");
        if let ChangeBody::Followed { kind, edge } = change.body {
            self.keys.insert((kind, edge));
        }
        self.mark = change.position.sequence;
    }

    /// Whether an edge certainly does not exist, for one who trusts the filter up to `mark`.
    pub(super) fn denies(&self, kind: EdgeKind, edge: Edge, mark: Sequence, at_least: Sequence) -> bool {
        mark >= at_least && !self.keys.contains(&(kind, edge))
    }
}
