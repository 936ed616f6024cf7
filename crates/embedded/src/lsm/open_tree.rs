//! A tree as its readers and its writer use it: they never wait for its files. What rows mean is not known here.
//!
//! A change of files (a flush, a compaction, an ingestion) ends with four syncs, for the list of files. The tree holds a lock
//! meanwhile that each of its own reads and inserts takes. So reads use a view instead: the memtables and the files as of the
//! newest change, replaced when a change is complete. Every change goes through this type. Sealing waits: it is a change, too.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::ops::Bound;
use std::sync::Arc;

use kinfolk_core::{Error, Result};
use lsm_tree::file::{CURRENT_VERSION_FILE, TABLES_FOLDER};
use lsm_tree::table::Table;
use lsm_tree::table::filter::standard_bloom::Builder as FilterBuilder;
use lsm_tree::{
    AbstractTree, AnyIngestion, AnyTree, BoxedIterator, Config, InternalValue, Memtable, SeqNo,
    SequenceNumberCounter, TableId, Tree, UserKey, UserValue, ValueType,
};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};

use super::{Storing, compaction, open_tree, tree_error};

/// Where a range of keys begins and ends.
pub(crate) type KeyBounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

type InFiles = Box<dyn Fn(&[u8]) -> lsm_tree::Result<Option<InternalValue>> + Send + Sync>;
type InRange = Box<dyn Fn(KeyBounds<'_>, SeqNo) -> BoxedIterator<'static> + Send + Sync>;

/// An open tree.
pub(crate) struct OpenTree {
    tree: AnyTree,
    view: RwLock<Arc<View>>,
    /// Takes new rows. Locked for reading by each insert: none may go into a memtable that was sealed meanwhile.
    active: RwLock<Arc<Memtable>>,
    /// Memtables that are not flushed, oldest first. Held while the view is replaced: no older view comes after a newer one.
    sealed: Mutex<Vec<Arc<Memtable>>>,
    /// One compaction at a time. As with flushes, a change that waited asks only then whether another has failed.
    compacting: Mutex<()>,
    /// Locked for reading by all who write files.
    writing: RwLock<()>,
    /// All files that views have had.
    registered: Mutex<HashSet<TableId>>,
    /// From which number on there may be files that a failed change has left.
    unfinished: Mutex<Option<TableId>>,
    storing: Storing,
}

/// What readers see. The types of the tree's versions have no public names, so that functions hold them.
struct View {
    /// Newest first.
    memtables: Vec<Arc<Memtable>>,
    in_files: InFiles,
    in_range: InRange,
    runs: usize,
    disk_bytes: u64,
}

impl OpenTree {
    /// Opens a tree, creating it if it is missing.
    pub(crate) fn open(config: Config, storing: &Storing) -> Result<Self> {
        let tree = open_tree(config)?;
        let active = tree.active_memtable();
        let view = RwLock::new(Arc::new(View::of(&tree, vec![Arc::clone(&active)])));
        let (active, storing) = (RwLock::new(active), storing.clone());
        let (sealed, compacting, writing) = (Mutex::default(), Mutex::default(), RwLock::default());
        let (registered, unfinished) = (Mutex::default(), Mutex::default());
        let opened =
            Self { tree, view, active, sealed, compacting, writing, registered, unfinished, storing };
        opened.register();
        Ok(opened)
    }

    /// The tree itself, for background work: its reads wait while files are changed.
    pub(crate) fn inner(&self) -> &AnyTree {
        &self.tree
    }

    /// The value of a row.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<UserValue>> {
        let view = self.view();
        let recent = view.memtables.iter().find_map(|memtable| memtable.get(key, SeqNo::MAX));
        let found = recent.map_or_else(|| (view.in_files)(key), |recent| Ok(Some(recent)));
        let found = found.map_err(tree_error)?;
        Ok(found.filter(|row| !row.is_tombstone()).map(|row| row.value))
    }

    /// The rows between two keys, as of a moment that is not older than the view: rows that were replaced before it may be gone.
    pub(crate) fn range(
        &self,
        bounds: KeyBounds<'_>,
        moment: SeqNo,
    ) -> impl DoubleEndedIterator<Item = Result<(UserKey, UserValue)>> + Send + use<> {
        let rows = (self.view().in_range)(bounds, moment);
        rows.map(|row| row.map(|row| (row.key.user_key, row.value)).map_err(tree_error))
    }

    /// Puts a row in.
    pub(crate) fn insert(&self, key: impl Into<UserKey>, value: impl Into<UserValue>, sequence: SeqNo) {
        self.put(InternalValue::from_components(key, value, sequence, ValueType::Value));
    }

    /// Takes a row out.
    pub(crate) fn remove(&self, key: impl Into<UserKey>, sequence: SeqNo) {
        self.put(InternalValue::new_tombstone(key, sequence));
    }

    fn put(&self, row: InternalValue) {
        self.active.read().insert(row);
    }

    /// How many bytes of rows are in memory and not sealed.
    pub(crate) fn unsealed(&self) -> u64 {
        self.active.read().size()
    }

    /// How many memtables wait to be flushed.
    pub(crate) fn sealed(&self) -> usize {
        self.view().memtables.len() - 1
    }

    /// How many runs are not compacted.
    pub(crate) fn runs(&self) -> usize {
        self.view().runs
    }

    /// The size of the files.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.view().disk_bytes
    }

    /// Hands the rows in memory over for flushing. Only the writer calls it: a row that comes before the view is renewed would be
    /// invisible until then.
    pub(crate) fn seal(&self) {
        let mut sealed = self.sealed.lock();
        let mut active = self.active.write();
        if let Some(memtable) = self.tree.rotate_memtable() {
            sealed.push(memtable);
            *active = self.tree.active_memtable();
        }
        drop(active);
        self.renew(sealed);
    }

    /// Writes sealed rows to files, durably. Drops what was replaced before this moment.
    pub(crate) fn flush(&self, sequence: &SequenceNumberCounter) -> Result<()> {
        let alone = self.tree.get_flush_lock();
        let flushed = self.sealed.lock().clone();
        self.write_files(|| self.tree.flush(&alone, sequence.get()).map_err(tree_error))?;
        let mut sealed = self.sealed.lock();
        sealed.retain(|memtable| flushed.iter().all(|flushed| !Arc::ptr_eq(memtable, flushed)));
        self.renew(sealed);
        Ok(())
    }

    /// Compacts files if there are at least so many runs, until it should stop.
    pub(crate) fn compact(
        &self,
        sequence: &SequenceNumberCounter,
        runs: u8,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        let _alone = self.compacting.lock();
        loop {
            if should_stop() || !self.change_files(|| compaction::compact_once(&self.tree, sequence, runs))? {
                return Ok(());
            }
        }
    }

    /// Compacts all files into one sorted run.
    pub(crate) fn compact_fully(&self, sequence: &SequenceNumberCounter) -> Result<()> {
        let _alone = self.compacting.lock();
        self.change_files(|| compaction::compact_fully(&self.tree, sequence))
    }

    /// Changes files, and the view with them. A compaction that fails may have changed them before.
    fn change_files<T>(&self, change: impl FnOnce() -> Result<T>) -> Result<T> {
        let changed = self.write_files(change);
        self.renew(self.sealed.lock());
        changed
    }

    /// Writes files, unless that has failed before. What was written of them when the disk was full is removed: nothing else
    /// does before the next start, and the next try begins anew.
    pub(crate) fn write_files<T>(&self, write: impl FnOnce() -> Result<T>) -> Result<T> {
        let first = self.tree.next_table_id();
        let writing = self.writing.read();
        let written = self.storing.change(write);
        drop(writing);
        if matches!(written, Err(Error::StorageFull { .. })) {
            self.remove_unfinished(first);
        }
        written
    }

    /// Removes the files, from one number on, that never were a part of the tree: a reader may still have one that was. Leaves them
    /// to the next failure or start if somebody is writing files, or if the list on disk is not the one in memory: a change may
    /// take effect and then fail.
    fn remove_unfinished(&self, first: TableId) {
        let mut oldest = self.unfinished.lock();
        let first = oldest.map_or(first, |oldest| oldest.min(first));
        *oldest = Some(first);
        let Some(_nobody) = self.writing.try_write() else { return };
        let version = self.tree.current_version();
        if self.version_on_disk() != Some(version.id()) {
            return;
        }
        *oldest = None;
        let mut kept = self.registered.lock().clone();
        kept.extend(version.iter_tables().map(Table::id));
        let folder = self.tree.tree_config().path.join(TABLES_FOLDER);
        let files = (first..self.tree.next_table_id()).filter(|number| !kept.contains(number));
        for file in files.map(|number| folder.join(number.to_string())) {
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(file = %file.display(), %error, "an unfinished file could not be removed");
                }
                _ => {}
            }
        }
    }

    /// Begins to write sorted rows into files of their own, above all others. For trees that take no single rows.
    pub(crate) fn ingestion(&self) -> Result<Ingestion<'_>> {
        assert!(self.active.read().is_empty(), "an ingestion would flush rows in memory behind the view");
        let writing = self.writing.read_recursive();
        Ok(Ingestion { rows: self.tree.ingestion().map_err(tree_error)?, tree: self, _writing: writing })
    }

    fn register(&self) {
        self.registered.lock().extend(self.tree.current_version().iter_tables().map(Table::id));
    }

    /// The number of the list of files that a start would find.
    fn version_on_disk(&self) -> Option<u64> {
        let current = std::fs::read(self.tree.tree_config().path.join(CURRENT_VERSION_FILE)).ok()?;
        Some(u64::from_le_bytes(*current.first_chunk()?))
    }

    fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read())
    }

    fn renew(&self, sealed: MutexGuard<'_, Vec<Arc<Memtable>>>) {
        let active = Arc::clone(&self.active.read());
        let memtables = std::iter::once(active).chain(sealed.iter().rev().cloned());
        let view = Arc::new(View::of(&self.tree, memtables.collect()));
        self.register();
        let before = std::mem::replace(&mut *self.view.write(), view);
        // Its files are closed and removed outside of the locks.
        drop(sealed);
        drop(before);
    }
}

impl View {
    fn of(tree: &AnyTree, memtables: Vec<Arc<Memtable>>) -> Self {
        let version = tree.get_version_history_lock().latest_version();
        let files = tree.current_version();
        let (runs, disk_bytes) = (tree.l0_run_count(), tree.disk_space());
        let in_files = move |key: &[u8]| {
            let hash = FilterBuilder::get_hash(key);
            let runs = files.iter_levels().flat_map(|level| level.iter());
            for file in runs.filter_map(|run| run.get_for_key(key)) {
                if let Some(row) = file.get(key, SeqNo::MAX, hash)? {
                    return Ok(Some(row));
                }
            }
            Ok(None)
        };
        let in_range = move |bounds: KeyBounds<'_>, moment| -> BoxedIterator<'static> {
            Box::new(Tree::create_internal_range::<&[u8], _>(version.clone(), &bounds, moment, None))
        };
        Self { memtables, in_files: Box::new(in_files), in_range: Box::new(in_range), runs, disk_bytes }
    }
}

/// Sorted rows on their way into a tree: durable and visible when finished.
pub(crate) struct Ingestion<'a> {
    rows: AnyIngestion<'a>,
    tree: &'a OpenTree,
    _writing: RwLockReadGuard<'a, ()>,
}

impl Ingestion<'_> {
    /// Puts the next row in.
    pub(crate) fn write(&mut self, key: impl Into<UserKey>, value: impl Into<UserValue>) -> Result<()> {
        self.rows.write(key, value).map_err(tree_error)
    }

    /// Takes the next row out.
    pub(crate) fn remove(&mut self, key: impl Into<UserKey>) -> Result<()> {
        self.rows.write_tombstone(key).map_err(tree_error)
    }

    /// Makes the rows durable and visible.
    pub(crate) fn finish(self) -> Result<()> {
        self.rows.finish().map_err(tree_error)?;
        self.tree.renew(self.tree.sealed.lock());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    fn open() -> (tempfile::TempDir, OpenTree, SequenceNumberCounter) {
        let folder = tempfile::tempdir().unwrap();
        let [sequence, visible] = [SequenceNumberCounter::default(), SequenceNumberCounter::default()];
        let config = Config::new(folder.path(), sequence.clone(), visible);
        let tree = OpenTree::open(config, &Storing::default()).unwrap();
        (folder, tree, sequence)
    }

    fn keys(tree: &OpenTree) -> Vec<Vec<u8>> {
        let rows = tree.range((Bound::Unbounded, Bound::Unbounded), SeqNo::MAX);
        rows.map(|row| row.unwrap().0.to_vec()).collect()
    }

    /// Rows are found by key and in order wherever they are, and newer ones cover older ones.
    #[test]
    fn rows_are_found_in_every_place() {
        let (_folder, tree, sequence) = open();
        let look = |expected: [Option<&[u8]>; 4]| {
            for (key, expected) in [b"a", b"b", b"c", b"d"].into_iter().zip(expected) {
                assert_eq!(tree.get(key).unwrap().as_deref(), expected, "{key:?}");
            }
            let present =
                [b"a", b"b", b"c", b"d"].into_iter().zip(expected).filter(|(_, value)| value.is_some());
            assert_eq!(keys(&tree), present.map(|(key, _)| key.to_vec()).collect::<Vec<_>>());
        };
        tree.insert("a", "1", sequence.next());
        tree.insert("b", "1", sequence.next());
        look([Some(b"1"), Some(b"1"), None, None]);
        tree.seal();
        look([Some(b"1"), Some(b"1"), None, None]);
        tree.remove("a", sequence.next());
        tree.insert("c", "2", sequence.next());
        look([None, Some(b"1"), Some(b"2"), None]);
        tree.flush(&sequence).unwrap();
        look([None, Some(b"1"), Some(b"2"), None]);
        assert_eq!((tree.sealed(), tree.runs()), (0, 1));
        tree.seal();
        tree.insert("d", "3", sequence.next());
        tree.insert("b", "3", sequence.next());
        look([None, Some(b"3"), Some(b"2"), Some(b"3")]);
        tree.flush(&sequence).unwrap();
        assert_eq!(tree.runs(), 2);
        look([None, Some(b"3"), Some(b"2"), Some(b"3")]);
        tree.compact(&sequence, 2, &|| false).unwrap();
        assert_eq!(tree.runs(), 0);
        look([None, Some(b"3"), Some(b"2"), Some(b"3")]);
        tree.seal();
        tree.flush(&sequence).unwrap();
        tree.compact_fully(&sequence).unwrap();
        look([None, Some(b"3"), Some(b"2"), Some(b"3")]);
    }

    #[test]
    fn what_was_ingested_is_found() {
        let (_folder, tree, _) = open();
        let mut ingestion = tree.ingestion().unwrap();
        ingestion.write("a", "1").unwrap();
        ingestion.write("b", "1").unwrap();
        assert_eq!(tree.get(b"a").unwrap(), None);
        ingestion.finish().unwrap();
        let mut ingestion = tree.ingestion().unwrap();
        ingestion.remove("a").unwrap();
        ingestion.finish().unwrap();
        assert_eq!(tree.get(b"a").unwrap(), None);
        assert_eq!(keys(&tree), [b"b"]);
    }

    #[test]
    fn a_range_stays_as_it_was() {
        let (_folder, tree, sequence) = open();
        tree.insert("a", "1", sequence.next());
        tree.seal();
        tree.flush(&sequence).unwrap();
        let rows = tree.range((Bound::Unbounded, Bound::Unbounded), sequence.get());
        tree.remove("a", sequence.next());
        tree.seal();
        tree.flush(&sequence).unwrap();
        tree.compact_fully(&sequence).unwrap();
        assert_eq!(rows.map(|row| row.unwrap().0.to_vec()).collect::<Vec<_>>(), [b"a"]);
        assert!(keys(&tree).is_empty());
    }

    /// A disk that is full must not be filled further by every try.
    #[test]
    fn what_a_failed_change_has_written_is_removed() {
        let (folder, tree, sequence) = open();
        tree.insert("a", "1", sequence.next());
        tree.seal();
        tree.flush(&sequence).unwrap();
        let files = || {
            let entries = std::fs::read_dir(folder.path().join(TABLES_FOLDER)).unwrap();
            entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
        };
        let before = files();
        assert_eq!(before.len(), 1);
        let failed = tree.write_files(|| {
            let mut rows = tree.tree.ingestion().map_err(tree_error)?;
            rows.write("b", "2").map_err(tree_error)?;
            assert_eq!(files().len(), 2);
            Err::<(), _>(Error::StorageFull { detail: String::new() })
        });
        assert!(failed.is_err());
        assert_eq!(files(), before);
        // The list on disk is replaced before the change fails.
        let list = folder.path().join(CURRENT_VERSION_FILE);
        let known = std::fs::read(&list).unwrap();
        let ahead: Vec<u8> =
            known.iter().enumerate().map(|(at, byte)| if at == 0 { byte + 1 } else { *byte }).collect();
        let failed = tree.write_files(|| {
            let mut rows = tree.tree.ingestion().map_err(tree_error)?;
            rows.write("b", "2").map_err(tree_error)?;
            std::fs::write(&list, &ahead).unwrap();
            Err::<(), _>(Error::StorageFull { detail: String::new() })
        });
        assert!(failed.is_err());
        assert_eq!(files().len(), 2, "the list on disk may name it");
        std::fs::write(&list, &known).unwrap();
        let mut ingestion = tree.ingestion().unwrap();
        ingestion.write("b", "2").unwrap();
        ingestion.finish().unwrap();
        assert_eq!((files().len(), keys(&tree).len()), (3, 2));
    }

    /// As while a flush or a compaction syncs the list of files.
    #[test]
    fn nobody_waits_for_a_change_of_files() {
        let (_folder, tree, sequence) = open();
        tree.insert("a", "1", sequence.next());
        tree.seal();
        let changing = tree.inner().get_version_history_lock();
        let (sender, done) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                tree.insert("b", "2", sequence.next());
                let found = tree.get(b"b").unwrap();
                sender.send((found, keys(&tree), tree.unsealed() > 0, tree.sealed(), tree.runs())).unwrap();
            });
            let seen = done.recv_timeout(Duration::from_secs(30));
            drop(changing);
            let (found, keys, has_unsealed, sealed, runs) = seen.expect("nobody waits");
            assert_eq!(found.as_deref(), Some(&b"2"[..]));
            assert_eq!(keys, [b"a", b"b"]);
            assert_eq!((has_unsealed, sealed, runs), (true, 1, 0));
        });
    }
}
