//! Profiles: how a graph is stored. Commands, bulk work and the server use a profile through these traits; the
//! configuration decides which one. Commands that open a graph in this process open a folder, the local profile.

#[cfg(test)]
mod dashboard;
mod embedded;
mod files;
#[cfg(feature = "fleet")]
pub(crate) mod fleet;

use std::sync::Arc;

use anyhow::Result;
use kinfolk_core::bulk::{ImportOptions, ImportReport, Progress, SuggestionRun};
use kinfolk_core::comments::Comment;
use kinfolk_core::graph::Edge;
use kinfolk_core::suggestions::SuggestionRunRequest;
use kinfolk_core::{EdgeKind, Keyring, Store, Timestamp};
use kinfolk_server::{Administration, ServiceSettings, SharedBudgets};

pub(crate) use embedded::{Discard, Folder as LocalProfile, LAYER_TARGET, Opened, inspect_backup};
pub(crate) use files::IMPORTED_FILE;

use crate::settings::Role;

/// The location of a graph, which may not exist yet.
pub(crate) trait Profile: Clone + Send + Sync + 'static {
    /// The open store.
    type Store: OpenStore;

    /// The work that a server does beside requests. Dropping it ends the work at once.
    type Background: Send;

    /// The location, for messages.
    fn location(&self) -> String;

    /// Returns an error for a role that its servers do not have.
    fn require_role(&self, role: Role) -> Result<()>;

    /// Opens the graph for a server, or creates it if the profile does that.
    fn open_or_create(&self) -> Result<Self::Store>;

    /// The settings of its services.
    fn service_settings(&self) -> ServiceSettings;

    /// The default computation of suggestions for all users; none if the profile computes them only on request.
    fn everyone(&self) -> Option<SuggestionRunRequest>;

    /// The operations for administrators of an open store.
    fn administration(&self, store: &Self::Store) -> Arc<dyn Administration>;

    /// The budgets that its servers share with other processes; none if each limits its callers alone.
    fn shared_budgets(&self) -> Option<Arc<SharedBudgets>>;

    /// Starts the background work of a server, in a tokio runtime.
    fn start_background(&self, store: &Self::Store) -> impl Future<Output = Result<Self::Background>> + Send;

    /// Ends it in order.
    fn stop_background(background: Self::Background) -> impl Future<Output = ()> + Send;
}

/// An open store, beyond its ports. Clones share it.
pub(crate) trait OpenStore: Store + Clone {
    /// An import.
    type Import: EdgeImport;

    /// The keys that sign tokens and cursors.
    fn keyring(&self) -> Keyring;

    /// The time of the store.
    fn now(&self) -> Timestamp;

    /// The number of edges of a kind; none if the store would have to count them.
    fn edge_count(&self, kind: EdgeKind) -> Option<u64>;

    /// Starts an import, or resumes a stopped one with the same options.
    fn import(&self, options: &ImportOptions) -> kinfolk_core::Result<Self::Import>;

    /// All edges of a kind by (follower, followee), in a snapshot as of now.
    fn edges(&self, kind: EdgeKind)
    -> kinfolk_core::Result<impl Iterator<Item = DatedEdge> + Send + 'static>;

    /// All comments with tombstones, in a snapshot as of now: by parent, oldest first.
    fn all_comments(
        &self,
    ) -> kinfolk_core::Result<impl Iterator<Item = kinfolk_core::Result<Comment>> + Send + 'static>;

    /// The latest computation of suggestions for all users.
    fn suggestion_run(&self) -> Option<SuggestionRun>;

    /// Closes the store and reports what failed. Dropping the last clone closes it too.
    fn close(self) -> kinfolk_core::Result<()>;
}

/// An edge, and since when it exists.
pub(crate) type DatedEdge = kinfolk_core::Result<(Edge, Timestamp)>;

/// An import. Dropped before [`EdgeImport::finish`], it can be resumed.
pub(crate) trait EdgeImport {
    /// The number of edges of the input that an earlier run made durable: skip them.
    fn taken(&self) -> u64;

    /// Adds an edge; without `since` it gets the time of the import.
    fn push(&mut self, edge: Edge, since: Option<Timestamp>) -> kinfolk_core::Result<()>;

    /// Makes the import durable, then visible.
    fn finish(self, progress: &dyn Fn(Progress)) -> kinfolk_core::Result<ImportReport>;

    /// Cancels the import and removes its edges.
    fn abandon(self) -> kinfolk_core::Result<()>;
}
