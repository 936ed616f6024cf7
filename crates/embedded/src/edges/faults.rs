//! What can be wrong with edges: lists and index are compared with the pairs, which are the truth.

use std::fmt;

use kinfolk_core::graph::{Edge, EdgeList, Side};
use kinfolk_core::{EdgeKind, Id, Result, Timestamp};

use super::{Edges, Row, Tree};
use crate::projection::{Counting, Fault};

/// Something that differs from the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeFault {
    /// A list lacks a row, or has one that it should not have.
    Row { tree: Tree, kind: EdgeKind, edge: Edge, since: Timestamp, missing: bool },
    /// The index has other followees for a user.
    Followees { kind: EdgeKind, follower: Id },
    /// The index counts another number of followers than there are.
    FollowerCount { kind: EdgeKind, id: Id, counted: u64, is: u64 },
}

impl fmt::Display for EdgeFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row { tree, kind, edge, since, missing } => {
                let list = if *tree == Tree::Following { "following" } else { "followers" };
                let (follower, followee, kind) = (edge.follower, edge.followee, kind.name());
                let state = if *missing { "lacks" } else { "has the stray" };
                write!(out, "the {list} list {state} {kind} edge {follower} to {followee} since {since}")
            }
            Self::Followees { kind, follower } => {
                write!(out, "the index has other {} edges from {follower} than the rows", kind.name())
            }
            Self::FollowerCount { kind, id, counted, is } => {
                write!(out, "the index counts {counted} {} followers of {id}, there are {is}", kind.name())
            }
        }
    }
}

impl Fault<Edges> for EdgeFault {
    fn recheck(&self, edges: &Edges, _: Timestamp) -> Result<Option<Self>> {
        match *self {
            Self::Row { tree, kind, edge, since, .. } => {
                let missing = edges.rows.since(kind, edge)? == Some(since);
                let differs = edges.rows.has(tree, Row { kind, edge, since })? != missing;
                Ok(differs.then_some(Self::Row { tree, kind, edge, since, missing }))
            }
            Self::Followees { kind, follower } => {
                let truth: Vec<Id> = edges.rows.followees(kind, follower).collect::<Result<_>>()?;
                Ok((edges.index.of(kind).followees(follower) != truth).then_some(*self))
            }
            Self::FollowerCount { .. } => Ok(None),
        }
    }

    fn repair(&self, edges: &Edges, _: Timestamp) -> Result<()> {
        match *self {
            Self::Row { tree, kind, edge, since, missing } => {
                edges.rows.repair(tree, Row { kind, edge, since }, missing);
                edges.recent_followees.changed(edge.follower);
            }
            Self::Followees { kind, follower } => {
                let followees: Vec<Id> = edges.rows.followees(kind, follower).collect::<Result<_>>()?;
                edges.index.of(kind).replace_followees(follower, &followees);
                // Those who have a number only now were left out of what is kept.
                edges.recent_followees.changed(follower);
            }
            // A recount does it.
            Self::FollowerCount { .. } => {}
        }
        Ok(())
    }

    fn is_count(&self) -> bool {
        matches!(self, Self::FollowerCount { .. })
    }

    fn stored_count(&self, edges: &Edges) -> Result<u64> {
        Ok(match *self {
            Self::FollowerCount { kind, id, .. } => edges.index.of(kind).counts(id).followers,
            Self::Row { .. } | Self::Followees { .. } => 0,
        })
    }

    fn counted_rows(&self, edges: &Edges) -> Result<Counting> {
        Ok(match *self {
            Self::FollowerCount { kind, id, .. } => {
                let rows = edges.rows.frozen_list(EdgeList { kind, side: Side::Followers, of: id });
                Box::new(rows.map(|row| row.map(|()| true)))
            }
            Self::Row { .. } | Self::Followees { .. } => Box::new(std::iter::empty()),
        })
    }

    fn correct_count(&self, edges: &Edges, step: i64) -> Result<()> {
        if let Self::FollowerCount { kind, id, .. } = *self {
            let count = edges.index.of(kind).counts(id).followers.saturating_add_signed(step);
            edges.index.of(kind).set_follower_count(id, u32::try_from(count).unwrap_or(u32::MAX));
        }
        Ok(())
    }

    fn with_counts(&self, stored: u64, found: u64) -> Self {
        match *self {
            Self::FollowerCount { kind, id, .. } => {
                Self::FollowerCount { kind, id, counted: stored, is: found }
            }
            other => other,
        }
    }
}
