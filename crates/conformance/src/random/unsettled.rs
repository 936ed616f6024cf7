//! A store in front of which connections are lost: some writes time out after they were applied, without being applied, or
//! before they are applied.

use std::sync::Mutex;

use kinfolk_core::changes::{ChangeLog, LogPage, LogSpan};
use kinfolk_core::graph::{
    CheckStore, Counts, Edge, EdgeList, EdgeStore, ListEntry, ListKey, Overlap, Receipt, UserSet,
    WriteRequest,
};
use kinfolk_core::{Deployment, EdgeKind, Epoch, Error, Frontier, GraphStore, Id, IdKind, Result, Timestamp};

use crate::random::Random;

/// One write in so many times out.
const TIMEOUTS: u64 = 5;

/// A mistake about writes that time out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutFault {
    /// A write that was lost is acknowledged.
    AcknowledgesLost,
    /// A write whose reply was lost is tried again later without a look whether it was applied.
    AppliesTwice,
}

impl TimeoutFault {
    /// All of them. Each is caught by the concurrent histories.
    pub const ALL: [Self; 2] = [Self::AcknowledgesLost, Self::AppliesTwice];
}

/// A store whose writes may time out. Everything else is the store's own.
pub(crate) struct Unsettled<S> {
    store: S,
    fault: Option<TimeoutFault>,
    pending: Mutex<Pending>,
}

struct Pending {
    random: Random,
    /// Requests that have timed out and may still be applied.
    requests: Vec<WriteRequest>,
}

impl<S: GraphStore> Unsettled<S> {
    /// Puts lost connections in front of a store, as a seed has them.
    pub(crate) fn new(store: S, fault: Option<TimeoutFault>, seed: u64) -> Self {
        let pending = Pending { random: Random::new(seed), requests: Vec::new() };
        Self { store, fault, pending: Mutex::new(pending) }
    }

    /// The store without them. What has not been applied by now never is.
    pub(crate) fn into_inner(self) -> S {
        self.store
    }

    fn with_pending<T>(&self, change: impl FnOnce(&mut Pending) -> T) -> T {
        change(&mut self.pending.lock().expect("nothing panics in between"))
    }

    /// A write that never reaches the store.
    async fn lose(&self, request: WriteRequest) -> Result<Receipt> {
        if self.fault == Some(TimeoutFault::AcknowledgesLost) {
            let changed = vec![true; request.commands.len()];
            let nothing = WriteRequest { commands: Vec::new(), ..request };
            let receipt = self.store.write_one(nothing).await?;
            return Ok(Receipt { changed, ..receipt });
        }
        Err(Error::TimedOut)
    }

    /// Applies a request that timed out before, now and then. Nobody hears of its result.
    async fn apply_late(&self) {
        let late = self.with_pending(|Pending { random, requests }| {
            let place = random.below(requests.len().max(1) as u64 * 3) as usize;
            (place < requests.len()).then(|| requests.swap_remove(place))
        });
        if let Some(request) = late {
            _ = self.store.write_one(request).await;
        }
    }
}

impl<S: GraphStore> Deployment for Unsettled<S> {
    fn id_kind(&self) -> IdKind {
        self.store.id_kind()
    }

    fn epoch(&self) -> Epoch {
        self.store.epoch()
    }
}

impl<S: GraphStore> CheckStore for Unsettled<S> {
    async fn contains(&self, kind: EdgeKind, edges: &[Edge], at_least: &Frontier) -> Result<Vec<bool>> {
        self.apply_late().await;
        self.store.contains(kind, edges, at_least).await
    }

    fn contains_now(&self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Option<bool> {
        self.store.contains_now(kind, edge, at_least)
    }
}

impl<S: GraphStore> EdgeStore for Unsettled<S> {
    async fn write(&self, requests: Vec<WriteRequest>) -> Vec<Result<Receipt>> {
        let mut results = Vec::with_capacity(requests.len());
        for request in requests {
            self.apply_late().await;
            let (times_out, fate) =
                self.with_pending(|pending| (pending.random.below(TIMEOUTS) == 0, pending.random.below(3)));
            results.push(match (times_out, fate) {
                (false, _) => self.store.write_one(request).await,
                (true, 0) => self.lose(request).await,
                (true, 1) => {
                    if self.fault == Some(TimeoutFault::AppliesTwice) {
                        self.with_pending(|pending| pending.requests.push(request.clone()));
                    }
                    // A refusal arrives: to lose it as well would be no other fate than the first.
                    self.store.write_one(request).await.and(Err(Error::TimedOut))
                }
                (true, _) => {
                    self.with_pending(|pending| pending.requests.push(request));
                    Err(Error::TimedOut)
                }
            });
        }
        results
    }

    async fn since(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
    ) -> Result<Vec<Option<Timestamp>>> {
        self.store.since(kind, edges, at_least).await
    }

    async fn list(
        &self,
        list: EdgeList,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.store.list(list, after, limit, at_least).await
    }

    async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.store.friends(kind, of, after, limit, at_least).await
    }

    async fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Overlap> {
        self.store.overlap(kind, sets, after, limit, at_least).await
    }

    async fn counts(&self, kind: EdgeKind, of: &[Id], at_least: &Frontier) -> Result<Vec<Counts>> {
        self.store.counts(kind, of, at_least).await
    }
}

impl<S: GraphStore> ChangeLog for Unsettled<S> {
    async fn span(&self) -> Result<LogSpan> {
        self.store.span().await
    }

    async fn changes(&self, after: &Frontier, limit: usize) -> Result<LogPage> {
        self.store.changes(after, limit).await
    }

    async fn wait_for_changes(&self, after: &Frontier) -> Result<bool> {
        self.store.wait_for_changes(after).await
    }
}
