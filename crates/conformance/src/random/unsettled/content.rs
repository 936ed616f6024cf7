//! Posts, feeds and comments behind connections that get lost.

use kinfolk_core::comments::{
    Branch, Comment, CommentEdit, CommentId, CommentOrder, CommentStatus, CommentStore, CommentThreadState,
    CommentVersion, CommentWritten, Moderator, NewComment, Parent, Withdrawal,
};
use kinfolk_core::feeds::{
    FeedStore, Inbox, InboxStore, NewPost, Post, PostKey, PostState, PostStore, PostWritten, WriteOutcome,
};
use kinfolk_core::{Error, Frontier, Id, Result, Timestamp};

use super::{Unsettled, some_position};
use crate::ports::ContentPorts;
use crate::threads::block_on;
use crate::users::user;

/// No store makes such an id under test.
const PRETENDED: u64 = 999_997;

/// An acknowledgement of a post that was not registered.
fn pretend_post<S: ContentPorts>(store: &S, post: NewPost) -> Result<PostWritten> {
    let NewPost { author, created_at, payload, .. } = post;
    let id = user(store.id_kind(), PRETENDED);
    let post = Post { id, author, created_at: created_at.unwrap_or_default(), payload };
    Ok(PostWritten { position: some_position(store)?, post, is_new: true })
}

/// An acknowledgement of a comment that was not written.
fn pretend_comment<S: ContentPorts>(store: &S, request: NewComment) -> Result<CommentWritten> {
    let comment = Comment {
        id: CommentId(PRETENDED.into()),
        parent: request.parent,
        author: request.author,
        reply_to: request.reply_to,
        depth: 0,
        created_at: Timestamp::default(),
        version: 1,
        edited_at: None,
        status: CommentStatus::Active,
        body: Some(request.body),
        reason: None,
        removed_by: None,
        reply_count: 0,
    };
    Ok(CommentWritten { position: some_position(store)?, comment, is_new: true })
}

impl<S: ContentPorts> PostStore for Unsettled<S> {
    async fn register(&self, post: NewPost) -> Result<PostWritten> {
        let lost = post.clone();
        let apply = move |store: &S| block_on(store.register(post.clone()));
        self.send(apply, |store| pretend_post(store, lost))
    }

    async fn delete_post(&self, id: Id) -> Result<WriteOutcome> {
        self.send(move |store: &S| block_on(store.delete_post(id)), |_| Err(Error::TimedOut))
    }

    async fn posts(&self, ids: &[Id], at_least: &Frontier) -> Result<Vec<Option<PostState>>> {
        self.readable()?.posts(ids, at_least).await
    }

    async fn posts_by(
        &self,
        author: Id,
        after: Option<PostKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Post>> {
        self.readable()?.posts_by(author, after, limit, at_least).await
    }
}

impl<S: ContentPorts> FeedStore for Unsettled<S> {
    async fn feed(
        &self,
        of: Id,
        after: Option<PostKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Post>> {
        self.readable()?.feed(of, after, limit, at_least).await
    }
}

impl<S: ContentPorts> InboxStore for Unsettled<S> {
    async fn inbox(&self, of: Id, at_least: &Frontier) -> Result<Option<Inbox>> {
        self.readable()?.inbox(of, at_least).await
    }

    async fn drop_inbox(&self, of: Id) -> Result<()> {
        self.store.drop_inbox(of).await
    }
}

impl<S: ContentPorts> CommentStore for Unsettled<S> {
    async fn comment(&self, request: NewComment) -> Result<CommentWritten> {
        let lost = request.clone();
        let apply = move |store: &S| block_on(store.comment(request.clone()));
        self.send(apply, |store| pretend_comment(store, lost))
    }

    async fn edit_comment(&self, edit: CommentEdit) -> Result<CommentWritten> {
        self.send(move |store: &S| block_on(store.edit_comment(edit.clone())), |_| Err(Error::TimedOut))
    }

    async fn withdraw_comment(
        &self,
        id: CommentId,
        withdrawal: Withdrawal,
        by: Option<Moderator>,
    ) -> Result<WriteOutcome> {
        let apply = move |store: &S| block_on(store.withdraw_comment(id, withdrawal.clone(), by.clone()));
        self.send(apply, |_| Err(Error::TimedOut))
    }

    async fn lock_comment_thread(&self, parent: Parent, locked: bool) -> Result<WriteOutcome> {
        self.send(
            move |store: &S| block_on(store.lock_comment_thread(parent, locked)),
            |_| Err(Error::TimedOut),
        )
    }

    async fn comments(&self, ids: &[CommentId], at_least: &Frontier) -> Result<Vec<Option<Comment>>> {
        self.readable()?.comments(ids, at_least).await
    }

    async fn comment_thread(
        &self,
        parent: Parent,
        order: CommentOrder,
        after: Option<CommentId>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Comment>> {
        self.readable()?.comment_thread(parent, order, after, limit, at_least).await
    }

    async fn replies(
        &self,
        branches: &[Branch],
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Vec<Comment>>> {
        self.readable()?.replies(branches, limit, at_least).await
    }

    async fn comments_by(
        &self,
        author: Id,
        after: Option<CommentId>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Comment>> {
        self.readable()?.comments_by(author, after, limit, at_least).await
    }

    async fn comment_versions(
        &self,
        id: CommentId,
        after: u32,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<CommentVersion>> {
        self.readable()?.comment_versions(id, after, limit, at_least).await
    }

    async fn comment_threads(
        &self,
        parents: &[Parent],
        at_least: &Frontier,
    ) -> Result<Vec<CommentThreadState>> {
        self.readable()?.comment_threads(parents, at_least).await
    }

    async fn erase_purged(&self) -> Result<u64> {
        self.store.erase_purged().await
    }
}
