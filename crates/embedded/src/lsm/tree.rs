//! An LSM tree that is a projection of the log: it holds whole batches when it is sealed, with the position that they bring
//! it to. What its rows mean is not known here.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::{Error, Result, Sequence};
use lsm_tree::{AbstractTree, SeqNo, SequenceNumberCounter, UserKey, UserValue};

use super::{
    Backlog, IdempotencyKeys, OpenTree, POSITION_KEY, Part, RowStorage, Shared, damaged_row, increment,
    read_part,
};
use crate::disk::files::{self, IoContext};
use crate::settings::Settings;

/// A tree. Its own memory takes new rows: for rows that are few beside edges.
pub(crate) struct LsmTree {
    pub(super) name: &'static str,
    folder: PathBuf,
    tree: OpenTree,
    sequence: SequenceNumberCounter,
    visible: SequenceNumberCounter,
    /// The position of the newest seal.
    sealed: AtomicU64,
    /// Up to where the log was applied when it was opened.
    pub applied_at_open: Sequence,
    shared: Shared,
}

impl LsmTree {
    /// Opens the tree in a folder, making it if it is missing. Compaction drops expired idempotency keys.
    pub(crate) fn open(
        name: &'static str,
        folder: &Path,
        shared: &Shared,
        keys: &IdempotencyKeys,
    ) -> Result<Self> {
        let (sequence, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
        let config = shared.tree(folder, &sequence, &visible);
        let config = config.with_compaction_filter_factory(Some(Arc::new(keys.clone())));
        let tree = OpenTree::open(config, &shared.storing)?;
        // The tree syncs what is in its folder, not that it has one.
        folder.parent().map_or(Ok(()), files::sync_folder)?;
        let next = tree.inner().get_highest_seqno().map_or(0, |highest| highest + 1);
        sequence.fetch_max(next);
        visible.fetch_max(next);
        let folder = folder.to_path_buf();
        let applied_at_open = shared.applied(tree.inner(), name)?;
        let (sealed, shared) = (AtomicU64::new(0), shared.clone());
        Ok(Self { name, folder, tree, sequence, visible, sealed, applied_at_open, shared })
    }

    /// The value of a row.
    pub(crate) fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<UserValue>> {
        self.tree.get(key.as_ref())
    }

    /// Puts a row in.
    pub(crate) fn insert(&self, key: impl Into<UserKey>, value: impl Into<UserValue>) {
        let sequence = self.sequence.next();
        self.tree.insert(key, value, sequence);
        self.visible.fetch_max(sequence + 1);
    }

    /// Takes a row out.
    pub(crate) fn remove(&self, key: impl Into<UserKey>) {
        let sequence = self.sequence.next();
        self.tree.remove(key, sequence);
        self.visible.fetch_max(sequence + 1);
    }

    /// A row of it has an unknown layout.
    pub(crate) fn damaged(&self) -> Error {
        damaged_row(self.name)
    }

    /// The moment between the last row and the next: between two batches, if the writer asks.
    pub(crate) fn now(&self) -> SeqNo {
        self.sequence.get()
    }

    /// The rows whose keys begin with a prefix, strictly between two keys where they are given, as of a moment.
    pub(crate) fn rows(
        &self,
        prefix: &[u8],
        (after, before): (Option<&[u8]>, Option<&[u8]>),
        moment: SeqNo,
    ) -> impl DoubleEndedIterator<Item = Result<(UserKey, UserValue)>> + Send + use<> {
        let mut end = prefix.to_vec();
        increment(&mut end);
        let start = after.map_or(Bound::Included(prefix), Bound::Excluded);
        let end = Bound::Excluded(before.unwrap_or(&end));
        self.tree.range((start, end), moment)
    }

    /// Up to `limit` rows from a key on, past what can't be read.
    pub(crate) fn part(&self, from: &[u8], limit: usize) -> Part {
        read_part(self.tree.inner(), from, limit)
    }

    /// How many bytes of rows are in memory and not sealed.
    pub(crate) fn unsealed(&self) -> u64 {
        self.tree.unsealed()
    }

    /// Lets go of files that were compacted: the tree keeps what there was before the newest change of its files. A reader of
    /// one keeps it longer. Only the writer calls it, between two batches.
    pub(crate) fn let_go(&self, position: Sequence) -> Result<()> {
        self.insert(POSITION_KEY, position.0.to_be_bytes());
        self.tree.seal();
        self.flush()
    }

    /// The names of its files of rows.
    pub(crate) fn files(&self) -> Result<BTreeSet<OsString>> {
        let folder = self.folder.join("tables");
        let entries = std::fs::read_dir(&folder).during("reading folder", &folder)?;
        entries.map(|entry| Ok(entry.during("reading folder", &folder)?.file_name())).collect()
    }
}

impl RowStorage for LsmTree {
    fn applied(&self) -> Result<Sequence> {
        self.shared.applied(self.tree.inner(), self.name)
    }

    fn is_large(&self, settings: &Settings) -> bool {
        self.unsealed() >= settings.flush_post_bytes
    }

    fn seal(&self, position: Sequence) {
        let before = self.sealed.swap(position.0, Ordering::AcqRel);
        if before == position.0 && self.tree.unsealed() == 0 {
            return;
        }
        self.insert(POSITION_KEY, position.0.to_be_bytes());
        self.tree.seal();
    }

    fn flush(&self) -> Result<()> {
        self.tree.flush(&self.sequence)
    }

    fn backlog(&self) -> Backlog {
        Backlog { sealed: self.tree.sealed(), runs: self.tree.runs() }
    }

    fn disk_bytes(&self) -> u64 {
        self.tree.disk_bytes()
    }

    fn compact(&self, runs: u8, should_stop: &dyn Fn() -> bool) -> Result<()> {
        self.tree.compact(&self.sequence, runs, should_stop)
    }

    fn compact_fully(&self) -> Result<()> {
        self.tree.compact_fully(&self.sequence)
    }
}
