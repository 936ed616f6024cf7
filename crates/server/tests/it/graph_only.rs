//! A store that has the graph and its change log, and nothing else.

use std::sync::Arc;

use kinfolk_conformance::forward;
use kinfolk_core::changes::{ChangeLog, LogPage, LogSpan};
use kinfolk_core::graph::{
    CheckStore, Counts, Edge, EdgeList, EdgeStore, ListEntry, ListKey, Overlap, Receipt, UserSet,
    WriteRequest,
};
use kinfolk_core::{Absent, Deployment, EdgeKind, Epoch, Frontier, Id, IdKind, Result, Store, Timestamp};

use crate::store::WatchedStore;

/// The graph of another store.
pub struct GraphOnly(pub WatchedStore);

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
    fn contains_now(&self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Option<bool> {
        self.0.contains_now(kind, edge, at_least)
    }

    forward! { self => self.0;
        fn contains(kind: EdgeKind, edges: &[Edge], at_least: &Frontier) -> Result<Vec<bool>>;
    }
}

impl EdgeStore for GraphOnly {
    forward! { self => self.0;
        fn write(requests: Vec<WriteRequest>) -> Vec<Result<Receipt>>;
        fn since(kind: EdgeKind, edges: &[Edge], at_least: &Frontier) -> Result<Vec<Option<Timestamp>>>;
        fn list(list: EdgeList, after: Option<ListKey>, limit: usize, at_least: &Frontier)
            -> Result<Vec<ListEntry>>;
        fn friends(kind: EdgeKind, of: Id, after: Option<ListKey>, limit: usize, at_least: &Frontier)
            -> Result<Vec<ListEntry>>;
        fn overlap(kind: EdgeKind, sets: &[UserSet], after: Option<Id>, limit: usize, at_least: &Frontier)
            -> Result<Overlap>;
        fn counts(kind: EdgeKind, of: &[Id], at_least: &Frontier) -> Result<Vec<Counts>>;
    }
}

impl ChangeLog for GraphOnly {
    forward! { self => self.0;
        fn span() -> Result<LogSpan>;
        fn changes(after: &Frontier, limit: usize) -> Result<LogPage>;
        fn wait_for_changes(after: &Frontier) -> Result<bool>;
    }
}
