//! The ports of the graph. Their documentation is the contract; `kinfolk-conformance` tests every sentence.
//!
//! **Freshness.** Every read takes `at_least`, the frontier that its caller has seen. The answer shows everything up to
//! there, and may show more. A store that has not got so far waits for it, up to a second; then
//! [`crate::Error::NotYetVisible`]. An empty frontier asks for nothing, and never waits. A store may refuse a frontier
//! at once that names a position on a shard which it does not have: waiting can't help.

use std::future::Future;

use super::{Counts, Edge, EdgeAction, EdgeCommand, ListEntry, ListKey, Overlap, Side, UserSet};
use crate::{Deployment, EdgeKind, Error, Frontier, Id, Position, Result, Timestamp};

/// One command about one edge of a known follower. Repeating it is a success that changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerCommand {
    /// What to do.
    pub action: EdgeAction,
    /// Where the edge ends.
    pub followee: Id,
}

/// Commands of one follower that are applied together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRequest {
    /// Which kind of edge they are about.
    pub kind: EdgeKind,
    /// Where the edges start.
    pub follower: Id,
    /// The commands, in order; a later one sees the effect of an earlier one.
    pub commands: Vec<FollowerCommand>,
    /// How many edges the follower may have.
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

/// The most members of a set that is walked to compare it with others.
pub const OVERLAP_WALK_MAX: usize = 1_000_000;

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// A read at this position sees the write. If nothing changed: a position at which everything is visible that was
    /// acknowledged to the follower before.
    pub position: Position,
    /// For each command, whether it changed anything.
    pub changed: Vec<bool>,
}

/// Says whether edges exist.
///
/// # Contract
/// - **Exact**: an answer is what the edge was at one moment, between the frontier asked for and now.
/// - **Monotonic for the actor**: a follower's own change counts as soon as the frontier covers it; it never waits for
///   projections such as the follower side.
/// - **At once**: [`CheckStore::contains_now`] answers as [`CheckStore::contains_one`] would, or not at all.
pub trait CheckStore: Deployment {
    /// For each edge, whether it exists.
    fn contains(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<bool>>> + Send;

    /// Whether one edge exists: the same answer as [`CheckStore::contains`]; a store may have a shorter way to it.
    fn contains_one(
        &self,
        kind: EdgeKind,
        edge: Edge,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<bool>> + Send {
        async move {
            let found = self.contains(kind, &[edge], at_least).await?;
            Ok(found.first().is_some_and(|&exists| exists))
        }
    }

    /// Whether one edge exists, if that can be said without waiting and without asking anybody else.
    fn contains_now(&self, _kind: EdgeKind, _edge: Edge, _at_least: &Frontier) -> Option<bool> {
        None
    }
}

/// Keeps edges. The following side is the truth; followers, counts and lists are projections of it.
///
/// Ids of the wrong kind and self-follows do not reach a store: [`super::Graph`] refuses them.
///
/// # Contract
/// - **Idempotent**: a follow of an edge that exists, or an unfollow of one that does not, is a success that
///   changes nothing: no event, no new `since`, no new count.
/// - **Atomic**: a request is applied whole or refused whole; if a command is refused, none of its request takes effect.
///   Requests of one call are independent of each other, but for this: those of one follower that come one after another
///   take effect in their order and become durable together.
/// - **Limit**: no interleaving of requests lets a follower have more edges than `following_limit`.
/// - **Ordered**: the requests of one follower take effect in one order, which the positions show; of a follow and an
///   unfollow of one pair the one with the higher position decides, on both sides and in all counts.
/// - **`since`**: given by the store in milliseconds. Every change gets a time `at` that is the clock's, but not
///   earlier than the change before it on its shard; a follow's `since` is its `at`. After an unfollow no change of the
///   shard is earlier than the removed edge's `since` plus 1 ms, so that a re-follow is always newer than the pair's
///   previous follow.
/// - **Durable**: when a write succeeds, it survives a crash of the process or machine.
/// - **Visible**: a read whose frontier covers a receipt's position sees the write.
/// - **Failure**: the outcome of a failed write is unknown for the errors that [`Error::is_outcome_unknown`] names: it takes
///   effect at most once and whole, at any time from its beginning on, also after the error was returned. Any other error
///   changed nothing.
pub trait EdgeStore: Deployment {
    /// Applies requests, each by itself, and returns once they are durable. One result for each, in order.
    fn write(&self, requests: Vec<WriteRequest>) -> impl Future<Output = Vec<Result<Receipt>>> + Send;

    /// Applies one request.
    fn write_one(&self, request: WriteRequest) -> impl Future<Output = Result<Receipt>> + Send {
        async move { self.write(vec![request]).await.pop().unwrap_or(Err(Error::Closed)) }
    }

    /// For each edge, since when it exists, if it does.
    fn since(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Option<Timestamp>>>> + Send;

    /// Up to `limit` entries of a user's list, in the order of [`ListKey`], strictly after `after`.
    ///
    /// Fewer than `limit` entries mean that the list ends there. A walk that passes the last key of one page to
    /// the next call returns every edge that exists during the whole walk exactly once.
    fn list(
        &self,
        list: EdgeList,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<ListEntry>>> + Send;

    /// As [`EdgeStore::list`], for those who follow `of` and are followed by it, by when they followed `of`. The work of a page
    /// is bounded by the shorter of both lists, not by the longer.
    fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<ListEntry>>> + Send;

    /// Those who are in all of the sets: how many, and up to `limit` of them by id, strictly after `after`.
    ///
    /// The count is exact and does not depend on `after` or `limit`. No sets have no members; a set that is named
    /// twice counts once. The work is bounded by the smallest set, not by the largest; where even that has more than
    /// [`OVERLAP_WALK_MAX`] members and has to be walked, [`Error::TooMany`].
    fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Overlap>> + Send;

    /// For each user, how many edges it has on each side. Unknown users have none.
    fn counts(
        &self,
        kind: EdgeKind,
        of: &[Id],
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Counts>>> + Send;
}

/// A list of edges: one side of one user, for one kind of edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EdgeList {
    /// Which kind of edge.
    pub kind: EdgeKind,
    /// Which side.
    pub side: Side,
    /// Whose.
    pub of: Id,
}
