//! A graph that this process has opened, and the runtime that drives it. Commands open the local profile, a folder.

use std::future::Future;
use std::sync::Arc;

use anyhow::Result;
use kinfolk_api::WriteOutcome;
use kinfolk_core::changes::Changes;
use kinfolk_core::comments::{CommentThreads, Viewer};
use kinfolk_core::feeds::{self, Feeds};
use kinfolk_core::graph::{Edge, EdgeAction, FollowerChanges, FollowerCommand, Graph};
use kinfolk_core::suggestions::Suggestions;
use kinfolk_core::{Context as CoreContext, EdgeKind, Error, Frontier, Id, Position, Store};
use kinfolk_server::Administration;

use crate::profile::{Discard, OpenStore, Opened, Profile};

/// The edge kind that commands write.
const KIND: EdgeKind = EdgeKind::Follow;

/// The store of a profile, and its optional parts.
type StoreOf<P> = <P as Profile>::Store;
type ContentOf<P> = <StoreOf<P> as Store>::Content;
type SuggestionsOf<P> = <StoreOf<P> as Store>::Suggestions;

/// A user who can open the store sees everything.
pub(crate) const OPERATOR: Viewer = Viewer { user: None, is_moderator: true };

/// An open graph.
pub(crate) struct LocalGraph<P: Profile> {
    profile: P,
    graph: Graph<StoreOf<P>>,
    store: StoreOf<P>,
    runtime: tokio::runtime::Runtime,
    discard: Option<Discard>,
    /// What the caller has seen.
    seen: Frontier,
}

impl<P: Profile> LocalGraph<P> {
    /// Opens the graph, which must exist.
    pub(crate) fn open(profile: &P) -> Result<Self> {
        Self::new(profile, profile.open()?, None)
    }

    /// Opens the graph, or creates it.
    pub(crate) fn open_or_create(profile: &P) -> Result<Self> {
        let Opened { store, discard } = profile.open_or_create()?;
        Self::new(profile, store, discard)
    }

    /// As [`LocalGraph::open_or_create`], for a write about these users.
    pub(crate) fn open_or_create_for(profile: &P, users: &[Id]) -> Result<Self> {
        profile.require_creatable_for(users)?;
        Self::open_or_create(profile)
    }

    fn new(profile: &P, store: StoreOf<P>, discard: Option<Discard>) -> Result<Self> {
        let page_limit_max = CoreContext::<StoreOf<P>>::PAGE_LIMIT_MAX;
        let context = CoreContext::new(Arc::new(store.clone()), store.keyring(), page_limit_max);
        let graph = Graph::new(context, profile.service_settings().graph);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { profile: profile.clone(), graph, store, runtime, discard, seen: Frontier::default() })
    }

    /// Takes note of what the caller has seen.
    pub(crate) fn see(&mut self, token: &str) -> Result<()> {
        self.seen.join(&self.graph.context.frontier(token)?);
        Ok(())
    }

    /// What reads must show: what the caller has seen.
    pub(crate) fn at_least(&self) -> &Frontier {
        &self.seen
    }

    /// The profile that the graph was opened through.
    pub(crate) fn profile(&self) -> &P {
        &self.profile
    }

    /// Edges: follows, lists, counts, overlaps.
    pub(crate) fn graph(&self) -> &Graph<StoreOf<P>> {
        &self.graph
    }

    /// The change log.
    pub(crate) fn changes(&self) -> Changes<StoreOf<P>> {
        Changes { context: self.graph.context.clone() }
    }

    /// Suggestions, if the profile has them.
    pub(crate) fn suggestions(&self) -> Result<Suggestions<SuggestionsOf<P>>> {
        let settings = self.profile.service_settings().suggestions;
        Ok(Suggestions::new(self.graph.context.with(self.suggestion_store()?), settings))
    }

    /// The store of suggestions, if the profile has one.
    pub(crate) fn suggestion_store(&self) -> Result<Arc<SuggestionsOf<P>>> {
        let store = self.graph.context.shared_store().suggestions();
        Ok(store.ok_or(Error::NotAvailable { what: "suggesting users" })?)
    }

    /// Posts and feeds, if the profile has them.
    pub(crate) fn feeds(&self) -> Result<Feeds<ContentOf<P>>> {
        let settings = self.profile.service_settings().feeds;
        Ok(Feeds::new(self.content("posting")?, settings))
    }

    /// Comments, if the profile has them.
    pub(crate) fn comments(&self) -> Result<CommentThreads<ContentOf<P>>> {
        let settings = self.profile.service_settings().comments;
        Ok(CommentThreads::new(self.content("commenting")?, settings))
    }

    fn content(&self, what: &'static str) -> Result<CoreContext<ContentOf<P>>> {
        let store = self.graph.context.shared_store().content().ok_or(Error::NotAvailable { what })?;
        Ok(self.graph.context.with(store))
    }

    /// The operations for administrators.
    pub(crate) fn administration(&self) -> Arc<dyn Administration> {
        self.profile.administration(&self.store)
    }

    /// The store, for bulk work.
    pub(crate) fn store(&self) -> &StoreOf<P> {
        &self.store
    }

    /// Runs a future to completion.
    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Adds or removes an edge.
    pub(crate) fn write_edge(&self, action: EdgeAction, edge: Edge) -> Result<WriteOutcome> {
        let commands = [FollowerCommand { action, followee: edge.followee }].into();
        let changes = FollowerChanges { follower: edge.follower, commands };
        let written = self.run(self.graph.apply(KIND, vec![changes])).pop().unwrap_or(Err(Error::Closed))?;
        Ok(self.written(written.position, written.changed.contains(&true)))
    }

    /// The result of a write at a position.
    pub(crate) fn written(&self, position: Position, changed: bool) -> WriteOutcome {
        WriteOutcome { changed, token: self.graph.context.token_after(&self.seen, position) }
    }

    /// The result of a deletion, withdrawal or lock.
    pub(crate) fn removed(
        &self,
        feeds::WriteOutcome { position, changed }: feeds::WriteOutcome,
    ) -> WriteOutcome {
        self.written(position, changed)
    }

    /// Closes the store and reports what failed. Dropping it closes it silently.
    pub(crate) fn close(self) -> Result<()> {
        drop(self.graph);
        Ok(self.store.close()?)
    }

    /// Closes the store and removes it if this process created it.
    pub(crate) fn close_and_discard_if_new(mut self) -> Result<()> {
        let discard = self.discard.take();
        self.close()?;
        discard.map_or(Ok(()), |discard| discard())
    }
}
