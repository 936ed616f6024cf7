//! A client of the operations, as protocols are: it carries tokens instead of frontiers, and its reads without a token show
//! at least what it has written.

use std::sync::{Arc, Mutex};

use kinfolk_core::changes::{Change, Changes};
use kinfolk_core::comments::{
    Comment, CommentEdit, CommentId, CommentOrder, CommentPage, CommentStore, CommentThreadState,
    CommentThreads, CommentTree, HistoryPage, Moderator, NewComment, Parent, TreeShape, Viewer,
};
use kinfolk_core::feeds::{FeedStore, Feeds, NewPost, Post, PostPage, PostStore, WriteOutcome};
use kinfolk_core::graph::{
    Counts, Edge, EdgeCommand, FollowerChanges, FollowerCommand, Graph, ListPage, Overlap, OverlapPage,
    Relationship, UserSet,
};
use kinfolk_core::suggestions::{SuggestionPage, Suggestions};
use kinfolk_core::{
    Context, Deployment, EdgeKind, Frontier, GraphStore, Id, IdKind, PageRequest, Position, Result,
};

use super::subject::{COMMENTS, FEED, PAGE_LIMIT_MAX, SETTINGS, SUGGEST, keys};
use crate::ports::{EdgePorts, SuggestionPorts};

/// How fresh a read must be: at least as a token says, or as the client's own writes.
pub(super) type Fresh<'a> = Option<&'a str>;

/// What a write of edges did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EdgesWritten {
    pub token: String,
    pub changed: Vec<bool>,
}

/// What registering a post did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PostWritten {
    pub token: String,
    pub post: Post,
    pub is_new: bool,
}

/// What writing or editing a comment did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommentWritten {
    pub token: String,
    pub comment: Comment,
    pub is_new: bool,
}

/// A page of the change log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChangesPage {
    pub items: Vec<Change>,
    pub next: String,
}

/// A client of a store.
pub(super) struct Client<S> {
    graph: Graph<S>,
    /// The positions of all its writes.
    seen: Mutex<Frontier>,
}

impl<S> Client<S> {
    pub(super) fn new(store: S) -> Self {
        let context = Context::new(Arc::new(store), keys(), PAGE_LIMIT_MAX);
        Self { graph: Graph::new(context, SETTINGS), seen: Mutex::default() }
    }

    pub(super) fn store(&self) -> &S {
        self.graph.store()
    }

    pub(super) fn seen(&self) -> Frontier {
        self.seen.lock().expect("nothing panics in between").clone()
    }

    /// Later reads must have seen this, too.
    pub(super) fn saw(&self, position: Position) {
        self.seen.lock().expect("nothing panics in between").advance(position);
    }
}

impl<S: Deployment> Client<S> {
    pub(super) fn id_kind(&self) -> IdKind {
        self.graph.context.id_kind()
    }

    pub(super) fn token(&self, frontier: impl Into<Frontier>) -> String {
        self.graph.context.token(frontier.into())
    }

    fn frontier(&self, fresh: Fresh<'_>) -> Result<Frontier> {
        fresh.map_or_else(|| Ok(self.seen()), |token| self.graph.context.frontier(token))
    }

    /// The token of a write, joined with all that the client has seen.
    fn wrote(&self, position: Position) -> String {
        self.saw(position);
        self.graph.context.token_after(&self.seen(), position)
    }

    fn removed(&self, WriteOutcome { position, changed }: WriteOutcome) -> (String, bool) {
        (self.wrote(position), changed)
    }
}

impl<S: EdgePorts> Client<S> {
    fn written(&self, written: kinfolk_core::graph::Receipt) -> EdgesWritten {
        EdgesWritten { token: self.wrote(written.position), changed: written.changed.into_vec() }
    }

    pub(super) async fn follow(&self, kind: EdgeKind, actor: Id, target: Id) -> Result<EdgesWritten> {
        self.graph.follow(kind, actor, target).await.map(|written| self.written(written))
    }

    pub(super) async fn unfollow(&self, kind: EdgeKind, actor: Id, target: Id) -> Result<EdgesWritten> {
        self.graph.unfollow(kind, actor, target).await.map(|written| self.written(written))
    }

    pub(super) async fn remove_follower(
        &self,
        kind: EdgeKind,
        actor: Id,
        follower: Id,
    ) -> Result<EdgesWritten> {
        self.graph.remove_follower(kind, actor, follower).await.map(|written| self.written(written))
    }

    /// Applies each command by itself.
    pub(super) async fn apply(
        &self,
        kind: EdgeKind,
        commands: Vec<EdgeCommand>,
    ) -> Vec<Result<EdgesWritten>> {
        let change = |EdgeCommand { action, edge }| FollowerChanges {
            follower: edge.follower,
            commands: [FollowerCommand { action, followee: edge.followee }].into(),
        };
        let results = self.graph.apply(kind, commands.into_iter().map(change).collect()).await;
        results.into_iter().map(|result| result.map(|written| self.written(written))).collect()
    }

    pub(super) async fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        (after, limit): (Option<Id>, usize),
        fresh: Fresh<'_>,
    ) -> Result<Overlap> {
        self.graph.overlap(kind, sets, after, limit, &self.frontier(fresh)?).await
    }

    /// Changes after a token, or from the oldest kept.
    pub(super) async fn changes(&self, after: Fresh<'_>, limit: usize) -> Result<ChangesPage> {
        let after = after.map_or_else(|| Ok(Frontier::default()), |token| self.frontier(Some(token)))?;
        let log = Changes { context: self.graph.context.clone() };
        let page = log.read(&after, limit).await?;
        Ok(ChangesPage { items: page.changes, next: self.token(page.next) })
    }

    crate::forward! { self => self.graph, &self.frontier(fresh)?;
        pub(super) fn following(kind: EdgeKind, of: Id, page: PageRequest<'_>; fresh: Fresh<'_>)
            -> Result<ListPage>;
        pub(super) fn followers(kind: EdgeKind, of: Id, page: PageRequest<'_>; fresh: Fresh<'_>)
            -> Result<ListPage>;
        pub(super) fn friends(kind: EdgeKind, of: Id, page: PageRequest<'_>; fresh: Fresh<'_>)
            -> Result<ListPage>;
        pub(super) fn counts(kind: EdgeKind, of: &[Id]; fresh: Fresh<'_>) -> Result<Vec<Counts>>;
        pub(super) fn common(kind: EdgeKind, of: &[Id], page: PageRequest<'_>; fresh: Fresh<'_>)
            -> Result<OverlapPage>;
        pub(super) fn known_followers(kind: EdgeKind, viewer: Id, of: Id, page: PageRequest<'_>; fresh: Fresh<'_>)
            -> Result<OverlapPage>;
    }
}

impl<S: GraphStore> Client<S> {
    crate::forward! { self => self.graph, &self.frontier(fresh)?;
        pub(super) fn check(kind: EdgeKind, edges: &[Edge]; fresh: Fresh<'_>) -> Result<Vec<bool>>;
        pub(super) fn relationships(kind: EdgeKind, of: Id, others: &[Id]; fresh: Fresh<'_>)
            -> Result<Vec<Relationship>>;
    }
}

impl<S: SuggestionPorts> Client<S> {
    fn suggester(&self) -> Suggestions<S> {
        Suggestions::new(self.graph.context.clone(), SUGGEST)
    }

    pub(super) async fn suggestions(&self, of: Id, limit: usize, fresh: Fresh<'_>) -> Result<SuggestionPage> {
        self.suggester().read(of, limit, &self.frontier(fresh)?).await
    }

    pub(super) async fn dismiss(&self, actor: Id, target: Id) -> Result<EdgesWritten> {
        self.suggester().dismiss(actor, target).await.map(|written| self.written(written))
    }
}

impl<S: PostStore> Client<S> {
    fn feeds(&self) -> Feeds<S> {
        Feeds::new(self.graph.context.clone(), FEED)
    }

    pub(super) async fn register_post(&self, post: NewPost) -> Result<PostWritten> {
        let written = self.feeds().register_post(post).await?;
        Ok(PostWritten { token: self.wrote(written.position), post: written.post, is_new: written.is_new })
    }

    pub(super) async fn delete_post(&self, actor: Option<Id>, id: Id) -> Result<(String, bool)> {
        self.feeds().delete_post(actor, id, Frontier::EMPTY).await.map(|removed| self.removed(removed))
    }

    crate::forward! { self => self.feeds(), &self.frontier(fresh)?;
        pub(super) fn post(id: Id; fresh: Fresh<'_>) -> Result<Post>;
    }
}

impl<S: FeedStore> Client<S> {
    crate::forward! { self => self.feeds(), &self.frontier(fresh)?;
        pub(super) fn posts_by(author: Id, page: PageRequest<'_>; fresh: Fresh<'_>) -> Result<PostPage>;
        pub(super) fn feed(of: Id, page: PageRequest<'_>; fresh: Fresh<'_>) -> Result<PostPage>;
    }
}

impl<S: CommentStore + PostStore> Client<S> {
    fn comment_threads(&self) -> CommentThreads<S> {
        CommentThreads::new(self.graph.context.clone(), COMMENTS)
    }

    fn commented(&self, written: kinfolk_core::comments::CommentWritten) -> CommentWritten {
        let kinfolk_core::comments::CommentWritten { position, comment, is_new } = written;
        CommentWritten { token: self.wrote(position), comment, is_new }
    }

    pub(super) async fn comment(&self, comment: NewComment) -> Result<CommentWritten> {
        self.comment_threads().comment(comment).await.map(|written| self.commented(written))
    }

    pub(super) async fn edit_comment(&self, actor: Option<Id>, edit: CommentEdit) -> Result<CommentWritten> {
        self.comment_threads()
            .edit_comment(actor, edit, Frontier::EMPTY)
            .await
            .map(|written| self.commented(written))
    }

    pub(super) async fn delete_comment(&self, actor: Option<Id>, id: CommentId) -> Result<(String, bool)> {
        self.comment_threads()
            .delete_comment(actor, id, Frontier::EMPTY)
            .await
            .map(|removed| self.removed(removed))
    }

    pub(super) async fn remove_comment(
        &self,
        id: CommentId,
        reason: Arc<str>,
        by: Option<Moderator>,
    ) -> Result<(String, bool)> {
        self.comment_threads().remove_comment(id, reason, by).await.map(|removed| self.removed(removed))
    }

    pub(super) async fn purge_comment(&self, id: CommentId, by: Option<Moderator>) -> Result<(String, bool)> {
        self.comment_threads().purge_comment(id, by).await.map(|removed| self.removed(removed))
    }

    pub(super) async fn lock_comment_thread(&self, parent: Parent, locked: bool) -> Result<(String, bool)> {
        self.comment_threads().lock_comment_thread(parent, locked).await.map(|removed| self.removed(removed))
    }

    crate::forward! { self => self.comment_threads(), by.0, &self.frontier(by.1)?;
        pub(super) fn comment_thread(
            parent: Parent, order: CommentOrder, page: PageRequest<'_>; by: (Viewer, Fresh<'_>)
        ) -> Result<CommentPage>;
        pub(super) fn comments_by(author: Id, page: PageRequest<'_>; by: (Viewer, Fresh<'_>))
            -> Result<CommentPage>;
        pub(super) fn comment_tree(
            parent: Parent, shape: TreeShape, page: PageRequest<'_>; by: (Viewer, Fresh<'_>)
        ) -> Result<CommentTree>;
        pub(super) fn comment_history(id: CommentId, page: PageRequest<'_>; by: (Viewer, Fresh<'_>))
            -> Result<HistoryPage>;
    }

    crate::forward! { self => self.comment_threads(), &self.frontier(fresh)?;
        pub(super) fn read_comment(id: CommentId, viewer: Viewer; fresh: Fresh<'_>) -> Result<Comment>;
        pub(super) fn thread_state(parent: Parent; fresh: Fresh<'_>) -> Result<CommentThreadState>;
    }
}
