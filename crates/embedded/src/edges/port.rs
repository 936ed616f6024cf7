//! The ports of the graph, for the embedded store: checks on the index, lists on the rows, writes through the writer.

use std::sync::Arc;

use kinfolk_core::graph::{
    CheckStore, Counts, Edge, EdgeList, EdgeStore, ListEntry, ListKey, Overlap, Receipt, UserSet,
    WriteRequest,
};
use kinfolk_core::{EdgeKind, Frontier, Id, Result, Timestamp};

use crate::Embedded;
use crate::edges::friends::Search;
use crate::edges::index::Scratch;
use crate::edges::overlap::Plan;

impl CheckStore for Embedded {
    async fn contains(&self, kind: EdgeKind, edges: &[Edge], at_least: &Frontier) -> Result<Vec<bool>> {
        self.reach(at_least).await?;
        Ok(self.store.layers.index(edges.len(), || self.store.edges.index.contains_all(kind, edges)))
    }

    #[inline]
    fn contains_now(&self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Option<bool> {
        self.covers(at_least).then(|| self.follows(kind, edge))
    }

    fn contains_each_now(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
        found: &mut Vec<Option<bool>>,
    ) {
        if self.covers(at_least) {
            // Not measured: a histogram would be shared by all threads.
            found.extend(self.store.edges.index.contains_all(kind, edges).into_iter().map(Some));
        } else {
            found.resize(found.len() + edges.len(), None);
        }
    }
}

impl EdgeStore for Embedded {
    async fn write(&self, requests: Vec<WriteRequest>) -> Vec<Result<Receipt>> {
        let count = requests.len();
        let weight = requests.iter().map(|request| request.commands.len().max(1)).sum();
        let written = self.request(weight, move |batch| batch.decide_all(&requests)).await;
        written.unwrap_or_else(|error| vec![Err(error); count])
    }

    async fn since(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
    ) -> Result<Vec<Option<Timestamp>>> {
        self.reach(at_least).await?;
        let exist = self.store.edges.index.contains_all(kind, edges);
        if !exist.contains(&true) {
            return Ok(vec![None; edges.len()]);
        }
        let since = |(&edge, exists)| if exists { self.store.edges.rows.since(kind, edge) } else { Ok(None) };
        self.store.layers.rows(|| edges.iter().zip(exist).map(since).collect())
    }

    async fn list(
        &self,
        list: EdgeList,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.reach(at_least).await?;
        self.list_page(list, after, limit)
    }

    async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.reach(at_least).await?;
        let mut search = Search::new(&self.store.edges, (kind, of), after, limit);
        if self.store.layers.rows(|| search.run_shortly(&self.store.edges))? {
            return Ok(search.into_page());
        }
        let edges = Arc::clone(&self.store.edges);
        let work = move |_: &mut Scratch, is_given_up: &dyn Fn() -> bool| {
            search.run(&edges, is_given_up)?;
            Ok(search.into_page())
        };
        self.store.workers.run(of, work).await
    }

    async fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Overlap> {
        self.reach(at_least).await?;
        let Some(plan) = Plan::new(&self.store.edges, kind, sets) else { return Ok(Overlap::default()) };
        if plan.is_short() {
            return plan.run(&self.store.edges, (after, limit), &|| false);
        }
        let edges = Arc::clone(&self.store.edges);
        let work = move |_: &mut Scratch, is_given_up: &dyn Fn() -> bool| {
            plan.run(&edges, (after, limit), is_given_up)
        };
        let about = sets.first().map_or(Id::Integer(0), |set| set.of);
        self.store.workers.run(about, work).await
    }

    async fn counts(&self, kind: EdgeKind, of: &[Id], at_least: &Frontier) -> Result<Vec<Counts>> {
        self.reach(at_least).await?;
        Ok(of.iter().map(|&id| self.store.edges.index.of(kind).counts(id)).collect())
    }
}
