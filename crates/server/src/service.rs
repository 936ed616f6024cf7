//! What both protocols serve: the graph, who may use it and how much, and what is counted on the way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use kinfolk_core::graph::{Freshness, Graph, ListPage, Overlap, OverlapPage, PageRequest, Side, UserSet};
use kinfolk_core::suggest::Suggestions;
use kinfolk_core::{EdgeKind, Id, Result, Store};

use crate::access::Access;
use crate::administration::Administration;
use crate::limits::{Budget, Limits, Toll};
use crate::metrics::{Metrics, Source};

/// The graph as a service. One for the life of a process, shared by all connections.
pub struct Service<S> {
    /// The rules, on a store.
    pub graph: Graph<S>,
    /// Who may do what.
    pub access: Access,
    /// How much of it.
    pub limits: Limits,
    /// What was done, and how long it took.
    pub metrics: Metrics,
    /// What operators may ask of the store.
    pub administration: Arc<dyn Administration>,
}

impl<S: Store> Service<S> {
    /// Whom a user may know. Counts where the answer comes from.
    pub(crate) async fn suggestions(
        &self,
        of: Id,
        limit: usize,
        fresh: Freshness<'_>,
    ) -> Result<Suggestions> {
        let found = self.graph.suggestions(of, limit, fresh).await?;
        let source = if found.computed_at.is_some() { Source::Stored } else { Source::Walk };
        self.metrics.suggestions_served(source);
        Ok(found)
    }

    /// A page of those whom all of `of` follow, charged for.
    pub(crate) async fn common(
        &self,
        budget: Option<&Budget>,
        of: &[Id],
        page: PageRequest<'_>,
        fresh: Freshness<'_>,
    ) -> Result<OverlapPage> {
        let sets: Vec<UserSet> = of.iter().map(|&of| UserSet { side: Side::Following, of }).collect();
        self.charge_overlap(budget, &sets, fresh).await?;
        self.graph.common(EdgeKind::Follow, of, page, fresh).await
    }

    /// A page of those whom `viewer` follows and who follow `of`, charged for.
    pub(crate) async fn known_followers(
        &self,
        budget: Option<&Budget>,
        (viewer, of): (Id, Id),
        page: PageRequest<'_>,
        fresh: Freshness<'_>,
    ) -> Result<OverlapPage> {
        let sets = [UserSet { side: Side::Following, of: viewer }, UserSet { side: Side::Followers, of }];
        self.charge_overlap(budget, &sets, fresh).await?;
        self.graph.known_followers(EdgeKind::Follow, viewer, of, page, fresh).await
    }

    /// A page of friends, charged for like the overlap that it is: how much of the smaller side has to be looked at is not known
    /// before.
    pub(crate) async fn friends(
        &self,
        budget: Option<&Budget>,
        of: Id,
        page: PageRequest<'_>,
        fresh: Freshness<'_>,
    ) -> Result<ListPage> {
        let sets = [Side::Following, Side::Followers].map(|side| UserSet { side, of });
        self.charge_overlap(budget, &sets, fresh).await?;
        self.graph.friends(EdgeKind::Follow, of, page, fresh).await
    }

    /// How many are in all of the sets, and up to `limit` of them by id, charged for.
    pub(crate) async fn overlap(
        &self,
        budget: Option<&Budget>,
        sets: &[UserSet],
        limit: usize,
        fresh: Freshness<'_>,
    ) -> Result<Overlap> {
        self.charge_overlap(budget, sets, fresh).await?;
        self.graph.overlap(EdgeKind::Follow, sets, (None, limit), fresh).await
    }

    /// Charges for an overlap before it is looked for. For whoever has no limit, its cost is not even estimated.
    async fn charge_overlap(
        &self,
        budget: Option<&Budget>,
        sets: &[UserSet],
        fresh: Freshness<'_>,
    ) -> Result<()> {
        if budget.is_none_or(|budget| budget.state().is_none()) {
            return Ok(());
        }
        let rows = self.graph.overlap_rows(EdgeKind::Follow, sets, fresh).await?;
        Toll::default().pay(budget, rows)
    }
}

/// Where requests come in: open once the store is loaded, closing before the process ends.
pub struct Door<S> {
    service: OnceLock<Arc<Service<S>>>,
    closing: AtomicBool,
}

impl<S> Door<S> {
    /// Nothing to serve yet.
    pub fn closed() -> Arc<Self> {
        Arc::new(Self { service: OnceLock::new(), closing: AtomicBool::new(false) })
    }

    /// The store is loaded: serve.
    pub fn open(&self, service: Arc<Service<S>>) {
        assert!(self.service.set(service).is_ok(), "a door is opened once");
    }

    /// The service, once there is one.
    pub fn service(&self) -> Option<&Arc<Service<S>>> {
        self.service.get()
    }

    /// New requests should go elsewhere: the process is about to end.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Whether a load balancer may send requests here.
    pub fn is_ready(&self) -> bool {
        self.service.get().is_some() && !self.closing.load(Ordering::Acquire)
    }
}
