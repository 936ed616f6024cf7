//! The reference store, with a count of its commits and a gate that holds them back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kinfolk_conformance::{ModelStore, SimulatedClock};
use kinfolk_core::graph::{
    Change, ChangeLog, Counts, Edge, EdgeStore, ListEntry, ListKey, LogSpan, Receipt, Side, WriteRequest,
};
use kinfolk_core::graph::{Overlap, UserSet};
use kinfolk_core::suggest::{
    EveryoneReport, EveryoneRequest, StoredSuggestions, Suggestion, SuggestionStore, WalkBounds,
};
use kinfolk_core::{EdgeKind, Epoch, Error, Id, IdKind, Position, Result, Timestamp};
use tokio::sync::Semaphore;

pub struct WatchedStore {
    model: ModelStore,
    commits: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
    broken: Arc<AtomicBool>,
}

/// What a test sees of the store and does to it.
#[derive(Clone)]
pub struct Watch {
    commits: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
    broken: Arc<AtomicBool>,
}

impl WatchedStore {
    pub fn new(kind: IdKind) -> (Self, Watch) {
        let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        let watch = Watch { commits: Arc::default(), gate, broken: Arc::default() };
        let model = ModelStore::new(kind, Arc::new(SimulatedClock::default()));
        let Watch { commits, gate, broken } = watch.clone();
        (Self { model, commits, gate, broken }, watch)
    }

    fn require_whole(&self) -> Result<()> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(Error::Corrupt { detail: "/a/secret/path is damaged".to_owned() });
        }
        Ok(())
    }
}

impl Watch {
    /// How many requests were written.
    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }

    /// No write is answered until [`Watch::open`].
    pub fn close(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// From here on writes and counts fail.
    pub fn damage(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    pub fn open(&self) {
        self.gate.add_permits(Semaphore::MAX_PERMITS);
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
        let _passed = self.gate.acquire().await.unwrap();
        self.require_whole()?;
        self.commits.fetch_add(1, Ordering::SeqCst);
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
        self.model.suggest_for_everyone(request, watch)
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
