//! What differs, and how.

use std::fmt;

use kinfolk_core::graph::{Edge, Side};
use kinfolk_core::{EdgeKind, Shard};

use super::Owner;

/// An edge of a kind.
pub(crate) type Key = (EdgeKind, Edge);

/// What a row says about its edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) since: i64,
    pub(crate) sequence: i64,
}

/// Something derived that is not as the truth has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    Edge(EdgeDifference),
    Count(CountDifference),
}

/// What a difference is about. There is at most one about each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Edge(Key),
    Count(Side, Shard, Owner),
}

/// An edge whose row on the follower side is not as the truth has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EdgeDifference {
    pub(crate) key: Key,
    pub(crate) expected: Option<State>,
    pub(crate) found: Option<State>,
}

/// A recorded count that is not the number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountDifference {
    pub(crate) side: Side,
    /// The shard that has the count.
    pub(crate) shard: Shard,
    pub(crate) owner: Owner,
    pub(crate) rows: i64,
    pub(crate) recorded: i64,
}

impl CountDifference {
    /// What has to be added to the recorded count. Writes and projections leave it as it is: they change both.
    pub(crate) fn step(&self) -> i64 {
        self.rows - self.recorded
    }
}

impl Difference {
    pub(crate) fn subject(&self) -> Subject {
        match self {
            Self::Edge(edge) => Subject::Edge(edge.key),
            Self::Count(count) => Subject::Count(count.side, count.shard, count.owner),
        }
    }

    /// Whether it is the same as an earlier one, about the same subject.
    pub(crate) fn is_still(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Edge(now), Self::Edge(earlier)) => now == earlier,
            (Self::Count(now), Self::Count(earlier)) => {
                self.subject() == other.subject() && now.step() == earlier.step()
            }
            _ => false,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edge(EdgeDifference { key: (kind, Edge { follower, followee }), expected, found }) => {
                write!(
                    out,
                    "{} of {follower} to {followee}: the follower side has {found:?}, the truth {expected:?}",
                    kind.name()
                )
            }
            Self::Count(CountDifference { side, owner: (kind, id), rows, recorded, .. }) => {
                let name = match side {
                    Side::Following => "followees",
                    Side::Followers => "followers",
                };
                let kind = kind.name();
                write!(out, "{id} has {rows} {name} of kind {kind}, its recorded count is {recorded}")
            }
        }
    }
}
