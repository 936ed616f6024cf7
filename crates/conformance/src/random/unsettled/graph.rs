//! The graph behind connections that get lost.

use kinfolk_core::changes::{ChangeLog, LogPage, LogSpan};
use kinfolk_core::graph::{
    CheckStore, Counts, Edge, EdgeList, EdgeStore, FollowerCommands, ListEntry, ListKey, Overlap, Receipt,
    UserSet, WriteRequest,
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
    fn contains_now(&self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Option<bool> {
        self.store.contains_now(kind, edge, at_least)
    }

    crate::forward! { self => self.readable()?;
        fn contains(kind: EdgeKind, edges: &[Edge], at_least: &Frontier) -> Result<Vec<bool>>;
    }
}

/// A receipt of a request that was not applied.
fn pretend<S: EdgeStore>(store: &S, request: &WriteRequest) -> Result<Receipt> {
    let changed = vec![true; request.commands.len()];
    let nothing = WriteRequest { commands: FollowerCommands::new(), ..*request };
    Ok(Receipt { changed: changed.into(), ..block_on(store.write_one(nothing))? })
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

    crate::forward! { self => self.readable()?;
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

impl<S: GraphStore> ChangeLog for Unsettled<S> {
    crate::forward! { self => self.readable()?;
        fn span() -> Result<LogSpan>;
        fn changes(after: &Frontier, limit: usize) -> Result<LogPage>;
        fn wait_for_changes(after: &Frontier) -> Result<bool>;
    }
}
