//! A store with the frontier that its reader has seen: every read asks for at least that much.

use std::ops::Deref;
use std::time::Duration;

use kinfolk_core::changes::{Change, ChangeLog, LogPage, LogSpan};
use kinfolk_core::comments::{
    Branch, Comment, CommentId, CommentOrder, CommentStore, CommentThreadState, CommentVersion, Parent,
};
use kinfolk_core::feeds::{FeedStore, Inbox, InboxStore, Post, PostKey, PostState, PostStore};
use kinfolk_core::graph::{
    CheckStore, Counts, Edge, EdgeList, EdgeStore, ListEntry, ListKey, Overlap, Side, UserSet,
};
use kinfolk_core::suggestions::{StoredSuggestions, Suggestion, SuggestionStore, WalkBounds};
use kinfolk_core::{EdgeKind, Frontier, Id, Result, Timestamp};

/// A store as one who has seen a frontier reads it. Everything else goes to the store itself.
#[derive(Clone, Debug)]
pub(crate) struct Seen<'a, S> {
    store: &'a S,
    frontier: Frontier,
}

impl<'a, S> Seen<'a, S> {
    pub(crate) fn new(store: &'a S, frontier: impl Into<Frontier>) -> Self {
        Self { store, frontier: frontier.into() }
    }
}

impl<S> Deref for Seen<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.store
    }
}

impl<S: CheckStore> Seen<'_, S> {
    pub(crate) async fn contains(&self, kind: EdgeKind, edges: &[Edge]) -> Result<Vec<bool>> {
        self.store.contains(kind, edges, &self.frontier).await
    }

    pub(crate) async fn contains_one(&self, kind: EdgeKind, edge: Edge) -> Result<bool> {
        self.store.contains_one(kind, edge, &self.frontier).await
    }

    pub(crate) fn contains_now(&self, kind: EdgeKind, edge: Edge) -> Option<bool> {
        self.store.contains_now(kind, edge, &self.frontier)
    }
}

impl<S: EdgeStore> Seen<'_, S> {
    pub(crate) async fn since(&self, kind: EdgeKind, edges: &[Edge]) -> Result<Vec<Option<Timestamp>>> {
        self.store.since(kind, edges, &self.frontier).await
    }

    pub(crate) async fn list(
        &self,
        kind: EdgeKind,
        side: Side,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> Result<Vec<ListEntry>> {
        self.store.list(EdgeList { kind, side, of }, after, limit, &self.frontier).await
    }

    pub(crate) async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> Result<Vec<ListEntry>> {
        self.store.friends(kind, of, after, limit, &self.frontier).await
    }

    pub(crate) async fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
    ) -> Result<Overlap> {
        self.store.overlap(kind, sets, after, limit, &self.frontier).await
    }

    pub(crate) async fn counts(&self, kind: EdgeKind, of: &[Id]) -> Result<Vec<Counts>> {
        self.store.counts(kind, of, &self.frontier).await
    }
}

impl<S: ChangeLog> Seen<'_, S> {
    pub(crate) async fn span(&self) -> Result<LogSpan> {
        self.store.span().await
    }

    /// The whole log.
    pub(crate) async fn whole_log(&self) -> Result<Vec<Change>> {
        const PAGE: usize = 1_000;
        /// A walk that gets so far goes in circles.
        const PAGES_MAX: usize = 100;
        let (mut log, mut after) = (Vec::new(), Frontier::default());
        for _ in 0..PAGES_MAX {
            let LogPage { changes, next } = self.store.changes(&after, PAGE).await?;
            let is_last = changes.len() < PAGE;
            log.extend(changes);
            if is_last {
                return Ok(log);
            }
            after = next;
        }
        panic!("a walk of the log does not end");
    }
}

impl<S: SuggestionStore> Seen<'_, S> {
    pub(crate) async fn candidates(&self, of: Id, bounds: WalkBounds) -> Result<Vec<Suggestion>> {
        self.store.candidates(of, bounds, &self.frontier).await
    }

    pub(crate) async fn stored_suggestions(
        &self,
        of: Id,
        max_age: Duration,
    ) -> Result<Option<StoredSuggestions>> {
        self.store.stored_suggestions(of, max_age, &self.frontier).await
    }
}

impl<S: PostStore> Seen<'_, S> {
    pub(crate) async fn posts(&self, ids: &[Id]) -> Result<Vec<Option<PostState>>> {
        self.store.posts(ids, &self.frontier).await
    }

    pub(crate) async fn posts_by(
        &self,
        author: Id,
        after: Option<PostKey>,
        limit: usize,
    ) -> Result<Vec<Post>> {
        self.store.posts_by(author, after, limit, &self.frontier).await
    }
}

impl<S: FeedStore> Seen<'_, S> {
    pub(crate) async fn feed(&self, of: Id, after: Option<PostKey>, limit: usize) -> Result<Vec<Post>> {
        self.store.feed(of, after, limit, &self.frontier).await
    }
}

impl<S: InboxStore> Seen<'_, S> {
    pub(crate) async fn inbox(&self, of: Id) -> Result<Option<Inbox>> {
        self.store.inbox(of, &self.frontier).await
    }
}

impl<S: CommentStore> Seen<'_, S> {
    pub(crate) async fn comments(&self, ids: &[CommentId]) -> Result<Vec<Option<Comment>>> {
        self.store.comments(ids, &self.frontier).await
    }

    pub(crate) async fn comment_thread(
        &self,
        parent: Parent,
        order: CommentOrder,
        after: Option<CommentId>,
        limit: usize,
    ) -> Result<Vec<Comment>> {
        self.store.comment_thread(parent, order, after, limit, &self.frontier).await
    }

    pub(crate) async fn replies(&self, branches: &[Branch], limit: usize) -> Result<Vec<Vec<Comment>>> {
        self.store.replies(branches, limit, &self.frontier).await
    }

    pub(crate) async fn comments_by(
        &self,
        author: Id,
        after: Option<CommentId>,
        limit: usize,
    ) -> Result<Vec<Comment>> {
        self.store.comments_by(author, after, limit, &self.frontier).await
    }

    pub(crate) async fn comment_versions(
        &self,
        id: CommentId,
        after: u32,
        limit: usize,
    ) -> Result<Vec<CommentVersion>> {
        self.store.comment_versions(id, after, limit, &self.frontier).await
    }

    pub(crate) async fn comment_threads(&self, parents: &[Parent]) -> Result<Vec<CommentThreadState>> {
        self.store.comment_threads(parents, &self.frontier).await
    }
}
