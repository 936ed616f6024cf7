//! The port of comment threads. Its documentation is the contract; `kinfolk-conformance` tests every sentence.

use std::future::Future;

use super::{
    Branch, Comment, CommentEdit, CommentId, CommentOrder, CommentThreadState, CommentVersion,
    CommentWritten, Moderator, NewComment, Parent, Withdrawal,
};
use crate::feeds::WriteOutcome;
use crate::{Deployment, Frontier, Id, Result};

/// Keeps comment threads.
///
/// Ids of the wrong kind and bodies that are blank, too long or have refused control characters do not reach a store:
/// [`super::CommentThreads`] refuses them, turns their line ends into LF, and asks who may edit or delete. Who may see the text of a comment that is not
/// active is decided there too: a store shows what it has.
///
/// # Contract
/// - **Durable, ordered, visible**: every change of a thread is a write like those of [`crate::graph::EdgeStore`]: one event in the
///   same change log, ordered within each shard; what changed nothing is not in it. The log tells a text only while
///   it is the current one of an active comment.
/// - **Written once**: the same wish again under the author's idempotency key is a success that answers with the first
///   result, as it was then, and changes nothing: also when the comment was edited, deleted or removed since, the thread locked or
///   the post deleted. It is the same if parent, reply and body are; otherwise [`crate::Error::IdempotencyConflict`].
///   Of a comment that was purged the answer is the tombstone, whatever body is given. Keys are remembered for
///   7 days at least (a setting), and belong to their author. Of concurrent wishes one is first, and the others repeat it.
/// - **Ids** are UUIDs of version 7 that rise with every comment of a thread, also across restarts; `created_at` is the event's `at`.
/// - **Where**: a post must be there when a comment is written to it, or [`crate::Error::NotFound`]; a thread that is
///   locked refuses with [`crate::Error::ThreadLocked`]. Parents of other kinds are not looked for. A reply answers an active comment of the
///   same parent, and has at most `depth_max` comments above it, or [`crate::Error::InvalidReply`].
/// - **Edited** only by whoever has seen the current version: with another, [`crate::Error::VersionConflict`]; a
///   comment that is not active, [`crate::Error::CommentDeleted`]; an unknown one, [`crate::Error::NotFound`]. Of
///   concurrent edits of one version one wins. An edit leaves status, place and counts alone and can be followed by others.
///   Locking a thread does not keep comments from being edited.
/// - **Withdrawn** for good: a status only ever gets worse, in the order of [`super::CommentStatus`]; a withdrawal that
///   would not make it worse is a success that changes nothing. Of an edit and a withdrawal at once one is first: an edit that comes later is refused.
///   A comment keeps its place, its replies, the reason of its removal and, until it is purged, its texts. The moderator of a
///   removal or purge, where it is known, is in the event, and stays with the comment until a later one is known.
/// - **Purged**: the texts of all its versions are gone from every read and from the change log at once. From the
///   storage they are gone after [`CommentStore::erase_purged`]; backups are out of reach.
/// - **Counts** are exact: the active comments of a thread, and the direct replies to a comment.
/// - **One version**: no page shows a comment twice, and what is shown of it is what it was at one moment; only its count of
///   replies may be newer.
pub trait CommentStore: Deployment {
    /// Writes a comment.
    fn comment(&self, wish: NewComment) -> impl Future<Output = Result<CommentWritten>> + Send;

    /// Edits a comment.
    fn edit_comment(&self, edit: CommentEdit) -> impl Future<Output = Result<CommentWritten>> + Send;

    /// Takes a comment back. `by` is the moderator, if it is one who does and that is known.
    fn withdraw_comment(
        &self,
        id: CommentId,
        withdrawal: Withdrawal,
        by: Option<Moderator>,
    ) -> impl Future<Output = Result<WriteOutcome>> + Send;

    /// Locks a thread, or unlocks it. A post must be there, or [`crate::Error::NotFound`].
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

    /// Up to `limit` comments of a thread, tombstones among them, strictly after `after` in that order. Fewer mean that
    /// the thread ends there. A walk meets every comment that is there all the time exactly once.
    fn comment_thread(
        &self,
        parent: Parent,
        order: CommentOrder,
        after: Option<CommentId>,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Comment>>> + Send;

    /// For each branch, up to `limit` direct replies, tombstones among them, oldest first. Fewer mean that it ends there.
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

    /// Up to `limit` texts that a comment has or had, oldest first, with versions above `after`; none for one that is
    /// unknown or purged.
    fn comment_versions(
        &self,
        id: CommentId,
        after: u32,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<CommentVersion>>> + Send;

    /// For each thread, what is known of it as a whole.
    fn comment_threads(
        &self,
        parents: &[Parent],
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<CommentThreadState>>> + Send;

    /// Erases the texts of comments that were purged so far from everything that the store keeps. May take long; a store
    /// does it by itself sooner or later. Returns how many comments were concerned; [`crate::Error::InUse`] if something that is
    /// still read holds texts.
    fn erase_purged(&self) -> impl Future<Output = Result<u64>> + Send;
}
