//! Comment threads of the model behind their port.

use kinfolk_core::feed::Removed;
use kinfolk_core::thread::{
    Branch, Comment, CommentEdit, CommentId, CommentVersion, Commented, NewComment, Parent, ThreadOrder,
    ThreadState, ThreadStore, Withdrawal,
};
use kinfolk_core::{Id, Result, Timestamp};

use crate::ModelStore;
use crate::model::Model;

impl ModelStore {
    /// Changes the model, and tells those who wait for it.
    fn change<T>(&self, change: impl FnOnce(&mut Model, Timestamp) -> Result<T>) -> Result<T> {
        let result = change(&mut self.model(), self.clock.now());
        self.written.notify_all();
        result
    }
}

impl ThreadStore for ModelStore {
    async fn comment(&self, wish: NewComment) -> Result<Commented> {
        self.change(|model, now| {
            let made = model.threads.make_id(now);
            model.write_comment(&wish, made, now)
        })
    }

    async fn edit_comment(&self, edit: CommentEdit) -> Result<Commented> {
        self.change(|model, now| model.edit_comment(&edit, now))
    }

    async fn withdraw_comment(&self, id: CommentId, withdrawal: Withdrawal) -> Result<Removed> {
        self.change(|model, now| model.withdraw_comment(id, &withdrawal, now))
    }

    async fn lock_thread(&self, parent: Parent, locked: bool) -> Result<Removed> {
        self.change(|model, now| model.lock_thread(parent, locked, now))
    }

    async fn comments(&self, ids: &[CommentId]) -> Result<Vec<Option<Comment>>> {
        let model = self.model();
        Ok(ids.iter().map(|&id| model.comment(id)).collect())
    }

    async fn thread(
        &self,
        parent: Parent,
        order: ThreadOrder,
        after: Option<CommentId>,
        limit: usize,
    ) -> Result<Vec<Comment>> {
        Ok(self.model().thread(parent, order, after, limit))
    }

    async fn replies(&self, branches: &[Branch], limit: usize) -> Result<Vec<Vec<Comment>>> {
        let model = self.model();
        Ok(branches.iter().map(|&branch| model.replies(branch, limit)).collect())
    }

    async fn comments_by(&self, author: Id, after: Option<CommentId>, limit: usize) -> Result<Vec<Comment>> {
        Ok(self.model().comments_by(author, after, limit))
    }

    async fn comment_versions(&self, id: CommentId, after: u32, limit: usize) -> Result<Vec<CommentVersion>> {
        Ok(self.model().comment_versions(id, after, limit))
    }

    async fn threads(&self, parents: &[Parent]) -> Result<Vec<ThreadState>> {
        let model = self.model();
        Ok(parents.iter().map(|&parent| model.thread_state(parent)).collect())
    }

    async fn erase_purged(&self) -> Result<u64> {
        Ok(self.model().erase_purged())
    }
}
