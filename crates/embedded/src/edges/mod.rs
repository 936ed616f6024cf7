//! Edges: rows on disk with their memtables, the check index in memory, and the queries on both.
//!
//! Two projections: the rows, whose pairs are the truth of which edges exist, and the index, which follows them, so that a check never
//! knows more than a list.

mod backup;
pub(crate) mod faults;
mod friends;
pub(crate) mod imports;
pub(crate) mod index;
pub(crate) mod load;
mod memtable;
mod overlap;
mod port;
mod projections;
mod recent_followees;
mod reconcile;
mod row_keys;
mod rows;
mod verify;

use kinfolk_core::graph::{Edge, EdgeList, Side};
use kinfolk_core::suggestions::{Suggestion, WalkBounds};
use kinfolk_core::{EdgeKind, Error, Id, Result, Timestamp};

pub(crate) use backup::KindEdges;
pub(crate) use projections::{EdgeIndex, LoadedIndex};
pub(crate) use recent_followees::RecentFollowees;
pub(crate) use rows::{Load, Row, Rows, Tree};

use self::index::{Index, Scratch, Walk};

/// The edges of a store.
pub(crate) struct Edges {
    pub rows: Rows,
    pub index: Index,
    /// The recent followees of users who follow many.
    pub recent_followees: RecentFollowees,
}

impl Edges {
    /// Rows, and the index of them.
    pub(crate) fn new(rows: Rows, index: Index) -> Self {
        Self { rows, index, recent_followees: RecentFollowees::new() }
    }

    /// Since when an edge exists that the index knows of.
    pub(crate) fn stored_since(&self, kind: EdgeKind, edge: Edge) -> Result<Timestamp> {
        self.rows.since(kind, edge)?.ok_or_else(|| {
            Error::corrupt(format!(
                "the index knows the edge {} to {} but the rows don't; run verify",
                edge.follower, edge.followee
            ))
        })
    }

    /// Candidates for suggestions to a user, by a walk of two steps.
    pub(crate) fn candidates(
        &self,
        of: Id,
        bounds: WalkBounds,
        scratch: &mut Scratch,
        is_given_up: &dyn Fn() -> bool,
    ) -> Result<Vec<Suggestion>> {
        let most = bounds.per_node.unwrap_or(usize::MAX);
        let newest = |of: Id| self.recent_followees.get(of, most, || self.read_recent_followees(of, most));
        let dismissed = self.index.of(EdgeKind::Dismissal).followees(of);
        let walk = Walk { bounds, dismissed: &dismissed, newest: &newest, is_given_up };
        self.index.of(EdgeKind::Follow).walk(of, &walk, scratch)
    }

    fn read_recent_followees(&self, of: Id, most: usize) -> Result<Vec<u32>> {
        let rows = self.rows.list_rows(EdgeList { kind: EdgeKind::Follow, side: Side::Following, of }, None);
        let ids: Vec<Id> = rows.take(most).map(|row| Ok(row?.id)).collect::<Result<_>>()?;
        let mut numbers = self.index.of(EdgeKind::Follow).numbers(&ids);
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// Returns an error if nobody waits for the result of a long read any more.
pub(crate) fn require_wanted(is_given_up: &dyn Fn() -> bool) -> Result<()> {
    if is_given_up() { Err(Error::Closed) } else { Ok(()) }
}
