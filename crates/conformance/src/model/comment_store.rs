//! Comment threads of the model behind their port.

use kinfolk_core::comments::{
    Branch, Comment, CommentEdit, CommentId, CommentOrder, CommentStore, CommentThreadState, CommentVersion,
    CommentWritten, Moderator, NewComment, Parent, Withdrawal,
};
use kinfolk_core::feeds::WriteOutcome;
use kinfolk_core::{Frontier, Id, Result, Shard, Timestamp};

use crate::ModelStore;
use crate::model::Model;

impl ModelStore {
    /// Changes the model, and notifies waiting readers.
    fn change<T>(&self, change: impl FnOnce(&mut Model, Timestamp) -> Result<T>) -> Result<T> {
        let result = change(&mut self.model(), self.clock.now());
        self.reported(result)
    }

    /// Tells those who wait that the model may have changed.
    fn reported<T>(&self, result: Result<T>) -> Result<T> {
        self.written.notify_all();
        result
    }

    fn placed_comment(&self, commented: CommentWritten) -> Result<CommentWritten> {
        let shard = self.placement.of_thread(commented.comment.parent);
        Ok(CommentWritten { position: self.placed(commented.position, shard), ..commented })
    }

    fn placed_removal(&self, removed: WriteOutcome, parent: Option<Parent>) -> Result<WriteOutcome> {
        let shard = parent.map_or(Shard::ONLY, |parent| self.placement.of_thread(parent));
        Ok(WriteOutcome { position: self.placed(removed.position, shard), ..removed })
    }
}

impl CommentStore for ModelStore {
    async fn comment(&self, request: NewComment) -> Result<CommentWritten> {
        let commented = match &self.planted {
            Some(planted) => self.reported(planted.comment(&self.model, &request, &*self.clock)),
            None => self.change(|model, now| {
                let generated = model.threads.generate_id(now);
                model.write_comment(&request, generated, now)
            }),
        };
        self.placed_comment(commented?)
    }

    async fn edit_comment(&self, edit: CommentEdit) -> Result<CommentWritten> {
        let commented = match &self.planted {
            Some(planted) => self.reported(planted.edit_comment(&self.model, &edit, &*self.clock)),
            None => self.change(|model, now| model.edit_comment(&edit, now)),
        };
        self.placed_comment(commented?)
    }

    async fn withdraw_comment(
        &self,
        id: CommentId,
        withdrawal: Withdrawal,
        by: Option<Moderator>,
    ) -> Result<WriteOutcome> {
        let act = (&withdrawal, by.as_ref());
        let removed = match &self.planted {
            Some(planted) => self.reported(planted.withdraw_comment(&self.model, id, act, &*self.clock)),
            None => self.change(|model, now| model.withdraw_comment(id, act, now)),
        };
        let parent = self.model().threads.comments.get(&id).map(|written| written.parent);
        self.placed_removal(removed?, parent)
    }

    async fn lock_comment_thread(&self, parent: Parent, locked: bool) -> Result<WriteOutcome> {
        let removed = self.change(|model, now| match &self.planted {
            None => model.lock_comment_thread(parent, locked, now),
            Some(planted) => planted.lock_comment_thread(model, parent, locked, now),
        });
        self.placed_removal(removed?, Some(parent))
    }

    async fn comments(&self, ids: &[CommentId], at_least: &Frontier) -> Result<Vec<Option<Comment>>> {
        self.reach(at_least)?;
        let model = self.model();
        match &self.planted {
            None => Ok(ids.iter().map(|&id| model.comment(id)).collect()),
            Some(planted) => Ok(planted.comments(&model, ids)),
        }
    }

    async fn comment_thread(
        &self,
        parent: Parent,
        order: CommentOrder,
        after: Option<CommentId>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Comment>> {
        self.reach(at_least)?;
        match &self.planted {
            None => Ok(self.model().comment_thread(parent, order, after, limit)),
            Some(planted) => Ok(planted.comment_thread(&self.model, parent, order, (after, limit))),
        }
    }

    async fn replies(
        &self,
        branches: &[Branch],
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Vec<Comment>>> {
        self.reach(at_least)?;
        let model = self.model();
        match &self.planted {
            None => Ok(branches.iter().map(|&branch| model.replies(branch, limit)).collect()),
            Some(planted) => Ok(planted.replies(&model, branches, limit)),
        }
    }

    async fn comments_by(
        &self,
        author: Id,
        after: Option<CommentId>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Comment>> {
        self.reach(at_least)?;
        match &self.planted {
            None => Ok(self.model().comments_by(author, after, limit)),
            Some(planted) => Ok(planted.comments_by(&self.model(), author, (after, limit))),
        }
    }

    async fn comment_versions(
        &self,
        id: CommentId,
        after: u32,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<CommentVersion>> {
        self.reach(at_least)?;
        match &self.planted {
            None => Ok(self.model().comment_versions(id, after, limit)),
            Some(planted) => Ok(planted.comment_versions(&self.model(), id, (after, limit))),
        }
    }

    async fn comment_threads(
        &self,
        parents: &[Parent],
        at_least: &Frontier,
    ) -> Result<Vec<CommentThreadState>> {
        self.reach(at_least)?;
        let model = self.model();
        let state = |&parent: &Parent| match &self.planted {
            None => model.thread_state(parent),
            Some(planted) => planted.thread_state(&model, parent),
        };
        Ok(parents.iter().map(state).collect())
    }

    async fn erase_purged(&self) -> Result<u64> {
        Ok(self.model().erase_purged())
    }
}
