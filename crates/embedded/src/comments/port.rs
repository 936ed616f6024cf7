//! The port of comment threads, for the embedded store. Reads are short: the graph asks for a few comments at a time.

use std::sync::Arc;

use kinfolk_core::comments::{
    Branch, Comment, CommentEdit, CommentId, CommentOrder, CommentStore, CommentThreadState, CommentVersion,
    CommentWritten, Moderator, NewComment, Parent, Withdrawal,
};
use kinfolk_core::feeds::WriteOutcome;
use kinfolk_core::{Frontier, Id, Result};
use tokio::sync::oneshot;

use crate::Embedded;
use crate::engine::batch::Batch;
use crate::engine::request::weight;

impl Embedded {
    /// All comments of all threads, with tombstones, as of now, whatever is written meanwhile: thread by thread, each in the
    /// order of time.
    pub fn all_comments(&self) -> Result<impl Iterator<Item = Result<Comment>> + Send + 'static> {
        let records = self.ask_writer(|writer| {
            let comments = &writer.store.comments;
            Ok(comments.records(comments.tree.now()))
        })?;
        let store = Arc::clone(&self.store);
        Ok(records.map(move |record| store.comments.comment_of(record?)))
    }
}

impl CommentStore for Embedded {
    async fn comment(&self, request: NewComment) -> Result<CommentWritten> {
        self.request(weight(request.body.len()), |batch| batch.plan_comment(|planner| planner.write(request)))
            .await?
    }

    async fn edit_comment(&self, edit: CommentEdit) -> Result<CommentWritten> {
        self.request(weight(edit.body.len()), |batch| batch.plan_comment(|planner| planner.edit(edit)))
            .await?
    }

    async fn withdraw_comment(
        &self,
        id: CommentId,
        withdrawal: Withdrawal,
        by: Option<Moderator>,
    ) -> Result<WriteOutcome> {
        let reason_bytes = match &withdrawal {
            Withdrawal::Remove(reason) => reason.len(),
            Withdrawal::Delete | Withdrawal::Purge => 0,
        };
        let plan =
            move |batch: &mut Batch<'_>| batch.plan_comment(|planner| planner.withdraw(id, withdrawal, by));
        self.request(weight(reason_bytes), plan).await?
    }

    async fn lock_comment_thread(&self, parent: Parent, locked: bool) -> Result<WriteOutcome> {
        self.request(1, move |batch| batch.plan_comment(|planner| planner.lock(parent, locked))).await?
    }

    async fn comments(&self, ids: &[CommentId], at_least: &Frontier) -> Result<Vec<Option<Comment>>> {
        self.reach(at_least).await?;
        self.store.layers.rows(|| ids.iter().map(|&id| self.store.comments.comment(id)).collect())
    }

    async fn comment_thread(
        &self,
        parent: Parent,
        order: CommentOrder,
        after: Option<CommentId>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Comment>> {
        self.reach(at_least).await?;
        self.store.layers.rows(|| self.store.comments.comment_thread(parent, order, after, limit))
    }

    async fn replies(
        &self,
        branches: &[Branch],
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Vec<Comment>>> {
        self.reach(at_least).await?;
        let read = |&branch: &Branch| self.store.comments.replies(branch, limit);
        self.store.layers.rows(|| branches.iter().map(read).collect())
    }

    async fn comments_by(
        &self,
        author: Id,
        after: Option<CommentId>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Comment>> {
        self.reach(at_least).await?;
        self.store.layers.rows(|| self.store.comments.by_author(author, after, limit))
    }

    async fn comment_versions(
        &self,
        id: CommentId,
        after: u32,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<CommentVersion>> {
        self.reach(at_least).await?;
        self.store.layers.rows(|| self.store.comments.versions(id, after, limit))
    }

    async fn comment_threads(
        &self,
        parents: &[Parent],
        at_least: &Frontier,
    ) -> Result<Vec<CommentThreadState>> {
        self.reach(at_least).await?;
        parents.iter().map(|&parent| self.store.comments.state(parent)).collect()
    }

    async fn erase_purged(&self) -> Result<u64> {
        let (store, (done, outcome)) = (self.clone(), oneshot::channel());
        // It may rewrite much: on a thread of its own, so that nobody's request waits behind it.
        self.store.health.spawn("kinfolk-erase", move || {
            let outcome = store.erase();
            // The receiver may close the store.
            drop(store);
            let _ = done.send(outcome);
        })?;
        outcome.await.map_err(|_| kinfolk_core::Error::Closed)?
    }
}
