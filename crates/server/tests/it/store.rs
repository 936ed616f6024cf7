//! A store with a count of its calls and a gate that holds its commits back; walks can be made to never end, and checks to be
//! answered at once or not.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kinfolk_conformance::{SimulatedClock, block_on, forward};
use kinfolk_core::changes::{ChangeLog, LogPage, LogSpan};
use kinfolk_core::graph::{
    CheckStore, Counts, Edge, EdgeList, EdgeStore, ListEntry, ListKey, Overlap, Receipt, UserSet,
    WriteRequest,
};
use kinfolk_core::suggestions::{
    StoredSuggestions, Suggestion, SuggestionRunReport, SuggestionRunRequest, SuggestionStore, WalkBounds,
};
use kinfolk_core::{Deployment, EdgeKind, Epoch, Error, Frontier, Id, IdKind, Result, Timestamp};
use tokio::sync::Semaphore;

use super::backing::{self, Backing};

/// A handle of the store: the service, its suggestions and its content share one.
#[derive(Clone)]
pub(crate) struct WatchedStore {
    pub backing: Arc<Backing>,
    pub watch: Watch,
}

/// What a test sees of the store and does to it.
#[derive(Clone)]
pub(crate) struct Watch(Arc<Watched>);

struct Watched {
    commits: AtomicUsize,
    restores: AtomicU64,
    gate: Semaphore,
    broken: AtomicBool,
    endless: AtomicBool,
    posts_begun: AtomicUsize,
    walks_begun: AtomicUsize,
    walks_ended: AtomicUsize,
    checks: AtomicUsize,
    /// The followees for which checks are answered at once: those of which this is a divisor, and none with 0.
    answered_now: AtomicUsize,
    refusals: Mutex<Vec<Error>>,
    /// What the last read had to show.
    asked: Mutex<Frontier>,
    /// How the next waits for changes fail, and how many waits there are at once, and were at most.
    unwatchable: Mutex<Vec<Error>>,
    watchers: AtomicUsize,
    watchers_max: AtomicUsize,
}

impl Default for Watch {
    fn default() -> Self {
        Self(Arc::new(Watched {
            commits: AtomicUsize::new(0),
            restores: AtomicU64::new(0),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            broken: AtomicBool::new(false),
            endless: AtomicBool::new(false),
            posts_begun: AtomicUsize::new(0),
            walks_begun: AtomicUsize::new(0),
            walks_ended: AtomicUsize::new(0),
            checks: AtomicUsize::new(0),
            answered_now: AtomicUsize::new(0),
            refusals: Mutex::default(),
            asked: Mutex::default(),
            unwatchable: Mutex::default(),
            watchers: AtomicUsize::new(0),
            watchers_max: AtomicUsize::new(0),
        }))
    }
}

impl WatchedStore {
    pub(crate) fn new(kind: IdKind, clock: Arc<SimulatedClock>, watch: &Watch) -> Self {
        Self { backing: Arc::new(backing::open(kind, clock)), watch: watch.clone() }
    }

    /// Waits at the gate, and then goes on if nothing is damaged.
    pub(crate) async fn pass(&self) -> Result<()> {
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
    pub(crate) fn commits(&self) -> usize {
        self.0.commits.load(Ordering::SeqCst)
    }

    /// Begins a new epoch, as a restore does.
    pub fn restore(&self) {
        self.0.restores.fetch_add(1, Ordering::SeqCst);
    }

    /// No write is answered until [`Watch::open`].
    pub(crate) fn close(&self) {
        self.0.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// From here on writes and counts fail.
    pub(crate) fn damage(&self) {
        self.0.broken.store(true, Ordering::SeqCst);
    }

    pub(crate) fn open(&self) {
        self.0.gate.add_permits(Semaphore::MAX_PERMITS);
    }

    /// How often edges were looked for, not at once.
    pub(crate) fn checks(&self) -> usize {
        self.0.checks.load(Ordering::SeqCst)
    }

    /// From here on checks are answered at once if the followee is a multiple of this.
    pub(crate) fn answer_now(&self, divisor: usize) {
        self.0.answered_now.store(divisor, Ordering::SeqCst);
    }

    /// The next check or write of an edge that has to wait, or the next comment, fails so.
    pub(crate) fn refuse_next(&self, error: Error) {
        self.0.refusals.lock().unwrap().push(error);
    }

    /// What the last check or count had to show.
    pub(crate) fn asked(&self) -> String {
        self.0.asked.lock().unwrap().to_string()
    }

    /// The next wait for changes fails so.
    pub(crate) fn refuse_watching(&self, error: Error) {
        self.0.unwatchable.lock().unwrap().push(error);
    }

    /// Waits until no such failure is left.
    pub(crate) fn await_refused_watching(&self) {
        await_equal(|| self.0.unwatchable.lock().unwrap().len(), &0);
    }

    /// How many have waited for changes at once, at most.
    pub(crate) fn watchers_max(&self) -> usize {
        self.0.watchers_max.load(Ordering::SeqCst)
    }

    fn note_asked(&self, at_least: &Frontier) {
        self.0.asked.lock().unwrap().clone_from(at_least);
    }

    pub(crate) fn next_refusal(&self) -> Result<()> {
        self.0.refusals.lock().unwrap().pop().map_or(Ok(()), Err)
    }

    /// From here on walks go on until they are given up, or [`Watch::end_walks`].
    pub(crate) fn make_walks_endless(&self) {
        self.0.endless.store(true, Ordering::SeqCst);
    }

    /// All walks come to their end.
    pub(crate) fn end_walks(&self) {
        self.0.endless.store(false, Ordering::SeqCst);
    }

    /// How many walks have begun, and how many of them have ended, one way or the other.
    pub(crate) fn walks(&self) -> (usize, usize) {
        let ended = self.0.walks_ended.load(Ordering::SeqCst);
        (self.0.walks_begun.load(Ordering::SeqCst), ended)
    }

    /// Waits until so many walks have begun and ended.
    pub(crate) fn await_walks(&self, walks: (usize, usize)) {
        await_equal(|| self.walks(), &walks);
    }

    /// Waits until so many posts have come to the store, whether they were answered or not.
    pub(crate) fn await_posts(&self, posts: usize) {
        await_equal(|| self.0.posts_begun.load(Ordering::SeqCst), &posts);
    }

    pub(crate) fn note_post(&self) {
        self.0.posts_begun.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn begin_walk(&self) -> Walk<'_> {
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
pub(crate) struct Walk<'a>(&'a Watch);

impl Walk<'_> {
    fn is_endless(&self) -> bool {
        self.0.0.endless.load(Ordering::SeqCst)
    }

    pub(crate) async fn go_on(&self) {
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

impl Deployment for WatchedStore {
    fn id_kind(&self) -> IdKind {
        self.backing.id_kind()
    }

    fn epoch(&self) -> Epoch {
        Epoch(self.backing.epoch().0 + self.watch.0.restores.load(Ordering::SeqCst))
    }
}

impl CheckStore for WatchedStore {
    async fn contains(&self, kind: EdgeKind, edges: &[Edge], at_least: &Frontier) -> Result<Vec<bool>> {
        self.watch.0.checks.fetch_add(1, Ordering::SeqCst);
        self.watch.note_asked(at_least);
        self.watch.next_refusal()?;
        self.backing.contains(kind, edges, at_least).await
    }

    fn contains_now(&self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Option<bool> {
        let divisor = self.watch.0.answered_now.load(Ordering::SeqCst) as u64;
        let Id::Integer(followee) = edge.followee else { return None };
        if divisor == 0 || followee % divisor != 0 {
            return None;
        }
        self.watch.note_asked(at_least);
        let found = block_on(self.backing.contains(kind, &[edge], at_least));
        found.ok().map(|found| found[0])
    }
}

impl EdgeStore for WatchedStore {
    async fn write(&self, requests: Vec<WriteRequest>) -> Vec<Result<Receipt>> {
        if let Err(error) = self.pass().await.and_then(|()| self.watch.next_refusal()) {
            return requests.iter().map(|_| Err(error.clone())).collect();
        }
        self.watch.0.commits.fetch_add(1, Ordering::SeqCst);
        self.backing.write(requests).await
    }

    async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.watch.begin_walk().go_on().await;
        self.backing.friends(kind, of, after, limit, at_least).await
    }

    async fn counts(&self, kind: EdgeKind, of: &[Id], at_least: &Frontier) -> Result<Vec<Counts>> {
        self.require_whole()?;
        self.watch.note_asked(at_least);
        self.backing.counts(kind, of, at_least).await
    }

    forward! { self => self.backing;
        fn since(kind: EdgeKind, edges: &[Edge], at_least: &Frontier) -> Result<Vec<Option<Timestamp>>>;
        fn list(list: EdgeList, after: Option<ListKey>, limit: usize, at_least: &Frontier)
            -> Result<Vec<ListEntry>>;
        fn overlap(kind: EdgeKind, sets: &[UserSet], after: Option<Id>, limit: usize, at_least: &Frontier)
            -> Result<Overlap>;
    }
}

impl SuggestionStore for WatchedStore {
    async fn candidates(&self, of: Id, bounds: WalkBounds, at_least: &Frontier) -> Result<Vec<Suggestion>> {
        self.watch.begin_walk().go_on().await;
        self.backing.candidates(of, bounds, at_least).await
    }

    fn compute_suggestions(
        &self,
        request: SuggestionRunRequest,
        watch: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<SuggestionRunReport> {
        let walk = self.watch.begin_walk();
        if walk.is_endless() {
            while watch(1, 2) {
                std::thread::yield_now();
            }
            return Ok(SuggestionRunReport { users: 1, ..SuggestionRunReport::default() });
        }
        self.backing.compute_suggestions(request, watch)
    }

    forward! { self => self.backing;
        fn stored_suggestions(of: Id, max_age: Duration, at_least: &Frontier)
            -> Result<Option<StoredSuggestions>>;
        fn store_suggestions(computed: Vec<(Id, StoredSuggestions)>) -> Result<()>;
    }
}

impl ChangeLog for WatchedStore {
    async fn wait_for_changes(&self, after: &Frontier) -> Result<bool> {
        if let Some(error) = self.watch.0.unwatchable.lock().unwrap().pop() {
            return Err(error);
        }
        let watchers = self.watch.0.watchers.fetch_add(1, Ordering::SeqCst) + 1;
        self.watch.0.watchers_max.fetch_max(watchers, Ordering::SeqCst);
        let grown = self.backing.wait_for_changes(after).await;
        self.watch.0.watchers.fetch_sub(1, Ordering::SeqCst);
        grown
    }

    forward! { self => self.backing;
        fn span() -> Result<LogSpan>;
        fn changes(after: &Frontier, limit: usize) -> Result<LogPage>;
    }
}
