//! Restoring a tree from a backup: rows of one kind after another, flushed whenever many are in memory.

use kinfolk_core::bulk::Progress;
use kinfolk_core::{IdKind, Result, Sequence, Timestamp};

use super::{LsmTree, RowStorage};
use crate::disk::backup_file::Reader;
use crate::disk::byte_reader::ByteReader;

/// How a tree is restored.
#[derive(Clone, Copy)]
pub struct RestoreOptions<'a> {
    /// The position that the backup reflects.
    pub position: Sequence,
    /// So many bytes in memory are flushed.
    pub flush_bytes: u64,
    pub progress: &'a dyn Fn(Progress),
}

/// A tree that is being restored.
pub struct TreeRestore<'a, 'b, 'c> {
    pub backup: &'a mut Reader<'b>,
    pub tree: &'a LsmTree,
    /// The kind of ids in the backup.
    pub ids: IdKind,
    pub options: RestoreOptions<'c>,
}

impl TreeRestore<'_, '_, '_> {
    /// Restores all rows of a kind: `put` reads one and puts it into the tree, or gives `None` where it is damaged. Times in it are
    /// clamped by the function that it gets. Returns how many rows there were.
    pub fn rows(
        &mut self,
        kind: u32,
        stage: Option<&'static str>,
        mut put: impl FnMut(&mut ByteReader<'_>, &dyn Fn(Timestamp) -> Timestamp) -> Option<Result<()>>,
    ) -> Result<u64> {
        let RestoreOptions { flush_bytes, progress, .. } = self.options;
        let mut done = 0;
        while let Some(bytes) = self.backup.block(kind)? {
            let mut block = ByteReader { ids: self.ids, bytes: &bytes };
            while !block.bytes.is_empty() {
                let put = put(&mut block, &|time| self.backup.clamped(time));
                put.ok_or_else(|| self.backup.damaged())??;
                done += 1;
            }
            if self.tree.unsealed() >= flush_bytes {
                self.flush()?;
            }
            if let Some(stage) = stage {
                progress(Progress { stage, done, total: None });
            }
        }
        Ok(done)
    }

    /// Makes everything that was restored durable.
    pub fn flush(&self) -> Result<()> {
        self.tree.seal(self.options.position);
        self.tree.flush()
    }
}
