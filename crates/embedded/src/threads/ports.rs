//! The port of comment threads, for the embedded store.

use std::sync::Arc;

use kinfolk_core::feed::Removed;
use kinfolk_core::thread::{
    Branch, Comment, CommentEdit, CommentId, CommentVersion, Commented, NewComment, Parent, ThreadOrder,
    ThreadState, ThreadStore, Withdrawal,
};
use kinfolk_core::{Id, Result};
use tokio::sync::oneshot;

use super::Threads;
use crate::index::Scratch;
use crate::writer::Request;
use crate::{Embedded, spawn};

/// More comments than this take longer to read than a protocol's thread may wait.
const SHORT_PAGE: usize = 100;

impl Embedded {
    /// Reads comments: at once if they are few, otherwise where long work is done.
    async fn read_comments<T: Send + 'static>(
        &self,
        (about, comments): (Id, usize),
        read: impl FnOnce(&Threads) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if comments <= SHORT_PAGE {
            return read(&self.store.threads);
        }
        let store = Arc::clone(&self.store);
        let work = move |_: &mut Scratch, _: &dyn Fn() -> bool| read(&store.threads);
        self.store.walkers.run(about, work).await
    }

    /// All comments of all threads, with tombstones, as of now, whatever is written meanwhile: thread by thread, each in the
    /// order of time.
    pub fn all_comments(&self) -> Result<impl Iterator<Item = Result<Comment>> + Send + 'static> {
        let moment = self.ask_writer(|writer| Ok(writer.store.threads.tree.now()))?;
        let store = Arc::clone(&self.store);
        Ok(self.store.threads.records(moment).map(move |row| {
            let (parent, id, record) = row?;
            store.threads.comment_of(parent, id, record)
        }))
    }
}

impl ThreadStore for Embedded {
    async fn comment(&self, wish: NewComment) -> Result<Commented> {
        self.request(|reply| Request::Comment(Box::new(wish), reply)).await
    }

    async fn edit_comment(&self, edit: CommentEdit) -> Result<Commented> {
        self.request(|reply| Request::EditComment(Box::new(edit), reply)).await
    }

    async fn withdraw_comment(&self, id: CommentId, withdrawal: Withdrawal) -> Result<Removed> {
        self.request(|reply| Request::WithdrawComment(Box::new((id, withdrawal)), reply)).await
    }

    async fn lock_thread(&self, parent: Parent, locked: bool) -> Result<Removed> {
        self.request(|reply| Request::LockThread(parent, locked, reply)).await
    }

    async fn comments(&self, ids: &[CommentId]) -> Result<Vec<Option<Comment>>> {
        ids.iter().map(|&id| self.store.threads.comment(id)).collect()
    }

    async fn thread(
        &self,
        parent: Parent,
        order: ThreadOrder,
        after: Option<CommentId>,
        limit: usize,
    ) -> Result<Vec<Comment>> {
        let read = move |threads: &Threads| threads.thread(parent, order, after, limit);
        self.read_comments((parent.id, limit), read).await
    }

    async fn replies(&self, branches: &[Branch], limit: usize) -> Result<Vec<Vec<Comment>>> {
        let Some(first) = branches.first() else { return Ok(Vec::new()) };
        let (about, comments) = (first.parent.id, branches.len().saturating_mul(limit));
        let branches = branches.to_vec();
        let read = move |threads: &Threads| {
            branches.into_iter().map(|branch| threads.replies(branch, limit)).collect()
        };
        self.read_comments((about, comments), read).await
    }

    async fn comments_by(&self, author: Id, after: Option<CommentId>, limit: usize) -> Result<Vec<Comment>> {
        self.read_comments((author, limit), move |threads| threads.by_author(author, after, limit)).await
    }

    async fn comment_versions(&self, id: CommentId, after: u32, limit: usize) -> Result<Vec<CommentVersion>> {
        let about = Id::Uuid(id.0);
        self.read_comments((about, limit), move |threads| threads.versions(id, after, limit)).await
    }

    async fn threads(&self, parents: &[Parent]) -> Result<Vec<ThreadState>> {
        parents.iter().map(|&parent| self.store.threads.state(parent)).collect()
    }

    async fn erase_purged(&self) -> Result<u64> {
        let (store, (done, outcome)) = (self.clone(), oneshot::channel());
        // It may rewrite much: on a thread of its own, so that nobody's request waits behind it.
        spawn("kinfolk-erase", move || {
            let outcome = store.erase();
            // Whoever is told may close the store.
            drop(store);
            let _ = done.send(outcome);
        })?;
        outcome.await.map_err(|_| kinfolk_core::Error::Closed)?
    }
}
