//! The ports of the graph. Their documentation is the contract; `kinfolk-conformance` tests every sentence of it.
//!
//! **Freshness.** Every read takes `at_least`, the frontier that its caller has seen. The result reflects everything up to
//! there, and may reflect more. A store that is behind waits for up to a second, then returns
//! [`crate::Error::NotYetVisible`]. Every read reflects everything that was acknowledged
//! more than 2 seconds before; a store that can't tell that it does waits as well, then returns
//! [`crate::Error::Unavailable`]. Otherwise a read with an empty frontier never waits. A store may refuse a frontier immediately if
//! it names a shard that the store does not have.

use std::future::Future;

use smallvec::SmallVec;

use super::{Counts, Edge, EdgeAction, EdgeCommand, ListEntry, ListKey, Overlap, Side, UserSet};
use crate::{Deployment, EdgeKind, Error, Frontier, Id, Position, Result, Timestamp};

/// A command about one edge of a known follower. Repeating it succeeds and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerCommand {
    /// The action.
    pub action: EdgeAction,
    /// The target of the edge.
    pub followee: Id,
}

/// Commands in order. Most requests have one, which needs no memory of its own.
pub type FollowerCommands = SmallVec<[FollowerCommand; 1]>;

/// For each command, whether it changed anything.
pub type Effects = SmallVec<[bool; 16]>;

/// Commands of one follower that are applied atomically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRequest {
    /// The kind of edge.
    pub kind: EdgeKind,
    /// The source of all edges.
    pub follower: Id,
    /// The commands, in order; a later one sees the effect of an earlier one.
    pub commands: FollowerCommands,
    /// The maximum number of edges of the follower.
    pub following_limit: u32,
}

impl WriteRequest {
    /// The commands with their whole edges, in order.
    pub fn edge_commands(&self) -> impl ExactSizeIterator<Item = EdgeCommand> {
        self.commands.iter().map(|&FollowerCommand { action, followee }| EdgeCommand {
            action,
            edge: Edge { follower: self.follower, followee },
        })
    }
}

/// The maximum size of a set that is walked to intersect it with others.
pub const OVERLAP_WALK_MAX: usize = 1_000_000;

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// A read at this position sees the write. If nothing changed: the newest position of the follower's shard, so that all that
    /// was acknowledged to the follower before is visible.
    pub position: Position,
    /// For each command, whether it changed anything.
    pub changed: Effects,
}

/// Checks whether edges exist.
///
/// # Contract
/// - **Exact**: a result is the state of the edge at one moment between the requested frontier and now.
/// - **Monotonic for the actor**: a follower's own change is reflected as soon as the frontier covers it; it never waits for
///   projections such as the follower side.
/// - **Immediate**: [`CheckStore::contains_now`] returns what [`CheckStore::contains`] would, or `None`;
///   [`CheckStore::contains_each_now`] does so for each edge.
pub trait CheckStore: Deployment {
    /// For each edge, whether it exists.
    fn contains(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<bool>>> + Send;

    /// Whether one edge exists, if that is known without waiting and without network access.
    fn contains_now(&self, _kind: EdgeKind, _edge: Edge, _at_least: &Frontier) -> Option<bool> {
        None
    }

    /// For each edge, whether it exists, where that is known without waiting and without network access; appended to `found`.
    /// For stores that look up many edges at a lower cost than one after another.
    fn contains_each_now(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
        found: &mut Vec<Option<bool>>,
    ) {
        found.extend(edges.iter().map(|&edge| self.contains_now(kind, edge, at_least)));
    }
}

/// Keeps edges. The pairs on the following side decide which edges exist; followers, counts and lists are derived from them.
///
/// [`super::Graph`] refuses ids of the wrong kind and self-follows; they do not reach a store.
///
/// # Contract
/// - **Idempotent**: a follow of an existing edge, or an unfollow of a missing one, succeeds and changes nothing: no event,
///   no new `since`, no new count.
/// - **Atomic**: a request is applied whole or refused whole; if a command is refused, none of its request takes effect.
///   Requests of one call are independent, with one exception: consecutive requests of one follower take effect in their
///   order and become durable together.
/// - **Limit**: no interleaving of requests gives a follower more edges than `following_limit`.
/// - **Ordered**: the requests of one follower take effect in one order, the order of their positions; of a follow and an
///   unfollow of one pair, the one with the higher position wins, on both sides and in all counts.
/// - **`since`**: assigned by the store, in milliseconds. Every change gets the clock's time as its `at`, but never a time
///   earlier than the previous change of its shard; a follow's `since` is its `at`. After an unfollow, no change of the shard
///   is earlier than the removed edge's `since` plus 1 ms, so that a re-follow is always newer than the pair's previous
///   follow.
/// - **Durable**: a successful write survives a crash of the process or the machine.
/// - **Visible**: a read whose frontier covers a receipt's position sees the write.
/// - **Failure**: for the errors of [`Error::is_outcome_unknown`] the outcome is unknown: the write takes effect whole and at
///   most once, at any time from its start on, also after the error was returned. After any other error, nothing was changed.
pub trait EdgeStore: Deployment {
    /// Applies requests independently and returns once they are durable, with one result for each, in order.
    fn write(&self, requests: Vec<WriteRequest>) -> impl Future<Output = Vec<Result<Receipt>>> + Send;

    /// Applies one request.
    fn write_one(&self, request: WriteRequest) -> impl Future<Output = Result<Receipt>> + Send {
        async move { self.write(vec![request]).await.pop().unwrap_or(Err(Error::Closed)) }
    }

    /// For each edge, when it was created; `None` if it does not exist.
    fn since(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Option<Timestamp>>>> + Send;

    /// Up to `limit` entries of a user's list, in the order of [`ListKey`], strictly after `after`.
    ///
    /// Fewer than `limit` entries mean that the list ends there. Paging by the last key of each page returns every edge that
    /// exists during the whole walk exactly once.
    fn list(
        &self,
        list: EdgeList,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<ListEntry>>> + Send;

    /// As [`EdgeStore::list`], for the mutual followers of `of`, by when they followed `of`. The work of a page is bounded by the
    /// shorter of both lists, not by the longer.
    fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<ListEntry>>> + Send;

    /// The intersection of sets: its size, and up to `limit` members by id, strictly after `after`.
    ///
    /// The size is exact and does not depend on `after` or `limit`. The intersection of no sets is empty; duplicate sets count
    /// once. The work is bounded by the smallest set, not by the largest; if even the smallest has more than
    /// [`OVERLAP_WALK_MAX`] members and has to be walked, [`Error::TooMany`].
    fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Overlap>> + Send;

    /// For each user, the number of followees and followers. Unknown users have none.
    fn counts(
        &self,
        kind: EdgeKind,
        of: &[Id],
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Counts>>> + Send;
}

/// A list of edges: one side of a user's edges of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EdgeList {
    /// The kind of edge.
    pub kind: EdgeKind,
    /// The side.
    pub side: Side,
    /// The user.
    pub of: Id,
}
