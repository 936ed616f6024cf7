//! The port of comments. Its documentation is the contract; `kinfolk-conformance` tests every sentence of it.

use std::future::Future;

use super::{
    Branch, Comment, CommentEdit, CommentId, CommentOrder, CommentThreadState, CommentVersion,
    CommentWritten, Moderator, NewComment, Parent, Withdrawal,
};
use crate::feeds::WriteOutcome;
use crate::{Deployment, Frontier, Id, Result};

/// Keeps comment threads.
///
/// [`super::CommentThreads`] refuses ids of the wrong kind, and bodies that are blank, too long or contain forbidden control
/// characters; it normalizes line endings to LF and checks who may edit and delete. It also decides who may see the body of a
/// comment that is not active: a store returns what it has.
///
/// # Contract
/// - **Durable, ordered, visible**: every change of a thread is a write like those of [`crate::graph::EdgeStore`]: one event
///   in the same change log, ordered within its shard; a write that changes nothing has no event. The log contains a body
///   only while it is the current body of an active comment.
/// - **Written once**: a retry under the author's idempotency key succeeds, returns the first result as it was then, and
///   changes nothing, even if the comment was edited, deleted or removed since, the thread locked or the post deleted. A
///   request is a retry if parent, `reply_to` and body are equal; otherwise [`crate::Error::IdempotencyConflict`]. If the
///   comment was purged, the result is its tombstone, regardless of the body. Keys are kept for at least 7 days (a setting)
///   and are scoped to their author. Of concurrent equal requests one is first, and the others are retries.
/// - **Ids** are UUIDs of version 7 that increase with every comment of a thread, also across restarts; `created_at` is the
///   event's `at`.
/// - **Parents**: a post must exist when a comment is written to it, or [`crate::Error::NotFound`]; a locked thread refuses
///   comments with [`crate::Error::ThreadLocked`]. Parents of other kinds are not checked. A reply must refer to an active
///   comment of the same parent and have at most `depth_max` comments above it, or [`crate::Error::InvalidReply`].
/// - **Edits** must be based on the current version, or [`crate::Error::VersionConflict`]; for a comment that is not active,
///   [`crate::Error::CommentDeleted`]; for an unknown one, [`crate::Error::NotFound`]. Of concurrent edits of one version one
///   wins. An edit does not change status, order and counts. Comments of a locked thread can be edited.
/// - **Withdrawals** are permanent: a status only advances, in the order of [`super::CommentStatus`]; a withdrawal that would
///   not advance it succeeds and changes nothing. Of a concurrent edit and withdrawal one is first: an edit after a withdrawal
///   is refused. A tombstone keeps its order, its replies, the reason of its removal and, until it is purged, its bodies. The
///   moderator of a removal or purge, if known, is in the event, and stays with the comment until a later one is known.
/// - **Purges** remove the bodies of all versions from every read and from the change log immediately, and from the storage
///   after [`CommentStore::erase_purged`]. Backups are not affected.
/// - **Counts** of active comments and of direct replies are exact.
/// - **One version**: no page contains a comment twice, and each comment is as it was at one moment; only its reply count may
///   be newer.
pub trait CommentStore: Deployment {
    /// Writes a comment.
    fn comment(&self, request: NewComment) -> impl Future<Output = Result<CommentWritten>> + Send;

    /// Edits a comment.
    fn edit_comment(&self, edit: CommentEdit) -> impl Future<Output = Result<CommentWritten>> + Send;

    /// Withdraws a comment. `by` is the moderator, if there is one and it is known.
    fn withdraw_comment(
        &self,
        id: CommentId,
        withdrawal: Withdrawal,
        by: Option<Moderator>,
    ) -> impl Future<Output = Result<WriteOutcome>> + Send;

    /// Locks or unlocks a thread. A post must exist, or [`crate::Error::NotFound`].
    fn lock_comment_thread(
        &self,
        parent: Parent,
        locked: bool,
    ) -> impl Future<Output = Result<WriteOutcome>> + Send;

    /// For each id, the comment or its tombstone.
    fn comments(
        &self,
        ids: &[CommentId],
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Option<Comment>>>> + Send;

    /// Up to `limit` comments of a thread, including tombstones, strictly after `after` in that order. Fewer than `limit` mean
    /// that the thread ends there. Paging returns every comment that exists during the whole walk exactly once.
    fn comment_thread(
        &self,
        parent: Parent,
        order: CommentOrder,
        after: Option<CommentId>,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Comment>>> + Send;

    /// For each branch, up to `limit` direct replies, including tombstones, oldest first. Fewer mean that it ends there.
    fn replies(
        &self,
        branches: &[Branch],
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Vec<Comment>>>> + Send;

    /// Up to `limit` active comments of an author, newest first, strictly after `after`. Fewer mean that the list ends
    /// there.
    fn comments_by(
        &self,
        author: Id,
        after: Option<CommentId>,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Comment>>> + Send;

    /// Up to `limit` versions of a comment above `after`, oldest first; none if it is unknown or purged.
    fn comment_versions(
        &self,
        id: CommentId,
        after: u32,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<CommentVersion>>> + Send;

    /// The state of each thread.
    fn comment_threads(
        &self,
        parents: &[Parent],
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<CommentThreadState>>> + Send;

    /// Erases the bodies of purged comments from all files of the store. May take long; a store also does it by itself
    /// eventually. Returns the number of erased comments; [`crate::Error::InUse`] if a reader still holds such bodies.
    fn erase_purged(&self) -> impl Future<Output = Result<u64>> + Send;
}
