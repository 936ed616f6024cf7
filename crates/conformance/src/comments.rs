//! Comment threads behind the port: not kept by the model yet.

use kinfolk_core::feed::Removed;
use kinfolk_core::thread::{
    Branch, Comment, CommentEdit, CommentId, CommentVersion, Commented, NewComment, Parent, ThreadOrder,
    ThreadState, ThreadStore, Withdrawal,
};
use kinfolk_core::{Error, Id, Result};

use crate::ModelStore;

const LATER: Error = Error::NotAvailable { what: "comments" };

impl ThreadStore for ModelStore {
    async fn comment(&self, _: NewComment) -> Result<Commented> {
        Err(LATER)
    }

    async fn edit_comment(&self, _: CommentEdit) -> Result<Commented> {
        Err(LATER)
    }

    async fn withdraw_comment(&self, _: CommentId, _: Withdrawal) -> Result<Removed> {
        Err(LATER)
    }

    async fn lock_thread(&self, _: Parent, _: bool) -> Result<Removed> {
        Err(LATER)
    }

    async fn comments(&self, _: &[CommentId]) -> Result<Vec<Option<Comment>>> {
        Err(LATER)
    }

    async fn thread(
        &self,
        _: Parent,
        _: ThreadOrder,
        _: Option<CommentId>,
        _: usize,
    ) -> Result<Vec<Comment>> {
        Err(LATER)
    }

    async fn replies(&self, _: &[Branch], _: usize) -> Result<Vec<Vec<Comment>>> {
        Err(LATER)
    }

    async fn comments_by(&self, _: Id, _: Option<CommentId>, _: usize) -> Result<Vec<Comment>> {
        Err(LATER)
    }

    async fn comment_versions(&self, _: CommentId, _: u32, _: usize) -> Result<Vec<CommentVersion>> {
        Err(LATER)
    }

    async fn threads(&self, _: &[Parent]) -> Result<Vec<ThreadState>> {
        Err(LATER)
    }

    async fn erase_purged(&self) -> Result<u64> {
        Err(LATER)
    }
}
