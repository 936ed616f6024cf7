//! The ports of the graph. Their documentation is the contract; `kinfolk-conformance` tests every sentence.

use std::future::Future;

use super::{Change, Counts, Edge, EdgeCommand, ListEntry, ListKey, Overlap, Side, UserSet};
use crate::{EdgeKind, Epoch, Id, IdKind, Position, Result, Timestamp};

/// Commands that are applied together or not at all.
#[derive(Clone, Debug)]
pub struct WriteRequest {
    /// Which kind of edge they are about.
    pub kind: EdgeKind,
    /// The commands, in order; a later one sees the effect of an earlier one.
    pub commands: Vec<EdgeCommand>,
    /// How many edges one follower may have.
    pub following_limit: u32,
}

/// The most members of a set that is walked to compare it with others.
pub const OVERLAP_WALK_MAX: usize = 1_000_000;

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// A read at this position sees the write. If nothing changed: the store's position then.
    pub position: Position,
    /// For each command, whether it changed anything.
    pub changed: Vec<bool>,
}

/// Keeps edges. The following side is the truth; followers, counts and lists are projections of it.
///
/// Ids of the wrong kind and self-follows do not reach a store: [`super::Graph`] refuses them.
///
/// # Contract
/// - **Idempotent**: a follow of an edge that exists, or an unfollow of one that does not, is a success that
///   changes nothing: no event, no new `since`, no new count.
/// - **Atomic**: a request is applied whole or refused whole; if a command is refused, none takes effect.
/// - **Limit**: no interleaving of requests lets a follower have more edges than `following_limit`.
/// - **Ordered**: requests take effect in one order, which the positions show; of a follow and an unfollow of
///   one pair the one with the higher position decides, on both sides and in all counts.
/// - **`since`**: given by the store in milliseconds. Every change gets a time `at` that is the clock's, but not
///   earlier than the change before it; a follow's `since` is its `at`. After an unfollow no change is earlier than
///   the removed edge's `since` plus 1 ms, so that a re-follow is always newer than the pair's previous follow.
/// - **Durable**: when `write` returns `Ok`, the write survives a crash of the process or machine.
/// - **Visible**: after [`EdgeStore::visible`] returned `Ok` for a receipt's position, every read of this
///   store sees the write.
/// - **Failure**: an `Err` from `write` means that the outcome is unknown only for [`crate::Error::ReadOnly`]
///   and [`crate::Error::Closed`]; any other error changed nothing.
pub trait EdgeStore: Send + Sync + 'static {
    /// The kind of ids that this deployment uses.
    fn id_kind(&self) -> IdKind;

    /// The current life of the change log.
    fn epoch(&self) -> Epoch;

    /// Applies commands and answers once they are durable.
    fn write(&self, request: WriteRequest) -> impl Future<Output = Result<Receipt>> + Send;

    /// Returns when everything up to `position` is visible to reads, or `NotYetVisible` after a second.
    fn visible(&self, position: Position) -> impl Future<Output = Result<()>> + Send;

    /// For each edge, whether it exists.
    fn contains(&self, kind: EdgeKind, edges: &[Edge]) -> impl Future<Output = Result<Vec<bool>>> + Send;

    /// Whether one edge exists: the same answer as [`EdgeStore::contains`]; a store may have a shorter way to it.
    fn contains_one(&self, kind: EdgeKind, edge: Edge) -> impl Future<Output = Result<bool>> + Send {
        async move { Ok(self.contains(kind, &[edge]).await?.first().is_some_and(|&exists| exists)) }
    }

    /// For each edge, since when it exists, if it does.
    fn since(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
    ) -> impl Future<Output = Result<Vec<Option<Timestamp>>>> + Send;

    /// Up to `limit` entries of a user's list, in the order of [`ListKey`], strictly after `after`.
    ///
    /// Fewer than `limit` entries mean that the list ends there. A walk that passes the last key of one page to
    /// the next call returns every edge that exists during the whole walk exactly once.
    fn list(
        &self,
        kind: EdgeKind,
        side: Side,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<ListEntry>>> + Send;

    /// As [`EdgeStore::list`], for those who follow `of` and are followed by it, by when they followed `of`. The work of a page
    /// is bounded by the shorter of both lists, not by the longer.
    fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<ListEntry>>> + Send;

    /// Those who are in all of the sets: how many, and up to `limit` of them by id, strictly after `after`.
    ///
    /// The count is exact and does not depend on `after` or `limit`. No sets have no members; a set that is named
    /// twice counts once. The work is bounded by the smallest set, not by the largest; where even that has more than
    /// [`OVERLAP_WALK_MAX`] members and has to be walked, [`crate::Error::TooMany`].
    fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
    ) -> impl Future<Output = Result<Overlap>> + Send;

    /// For each user, how many edges it has on each side. Unknown users have none.
    fn counts(&self, kind: EdgeKind, of: &[Id]) -> impl Future<Output = Result<Vec<Counts>>> + Send;
}

/// What part of the log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpan {
    /// The life of the log.
    pub epoch: Epoch,
    /// Changes up to and including this position are gone.
    pub trimmed: Position,
    /// The newest change that is visible.
    pub newest: Position,
}

/// The ordered change log.
///
/// # Contract
/// - Every accepted change is in it exactly once, positions without gaps, in the order of taking effect.
/// - A change is in it no later than the write that made it is visible.
/// - It survives restarts; what retention trims is always the oldest part.
pub trait ChangeLog: Send + Sync + 'static {
    /// What part of the log is kept now.
    fn span(&self) -> LogSpan;

    /// Up to `limit` changes after `after`, oldest first; [`crate::Error::PositionExpired`] if the next one was trimmed.
    fn changes(&self, after: Position, limit: usize) -> impl Future<Output = Result<Vec<Change>>> + Send;
}
