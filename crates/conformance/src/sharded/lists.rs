//! Lists of edges by user, with their order and their length. Both sides of the graph are kept in this shape.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use kinfolk_core::graph::{ListEntry, ListKey};
use kinfolk_core::{EdgeKind, Id, Timestamp};

/// One side of the edges of some users.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    by_user: BTreeMap<(EdgeKind, Id), UserList>,
}

#[derive(Clone, Debug, Default)]
struct UserList {
    in_order: BTreeSet<ListKey>,
    since: BTreeMap<Id, Timestamp>,
}

impl Lists {
    /// Adds an edge, or gives it a new time. Returns whether it is new.
    pub(super) fn insert(&mut self, of: (EdgeKind, Id), other: Id, since: Timestamp) -> bool {
        let list = self.by_user.entry(of).or_default();
        let before = list.since.insert(other, since);
        before.into_iter().for_each(|since| _ = list.in_order.remove(&ListKey { since, id: other }));
        list.in_order.insert(ListKey { since, id: other });
        before.is_none()
    }

    /// Removes an edge. Returns whether it existed.
    pub(super) fn remove(&mut self, of: (EdgeKind, Id), other: Id) -> bool {
        let Some(list) = self.by_user.get_mut(&of) else { return false };
        let Some(since) = list.since.remove(&other) else { return false };
        list.in_order.remove(&ListKey { since, id: other })
    }

    pub(super) fn since(&self, of: (EdgeKind, Id), other: Id) -> Option<Timestamp> {
        self.by_user.get(&of)?.since.get(&other).copied()
    }

    pub(super) fn len(&self, of: (EdgeKind, Id)) -> u64 {
        self.by_user.get(&of).map_or(0, |list| list.since.len() as u64)
    }

    /// The ids of a list, from low to high.
    pub(super) fn ids(&self, of: (EdgeKind, Id)) -> impl Iterator<Item = Id> {
        self.by_user.get(&of).into_iter().flat_map(|list| list.since.keys().copied())
    }

    /// A list after a key, in its order.
    pub(super) fn after(
        &self,
        of: (EdgeKind, Id),
        after: Option<ListKey>,
    ) -> impl Iterator<Item = ListEntry> {
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let list = self.by_user.get(&of).into_iter();
        list.flat_map(move |list| list.in_order.range((begin, Bound::Unbounded)).copied())
    }
}
