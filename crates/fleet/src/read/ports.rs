//! The port of edges.

use std::sync::Arc;

use kinfolk_core::graph::{
    Counts, Edge, EdgeList, EdgeStore, ListEntry, ListKey, Overlap, Receipt, UserSet, WriteRequest,
};
use kinfolk_core::{EdgeKind, Frontier, Id, Result, Timestamp};

use super::freshness::Reader;
use super::lists::Page;
use super::overlap::Wanted;
use crate::Fleet;
use crate::hot::{CountsOf, FirstPage};
use crate::postgres::Failure;

impl Fleet {
    /// Runs a read on the store's own threads.
    pub(crate) async fn read<T: Send + 'static, F>(
        &self,
        at_least: &Frontier,
        read: impl Fn(Reader) -> F + Send + Sync + 'static,
    ) -> Result<T>
    where
        F: Future<Output = std::result::Result<T, Failure>> + Send,
    {
        let (shared, at_least) = (Arc::clone(&self.shared), at_least.clone());
        self.run(async move { Reader::run(shared, at_least, read).await }).await
    }
}

impl EdgeStore for Fleet {
    async fn write(&self, requests: Vec<WriteRequest>) -> Vec<Result<Receipt>> {
        self.writers.write(requests).await
    }

    async fn since(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
        at_least: &Frontier,
    ) -> Result<Vec<Option<Timestamp>>> {
        let edges: Arc<[Edge]> = edges.into();
        self.read(at_least, move |reader| {
            let edges = Arc::clone(&edges);
            async move { reader.since(kind, &edges).await }
        })
        .await
    }

    async fn list(
        &self,
        list: EdgeList,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        if let Some(question) = FirstPage::of_list(list, after, limit) {
            let page = self.ask_hot(|shared| &shared.hot.first_pages, question, at_least).await?;
            return Ok(page.to_vec());
        }
        self.read(at_least, move |reader| async move { reader.list(list, Page { after, limit }).await }).await
    }

    async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        self.read(
            at_least,
            move |reader| async move { reader.friends(kind, of, Page { after, limit }).await },
        )
        .await
    }

    async fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Overlap> {
        let sets: Arc<[UserSet]> = sets.into();
        self.read(at_least, move |reader| {
            let sets = Arc::clone(&sets);
            async move { reader.overlap(kind, &sets, Wanted { after, limit }).await }
        })
        .await
    }

    async fn counts(&self, kind: EdgeKind, of: &[Id], at_least: &Frontier) -> Result<Vec<Counts>> {
        // A statement about many users costs no more for those that are hot.
        if let &[of] = of {
            let counts = self.ask_hot(|shared| &shared.hot.counts, CountsOf { kind, of }, at_least).await?;
            return Ok(vec![counts]);
        }
        let of: Arc<[Id]> = of.into();
        self.read(at_least, move |reader| {
            let of = Arc::clone(&of);
            async move { reader.counts(kind, &of).await }
        })
        .await
    }
}
