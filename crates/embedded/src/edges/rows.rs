//! Rows on disk: three LSM trees that hold every edge three times, each in the order of one query.
//!
//! ```text
//! pairs      kind u8 | follower | followee             -> since u48      the truth: is there an edge, since when
//! following  kind u8 | follower | !since u48 | !followee -> nothing      whom a user follows, newest first
//! followers  kind u8 | followee | !since u48 | !follower -> nothing      who follows a user, newest first
//! every tree 0u8                                        -> position u64  up to where the log is applied
//! ```
//!
//! Everything is big-endian; `!` is the bitwise complement, which turns the order around. There is no journal
//! here: the change log is one already. Rows that were not flushed before a crash are replayed from the position that
//! each tree says. Applying an event twice is harmless.

use std::ops::Bound;
use std::path::Path;

use kinfolk_core::graph::{Edge, EdgeList, ListEntry, ListKey, Side};
use kinfolk_core::{EdgeKind, Id, IdKind, Result, Sequence, Timestamp};
use lsm_tree::config::FilterPolicy;
use lsm_tree::{AbstractTree, SeqNo, SequenceNumberCounter, UserKey, UserValue};
use parking_lot::{Mutex, MutexGuard};

use super::memtable::{self, Memtable, MemtableRange, Memtables};
use super::row_keys::{decode_row, key_len, row_key};
use crate::disk::files;
use crate::log::{Event, EventBody};
use crate::lsm::{
    Backlog, Ingestion, OpenTree, POSITION_KEY, RowStorage, Shared, damaged_row, decode_since, increment,
    push_list_key, read_list_key, since_value,
};
use crate::settings::Settings;

/// The trees, and the rows that are not in them yet.
pub(crate) struct Rows {
    pub ids: IdKind,
    /// In the order of [`Tree::ALL`].
    trees: [OpenTree; 3],
    sequence: SequenceNumberCounter,
    shared: Shared,
    recent: Memtables,
    /// Held while a memtable goes into the trees, so that a scan sees all of them as of one position.
    flushing: Mutex<()>,
    /// Up to where the log was applied in each tree when they were opened.
    pub applied_at_open: [Sequence; 3],
}

/// A row that some tree has or should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub kind: EdgeKind,
    pub edge: Edge,
    pub since: Timestamp,
}

/// One of the trees, by the query that it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tree {
    /// Is there an edge, since when.
    Pairs,
    /// The followees of a user.
    Following,
    /// The followers of a user.
    Followers,
}

impl Tree {
    /// All trees.
    pub(crate) const ALL: [Self; 3] = [Self::Pairs, Self::Following, Self::Followers];

    fn name(self) -> &'static str {
        match self {
            Self::Pairs => "pairs",
            Self::Following => "following",
            Self::Followers => "followers",
        }
    }
}

impl Rows {
    /// Opens the trees below a folder, making them where they are missing.
    pub(crate) fn open(folder: &Path, ids: IdKind, shared: Shared) -> Result<Self> {
        let sequence = SequenceNumberCounter::default();
        let visible = SequenceNumberCounter::default();
        let open = |tree: Tree| {
            let config = shared
                .tree(&folder.join(tree.name()), &sequence, &visible)
                // The index in memory knows which edges exist: a look-up of one that does not is rare.
                .expect_point_read_hits(true);
            let config = match tree {
                Tree::Pairs => config,
                Tree::Following | Tree::Followers => config.filter_policy(FilterPolicy::disabled()),
            };
            OpenTree::open(config, &shared.storing)
        };
        files::create_folder(folder)?;
        let trees = [open(Tree::Pairs)?, open(Tree::Following)?, open(Tree::Followers)?];
        // The trees sync what is in their folders, not that they have folders.
        files::sync_folder(folder)?;
        let highest = trees.iter().filter_map(|tree| tree.inner().get_highest_seqno()).max();
        let next = highest.map_or(0, |highest| highest + 1);
        sequence.fetch_max(next);
        visible.fetch_max(next);
        let applied = |tree: Tree| shared.applied(trees[tree as usize].inner(), tree.name());
        let applied_at_open = [applied(Tree::Pairs)?, applied(Tree::Following)?, applied(Tree::Followers)?];
        let (recent, flushing) = (Memtables::new(key_len(Tree::Followers, ids)), Mutex::new(()));
        Ok(Self { ids, trees, sequence, shared, recent, flushing, applied_at_open })
    }

    /// One of the trees.
    pub(crate) fn tree(&self, tree: Tree) -> &OpenTree {
        &self.trees[tree as usize]
    }

    /// Applies events, in each tree only those after the position that it has applied: an older event must never
    /// come above the rows of a newer one, not even for a moment, since the next crash may be in that moment.
    pub(crate) fn apply(&self, events: &[Event]) {
        let layer = self.recent.active();
        for event in events {
            let (row, present) = match event.body {
                EventBody::Followed(edge) => (Row { kind: event.kind, edge, since: event.at }, true),
                EventBody::Unfollowed(edge, since) => (Row { kind: event.kind, edge, since }, false),
                EventBody::Imported { .. }
                | EventBody::Posted(_)
                | EventBody::PostDeleted { .. }
                | EventBody::Comment(_) => continue,
            };
            for tree in
                Tree::ALL.into_iter().filter(|&tree| event.position > self.applied_at_open[tree as usize])
            {
                self.put_one(&layer, tree, row, present);
            }
        }
        if let Some(last) = events.last() {
            Memtables::reached(&layer, last.position);
        }
    }

    fn put_one(&self, layer: &Memtable, tree: Tree, Row { kind, edge, since }: Row, present: bool) {
        let (key, _) = row_key(tree, kind, edge, since);
        let value = present.then(|| if tree == Tree::Pairs { since_value(since) } else { [0; 6] });
        Memtables::put(layer, tree as usize, self.owner(&key), key, value);
    }

    /// Kind and owner: the first part of every key.
    fn owner<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        &key[..1 + self.ids.id_len()]
    }

    /// Puts one row in or takes it out, to repair a projection.
    pub(crate) fn repair(&self, tree: Tree, row: Row, present: bool) {
        self.put_one(&self.recent.active(), tree, row, present);
    }

    /// Whether a tree has the row of an edge.
    pub(crate) fn has(&self, tree: Tree, Row { kind, edge, since }: Row) -> Result<bool> {
        let (key, len) = row_key(tree, kind, edge, since);
        if let Some(value) = self.recent.get(tree as usize, self.owner(&key), &key) {
            return Ok(value.is_some());
        }
        Ok(self.tree(tree).get(&key[..len])?.is_some())
    }

    /// Since when an edge exists, if it does.
    pub(crate) fn since(&self, kind: EdgeKind, edge: Edge) -> Result<Option<Timestamp>> {
        let (key, len) = row_key(Tree::Pairs, kind, edge, Timestamp::MIN);
        if let Some(value) = self.recent.get(Tree::Pairs as usize, self.owner(&key), &key) {
            return Ok(value.and_then(|value| decode_since(&value)));
        }
        let value = self.tree(Tree::Pairs).get(&key[..len])?;
        value.map(|value| decode_since(&value).ok_or_else(|| damaged_row(Tree::Pairs.name()))).transpose()
    }

    /// A user's list after a key, row by row.
    pub(crate) fn list_rows(
        &self,
        EdgeList { kind, side, of }: EdgeList,
        after: Option<ListKey>,
    ) -> impl Iterator<Item = Result<ListEntry>> + use<> {
        let (tree, ids, prefix) = (list_tree(side), self.ids, owner_prefix(kind, of));
        let start = after.map(|key| {
            let mut start = prefix.clone();
            push_list_key(&mut start, key);
            start
        });
        let prefix_len = prefix.len();
        self.owned_rows(tree, &prefix, start.as_deref()).map(move |key| {
            key?.get(prefix_len..)
                .and_then(|rest| read_list_key(ids, rest))
                .ok_or_else(|| damaged_row(tree.name()))
        })
    }

    /// A user's list as of now, whatever is written later. Called by the writer, between batches.
    pub(crate) fn frozen_list(
        &self,
        EdgeList { kind, side, of }: EdgeList,
    ) -> impl Iterator<Item = Result<()>> + Send + use<> {
        let mut rows = self.owned_rows(list_tree(side), &owner_prefix(kind, of), None);
        rows.recent.freeze();
        rows.map(|key| key.map(|_| ()))
    }

    /// A user's followees by the pairs, by id.
    pub(crate) fn followees(&self, kind: EdgeKind, of: Id) -> impl Iterator<Item = Result<Id>> + use<> {
        let (ids, prefix) = (self.ids, owner_prefix(kind, of));
        let prefix_len = prefix.len();
        self.owned_rows(Tree::Pairs, &prefix, None).map(move |key| {
            key?.get(prefix_len..).and_then(|id| ids.read(id)).ok_or_else(|| damaged_row(Tree::Pairs.name()))
        })
    }

    /// The keys of one owner's rows, after a key if one is given: what the tree has, overridden by recent rows.
    fn owned_rows(&self, tree: Tree, owner: &[u8], after: Option<&[u8]>) -> MergedRows {
        let mut end = owner.to_vec();
        increment(&mut end);
        let recent_start = after
            .map_or(Bound::Included(memtable::key(owner)), |after| Bound::Excluded(memtable::key(after)));
        // The layers first: what leaves them meanwhile is in the tree already.
        let recent = self.recent.range(tree as usize, owner, recent_start, memtable::key(&end));
        let start = after.map_or(Bound::Included(owner), Bound::Excluded);
        let rows = self.tree(tree).range((start, Bound::Excluded(end.as_slice())), SeqNo::MAX);
        let stored: StoredKeys = Box::new(rows.map(|row| row.map(|(key, _)| key)));
        MergedRows { recent, stored: stored.peekable(), len: key_len(tree, self.ids) }
    }

    /// Keeps trees and sealed layers as they are while it is held.
    pub(crate) fn pause(&self) -> MutexGuard<'_, ()> {
        self.flushing.lock()
    }

    /// All rows of a kind in a tree, as edges with `since`, without those that are not sealed: seal or flush first. The
    /// caller holds the pause, until it has the iterators of all trees that it wants as of the same position.
    pub(crate) fn scan(
        &self,
        tree: Tree,
        kind: EdgeKind,
    ) -> impl Iterator<Item = Result<(Edge, Timestamp)>> + Send + use<> {
        let (ids, number) = (self.ids, kind.number());
        let bounds = (Bound::Included(&[number][..]), Bound::Excluded(&[number + 1][..]));
        let stored = self.tree(tree).range(bounds, SeqNo::MAX);
        let sealed = self.recent.sealed_rows(tree as usize, number);
        ScannedRows {
            sealed: sealed.into_iter().peekable(),
            stored: stored.peekable(),
            len: key_len(tree, ids),
        }
        .map(move |row| {
            let (key, value) = row?;
            decode_row(tree, ids, &key, &value).ok_or_else(|| damaged_row(tree.name()))
        })
    }

    /// What a row of a tree says.
    pub(crate) fn decode(&self, tree: Tree, (key, value): &(UserKey, UserValue)) -> Result<Row> {
        let kind = key.first().and_then(|&number| EdgeKind::from_number(number));
        let row = decode_row(tree, self.ids, key, value);
        let ((edge, since), kind) = row.zip(kind).ok_or_else(|| damaged_row(tree.name()))?;
        Ok(Row { kind, edge, since })
    }

    /// How many rows are recent and not sealed.
    pub(crate) fn unsealed(&self) -> u64 {
        self.recent.unsealed()
    }

    fn applied_in(&self, tree: Tree) -> Result<Sequence> {
        self.shared.applied(self.tree(tree).inner(), tree.name())
    }

    fn flush_tree(&self, tree: Tree, layer: &Memtable) -> Result<()> {
        let len = key_len(tree, self.ids);
        let mut ingestion = self.tree(tree).ingestion()?;
        // A layer of repairs has no position of its own.
        let position = layer.last().max(self.applied_in(tree)?);
        ingestion.write(POSITION_KEY, position.0.to_be_bytes())?;
        for (key, value) in layer.rows(tree as usize) {
            match value {
                Some(value) if tree == Tree::Pairs => ingestion.write(&key[..len], value)?,
                Some(_) => ingestion.write(&key[..len], [])?,
                None => ingestion.remove(&key[..len])?,
            }
        }
        ingestion.finish()
    }

    /// Starts to load many rows of one kind into a tree, in key order, with the position that they bring it to.
    pub(crate) fn load(&self, tree: Tree, kind: EdgeKind, position: Sequence) -> Result<Load<'_>> {
        let mut load = self.load_part(tree, kind)?;
        load.ingestion.write(POSITION_KEY, position.0.to_be_bytes())?;
        Ok(load)
    }

    /// As [`Rows::load`], for a part of the rows that brings the tree to no position by itself.
    pub(crate) fn load_part(&self, tree: Tree, kind: EdgeKind) -> Result<Load<'_>> {
        let ingestion = self.tree(tree).ingestion()?;
        Ok(Load { ingestion, tree, kind })
    }
}

impl RowStorage for Rows {
    fn applied(&self) -> Result<Sequence> {
        let [pairs, following, followers] = Tree::ALL.map(|tree| self.applied_in(tree));
        Ok(pairs?.min(following?).min(followers?))
    }

    fn is_large(&self, settings: &Settings) -> bool {
        self.unsealed() >= settings.flush_rows
    }

    /// A memtable knows the position that it reaches.
    fn seal(&self, _: Sequence) {
        self.recent.seal();
    }

    /// The oldest memtable first.
    fn flush(&self) -> Result<()> {
        loop {
            // The lock comes first: a memtable must not be written twice, the second time above a newer one.
            let _whole = self.flushing.lock();
            let Some(layer) = self.recent.oldest_sealed() else { return Ok(()) };
            for tree in Tree::ALL {
                self.tree(tree).write_files(|| self.flush_tree(tree, &layer))?;
            }
            self.recent.drop_sealed(&layer);
        }
    }

    fn backlog(&self) -> Backlog {
        let runs = Tree::ALL.iter().map(|&tree| self.tree(tree).runs()).max();
        Backlog { sealed: self.recent.sealed(), runs: runs.unwrap_or(0) }
    }

    fn disk_bytes(&self) -> u64 {
        self.trees.iter().map(OpenTree::disk_bytes).sum()
    }

    fn compact(&self, runs: u8, should_stop: &dyn Fn() -> bool) -> Result<()> {
        self.trees.iter().try_for_each(|tree| tree.compact(&self.sequence, runs, should_stop))
    }

    fn compact_fully(&self) -> Result<()> {
        self.trees.iter().try_for_each(|tree| tree.compact_fully(&self.sequence))
    }
}

/// Rows on their way into a tree; visible and durable when finished.
pub(crate) struct Load<'a> {
    ingestion: Ingestion<'a>,
    tree: Tree,
    kind: EdgeKind,
}

impl Load<'_> {
    /// The next row.
    pub(crate) fn push(&mut self, edge: Edge, since: Timestamp) -> Result<()> {
        let (key, len) = row_key(self.tree, self.kind, edge, since);
        let value = since_value(since);
        let value: &[u8] = if self.tree == Tree::Pairs { &value } else { &[] };
        self.ingestion.write(&key[..len], value)
    }

    /// Makes the rows durable and visible.
    pub(crate) fn finish(self) -> Result<()> {
        self.ingestion.finish()
    }
}

/// What the keys of a user's rows begin with.
fn owner_prefix(kind: EdgeKind, of: Id) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(40);
    prefix.push(kind.number());
    of.push_to(&mut prefix);
    prefix
}

fn list_tree(side: Side) -> Tree {
    match side {
        Side::Following => Tree::Following,
        Side::Followers => Tree::Followers,
    }
}

type StoredKeys = Box<dyn Iterator<Item = Result<UserKey>> + Send>;

/// The keys of one owner's rows, from the tree and the recent layers.
struct MergedRows {
    recent: MemtableRange,
    stored: std::iter::Peekable<StoredKeys>,
    len: usize,
}

impl Iterator for MergedRows {
    type Item = Result<UserKey>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((key, value)) = self.recent.peek() else { return self.stored.next() };
            let recent = &key[..self.len];
            match self.stored.peek() {
                Some(Ok(stored)) if stored.as_ref() < recent => return self.stored.next(),
                Some(Err(_)) => return self.stored.next(),
                Some(Ok(stored)) if stored.as_ref() == recent => {
                    self.stored.next();
                }
                _ => {}
            }
            self.recent.pass(&key);
            if value.is_some() {
                return Some(Ok(key[..self.len].into()));
            }
        }
    }
}

/// The rows of a tree, from its files and from sealed layers, which override them.
struct ScannedRows<Stored: Iterator> {
    sealed: std::iter::Peekable<std::vec::IntoIter<(memtable::Key, memtable::Value)>>,
    stored: std::iter::Peekable<Stored>,
    len: usize,
}

type StoredRow = Result<(UserKey, UserValue)>;

impl<Stored: Iterator<Item = StoredRow>> Iterator for ScannedRows<Stored> {
    type Item = StoredRow;

    fn next(&mut self) -> Option<StoredRow> {
        loop {
            let Some((key, _)) = self.sealed.peek() else { return self.stored.next() };
            match self.stored.peek() {
                Some(Ok((stored, _))) if stored.as_ref() < &key[..self.len] => return self.stored.next(),
                Some(Err(_)) => return self.stored.next(),
                Some(Ok((stored, _))) if stored.as_ref() == &key[..self.len] => {
                    self.stored.next();
                }
                _ => {}
            }
            if let Some((key, Some(value))) = self.sealed.next() {
                return Some(Ok((key[..self.len].into(), value.into())));
            }
        }
    }
}
