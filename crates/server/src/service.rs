//! The service behind both protocols: the graph and its change log, the capabilities of the profile, access, limits and metrics.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use kinfolk_core::changes::{Changes, LogPage};
use kinfolk_core::comments::{CommentSettings, CommentThreads};
use kinfolk_core::feeds::{FeedSettings, Feeds};
use kinfolk_core::graph::{Graph, GraphSettings, ListPage, Overlap, OverlapPage, Side, UserSet};
use kinfolk_core::suggestions::{SuggestionPage, SuggestionSettings, Suggestions};
use kinfolk_core::{
    Context, EdgeKind, Epoch, Error, Frontier, Id, IdKind, PageRequest, Position, Result, Sequence, Store,
};

use crate::access::{Access, Permit, Viewer};
use crate::administration::Administration;
use crate::limits::{Budget, Limits, RowCost};
use crate::metrics::{Metrics, Source};

/// The settings of a service.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceSettings {
    /// Of edges.
    pub graph: GraphSettings,
    /// Of suggestions.
    pub suggestions: SuggestionSettings,
    /// Of posts and feeds.
    pub feeds: FeedSettings,
    /// Of comments.
    pub comments: CommentSettings,
}

named! {
    /// What a profile has or lacks, by its name in the OpenAPI document. The graph and its change log are always there.
    pub Capability {
        /// People you may know.
        Suggestions = "suggestions",
        /// Posts and home feeds.
        Feeds = "feeds",
        /// Comments on posts.
        Comments = "comments",
        /// Suggestions computed for all users and stored.
        SuggestionRuns = "suggestion-runs",
        /// Imports of files.
        Imports = "imports",
        /// Exports to files.
        Exports = "exports",
        /// Comparisons of derived data with the edges, and repairs.
        Verification = "verification",
        /// Backups of the store in one file.
        Backups = "backups",
        /// Compaction of the store's files.
        Compaction = "compaction",
    }
}

impl Capability {
    /// The error of a request that needs it.
    pub(crate) fn missing(self) -> Error {
        let what = match self {
            Self::Suggestions => "the suggestion API",
            Self::Feeds => "the feed API",
            Self::Comments => "the comment API",
            Self::SuggestionRuns => "computing suggestions for all users",
            Self::Imports => "importing",
            Self::Exports => "exporting",
            Self::Verification => "verifying",
            Self::Backups => "backing up",
            Self::Compaction => "compacting",
        };
        Error::NotAvailable { what }
    }
}

/// The graph as a service. One for the life of a process, shared by all connections.
pub struct Service<S: Store> {
    graph: Graph<S>,
    changes: Changes<S>,
    suggestions: Option<Suggestions<S::Suggestions>>,
    feeds: Option<Feeds<S::Content>>,
    comments: Option<CommentThreads<S::Content>>,
    /// The maximum number of checks in one call of the graph.
    checks_max: usize,
    /// The maximum number of users in one call of the graph.
    users_max: usize,
    /// Authentication and permissions.
    pub access: Access,
    /// Rate limits.
    pub limits: Limits,
    /// Counts and durations of requests.
    pub metrics: Metrics,
    administration: Arc<dyn Administration>,
}

impl<S: Store> Service<S> {
    /// A service on a store, with the capabilities that the store has.
    pub fn new(
        context: Context<S>,
        settings: ServiceSettings,
        access: Access,
        administration: Arc<dyn Administration>,
    ) -> Self {
        let suggestions = context.shared_store().suggestions().map(|store| context.with(store));
        let content = context.shared_store().content().map(|store| context.with(store));
        Self {
            suggestions: suggestions.map(|context| Suggestions::new(context, settings.suggestions)),
            feeds: content.clone().map(|context| Feeds::new(context, settings.feeds)),
            comments: content.map(|context| CommentThreads::new(context, settings.comments)),
            changes: Changes { context: context.clone() },
            checks_max: settings.graph.check_pairs_max,
            users_max: settings.graph.users_max,
            graph: Graph::new(context, settings.graph),
            limits: access.limits(),
            access,
            metrics: Metrics::default(),
            administration,
        }
    }

    /// The rules of edges.
    pub(crate) fn graph(&self, _: Permit) -> &Graph<S> {
        &self.graph
    }

    /// The change log.
    pub(crate) fn changes(&self, _: Permit) -> &Changes<S> {
        &self.changes
    }

    /// Suggestions, unless the profile lacks them.
    pub(crate) fn suggestions(&self, _: Permit) -> Result<&Suggestions<S::Suggestions>> {
        self.suggestions.as_ref().ok_or_else(|| Capability::Suggestions.missing())
    }

    /// Posts and feeds, unless the profile lacks them.
    pub(crate) fn feeds(&self, _: Permit) -> Result<&Feeds<S::Content>> {
        self.feeds.as_ref().ok_or_else(|| Capability::Feeds.missing())
    }

    /// Comments, unless the profile lacks them.
    pub(crate) fn comments(&self, _: Permit) -> Result<&CommentThreads<S::Content>> {
        self.comments.as_ref().ok_or_else(|| Capability::Comments.missing())
    }

    /// The operations for administrators.
    pub(crate) fn administration(&self, _: Permit) -> &dyn Administration {
        &*self.administration
    }

    /// How many sets are not empty, if the profile knows. It needs no permit: it shows no user.
    pub(crate) fn set_count(&self) -> Option<u64> {
        self.administration.set_count()
    }

    /// Why the store failed, if it did.
    pub fn failure(&self) -> Option<String> {
        self.administration.failure()
    }

    /// Why the server should not be sent requests for now, if there is a reason.
    pub(crate) fn not_ready(&self) -> Option<String> {
        self.administration.not_ready()
    }

    /// Returns an error if the profile lacks a capability.
    pub(crate) fn require(&self, capability: Capability) -> Result<()> {
        if self.has(capability) { Ok(()) } else { Err(capability.missing()) }
    }

    /// Whether the profile has a capability.
    pub(crate) fn has(&self, capability: Capability) -> bool {
        match capability {
            Capability::Suggestions => self.suggestions.is_some(),
            Capability::Feeds => self.feeds.is_some(),
            Capability::Comments => self.comments.is_some(),
            Capability::SuggestionRuns => self.suggestions.is_some() && self.administration.has(capability),
            Capability::Imports
            | Capability::Exports
            | Capability::Verification
            | Capability::Backups
            | Capability::Compaction => self.administration.has(capability),
        }
    }

    /// Waits until the change log ends after `known`; returns its end. It needs no permit: it shows how much was written, and
    /// nothing of it.
    pub(crate) async fn log_end_after(&self, known: &Frontier) -> Result<Frontier> {
        // The store waits for a second before it returns false. Other tasks get a turn even if a store does not wait.
        while !self.graph.store().wait_for_changes(known).await? {
            tokio::task::yield_now().await;
        }
        self.log_end().await
    }

    /// Changes after a frontier, for the server's own use: what a caller may see of them is decided where they are used.
    pub(crate) async fn changed_since(&self, after: &Frontier, limit: usize) -> Result<LogPage> {
        self.changes.read(after, limit).await
    }

    /// The end of the change log.
    pub(crate) async fn log_end(&self) -> Result<Frontier> {
        Ok(self.graph.store().span().await?.newest)
    }

    /// A frontier so far before the end of the log that about `count` kept changes follow it.
    pub(crate) async fn log_before_end(&self, count: u64) -> Result<Frontier> {
        let span = self.graph.store().span().await?;
        let each = count.div_ceil(span.newest.iter().len().max(1) as u64);
        let before = span.newest.iter().map(|Position { shard, sequence }| {
            let trimmed = span.trimmed.get(shard).unwrap_or_default();
            Sequence(sequence.0.saturating_sub(each)).max(trimmed).on(shard)
        });
        Ok(before.collect())
    }

    /// The store with the keys of its deployment, for what is signed.
    pub(crate) fn context(&self) -> &Context<S> {
        &self.graph.context
    }

    /// The kind of ids that the deployment uses.
    pub(crate) fn id_kind(&self) -> IdKind {
        self.graph.context.id_kind()
    }

    /// The maximum number of checks in one call of [`Graph::check`].
    pub(crate) fn checks_max(&self) -> usize {
        self.checks_max
    }

    /// The maximum number of users in one call of [`Graph::counts`].
    pub(crate) fn users_max(&self) -> usize {
        self.users_max
    }

    /// The frontier of a token.
    pub(crate) fn frontier(&self, token: &str) -> Result<Frontier> {
        self.graph.context.frontier(token)
    }

    /// The epoch of the store's frontiers.
    pub(crate) fn epoch(&self) -> Epoch {
        self.graph.context.store().epoch()
    }

    /// The token of a frontier.
    pub(crate) fn token(&self, frontier: Frontier) -> String {
        self.graph.context.token(frontier)
    }

    /// The token that covers what a caller had seen, and its write.
    pub(crate) fn token_after(&self, seen: &Frontier, written: Position) -> String {
        self.graph.context.token_after(seen, written)
    }

    /// Suggestions for a viewer. Counts the source of the response.
    pub(crate) async fn suggest(
        &self,
        permit: Permit,
        viewer: Viewer,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<SuggestionPage> {
        let found = self.suggestions(permit)?.read(viewer.id(), limit, at_least).await?;
        let source = if found.computed_at.is_some() { Source::Stored } else { Source::Walk };
        self.metrics.suggestions_served(source);
        Ok(found)
    }

    /// A page of the users that all of `of` follow.
    pub(crate) async fn common(
        &self,
        reading: Reading<'_>,
        of: &[Id],
        page: PageRequest<'_>,
    ) -> Result<OverlapPage> {
        let sets: Vec<UserSet> = of.iter().map(|&of| UserSet { side: Side::Following, of }).collect();
        self.charge_overlap(reading, &sets).await?;
        self.graph.common(EdgeKind::Follow, of, page, reading.at_least).await
    }

    /// A page of the viewer's followees that follow `of`.
    pub(crate) async fn known_followers(
        &self,
        reading: Reading<'_>,
        viewer: Viewer,
        of: Id,
        page: PageRequest<'_>,
    ) -> Result<OverlapPage> {
        let viewer = viewer.id();
        let sets = [UserSet { side: Side::Following, of: viewer }, UserSet { side: Side::Followers, of }];
        self.charge_overlap(reading, &sets).await?;
        self.graph.known_followers(EdgeKind::Follow, viewer, of, page, reading.at_least).await
    }

    /// A page of friends. It costs as much as an overlap: how much of the smaller side must be read is not known in advance.
    pub(crate) async fn friends(
        &self,
        reading: Reading<'_>,
        of: Id,
        page: PageRequest<'_>,
    ) -> Result<ListPage> {
        let sets = [Side::Following, Side::Followers].map(|side| UserSet { side, of });
        self.charge_overlap(reading, &sets).await?;
        self.graph.friends(EdgeKind::Follow, of, page, reading.at_least).await
    }

    /// How many users are in all of the sets, and up to `limit` of them by id.
    pub(crate) async fn overlap(
        &self,
        reading: Reading<'_>,
        sets: &[UserSet],
        limit: usize,
    ) -> Result<Overlap> {
        self.charge_overlap(reading, sets).await?;
        self.graph.overlap(EdgeKind::Follow, sets, None, limit, reading.at_least).await
    }

    /// Charges for an overlap before it is computed. Without a limit, its cost is not estimated.
    async fn charge_overlap(&self, reading: Reading<'_>, sets: &[UserSet]) -> Result<()> {
        if reading.budget.state().is_none() {
            return Ok(());
        }
        let graph = self.graph(reading.permit);
        let rows = graph.overlap_rows(EdgeKind::Follow, sets, reading.at_least).await?;
        RowCost::new(reading.budget).charge(rows)
    }
}

/// A read that is charged by the number of its rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    pub permit: Permit,
    /// The caller's.
    pub budget: &'a Budget,
    /// The frontier that the response must cover.
    pub at_least: &'a Frontier,
}

/// Admits requests: open once the store is loaded, closed before the process ends.
pub struct Door<S: Store> {
    service: OnceLock<Arc<Service<S>>>,
    closing: AtomicBool,
}

impl<S: Store> Door<S> {
    /// Closed until the store is loaded.
    pub fn closed() -> Arc<Self> {
        Arc::new(Self { service: OnceLock::new(), closing: AtomicBool::new(false) })
    }

    /// Opens it: the store is loaded.
    pub fn open(&self, service: Arc<Service<S>>) {
        assert!(self.service.set(service).is_ok(), "a door is opened once");
    }

    /// The service, once there is one.
    pub fn service(&self) -> Option<&Arc<Service<S>>> {
        self.service.get()
    }

    /// Closes it: the process is about to end, and new requests should go elsewhere.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Whether the process is about to end.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Whether a load balancer may send requests here.
    pub fn is_ready(&self) -> bool {
        self.service.get().is_some() && !self.is_closing()
    }
}
