//! Suggestions that were computed for everyone, kept on disk; they can be dropped and computed again. No projection: they follow from the graph, not from events.
//!
//! One tree, apart from the rows: user id, big-endian, to a record (see `record`). What is damaged here is never an
//! error for a reader: there is then nothing stored, and a walk finds what it would have said.

mod everyone;
mod import;
mod port;
mod record;
mod run;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::suggestions::StoredSuggestions;
use kinfolk_core::{Id, IdKind, Result};
use lsm_tree::config::CompressionPolicy;
use lsm_tree::{AbstractTree, AnyTree, Cache, CompressionType, Config, SeqNo, SequenceNumberCounter};
use parking_lot::{Mutex, RwLock};

pub(crate) use everyone::compute;
pub(crate) use import::store_computed;
pub(crate) use run::Run;

use crate::disk::files::{self, IoContext};
use crate::edges::Edges;
use crate::lsm::{compact_fully, open_tree, tree_error};
use crate::runtime::folder::StoreFolder;

const FOLDER: &str = "suggestions";
const CACHE_BYTES: u64 = 8 << 20;

/// What is stored, and the state of the run that stores more.
pub(crate) struct ComputedSuggestions {
    edges: Arc<Edges>,
    store_folder: StoreFolder,
    folder: PathBuf,
    ids: IdKind,
    sequence: SequenceNumberCounter,
    tree: RwLock<Option<AnyTree>>,
    /// Held by the run that is under way.
    running: Mutex<()>,
    /// The newest run.
    newest: Mutex<Option<Run>>,
    /// How many users the run that is under way has looked at, of how many.
    pub done: AtomicU64,
    pub total: AtomicU64,
}

impl ComputedSuggestions {
    /// What is stored in a store's folder.
    pub(crate) fn open(store_folder: &StoreFolder, edges: &Arc<Edges>) -> Result<Self> {
        let folder = store_folder.path().join(FOLDER);
        let suggested = Self {
            edges: Arc::clone(edges),
            store_folder: store_folder.clone(),
            newest: Mutex::new(Run::read(&folder)),
            ids: edges.rows.ids,
            sequence: SequenceNumberCounter::default(),
            tree: RwLock::default(),
            running: Mutex::new(()),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            folder,
        };
        if suggested.folder.exists()
            && let Err(error) = suggested.open_tree()
        {
            tracing::warn!(%error, "stored suggestions are damaged and dropped; the next run computes them again");
            suggested.drop_all()?;
        }
        Ok(suggested)
    }

    /// The tree, made if there is none yet.
    fn open_tree(&self) -> Result<AnyTree> {
        let mut open = self.tree.write();
        if let Some(tree) = &*open {
            return Ok(tree.clone());
        }
        files::create_folder(&self.folder)?;
        let visible = SequenceNumberCounter::default();
        let config = Config::new(self.folder.join("tree"), self.sequence.clone(), visible.clone())
            .use_cache(Arc::new(Cache::with_capacity_bytes(CACHE_BYTES)))
            // Records are compact as they are; compressing them took a tenth of a run's time.
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::None));
        let tree = open_tree(config)?;
        let next = tree.get_highest_seqno().map_or(0, |highest| highest + 1);
        self.sequence.fetch_max(next);
        visible.fetch_max(next);
        files::sync_folder(&self.folder)?;
        *open = Some(tree.clone());
        Ok(tree)
    }

    fn drop_all(&self) -> Result<()> {
        *self.tree.write() = None;
        *self.newest.lock() = None;
        fs::remove_dir_all(&self.folder).during("removing", &self.folder)
    }

    /// What is stored for a user.
    pub(crate) fn get(&self, of: Id) -> Option<StoredSuggestions> {
        let tree = self.tree.read().clone()?;
        let mut key = Vec::with_capacity(16);
        of.push_to(&mut key);
        let stored = tree.get(&key, SeqNo::MAX).map_err(tree_error);
        let value = stored.inspect_err(|error| {
            tracing::warn!(%error, "stored suggestions can't be read; a walk takes their place");
        });
        record::decode(self.ids, &value.ok()??)
    }

    /// The newest run, finished or not.
    pub(crate) fn newest(&self) -> Option<Run> {
        self.newest.lock().clone()
    }

    fn keep_run(&self, run: &Run) -> Result<()> {
        run.write(&self.folder)?;
        *self.newest.lock() = Some(run.clone());
        Ok(())
    }

    /// Drops what was overwritten.
    fn compact(&self, tree: &AnyTree) -> Result<()> {
        compact_fully(tree, &self.sequence)
    }

    fn report(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }
}
