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

    crate::forward! { self => self.readable()?;
        fn posts(ids: &[Id], at_least: &Frontier) -> Result<Vec<Option<PostState>>>;
        fn posts_by(author: Id, after: Option<PostKey>, limit: usize, at_least: &Frontier)
            -> Result<Vec<Post>>;
    }
}

impl<S: ContentPorts> FeedStore for Unsettled<S> {
    crate::forward! { self => self.readable()?;
        fn feed(of: Id, after: Option<PostKey>, limit: usize, at_least: &Frontier) -> Result<Vec<Post>>;
    }
}

impl<S: ContentPorts> InboxStore for Unsettled<S> {
    crate::forward! { self => self.readable()?;
        fn inbox(of: Id, at_least: &Frontier) -> Result<Option<Inbox>>;
    }

    crate::forward! { self => self.store;
        fn drop_inbox(of: Id) -> Result<()>;
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

    crate::forward! { self => self.readable()?;
        fn comments(ids: &[CommentId], at_least: &Frontier) -> Result<Vec<Option<Comment>>>;
        fn comment_thread(parent: Parent, order: CommentOrder, after: Option<CommentId>, limit: usize, at_least: &Frontier)
            -> Result<Vec<Comment>>;
        fn replies(branches: &[Branch], limit: usize, at_least: &Frontier) -> Result<Vec<Vec<Comment>>>;
        fn comments_by(author: Id, after: Option<CommentId>, limit: usize, at_least: &Frontier)
            -> Result<Vec<Comment>>;
        fn comment_versions(id: CommentId, after: u32, limit: usize, at_least: &Frontier)
            -> Result<Vec<CommentVersion>>;
        fn comment_threads(parents: &[Parent], at_least: &Frontier) -> Result<Vec<CommentThreadState>>;
    }

    crate::forward! { self => self.store;
        fn erase_purged() -> Result<u64>;
    }
}
