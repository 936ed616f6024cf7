//! The sharded store behind the ports of the graph.

use kinfolk_core::changes::{ChangeLog, LogPage, LogSpan};
use kinfolk_core::graph::{
    CheckStore, Counts, Edge, EdgeList, EdgeStore, ListEntry, ListKey, Overlap, Receipt, UserSet,
    WriteRequest,
};
use kinfolk_core::{Absent, Deployment, EdgeKind, Epoch, Frontier, Id, IdKind, Result, Store, Timestamp};

use super::state::State;
use super::{ShardedStore, WRITE_WAIT_MAX};
use std::sync::Arc;

impl Deployment for ShardedStore {
    fn id_kind(&self) -> IdKind {
        self.id_kind
    }

    fn epoch(&self) -> Epoch {
        self.state().epoch
    }
}

impl Store for ShardedStore {
    type Suggestions = Absent;
    type Content = Absent;

    fn suggestions(self: &Arc<Self>) -> Option<Arc<Absent>> {
        None
    }

    fn content(self: &Arc<Self>) -> Option<Arc<Absent>> {
        None
    }
}

impl CheckStore for ShardedStore {
    async fn contains(&self, kind: EdgeKind, edges: &[Edge], at_least: &Frontier) -> Result<Vec<bool>> {
        self.read(|state| edges.iter().map(|&edge| state.contains(kind, edge, at_least)).collect())
    }

    fn contains_now(&self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Option<bool> {
        self.current().contains_now(kind, edge, at_least)
    }
}

impl EdgeStore for ShardedStore {
    async fn write(&self, requests: Vec<WriteRequest>) -> Vec<Result<Receipt>> {
        let mut state = self.state();
        state.progress();
        let now = self.clock.now();
        let results = requests.iter().map(|request| state.write(request, now)).collect();
        drop(state);
        self.written.notify_all();
        results
    }

    async fn since(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
    ) -> Result<Vec<Option<Timestamp>>> {
        self.read(|state| edges.iter().map(|&edge| state.since(kind, edge, at_least)).collect())
    }

    async fn list(
        &self,
        list: EdgeList,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.read(|state| state.list(list, after, limit, at_least))
    }

    async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.read(|state| state.friends((kind, of), after, limit, at_least))
    }

    async fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Overlap> {
        self.read(|state| state.overlap(kind, sets, (after, limit), at_least))
    }

    async fn counts(&self, kind: EdgeKind, of: &[Id], at_least: &Frontier) -> Result<Vec<Counts>> {
        self.read(|state| of.iter().map(|&id| state.counts(kind, id, at_least)).collect())
    }
}

impl ChangeLog for ShardedStore {
    async fn span(&self) -> Result<LogSpan> {
        let state = self.state();
        let trimmed = state.shards().map(|shard| state.source(shard).trimmed()).collect();
        Ok(LogSpan { epoch: state.epoch, trimmed, newest: state.newest() })
    }

    async fn changes(&self, after: &Frontier, limit: usize) -> Result<LogPage> {
        self.read(|state| state.changes(after, limit))
    }

    async fn wait_for_changes(&self, after: &Frontier) -> Result<bool> {
        let is_early = |state: &mut State| !state.shards().any(|shard| state.is_behind(shard, after));
        let waited = self.written.wait_timeout_while(self.state(), WRITE_WAIT_MAX, is_early);
        let (mut state, _) = waited.expect("no call panics inside the state");
        Ok(!is_early(&mut state))
    }
}
