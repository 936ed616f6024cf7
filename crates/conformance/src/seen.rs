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
    pub(crate) fn contains_now(&self, kind: EdgeKind, edge: Edge) -> Option<bool> {
        self.store.contains_now(kind, edge, &self.frontier)
    }

    crate::forward! { self => self.store, &self.frontier;
        pub(crate) fn contains(kind: EdgeKind, edges: &[Edge]) -> Result<Vec<bool>>;
    }
}

impl<S: EdgeStore> Seen<'_, S> {
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

    crate::forward! { self => self.store, &self.frontier;
        pub(crate) fn since(kind: EdgeKind, edges: &[Edge]) -> Result<Vec<Option<Timestamp>>>;
        pub(crate) fn friends(kind: EdgeKind, of: Id, after: Option<ListKey>, limit: usize)
            -> Result<Vec<ListEntry>>;
        pub(crate) fn overlap(kind: EdgeKind, sets: &[UserSet], after: Option<Id>, limit: usize)
            -> Result<Overlap>;
        pub(crate) fn counts(kind: EdgeKind, of: &[Id]) -> Result<Vec<Counts>>;
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
    crate::forward! { self => self.store, &self.frontier;
        pub(crate) fn candidates(of: Id, bounds: WalkBounds) -> Result<Vec<Suggestion>>;
        pub(crate) fn stored_suggestions(of: Id, max_age: Duration) -> Result<Option<StoredSuggestions>>;
    }
}

impl<S: PostStore> Seen<'_, S> {
    crate::forward! { self => self.store, &self.frontier;
        pub(crate) fn posts(ids: &[Id]) -> Result<Vec<Option<PostState>>>;
        pub(crate) fn posts_by(author: Id, after: Option<PostKey>, limit: usize) -> Result<Vec<Post>>;
    }
}

impl<S: FeedStore> Seen<'_, S> {
    crate::forward! { self => self.store, &self.frontier;
        pub(crate) fn feed(of: Id, after: Option<PostKey>, limit: usize) -> Result<Vec<Post>>;
    }
}

impl<S: InboxStore> Seen<'_, S> {
    crate::forward! { self => self.store, &self.frontier;
        pub(crate) fn inbox(of: Id) -> Result<Option<Inbox>>;
    }
}

impl<S: CommentStore> Seen<'_, S> {
    crate::forward! { self => self.store, &self.frontier;
        pub(crate) fn comments(ids: &[CommentId]) -> Result<Vec<Option<Comment>>>;
        pub(crate) fn comment_thread(parent: Parent, order: CommentOrder, after: Option<CommentId>, limit: usize)
            -> Result<Vec<Comment>>;
        pub(crate) fn replies(branches: &[Branch], limit: usize) -> Result<Vec<Vec<Comment>>>;
        pub(crate) fn comments_by(author: Id, after: Option<CommentId>, limit: usize) -> Result<Vec<Comment>>;
        pub(crate) fn comment_versions(id: CommentId, after: u32, limit: usize)
            -> Result<Vec<CommentVersion>>;
        pub(crate) fn comment_threads(parents: &[Parent]) -> Result<Vec<CommentThreadState>>;
    }
}
