//! A graph that a command has opened in this process, from a folder, and the runtime that drives it.

use std::future::Future;
use std::sync::Arc;

use anyhow::Result;
use kinfolk_api::WriteOutcome;
use kinfolk_core::changes::Changes;
use kinfolk_core::comments::{CommentThreads, Viewer};
use kinfolk_core::feeds::{self, Feeds};
use kinfolk_core::graph::{Graph, Receipt};
use kinfolk_core::suggestions::Suggestions;
use kinfolk_core::{Context as CoreContext, Error, Frontier, Position, Store};
use kinfolk_server::Administration;

use crate::profile::{Discard, LocalProfile, Opened, Profile};

/// The store in a folder, and its optional parts.
type LocalStore = <LocalProfile as Profile>::Store;
type LocalContent = <LocalStore as Store>::Content;
type LocalSuggestions = <LocalStore as Store>::Suggestions;

/// A user who can open the store sees everything.
pub(crate) const OPERATOR: Viewer = Viewer { user: None, is_moderator: true };

/// An open graph.
pub(crate) struct LocalGraph {
    /// The folder that it was opened from.
    pub(crate) profile: LocalProfile,
    /// Edges: follows, lists, counts, overlaps.
    pub(crate) graph: Graph<LocalStore>,
    /// The store, for bulk work.
    pub(crate) store: LocalStore,
    runtime: tokio::runtime::Runtime,
    discard: Option<Discard>,
    /// What the caller has seen, which reads must show.
    pub(crate) seen: Frontier,
}

impl LocalGraph {
    /// Opens the graph, which must exist.
    pub(crate) fn open(profile: &LocalProfile) -> Result<Self> {
        Self::new(profile, profile.open()?, None)
    }

    /// Opens the graph, or creates it.
    pub(crate) fn open_or_create(profile: &LocalProfile) -> Result<Self> {
        let Opened { store, discard } = profile.open_or_create_store()?;
        Self::new(profile, store, discard)
    }

    fn new(profile: &LocalProfile, store: LocalStore, discard: Option<Discard>) -> Result<Self> {
        let page_limit_max = CoreContext::<LocalStore>::PAGE_LIMIT_MAX;
        let context = CoreContext::new(Arc::new(store.clone()), store.keyring(), page_limit_max);
        let graph = Graph::new(context, profile.service.graph);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { profile: profile.clone(), graph, store, runtime, discard, seen: Frontier::default() })
    }

    /// Takes note of what the caller has seen.
    pub(crate) fn see(&mut self, token: &str) -> Result<()> {
        self.seen.join(&self.graph.context.frontier(token)?);
        Ok(())
    }

    /// The change log.
    pub(crate) fn changes(&self) -> Changes<LocalStore> {
        Changes { context: self.graph.context.clone() }
    }

    /// Suggestions, if the profile has them.
    pub(crate) fn suggestions(&self) -> Result<Suggestions<LocalSuggestions>> {
        let settings = self.profile.service.suggestions;
        Ok(Suggestions::new(self.graph.context.with(self.suggestion_store()?), settings))
    }

    /// The store of suggestions, if the profile has one.
    pub(crate) fn suggestion_store(&self) -> Result<Arc<LocalSuggestions>> {
        let store = self.graph.context.shared_store().suggestions();
        Ok(store.ok_or(Error::NotAvailable { what: "suggesting users" })?)
    }

    /// Posts and feeds, if the profile has them.
    pub(crate) fn feeds(&self) -> Result<Feeds<LocalContent>> {
        let settings = self.profile.service.feeds;
        Ok(Feeds::new(self.content("posting")?, settings))
    }

    /// Comments, if the profile has them.
    pub(crate) fn comments(&self) -> Result<CommentThreads<LocalContent>> {
        let settings = self.profile.service.comments;
        Ok(CommentThreads::new(self.content("commenting")?, settings))
    }

    fn content(&self, what: &'static str) -> Result<CoreContext<LocalContent>> {
        let store = self.graph.context.shared_store().content().ok_or(Error::NotAvailable { what })?;
        Ok(self.graph.context.with(store))
    }

    /// The operations for administrators.
    pub(crate) fn administration(&self) -> Arc<dyn Administration> {
        self.profile.administration(&self.store)
    }

    /// Runs a future to completion.
    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// The result of a write of one edge or dismissal.
    pub(crate) fn changed(&self, Receipt { position, changed }: Receipt) -> WriteOutcome {
        self.written(position, changed.contains(&true))
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
