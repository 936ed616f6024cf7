//! Compaction of one tree: in part, when enough runs have piled up, or as a whole. When it is due is not decided here.

use std::sync::Arc;

use kinfolk_core::Result;
use lsm_tree::{AbstractTree, AnyTree, SequenceNumberCounter};

use super::tree_error;

/// Compacts the files of a tree if it has at least so many runs, until it should stop.
///
/// Compacting more runs at once rewrites less; having fewer makes reads cheaper.
pub(crate) fn compact(
    tree: &AnyTree,
    sequence: &SequenceNumberCounter,
    runs: u8,
    should_stop: &dyn Fn() -> bool,
) -> Result<()> {
    /// The first sorted level; further ones are ten times larger each.
    const FIRST_LEVEL_BYTES: u64 = 192 << 20;
    let strategy = lsm_tree::compaction::Leveled::default()
        .with_l0_threshold(runs)
        .with_table_target_size(FIRST_LEVEL_BYTES / u64::from(runs));
    let strategy = Arc::new(strategy);
    while !should_stop() {
        let before = tree.current_version().id();
        tree.compact(strategy.clone(), sequence.get()).map_err(tree_error)?;
        if tree.current_version().id() == before {
            break;
        }
    }
    Ok(())
}

/// Compacts all files of a tree into one sorted run.
pub(crate) fn compact_fully(tree: &AnyTree, sequence: &SequenceNumberCounter) -> Result<()> {
    const FILE_BYTES: u64 = 64 << 20;
    tree.major_compact(FILE_BYTES, sequence.get()).map_err(tree_error)
}
