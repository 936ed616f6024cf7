//! LSM trees as the store uses them: what all trees share, how they are opened, compacted and read in parts. What rows mean is
//! not known here.

mod compaction;
mod encoding;
mod error;
mod idempotency_keys;
mod open_tree;
mod part;
mod restore;
mod row_storage;
mod storing;
mod tables;
mod tree;

use std::path::Path;
use std::sync::Arc;

use kinfolk_core::{Error, Result, Sequence};
use lsm_tree::config::{BlockSizePolicy, CompressionPolicy};
use lsm_tree::{
    AbstractTree, AnyTree, Cache, CompressionType, Config, DescriptorTable, SeqNo, SequenceNumberCounter,
};

use crate::runtime::health::Health;

pub(crate) use compaction::compact_fully;
pub(crate) use encoding::{
    TIME_MASK, complement, decode_since, increment, push_list_key, read_list_key, since_value,
};
pub(crate) use error::tree_error;
pub(crate) use idempotency_keys::{IdempotencyKeys, KeyRow, KeyUse, LoggedKey};
pub(crate) use open_tree::{Ingestion, OpenTree};
pub(crate) use part::{Part, first_key, read_part};
pub(crate) use restore::{RestoreOptions, TreeRestore};
pub(crate) use row_storage::{Backlog, RowStorage};
pub(crate) use storing::Storing;
pub(crate) use tree::LsmTree;

/// The key of the row that says up to where the log is applied in a tree.
pub(crate) const POSITION_KEY: [u8; 1] = [0];
/// How many files stay open, over all trees.
const OPEN_FILES_MAX: usize = 512;

/// What all trees of a store share: blocks in memory, and open files.
#[derive(Clone)]
pub(crate) struct Shared {
    cache: Arc<Cache>,
    descriptors: Arc<DescriptorTable>,
    pub storing: Storing,
    /// The log begins after this position.
    base: Sequence,
}

impl Shared {
    /// For a store whose log begins after a position.
    pub(crate) fn new(cache_bytes: u64, base: Sequence, health: &Arc<Health>) -> Self {
        let cache = Arc::new(Cache::with_capacity_bytes(cache_bytes));
        let descriptors = Arc::new(DescriptorTable::new(OPEN_FILES_MAX));
        Self { cache, descriptors, storing: Storing::new(health), base }
    }

    /// Up to where the log is applied in a tree.
    pub(crate) fn applied(&self, tree: &AnyTree, name: &str) -> Result<Sequence> {
        Ok(read_position(tree, name)?.max(self.base))
    }

    /// A tree in a folder, before it is opened.
    pub(crate) fn tree(
        &self,
        folder: &Path,
        sequence: &SequenceNumberCounter,
        visible: &SequenceNumberCounter,
    ) -> Config {
        Config::new(folder, sequence.clone(), visible.clone())
            .use_cache(Arc::clone(&self.cache))
            .use_descriptor_table(Some(Arc::clone(&self.descriptors)))
            // Costs a fifteenth of an import and saves a third of the disk.
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
            .data_block_size_policy(BlockSizePolicy::all(4 << 10))
    }
}

/// Opens a tree, making it if it is missing.
pub(crate) fn open_tree(config: Config) -> Result<AnyTree> {
    tables::require_intact(&config.path)?;
    config.open().map_err(tree_error)
}

/// A row of a tree has an unknown layout.
pub(crate) fn damaged_row(tree: &str) -> Error {
    Error::corrupt(format!("a row of {tree} has an unknown layout; restore from a backup"))
}

/// Reads the position up to which the log is applied in a tree.
fn read_position(tree: &AnyTree, name: &str) -> Result<Sequence> {
    let Some(value) = tree.get(POSITION_KEY, SeqNo::MAX).map_err(tree_error)? else {
        return Ok(Sequence::START);
    };
    let bytes = value.as_ref().try_into();
    bytes
        .map(|bytes| Sequence(u64::from_be_bytes(bytes)))
        .map_err(|_| Error::corrupt(format!("the position in {name} is damaged; restore from a backup")))
}
