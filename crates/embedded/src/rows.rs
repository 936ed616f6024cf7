//! Rows on disk: three LSM trees that hold every edge three times, each in the order of one question.
//!
//! ```text
//! pairs      kind u8 | follower | followee             -> since u48      the truth: is there an edge, since when
//! following  kind u8 | follower | !since u48 | !followee -> nothing      whom a user follows, newest first
//! followers  kind u8 | followee | !since u48 | !follower -> nothing      who follows a user, newest first
//! every tree 0u8                                        -> position u64  up to where the log is applied
//! ```
//!
//! Everything is big-endian; `!` is the bitwise complement, which turns the order around. There is no journal
//! here: the change log is one already. A tree that lost its un-flushed rows in a crash says with its position
//! from where to replay. Applying an event twice is harmless.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use kinfolk_core::graph::{Edge, ListEntry, ListKey, Side};
use kinfolk_core::{EdgeKind, Error, Id, IdKind, Position, Result, Timestamp};
use lsm_tree::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy};
use lsm_tree::{
    AbstractTree, AnyTree, Cache, CompressionType, Config, DescriptorTable, Guard, SeqNo,
    SequenceNumberCounter,
};
use parking_lot::{Mutex, MutexGuard};

use crate::log::{Event, EventBody};
use crate::raw;

const POSITION_KEY: [u8; 1] = [0];
const TIME_MASK: u64 = (1 << 48) - 1;
/// How many files stay open, over all trees.
const OPEN_FILES_MAX: usize = 512;

/// The trees.
pub struct Rows {
    ids: IdKind,
    pairs: AnyTree,
    following: AnyTree,
    followers: AnyTree,
    sequence: SequenceNumberCounter,
    visible: SequenceNumberCounter,
    /// Held while a batch goes in, so that a snapshot never sees half of one.
    applying: Mutex<()>,
}

/// One of the trees, by the question that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    /// Is there an edge, since when.
    Pairs,
    /// Whom does a user follow.
    Following,
    /// Who follows a user.
    Followers,
}

impl Tree {
    /// All trees.
    pub const ALL: [Self; 3] = [Self::Pairs, Self::Following, Self::Followers];

    fn name(self) -> &'static str {
        match self {
            Self::Pairs => "pairs",
            Self::Following => "following",
            Self::Followers => "followers",
        }
    }
}

/// Turns an error of the trees into ours.
pub fn tree_error(error: lsm_tree::Error) -> Error {
    match error {
        lsm_tree::Error::Io(io) if io.kind() == std::io::ErrorKind::StorageFull => {
            Error::StorageFull { detail: io.to_string() }
        }
        // A file that ends too early or is gone is damage, not a passing failure.
        lsm_tree::Error::Io(io)
            if matches!(io.kind(), std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::NotFound) =>
        {
            Error::Corrupt {
                detail: format!("a row file is cut short or missing ({io}); restore from a backup"),
            }
        }
        lsm_tree::Error::Io(io) => Error::Storage { detail: io.to_string() },
        other => {
            Error::Corrupt { detail: format!("a row file is damaged ({other:?}); restore from a backup") }
        }
    }
}

impl Rows {
    /// Opens the trees below a folder, making them where they are missing.
    pub fn open(folder: &Path, ids: IdKind, cache_bytes: u64) -> Result<Self> {
        let sequence = SequenceNumberCounter::default();
        let visible = SequenceNumberCounter::default();
        let cache = Arc::new(Cache::with_capacity_bytes(cache_bytes));
        let descriptors = Arc::new(DescriptorTable::new(OPEN_FILES_MAX));
        let open = |tree: Tree| {
            let config = Config::new(folder.join(tree.name()), sequence.clone(), visible.clone())
                .use_cache(Arc::clone(&cache))
                .use_descriptor_table(Some(Arc::clone(&descriptors)))
                .data_block_compression_policy(CompressionPolicy::new([
                    CompressionType::None,
                    CompressionType::Lz4,
                ]))
                .data_block_size_policy(BlockSizePolicy::all(4 << 10))
                // The index in memory knows which edges exist: a look-up of one that does not is rare.
                .expect_point_read_hits(true);
            let config = match tree {
                Tree::Pairs => config,
                Tree::Following | Tree::Followers => config.filter_policy(FilterPolicy::disabled()),
            };
            config.open().map_err(tree_error)
        };
        let (pairs, following, followers) =
            (open(Tree::Pairs)?, open(Tree::Following)?, open(Tree::Followers)?);
        let highest =
            [&pairs, &following, &followers].iter().filter_map(|tree| tree.get_highest_seqno()).max();
        let next = highest.map_or(0, |highest| highest + 1);
        sequence.fetch_max(next);
        visible.fetch_max(next);
        Ok(Self { ids, pairs, following, followers, sequence, visible, applying: Mutex::new(()) })
    }

    /// The kind of ids in the rows.
    pub fn ids(&self) -> IdKind {
        self.ids
    }

    /// One of the trees.
    pub fn tree(&self, tree: Tree) -> &AnyTree {
        match tree {
            Tree::Pairs => &self.pairs,
            Tree::Following => &self.following,
            Tree::Followers => &self.followers,
        }
    }

    /// Up to where the log is applied in a tree.
    pub fn applied(&self, tree: Tree) -> Result<Position> {
        let value = self.tree(tree).get(POSITION_KEY, SeqNo::MAX).map_err(tree_error)?;
        match value {
            None => Ok(Position::START),
            Some(value) => {
                value.as_ref().try_into().map(|bytes| Position(u64::from_be_bytes(bytes))).map_err(|_| {
                    Error::Corrupt { detail: format!("the position in {} is damaged", tree.name()) }
                })
            }
        }
    }

    /// Applies events; those that a tree has already are skipped there.
    pub fn apply<'a>(&self, events: impl Iterator<Item = &'a Event>, applied: [Position; 3], last: Position) {
        let _whole = self.applying.lock();
        let sequence = self.sequence.next();
        let mut key = Vec::with_capacity(40);
        for event in events {
            let wanted = |tree: Tree| event.position > applied[tree as usize];
            match event.body {
                EventBody::Followed(edge) => {
                    for tree in Tree::ALL.into_iter().filter(|&tree| wanted(tree)) {
                        row_key(&mut key, tree, event.kind, edge, event.at);
                        let value = since_value(event.at);
                        let value: &[u8] = if tree == Tree::Pairs { &value } else { &[] };
                        self.tree(tree).insert(key.as_slice(), value, sequence);
                    }
                }
                EventBody::Unfollowed(edge, since) => {
                    for tree in Tree::ALL.into_iter().filter(|&tree| wanted(tree)) {
                        row_key(&mut key, tree, event.kind, edge, since);
                        self.tree(tree).remove(key.as_slice(), sequence);
                    }
                }
                EventBody::Imported { .. } => {}
            }
        }
        for tree in Tree::ALL {
            if last > applied[tree as usize] {
                self.tree(tree).insert(POSITION_KEY, last.0.to_be_bytes(), sequence);
            }
        }
        self.visible.fetch_max(sequence + 1);
    }

    /// Puts one row in or takes it out, to repair a projection.
    pub fn repair(&self, tree: Tree, kind: EdgeKind, edge: Edge, since: Timestamp, present: bool) {
        let _whole = self.applying.lock();
        let sequence = self.sequence.next();
        let mut key = Vec::new();
        row_key(&mut key, tree, kind, edge, since);
        if present {
            let value = since_value(since);
            let value: &[u8] = if tree == Tree::Pairs { &value } else { &[] };
            self.tree(tree).insert(key.as_slice(), value, sequence);
        } else {
            self.tree(tree).remove(key.as_slice(), sequence);
        }
        self.visible.fetch_max(sequence + 1);
    }

    /// Since when an edge exists, if it does.
    pub fn since(&self, kind: EdgeKind, edge: Edge) -> Result<Option<Timestamp>> {
        let mut key = Vec::with_capacity(33);
        row_key(&mut key, Tree::Pairs, kind, edge, Timestamp::MIN);
        let value = self.pairs.get(&key, SeqNo::MAX).map_err(tree_error)?;
        value.map(|value| decode_since(&value).ok_or_else(|| damaged_row(Tree::Pairs))).transpose()
    }

    /// A page of a user's list.
    pub fn list(
        &self,
        (kind, side, of): (EdgeKind, Side, Id),
        after: Option<ListKey>,
        limit: usize,
    ) -> Result<Vec<ListEntry>> {
        self.list_rows((kind, side, of), after).take(limit).collect()
    }

    /// A user's list from a place on, row by row.
    pub fn list_rows(
        &self,
        (kind, side, of): (EdgeKind, Side, Id),
        after: Option<ListKey>,
    ) -> impl Iterator<Item = Result<ListEntry>> + use<> {
        let (tree, ids) = (list_tree(side), self.ids);
        let mut prefix = Vec::with_capacity(17);
        prefix.push(kind.number());
        raw::push_id(&mut prefix, of);
        let mut end = prefix.clone();
        increment(&mut end);
        let start = after.map(|key| {
            let mut start = prefix.clone();
            push_list_key(&mut start, key);
            start
        });
        let start = start.as_ref().map_or(Bound::Included(&prefix), Bound::Excluded);
        let rows = self.tree(tree).range::<&Vec<u8>, _>((start, Bound::Excluded(&end)), SeqNo::MAX, None);
        let prefix_len = prefix.len();
        rows.map(move |row| {
            let key = row.key().map_err(tree_error)?;
            key.get(prefix_len..).and_then(|rest| read_list_key(ids, rest)).ok_or_else(|| damaged_row(tree))
        })
    }

    /// Whom a user follows by the truth, by id.
    pub fn followees(&self, kind: EdgeKind, of: Id) -> impl Iterator<Item = Result<Id>> + use<> {
        let ids = self.ids;
        let mut prefix = Vec::with_capacity(17);
        prefix.push(kind.number());
        raw::push_id(&mut prefix, of);
        self.pairs.prefix(&prefix, SeqNo::MAX, None).map(move |row| {
            let key = row.key().map_err(tree_error)?;
            key.get(prefix.len()..)
                .and_then(|id| raw::read_id(ids, id))
                .ok_or_else(|| damaged_row(Tree::Pairs))
        })
    }

    /// Keeps batches out while it is held.
    pub fn pause(&self) -> MutexGuard<'_, ()> {
        self.applying.lock()
    }

    /// All rows of a kind in a tree, as edges with `since`, as of now. Take the pause first to have several trees
    /// as of the same moment.
    pub fn scan(
        &self,
        tree: Tree,
        kind: EdgeKind,
    ) -> impl Iterator<Item = Result<(Edge, Timestamp)>> + Send + use<> {
        let ids = self.ids;
        let start = [kind.number()];
        let end = [kind.number() + 1];
        self.tree(tree).range(start..end, self.visible.get(), None).map(move |row| {
            let (key, value) = row.into_inner().map_err(tree_error)?;
            decode_row(tree, ids, &key, &value).ok_or_else(|| damaged_row(tree))
        })
    }

    /// Hands the rows in memory over for flushing. Only the writer calls it, between two batches: a flushed tree
    /// then holds whole batches.
    pub fn seal(&self) {
        for tree in Tree::ALL {
            self.tree(tree).rotate_memtable();
        }
    }

    /// The size of the largest tree's rows in memory.
    pub fn unsealed_bytes(&self) -> u64 {
        Tree::ALL.iter().map(|&tree| self.tree(tree).active_memtable().size()).max().unwrap_or(0)
    }

    /// How many sealed memtables wait for flushing, and how many un-compacted runs there are, in the worst tree.
    pub fn backlog(&self) -> (usize, usize) {
        let sealed = Tree::ALL.iter().map(|&tree| self.tree(tree).sealed_memtable_count()).max();
        let runs = Tree::ALL.iter().map(|&tree| self.tree(tree).l0_run_count()).max();
        (sealed.unwrap_or(0), runs.unwrap_or(0))
    }

    /// Writes sealed rows to disk, durably.
    pub fn flush(&self) -> Result<()> {
        for tree in Tree::ALL {
            let tree = self.tree(tree);
            let lock = tree.get_flush_lock();
            tree.flush(&lock, self.visible.get()).map_err(tree_error)?;
        }
        Ok(())
    }

    /// Merges row files as far as the tree's shape asks for it.
    pub fn compact(&self) -> Result<()> {
        let strategy = Arc::new(lsm_tree::compaction::Leveled::default());
        for tree in Tree::ALL {
            let tree = self.tree(tree);
            loop {
                let before = tree.current_version().id();
                tree.compact(strategy.clone(), self.visible.get()).map_err(tree_error)?;
                if tree.current_version().id() == before {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Merges all row files into one sorted run.
    pub fn compact_fully(&self) -> Result<()> {
        const FILE_BYTES: u64 = 64 << 20;
        for tree in Tree::ALL {
            self.tree(tree).major_compact(FILE_BYTES, self.visible.get()).map_err(tree_error)?;
        }
        Ok(())
    }

    /// Starts to load many rows of one kind into a tree, in key order, with the position that they bring it to.
    pub fn load(&self, tree: Tree, kind: EdgeKind, position: Position) -> Result<Load<'_>> {
        let mut ingestion = self.tree(tree).ingestion().map_err(tree_error)?;
        ingestion.write(POSITION_KEY, position.0.to_be_bytes()).map_err(tree_error)?;
        Ok(Load { ingestion, tree, kind, key: Vec::with_capacity(40) })
    }
}

/// Rows on their way into a tree; visible and durable when finished.
pub struct Load<'a> {
    ingestion: lsm_tree::AnyIngestion<'a>,
    tree: Tree,
    kind: EdgeKind,
    key: Vec<u8>,
}

impl Load<'_> {
    /// The next row.
    pub fn push(&mut self, edge: Edge, since: Timestamp) -> Result<()> {
        row_key(&mut self.key, self.tree, self.kind, edge, since);
        let value = since_value(since);
        let value: &[u8] = if self.tree == Tree::Pairs { &value } else { &[] };
        self.ingestion.write(self.key.as_slice(), value).map_err(tree_error)
    }

    /// Makes the rows durable and visible.
    pub fn finish(self) -> Result<()> {
        self.ingestion.finish().map_err(tree_error)
    }
}

fn list_tree(side: Side) -> Tree {
    match side {
        Side::Following => Tree::Following,
        Side::Followers => Tree::Followers,
    }
}

fn damaged_row(tree: Tree) -> Error {
    Error::Corrupt {
        detail: format!("a row of {} has an unknown layout; restore from a backup", tree.name()),
    }
}

fn row_key(key: &mut Vec<u8>, tree: Tree, kind: EdgeKind, edge: Edge, since: Timestamp) {
    key.clear();
    key.push(kind.number());
    match tree {
        Tree::Pairs => {
            raw::push_id(key, edge.follower);
            raw::push_id(key, edge.followee);
        }
        Tree::Following => {
            raw::push_id(key, edge.follower);
            push_list_key(key, ListKey { since, id: edge.followee });
        }
        Tree::Followers => {
            raw::push_id(key, edge.followee);
            push_list_key(key, ListKey { since, id: edge.follower });
        }
    }
}

fn push_list_key(key: &mut Vec<u8>, at: ListKey) {
    key.extend_from_slice(&(!at.since.millis() & TIME_MASK).to_be_bytes()[2..]);
    raw::push_id(key, complement(at.id));
}

fn complement(id: Id) -> Id {
    match id {
        Id::Integer(value) => Id::Integer(!value),
        Id::Uuid(value) => Id::Uuid(!value),
    }
}

fn read_list_key(ids: IdKind, bytes: &[u8]) -> Option<ListKey> {
    let (since, id) = bytes.split_at_checked(6)?;
    let since = Timestamp::from_millis(!read_time(since)? & TIME_MASK);
    Some(ListKey { since, id: complement(raw::read_id(ids, id)?) })
}

fn read_time(bytes: &[u8]) -> Option<u64> {
    let bytes: [u8; 6] = bytes.try_into().ok()?;
    let mut word = [0; 8];
    word[2..].copy_from_slice(&bytes);
    Some(u64::from_be_bytes(word))
}

fn since_value(since: Timestamp) -> [u8; 6] {
    let [_, _, value @ ..] = since.millis().to_be_bytes();
    value
}

fn decode_since(value: &[u8]) -> Option<Timestamp> {
    read_time(value).map(Timestamp::from_millis)
}

fn decode_row(tree: Tree, ids: IdKind, key: &[u8], value: &[u8]) -> Option<(Edge, Timestamp)> {
    let (owner, rest) = key.get(1..)?.split_at_checked(raw::id_len(ids))?;
    let owner = raw::read_id(ids, owner)?;
    match tree {
        Tree::Pairs => {
            let followee = raw::read_id(ids, rest)?;
            Some((Edge { follower: owner, followee }, decode_since(value)?))
        }
        Tree::Following => {
            let at = read_list_key(ids, rest)?;
            Some((Edge { follower: owner, followee: at.id }, at.since))
        }
        Tree::Followers => {
            let at = read_list_key(ids, rest)?;
            Some((Edge { follower: at.id, followee: owner }, at.since))
        }
    }
}

/// The smallest key after all keys with this prefix. The first byte is a kind, so it never overflows.
fn increment(prefix: &mut [u8]) {
    for byte in prefix.iter_mut().rev() {
        let (next, overflowed) = byte.overflowing_add(1);
        *byte = next;
        if !overflowed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_lists_do_and_decode() {
        for of in [Id::Integer as fn(u64) -> Id, |value| Id::Uuid(u128::from(value) << 64)] {
            let keys: Vec<ListKey> = [(9, 1), (9, 0), (5, 7), (0, u64::MAX >> 1), (0, 3)]
                .map(|(since, id)| ListKey { since: Timestamp::from_millis(since), id: of(id) })
                .to_vec();
            let encoded: Vec<Vec<u8>> = keys
                .iter()
                .map(|&key| {
                    let mut bytes = Vec::new();
                    push_list_key(&mut bytes, key);
                    bytes
                })
                .collect();
            assert!(encoded.is_sorted(), "{encoded:?}");
            for (key, bytes) in keys.iter().zip(&encoded) {
                assert_eq!(read_list_key(key.id.kind(), bytes), Some(*key));
            }
        }
    }

    #[test]
    fn rows_decode_to_the_edge_they_came_from() {
        let edge = Edge { follower: Id::Integer(1), followee: Id::Integer(i64::MAX as u64) };
        let since = Timestamp::MAX;
        for tree in Tree::ALL {
            let mut key = Vec::new();
            row_key(&mut key, tree, EdgeKind::Share, edge, since);
            let value = since_value(since);
            assert_eq!(decode_row(tree, IdKind::Integer, &key, &value), Some((edge, since)), "{tree:?}");
            assert_eq!(decode_row(tree, IdKind::Uuid, &key, &value), None);
        }
    }

    /// The layout is a promise to every store on disk.
    #[test]
    fn the_layout_is_as_documented() {
        let edge = Edge { follower: Id::Integer(0x0102), followee: Id::Integer(0x0304) };
        let since = Timestamp::from_millis(0x0a0b);
        let mut key = Vec::new();
        row_key(&mut key, Tree::Pairs, EdgeKind::Follow, edge, since);
        assert_eq!(key, [1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4]);
        row_key(&mut key, Tree::Followers, EdgeKind::Follow, edge, since);
        let expected = [
            1, 0, 0, 0, 0, 0, 0, 3, 4, 255, 255, 255, 255, 0xf5, 0xf4, 255, 255, 255, 255, 255, 255, 0xfe,
            0xfd,
        ];
        assert_eq!(key, expected);
    }
}
