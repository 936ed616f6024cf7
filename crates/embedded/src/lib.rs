//! The default store: one process, an own change log, rows in LSM trees, a check index in memory.
#![allow(missing_docs, unused, clippy::unimplemented)]
use kinfolk_core::graph::*;
use kinfolk_core::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Settings {
    pub cache_bytes: u64,
    pub log_keep_bytes: u64,
    pub log_keep: Duration,
}
impl Default for Settings {
    fn default() -> Self {
        Self { cache_bytes: 128 << 20, log_keep_bytes: 10 << 30, log_keep: Duration::from_secs(7 * 86_400) }
    }
}

/// An open store; clones share it.
#[derive(Clone)]
pub struct Embedded(Arc<()>);

impl Embedded {
    /// Makes a new store in a folder that is missing or empty, and opens it.
    pub fn create(folder: &Path, ids: IdKind, settings: Settings) -> Result<Self> {
        unimplemented!()
    }
    /// Opens an existing store.
    pub fn open(folder: &Path, settings: Settings) -> Result<Self> {
        unimplemented!()
    }
    /// As create/open with another clock (tests).
    pub fn create_with_clock(
        folder: &Path,
        ids: IdKind,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        unimplemented!()
    }
    pub fn open_with_clock(folder: &Path, settings: Settings, clock: Arc<dyn Clock>) -> Result<Self> {
        unimplemented!()
    }
    /// Whether a folder holds a store (so that the command line can create one when there is none).
    pub fn exists(folder: &Path) -> bool {
        unimplemented!()
    }
    /// Waits for the writes in flight, writes the index snapshot and releases the folder. Also done on drop of the last clone, without errors.
    pub fn close(self) -> Result<()> {
        unimplemented!()
    }
    /// The keys that sign tokens and cursors of this store.
    pub fn keyring(&self) -> Keyring {
        unimplemented!()
    }
    /// Puts a new signing key in front, keeps the previous one for verifying.
    pub fn rotate_keys(&self) -> Result<()> {
        unimplemented!()
    }

    // The plain, synchronous forms of the EdgeStore methods, for use as a library:
    pub fn follows(&self, kind: EdgeKind, edge: Edge) -> bool {
        unimplemented!()
    }
    pub fn write_blocking(&self, request: WriteRequest) -> Result<Receipt> {
        unimplemented!()
    }
    pub fn list_page(
        &self,
        kind: EdgeKind,
        side: Side,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> Result<Vec<ListEntry>> {
        unimplemented!()
    }

    /// All edges of a kind by (follower, followee), as of now, whatever is written meanwhile.
    pub fn edges(
        &self,
        kind: EdgeKind,
    ) -> Result<impl Iterator<Item = Result<(Edge, Timestamp)>> + Send + 'static> {
        Ok(std::iter::empty())
    }
    /// How many edges of a kind there are.
    pub fn edge_count(&self, kind: EdgeKind) -> u64 {
        unimplemented!()
    }

    /// Starts an import, or continues one with the same fingerprint that was stopped.
    pub fn import(&self, options: ImportOptions) -> Result<Import> {
        unimplemented!()
    }
    /// Compares both directions, counts and index with the truth; repairs if asked.
    pub fn verify(&self, repair: bool, progress: &dyn Fn(Progress)) -> Result<VerifyReport> {
        unimplemented!()
    }
    /// Writes a backup of the whole store as of now into a new file.
    pub fn backup(&self, file: &Path, progress: &dyn Fn(Progress)) -> Result<BackupReport> {
        unimplemented!()
    }
    /// Makes a new store in a missing or empty folder from a backup; its log starts a new epoch.
    pub fn restore(
        file: &Path,
        folder: &Path,
        settings: Settings,
        progress: &dyn Fn(Progress),
    ) -> Result<BackupReport> {
        unimplemented!()
    }
    /// Merges all row files; for measuring disk use.
    pub fn compact(&self) -> Result<()> {
        unimplemented!()
    }
}

/// How far a long operation has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub stage: &'static str,
    pub done: u64,
    pub total: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct ImportOptions {
    pub kind: EdgeKind,
    /// None: no limit.
    pub following_limit: Option<u32>,
    /// Names the input and everything that changes how it is read; a stopped import is continued only under the same name.
    pub fingerprint: String,
    /// How much memory sorting may use, in bytes.
    pub sort_memory: usize,
}

/// An import that is taking edges in. Dropped without finish: what is spooled stays for a later continuation.
pub struct Import;
impl Import {
    /// How many pushes an earlier, stopped run of this import has already made durable: skip that many edges of the input.
    pub fn taken(&self) -> u64 {
        unimplemented!()
    }
    /// Takes one edge. Self-follows are counted and skipped.
    pub fn push(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<()> {
        unimplemented!()
    }
    /// Gives up and removes what was spooled (a malformed line).
    pub fn abandon(self) -> Result<()> {
        unimplemented!()
    }
    /// Makes the import durable, then visible.
    pub fn finish(self, progress: &dyn Fn(Progress)) -> Result<ImportReport> {
        unimplemented!()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    pub added: u64,
    pub self_follows: u64,
    pub duplicates: u64,
    pub over_limit: u64,
    pub position: Position,
}
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    pub edges: u64,
    pub users: u64,
    pub differences: Vec<String>,
    pub difference_count: u64,
    pub repaired: bool,
}
#[derive(Clone, Copy, Debug)]
pub struct BackupReport {
    pub edges: u64,
    pub position: Position,
    pub bytes: u64,
}

impl EdgeStore for Embedded {
    fn id_kind(&self) -> IdKind {
        unimplemented!()
    }
    fn epoch(&self) -> Epoch {
        unimplemented!()
    }
    async fn write(&self, request: WriteRequest) -> Result<Receipt> {
        unimplemented!()
    }
    async fn visible(&self, position: Position) -> Result<()> {
        unimplemented!()
    }
    async fn contains(&self, kind: EdgeKind, edges: &[Edge]) -> Result<Vec<bool>> {
        unimplemented!()
    }
    async fn since(&self, kind: EdgeKind, edges: &[Edge]) -> Result<Vec<Option<Timestamp>>> {
        unimplemented!()
    }
    async fn list(
        &self,
        kind: EdgeKind,
        side: Side,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> Result<Vec<ListEntry>> {
        unimplemented!()
    }
    async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> Result<Vec<ListEntry>> {
        unimplemented!()
    }
    async fn counts(&self, kind: EdgeKind, of: &[Id]) -> Result<Vec<Counts>> {
        unimplemented!()
    }
}
impl ChangeLog for Embedded {
    fn span(&self) -> LogSpan {
        unimplemented!()
    }
    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>> {
        unimplemented!()
    }
}
