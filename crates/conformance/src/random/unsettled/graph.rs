//! The graph behind connections that get lost.

use kinfolk_core::changes::{ChangeLog, LogPage, LogSpan};
use kinfolk_core::graph::{
    CheckStore, Counts, Edge, EdgeList, EdgeStore, ListEntry, ListKey, Overlap, Receipt, UserSet,
    WriteRequest,
};
use kinfolk_core::{Deployment, EdgeKind, Epoch, Frontier, GraphStore, Id, IdKind, Result, Timestamp};

use super::Unsettled;
use crate::threads::block_on;

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
        self.readable()?.contains(kind, edges, at_least).await
    }

    fn contains_now(&self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Option<bool> {
        self.store.contains_now(kind, edge, at_least)
    }
}

/// A receipt of a request that was not applied.
fn pretend<S: EdgeStore>(store: &S, request: &WriteRequest) -> Result<Receipt> {
    let changed = vec![true; request.commands.len()];
    let nothing = WriteRequest { commands: Vec::new(), ..*request };
    Ok(Receipt { changed, ..block_on(store.write_one(nothing))? })
}

impl<S: GraphStore> EdgeStore for Unsettled<S> {
    async fn write(&self, requests: Vec<WriteRequest>) -> Vec<Result<Receipt>> {
        let write = |request: WriteRequest| {
            let lost = request.clone();
            let apply = move |store: &S| block_on(store.write_one(request.clone()));
            self.send(apply, |store| pretend(store, &lost))
        };
        requests.into_iter().map(write).collect()
    }

    async fn since(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
    ) -> Result<Vec<Option<Timestamp>>> {
        self.readable()?.since(kind, edges, at_least).await
    }

    async fn list(
        &self,
        list: EdgeList,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.readable()?.list(list, after, limit, at_least).await
    }

    async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.readable()?.friends(kind, of, after, limit, at_least).await
    }

    async fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Overlap> {
        self.readable()?.overlap(kind, sets, after, limit, at_least).await
    }

    async fn counts(&self, kind: EdgeKind, of: &[Id], at_least: &Frontier) -> Result<Vec<Counts>> {
        self.readable()?.counts(kind, of, at_least).await
    }
}

impl<S: GraphStore> ChangeLog for Unsettled<S> {
    async fn span(&self) -> Result<LogSpan> {
        self.readable()?.span().await
    }

    async fn changes(&self, after: &Frontier, limit: usize) -> Result<LogPage> {
        self.readable()?.changes(after, limit).await
    }

    async fn wait_for_changes(&self, after: &Frontier) -> Result<bool> {
        self.readable()?.wait_for_changes(after).await
    }
}
