//! What can be wrong with edges: lists and index are compared with the pairs, which are the truth.

use std::fmt;

use kinfolk_core::graph::{Edge, EdgeList, Side};
use kinfolk_core::{EdgeKind, Id, Result, Timestamp};

use super::{Edges, Row, Tree};
use crate::projection::{Count, Counting, Difference, Fault, FaultOf, difference};

/// Something that differs from the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EdgeFault {
    /// A list lacks a row, or has one that it should not have.
    Row { tree: Tree, kind: EdgeKind, edge: Edge, since: Timestamp, missing: bool },
    /// The index has other followees for a user.
    Followees { kind: EdgeKind, follower: Id },
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
        }
    }
}

impl EdgeFault {
    /// The fault as it is now, if it is there.
    pub(super) fn current(&self, edges: &Edges) -> Result<Option<Self>> {
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
        }
    }
}

impl Fault for FaultOf<Edges, EdgeFault> {
    fn recheck(&self, _: Timestamp) -> Result<Option<Difference>> {
        Ok(self.fault.current(&self.of)?.map(|fault| difference(&self.of, fault)))
    }

    fn repair(&self, _: Timestamp) -> Result<()> {
        let edges = &self.of;
        match self.fault {
            EdgeFault::Row { tree, kind, edge, since, missing } => {
                edges.rows.repair(tree, Row { kind, edge, since }, missing);
                edges.recent_followees.changed(edge.follower);
            }
            EdgeFault::Followees { kind, follower } => {
                let followees: Vec<Id> = edges.rows.followees(kind, follower).collect::<Result<_>>()?;
                edges.index.of(kind).replace_followees(follower, &followees);
                // Those who have a number only now were left out of what is kept.
                edges.recent_followees.changed(follower);
            }
        }
        Ok(())
    }
}

/// The index counts another number of followers than there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FollowerCount {
    pub kind: EdgeKind,
    pub id: Id,
    pub counted: u64,
    pub is: u64,
}

impl fmt::Display for FollowerCount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, id, counted, is } = self;
        write!(out, "the index counts {counted} {} followers of {id}, there are {is}", kind.name())
    }
}

impl Count for FaultOf<Edges, FollowerCount> {
    fn stored(&self) -> Result<u64> {
        Ok(self.of.index.of(self.fault.kind).counts(self.fault.id).followers)
    }

    fn rows(&self) -> Result<Counting> {
        let FollowerCount { kind, id, .. } = self.fault;
        let rows = self.of.rows.frozen_list(EdgeList { kind, side: Side::Followers, of: id });
        Ok(Box::new(rows.map(|row| row.map(|()| true))))
    }

    fn correct(&self, step: i64) -> Result<()> {
        let count = self.stored()?.saturating_add_signed(step);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.of.index.of(self.fault.kind).set_follower_count(self.fault.id, count);
        Ok(())
    }

    fn difference(&self, stored: u64, found: u64) -> Difference {
        difference(&self.of, FollowerCount { counted: stored, is: found, ..self.fault })
    }
}
