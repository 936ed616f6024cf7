//! Compaction of one tree: in part, when enough runs have piled up, or as a whole. When it is due is not decided here.

use std::sync::Arc;

use kinfolk_core::Result;
use lsm_tree::{AbstractTree, AnyTree, SequenceNumberCounter};

use super::tree_error;

/// Compacts some files of a tree if it has at least so many runs. Returns whether it did.
///
/// Compacting more runs at once rewrites less; having fewer makes reads cheaper.
pub(super) fn compact_once(tree: &AnyTree, sequence: &SequenceNumberCounter, runs: u8) -> Result<bool> {
    /// The first sorted level; further ones are ten times larger each.
    const FIRST_LEVEL_BYTES: u64 = 192 << 20;
    let strategy = lsm_tree::compaction::Leveled::default()
        .with_l0_threshold(runs)
        .with_table_target_size(FIRST_LEVEL_BYTES / u64::from(runs));
    let before = tree.current_version().id();
    tree.compact(Arc::new(strategy), sequence.get()).map_err(tree_error)?;
    Ok(tree.current_version().id() != before)
}

/// Compacts all files of a tree into one sorted run.
pub(crate) fn compact_fully(tree: &AnyTree, sequence: &SequenceNumberCounter) -> Result<()> {
    const FILE_BYTES: u64 = 64 << 20;
    tree.major_compact(FILE_BYTES, sequence.get()).map_err(tree_error)
}
