//! Comment threads at any place: a folder or a server. Threads are those of posts.

mod answers;
mod csv;
mod open_graph;
mod server;

use std::path::Path;

use anyhow::Result;
use kinfolk_core::comments::{
    CommentEdit, CommentId, CommentOrder, CommentPage, CommentTree, HistoryPage, NewComment, TreeShape,
    Withdrawal,
};
use kinfolk_core::{Id, PageRequest};

pub use answers::{AnsweredComment, moderator, parent};

use super::{CommentDone, WriteDone};
use crate::progress::Reporter;

/// What commands do with comments.
pub trait Threads {
    /// Writes a comment, durably.
    fn comment(&self, new: NewComment) -> Result<CommentDone>;

    /// Edits a comment of an author's, durably.
    fn edit_comment(&self, author: Id, edit: CommentEdit) -> Result<CommentDone>;

    /// Takes a comment back, durably: a deletion as its author, who must be named; anything else as a moderator, who is
    /// recorded if it is named.
    fn withdraw_comment(&self, actor: Option<Id>, id: CommentId, withdrawal: Withdrawal)
    -> Result<WriteDone>;

    /// Locks or unlocks the thread of a post, durably.
    fn lock_comment_thread(&self, post: Id, locked: bool) -> Result<WriteDone>;

    /// A page of the thread of a post.
    fn comment_thread(&self, post: Id, order: CommentOrder, request: PageRequest<'_>) -> Result<CommentPage>;

    /// A page of the thread of a post, as a tree.
    fn comment_tree(&self, post: Id, shape: TreeShape, request: PageRequest<'_>) -> Result<CommentTree>;

    /// A page of an author's comments, newest first.
    fn comments_by(&self, author: Id, request: PageRequest<'_>) -> Result<CommentPage>;

    /// A page of the texts that a comment has or had, oldest first.
    fn comment_history(&self, id: CommentId, request: PageRequest<'_>) -> Result<HistoryPage>;

    /// Writes all comments to a file, or to standard output for `-`; gives their number.
    fn export_comments(&self, file: &Path, reporter: &Reporter) -> Result<u64>;

    /// Merges all files of the store and erases the texts of purged comments; gives the number of these.
    fn compact(&self, reporter: &Reporter) -> Result<u64>;
}
