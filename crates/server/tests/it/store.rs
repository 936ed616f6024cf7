//! The reference store, with a count of its commits and a gate that holds them back; walks can be made to never end.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kinfolk_conformance::{ModelStore, SimulatedClock};
use kinfolk_core::feed::{
    FeedStore, Inbox, InboxStore, NewPost, Post, PostKey, PostState, PostStore, Posted, Removed,
};
use kinfolk_core::graph::{
    Change, ChangeLog, Counts, Edge, EdgeStore, ListEntry, ListKey, LogSpan, Overlap, Receipt, Side, UserSet,
    WriteRequest,
};
use kinfolk_core::suggest::{
    EveryoneReport, EveryoneRequest, StoredSuggestions, Suggestion, SuggestionStore, WalkBounds,
};
use kinfolk_core::thread::{
    Branch, Comment, CommentEdit, CommentId, CommentVersion, Commented, Moderator, NewComment, Parent,
    ThreadOrder, ThreadState, ThreadStore, Withdrawal,
};
use kinfolk_core::{EdgeKind, Epoch, Error, Id, IdKind, Position, Result, Timestamp};
use tokio::sync::Semaphore;

pub struct WatchedStore {
    model: ModelStore,
    watch: Watch,
}

/// What a test sees of the store and does to it.
#[derive(Clone)]
pub struct Watch(Arc<Watched>);

struct Watched {
    commits: AtomicUsize,
    gate: Semaphore,
    broken: AtomicBool,
    endless: AtomicBool,
    posts_begun: AtomicUsize,
    walks_begun: AtomicUsize,
    walks_ended: AtomicUsize,
}

impl Default for Watch {
    fn default() -> Self {
        Self(Arc::new(Watched {
            commits: AtomicUsize::new(0),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            broken: AtomicBool::new(false),
            endless: AtomicBool::new(false),
            posts_begun: AtomicUsize::new(0),
            walks_begun: AtomicUsize::new(0),
            walks_ended: AtomicUsize::new(0),
        }))
    }
}

impl WatchedStore {
    pub fn new(kind: IdKind, clock: Arc<SimulatedClock>, watch: &Watch) -> Self {
        Self { model: ModelStore::new(kind, clock), watch: watch.clone() }
    }

    /// Waits at the gate, and then goes on if nothing is damaged.
    async fn pass(&self) -> Result<()> {
        // Nothing is given back: that would wake others out of their turn while the gate is being opened.
        self.watch.0.gate.acquire().await.unwrap().forget();
        self.require_whole()
    }

    fn require_whole(&self) -> Result<()> {
        if self.watch.0.broken.load(Ordering::SeqCst) {
            return Err(Error::Corrupt { detail: "/a/secret/path is damaged".to_owned() });
        }
        Ok(())
    }
}

impl Watch {
    /// How many requests were written.
    pub fn commits(&self) -> usize {
        self.0.commits.load(Ordering::SeqCst)
    }

    /// No write is answered until [`Watch::open`].
    pub fn close(&self) {
        self.0.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// From here on writes and counts fail.
    pub fn damage(&self) {
        self.0.broken.store(true, Ordering::SeqCst);
    }

    pub fn open(&self) {
        self.0.gate.add_permits(Semaphore::MAX_PERMITS);
    }

    /// From here on walks go on until they are given up, or [`Watch::end_walks`].
    pub fn make_walks_endless(&self) {
        self.0.endless.store(true, Ordering::SeqCst);
    }

    /// All walks come to their end.
    pub fn end_walks(&self) {
        self.0.endless.store(false, Ordering::SeqCst);
    }

    /// How many walks have begun, and how many of them have ended, one way or the other.
    pub fn walks(&self) -> (usize, usize) {
        let ended = self.0.walks_ended.load(Ordering::SeqCst);
        (self.0.walks_begun.load(Ordering::SeqCst), ended)
    }

    /// Waits until so many walks have begun and ended.
    pub fn await_walks(&self, walks: (usize, usize)) {
        await_equal(|| self.walks(), &walks);
    }

    /// Waits until so many posts have come to the store, whether they were answered or not.
    pub fn await_posts(&self, posts: usize) {
        await_equal(|| self.0.posts_begun.load(Ordering::SeqCst), &posts);
    }

    fn begin_walk(&self) -> Walk<'_> {
        self.0.walks_begun.fetch_add(1, Ordering::SeqCst);
        Walk(self)
    }
}

fn await_equal<T: PartialEq + Debug>(look: impl Fn() -> T, expected: &T) {
    let patience = Instant::now() + Duration::from_secs(30);
    while look() != *expected {
        assert!(Instant::now() < patience, "{:?} instead of {expected:?}", look());
        std::thread::yield_now();
    }
}

/// A walk that goes on.
struct Walk<'a>(&'a Watch);

impl Walk<'_> {
    fn is_endless(&self) -> bool {
        self.0.0.endless.load(Ordering::SeqCst)
    }

    async fn go_on(&self) {
        while self.is_endless() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        self.0.0.walks_ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl EdgeStore for WatchedStore {
    fn id_kind(&self) -> IdKind {
        self.model.id_kind()
    }

    fn epoch(&self) -> Epoch {
        self.model.epoch()
    }

    async fn write(&self, request: WriteRequest) -> Result<Receipt> {
        self.pass().await?;
        self.watch.0.commits.fetch_add(1, Ordering::SeqCst);
        self.model.write(request).await
    }

    async fn visible(&self, position: Position) -> Result<()> {
        self.model.visible(position).await
    }

    async fn contains(&self, kind: EdgeKind, edges: &[Edge]) -> Result<Vec<bool>> {
        self.model.contains(kind, edges).await
    }

    async fn since(&self, kind: EdgeKind, edges: &[Edge]) -> Result<Vec<Option<Timestamp>>> {
        self.model.since(kind, edges).await
    }

    async fn list(
        &self,
        kind: EdgeKind,
        side: Side,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> Result<Vec<ListEntry>> {
        self.model.list(kind, side, of, after, limit).await
    }

    async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> Result<Vec<ListEntry>> {
        self.watch.begin_walk().go_on().await;
        self.model.friends(kind, of, after, limit).await
    }

    async fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
    ) -> Result<Overlap> {
        self.model.overlap(kind, sets, after, limit).await
    }

    async fn counts(&self, kind: EdgeKind, of: &[Id]) -> Result<Vec<Counts>> {
        self.require_whole()?;
        self.model.counts(kind, of).await
    }
}

impl SuggestionStore for WatchedStore {
    async fn candidates(&self, of: Id, bounds: WalkBounds) -> Result<Vec<Suggestion>> {
        self.watch.begin_walk().go_on().await;
        self.model.candidates(of, bounds).await
    }

    async fn stored_suggestions(&self, of: Id, max_age: Duration) -> Result<Option<StoredSuggestions>> {
        self.model.stored_suggestions(of, max_age).await
    }

    fn suggest_for_everyone(
        &self,
        request: EveryoneRequest,
        watch: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<EveryoneReport> {
        let walk = self.watch.begin_walk();
        if walk.is_endless() {
            while watch(1, 2) {
                std::thread::yield_now();
            }
            return Ok(EveryoneReport { users: 1, ..EveryoneReport::default() });
        }
        self.model.suggest_for_everyone(request, watch)
    }
}

impl PostStore for WatchedStore {
    async fn register(&self, post: NewPost) -> Result<Posted> {
        self.watch.0.posts_begun.fetch_add(1, Ordering::SeqCst);
        self.pass().await?;
        self.model.register(post).await
    }

    async fn delete_post(&self, id: Id) -> Result<Removed> {
        self.model.delete_post(id).await
    }

    async fn posts(&self, ids: &[Id]) -> Result<Vec<Option<PostState>>> {
        self.model.posts(ids).await
    }

    async fn posts_by(&self, author: Id, after: Option<PostKey>, limit: usize) -> Result<Vec<Post>> {
        self.watch.begin_walk().go_on().await;
        self.model.posts_by(author, after, limit).await
    }
}

impl FeedStore for WatchedStore {
    async fn feed(&self, of: Id, after: Option<PostKey>, limit: usize) -> Result<Vec<Post>> {
        self.watch.begin_walk().go_on().await;
        self.model.feed(of, after, limit).await
    }
}

impl InboxStore for WatchedStore {
    async fn inbox(&self, of: Id) -> Result<Option<Inbox>> {
        self.model.inbox(of).await
    }

    async fn forget_inbox(&self, of: Id) -> Result<()> {
        self.model.forget_inbox(of).await
    }
}

impl ThreadStore for WatchedStore {
    async fn comment(&self, wish: NewComment) -> Result<Commented> {
        self.model.comment(wish).await
    }

    async fn edit_comment(&self, edit: CommentEdit) -> Result<Commented> {
        self.model.edit_comment(edit).await
    }

    async fn withdraw_comment(
        &self,
        id: CommentId,
        withdrawal: Withdrawal,
        by: Option<Moderator>,
    ) -> Result<Removed> {
        self.model.withdraw_comment(id, withdrawal, by).await
    }

    async fn lock_thread(&self, parent: Parent, locked: bool) -> Result<Removed> {
        self.model.lock_thread(parent, locked).await
    }

    async fn comments(&self, ids: &[CommentId]) -> Result<Vec<Option<Comment>>> {
        self.model.comments(ids).await
    }

    async fn thread(
        &self,
        parent: Parent,
        order: ThreadOrder,
        after: Option<CommentId>,
        limit: usize,
    ) -> Result<Vec<Comment>> {
        self.model.thread(parent, order, after, limit).await
    }

    async fn replies(&self, branches: &[Branch], limit: usize) -> Result<Vec<Vec<Comment>>> {
        self.model.replies(branches, limit).await
    }

    async fn comments_by(&self, author: Id, after: Option<CommentId>, limit: usize) -> Result<Vec<Comment>> {
        self.model.comments_by(author, after, limit).await
    }

    async fn comment_versions(&self, id: CommentId, after: u32, limit: usize) -> Result<Vec<CommentVersion>> {
        self.model.comment_versions(id, after, limit).await
    }

    async fn threads(&self, parents: &[Parent]) -> Result<Vec<ThreadState>> {
        self.model.threads(parents).await
    }

    async fn erase_purged(&self) -> Result<u64> {
        self.model.erase_purged().await
    }
}

impl ChangeLog for WatchedStore {
    fn span(&self) -> LogSpan {
        self.model.span()
    }

    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>> {
        self.model.changes(after, limit).await
    }
}
