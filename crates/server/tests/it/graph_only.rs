//! A store that has the graph and its change log, and nothing else.

use std::sync::Arc;

use kinfolk_core::changes::{ChangeLog, LogPage, LogSpan};
use kinfolk_core::graph::{
    CheckStore, Counts, Edge, EdgeList, EdgeStore, ListEntry, ListKey, Overlap, Receipt, UserSet,
    WriteRequest,
};
use kinfolk_core::{Absent, Deployment, EdgeKind, Epoch, Frontier, Id, IdKind, Result, Store, Timestamp};

use crate::store::WatchedStore;

/// The graph of another store.
pub(crate) struct GraphOnly(pub WatchedStore);

impl Store for GraphOnly {
    type Suggestions = Absent;
    type Content = Absent;

    fn suggestions(self: &Arc<Self>) -> Option<Arc<Absent>> {
        None
    }

    fn content(self: &Arc<Self>) -> Option<Arc<Absent>> {
        None
    }
}

impl Deployment for GraphOnly {
    fn id_kind(&self) -> IdKind {
        self.0.id_kind()
    }

    fn epoch(&self) -> Epoch {
        self.0.epoch()
    }
}

impl CheckStore for GraphOnly {
    async fn contains(&self, kind: EdgeKind, edges: &[Edge], at_least: &Frontier) -> Result<Vec<bool>> {
        self.0.contains(kind, edges, at_least).await
    }

    fn contains_now(&self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Option<bool> {
        self.0.contains_now(kind, edge, at_least)
    }
}

impl EdgeStore for GraphOnly {
    async fn write(&self, requests: Vec<WriteRequest>) -> Vec<Result<Receipt>> {
        self.0.write(requests).await
    }

    async fn since(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
    ) -> Result<Vec<Option<Timestamp>>> {
        self.0.since(kind, edges, at_least).await
    }

    async fn list(
        &self,
        list: EdgeList,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.0.list(list, after, limit, at_least).await
    }

    async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.0.friends(kind, of, after, limit, at_least).await
    }

    async fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Overlap> {
        self.0.overlap(kind, sets, after, limit, at_least).await
    }

    async fn counts(&self, kind: EdgeKind, of: &[Id], at_least: &Frontier) -> Result<Vec<Counts>> {
        self.0.counts(kind, of, at_least).await
    }
}

impl ChangeLog for GraphOnly {
    async fn span(&self) -> Result<LogSpan> {
        self.0.span().await
    }

    async fn changes(&self, after: &Frontier, limit: usize) -> Result<LogPage> {
        self.0.changes(after, limit).await
    }

    async fn wait_for_changes(&self, after: &Frontier) -> Result<bool> {
        self.0.wait_for_changes(after).await
    }
}
