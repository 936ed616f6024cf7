//! Posts, feeds and comments of the watched store, which only the reference store has.

use std::sync::Arc;

use kinfolk_conformance::forward;
use kinfolk_core::comments::{
    Branch, Comment, CommentEdit, CommentId, CommentOrder, CommentStore, CommentThreadState, CommentVersion,
    CommentWritten, Moderator, NewComment, Parent, Withdrawal,
};
use kinfolk_core::feeds::{
    FeedStore, Inbox, InboxStore, NewPost, Post, PostKey, PostState, PostStore, PostWritten, WriteOutcome,
};
use kinfolk_core::{Frontier, Id, Result, Store};

use crate::store::WatchedStore;

impl Store for WatchedStore {
    type Suggestions = Self;
    type Content = Self;

    fn suggestions(self: &Arc<Self>) -> Option<Arc<Self>> {
        Some(Arc::clone(self))
    }

    fn content(self: &Arc<Self>) -> Option<Arc<Self>> {
        Some(Arc::clone(self))
    }
}

impl PostStore for WatchedStore {
    async fn register(&self, post: NewPost) -> Result<PostWritten> {
        self.watch.note_post();
        self.pass().await?;
        self.backing.register(post).await
    }

    async fn posts_by(
        &self,
        author: Id,
        after: Option<PostKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Post>> {
        self.watch.begin_walk().go_on().await;
        self.backing.posts_by(author, after, limit, at_least).await
    }

    forward! { self => self.backing;
        fn delete_post(id: Id) -> Result<WriteOutcome>;
        fn posts(ids: &[Id], at_least: &Frontier) -> Result<Vec<Option<PostState>>>;
    }
}

impl FeedStore for WatchedStore {
    async fn feed(
        &self,
        of: Id,
        after: Option<PostKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Post>> {
        self.watch.begin_walk().go_on().await;
        self.backing.feed(of, after, limit, at_least).await
    }
}

impl InboxStore for WatchedStore {
    forward! { self => self.backing;
        fn inbox(of: Id, at_least: &Frontier) -> Result<Option<Inbox>>;
        fn drop_inbox(of: Id) -> Result<()>;
    }
}

impl CommentStore for WatchedStore {
    async fn comment(&self, new: NewComment) -> Result<CommentWritten> {
        self.watch.next_refusal()?;
        self.backing.comment(new).await
    }

    forward! { self => self.backing;
        fn edit_comment(edit: CommentEdit) -> Result<CommentWritten>;
        fn withdraw_comment(id: CommentId, withdrawal: Withdrawal, by: Option<Moderator>)
            -> Result<WriteOutcome>;
        fn lock_comment_thread(parent: Parent, locked: bool) -> Result<WriteOutcome>;
        fn comments(ids: &[CommentId], at_least: &Frontier) -> Result<Vec<Option<Comment>>>;
        fn comment_thread(parent: Parent, order: CommentOrder, after: Option<CommentId>, limit: usize, at_least: &Frontier)
            -> Result<Vec<Comment>>;
        fn replies(branches: &[Branch], limit: usize, at_least: &Frontier) -> Result<Vec<Vec<Comment>>>;
        fn comments_by(author: Id, after: Option<CommentId>, limit: usize, at_least: &Frontier)
            -> Result<Vec<Comment>>;
        fn comment_versions(id: CommentId, after: u32, limit: usize, at_least: &Frontier)
            -> Result<Vec<CommentVersion>>;
        fn comment_threads(parents: &[Parent], at_least: &Frontier) -> Result<Vec<CommentThreadState>>;
        fn erase_purged() -> Result<u64>;
    }
}
