//! Profiles: where a graph is kept, and what the rest of the program does with it. Commands, bulk work and the server know a
//! profile by these traits; which one it is, is decided where the settings are read.

pub mod embedded;

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use kinfolk_core::bulk::{BackupReport, ImportOptions, ImportReport, Progress, SuggestionRun, VerifyReport};
use kinfolk_core::comments::Comment;
use kinfolk_core::graph::Edge;
use kinfolk_core::suggestions::SuggestionRunRequest;
use kinfolk_core::{EdgeKind, Id, Keyring, Store, Timestamp};
use kinfolk_server::{Administration, ServiceSettings};

/// Takes away again what was just made, where nothing came of the work that it was made for.
pub type Discard = Box<dyn FnOnce() -> Result<()> + Send>;

/// A place where a graph is kept, which may not hold one yet.
pub trait Profile: Clone + Send + Sync + 'static {
    /// Its store, once it is open.
    type Store: OpenStore;

    /// Where it is, for people.
    fn place(&self) -> String;

    /// Opens the graph, which must be there already.
    fn open(&self) -> Result<Self::Store>;

    /// Opens the graph, or makes one if there is none. If it was made, it can be taken away again.
    fn open_or_create(&self) -> Result<(Self::Store, Option<Discard>)>;

    /// Refuses to make a graph for something about these users, if it would have another kind of ids.
    fn require_creatable_for(&self, users: &[Id]) -> Result<()>;

    /// The rules of its parts.
    fn service_settings(&self) -> ServiceSettings;

    /// How suggestions are computed for everyone.
    fn everyone(&self) -> SuggestionRunRequest;

    /// How much memory sorting an import may use, in bytes.
    fn sort_memory(&self) -> usize;

    /// Refuses an import of edges that take so many bytes, if there is no room for them.
    fn require_room(&self, bytes: u64) -> kinfolk_core::Result<()>;

    /// What operators may ask of an open store.
    fn administration(&self, store: &Self::Store) -> Arc<dyn Administration>;
}

/// An open store, beyond its ports. Clones share it.
pub trait OpenStore: Store + Clone {
    /// Takes edges in.
    type Import: EdgeImport;

    /// The keys that sign tokens and cursors.
    fn keyring(&self) -> Keyring;

    /// The time that the store goes by.
    fn now(&self) -> Timestamp;

    /// Why the store can't go on, if it can't.
    fn failure(&self) -> Option<String>;

    /// How many edges of a kind there are.
    fn edge_count(&self, kind: EdgeKind) -> u64;

    /// Starts an import, or continues one with the same options that was stopped.
    fn import(&self, options: &ImportOptions) -> kinfolk_core::Result<Self::Import>;

    /// How many bytes a stopped import has left that can be continued.
    fn stopped_import_bytes(&self) -> u64;

    /// All edges of a kind by (follower, followee), as of now, whatever is written meanwhile.
    fn edges(&self, kind: EdgeKind)
    -> kinfolk_core::Result<impl Iterator<Item = DatedEdge> + Send + 'static>;

    /// All comments, with tombstones, as of now: thread by thread, each in the order of time.
    fn all_comments(
        &self,
    ) -> kinfolk_core::Result<impl Iterator<Item = kinfolk_core::Result<Comment>> + Send + 'static>;

    /// Compares everything derived with the truth.
    fn verify(&self, repair: bool, progress: &dyn Fn(Progress)) -> kinfolk_core::Result<VerifyReport>;

    /// Writes a backup of the whole store, as of now, into a stream.
    fn backup(&self, out: &mut dyn Write, progress: &dyn Fn(Progress)) -> kinfolk_core::Result<BackupReport>;

    /// Merges files, and erases the texts of purged comments from them; returns of how many.
    fn compact(&self) -> kinfolk_core::Result<u64>;

    /// The newest run that computed suggestions for everyone, if there ever was one.
    fn suggestion_run(&self) -> Option<SuggestionRun>;

    /// Closes the store and reports what of it failed. Dropping the last clone closes it too.
    fn close(self) -> kinfolk_core::Result<()>;
}

/// An edge, and since when it exists.
pub type DatedEdge = kinfolk_core::Result<(Edge, Timestamp)>;

/// An import that takes edges in. Dropped before [`EdgeImport::finish`], it can be continued later.
pub trait EdgeImport {
    /// How many edges an earlier run has taken in durably: skip so many of the input.
    fn taken(&self) -> u64;

    /// Takes one edge; without `since` it gets the time at which the import takes effect.
    fn push(&mut self, edge: Edge, since: Option<Timestamp>) -> kinfolk_core::Result<()>;

    /// Makes the import durable, then visible.
    fn finish(self, progress: &dyn Fn(Progress)) -> kinfolk_core::Result<ImportReport>;

    /// Gives up and removes what was taken in.
    fn abandon(self) -> kinfolk_core::Result<()>;
}
