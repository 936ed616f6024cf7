//! Rows that are not in row files yet: what the log has said since the last flush, in memory and in key order.
//!
//! A layer takes rows until it is sealed; sealed layers wait to be written to the trees. A newer layer overrides an
//! older one, and every layer overrides the trees. Losing it all in a crash is normal: the log has it.
//!
//! It does the work of an LSM memtable. The trees' own one, a lock-free skip list, took 1.2 to 3.4 µs a row here;
//! sharded B-trees take a fraction of that, because one writer needs no lock-freedom.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::Sequence;
use parking_lot::RwLock;

/// A row's key, padded with zeros; all keys of a tree have the same length.
pub(crate) type Key = [u8; 40];

/// A key as numbers, which order like its bytes and are compared faster: half of an insertion is comparing. Keys of integer ids
/// fit into three, which makes their rows a third smaller, and insertions take a fifth less time.
type Words<const N: usize> = [u64; N];
const WORDS: usize = 5;
const WORDS_SHORT: usize = 3;

fn to_words<const N: usize>(key: &Key) -> Words<N> {
    std::array::from_fn(|word| u64::from_be_bytes(std::array::from_fn(|byte| key[word * 8 + byte])))
}

fn to_key<const N: usize>(words: &Words<N>) -> Key {
    let mut key = [0; 40];
    for (bytes, word) in key.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    key
}

/// A row's value, or `None` where the row is removed.
pub(crate) type Value = Option<[u8; 6]>;

/// Smaller maps are faster, and a reader waits only for a writer of the same shard.
const SHARDS: usize = 64;
const TREES: usize = 3;
/// How many rows a reader copies at a time while it holds a shard.
const PAGE: usize = 64;

/// Pads a key.
pub(crate) fn key(bytes: &[u8]) -> Key {
    let mut key = [0; 40];
    key[..bytes.len()].copy_from_slice(bytes);
    key
}

/// The rows of one tree, with the length of keys hidden.
trait TreeRows: Send + Sync {
    fn put(&self, shard: usize, key: &Key, value: Value);
    fn get(&self, shard: usize, key: &Key) -> Option<Value>;
    /// Up to a page of a shard's rows from a key on, before another.
    fn page(&self, shard: usize, from: Bound<&Key>, end: &Key) -> VecDeque<(Key, Value)>;
    /// All rows, in key order.
    fn all(&self) -> Box<dyn Iterator<Item = (Key, Value)>>;
}

struct Shards<const N: usize>(Vec<RwLock<BTreeMap<Words<N>, Value>>>);

impl<const N: usize> Shards<N> {
    fn boxed() -> Box<dyn TreeRows> {
        Box::new(Self((0..SHARDS).map(|_| RwLock::default()).collect()))
    }
}

impl<const N: usize> TreeRows for Shards<N> {
    fn put(&self, shard: usize, key: &Key, value: Value) {
        debug_assert!(key[N * 8..].iter().all(|&byte| byte == 0), "a key is as long as was said");
        self.0[shard].write().insert(to_words(key), value);
    }

    fn get(&self, shard: usize, key: &Key) -> Option<Value> {
        self.0[shard].read().get(&to_words(key)).copied()
    }

    fn page(&self, shard: usize, from: Bound<&Key>, end: &Key) -> VecDeque<(Key, Value)> {
        let rows = self.0[shard].read();
        let rows = rows.range((from.map(to_words), Bound::Excluded(to_words(end))));
        rows.take(PAGE).map(|(key, &value)| (to_key(key), value)).collect()
    }

    fn all(&self) -> Box<dyn Iterator<Item = (Key, Value)>> {
        let mut all = Vec::new();
        for shard in &self.0 {
            all.extend(shard.read().iter().map(|(&key, &value)| (key, value)));
        }
        all.sort_unstable_by_key(|&(key, _)| key);
        Box::new(all.into_iter().map(|(key, value)| (to_key(&key), value)))
    }
}

/// Rows of all trees since some moment.
pub(crate) struct Memtable {
    trees: [Box<dyn TreeRows>; TREES],
    rows: AtomicU64,
    last: AtomicU64,
}

impl Memtable {
    fn new(key_bytes: usize) -> Arc<Self> {
        let new =
            if key_bytes <= WORDS_SHORT * 8 { Shards::<WORDS_SHORT>::boxed } else { Shards::<WORDS>::boxed };
        Arc::new(Self { trees: [new(), new(), new()], rows: AtomicU64::new(0), last: AtomicU64::new(0) })
    }

    /// The newest position in the layer.
    pub(crate) fn last(&self) -> Sequence {
        Sequence(self.last.load(Ordering::Acquire))
    }

    /// All rows of a tree, in key order.
    pub(crate) fn rows(&self, tree: usize) -> impl Iterator<Item = (Key, Value)> + use<> {
        self.trees[tree].all()
    }

    fn get(&self, tree: usize, owner: &[u8], key: &Key) -> Option<Value> {
        self.trees[tree].get(shard_of(owner), key)
    }
}

/// Spreads owners over shards: a user's rows are in one, so that a list is one range.
fn shard_of(owner: &[u8]) -> usize {
    let hash =
        owner.iter().fold(0u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash >> 32) as usize % SHARDS
}

/// The layers: one that takes rows, and sealed ones from the oldest to the newest.
pub(crate) struct Memtables {
    /// How long the longest key is.
    key_bytes: usize,
    layers: RwLock<Layers>,
}

struct Layers {
    active: Arc<Memtable>,
    sealed: Vec<Arc<Memtable>>,
}

impl Memtables {
    /// Nothing yet. No key will be longer than `key_bytes`.
    pub(crate) fn new(key_bytes: usize) -> Self {
        let layers = Layers { active: Memtable::new(key_bytes), sealed: Vec::new() };
        Self { key_bytes, layers: RwLock::new(layers) }
    }

    /// The layer that takes rows. Only the writer adds to it.
    pub(crate) fn active(&self) -> Arc<Memtable> {
        Arc::clone(&self.layers.read().active)
    }

    /// Sets or removes a row.
    pub(crate) fn put(layer: &Memtable, tree: usize, owner: &[u8], key: Key, value: Value) {
        layer.trees[tree].put(shard_of(owner), &key, value);
        layer.rows.fetch_add(1, Ordering::Relaxed);
    }

    /// Everything up to a position is in the layer.
    pub(crate) fn reached(layer: &Memtable, position: Sequence) {
        layer.last.store(position.0, Ordering::Release);
    }

    /// How many rows were put into the active layer.
    pub(crate) fn unsealed(&self) -> u64 {
        self.layers.read().active.rows.load(Ordering::Relaxed)
    }

    /// Closes the active layer, if there is anything in it, and starts another one. Events without rows count: the trees
    /// must learn that they have them.
    pub(crate) fn seal(&self) {
        let mut layers = self.layers.write();
        if layers.active.rows.load(Ordering::Relaxed) > 0 || layers.active.last() > Sequence::START {
            let full = std::mem::replace(&mut layers.active, Memtable::new(self.key_bytes));
            layers.sealed.push(full);
        }
    }

    /// How many sealed layers wait.
    pub(crate) fn sealed(&self) -> usize {
        self.layers.read().sealed.len()
    }

    /// The sealed layer to write first.
    pub(crate) fn oldest_sealed(&self) -> Option<Arc<Memtable>> {
        self.layers.read().sealed.first().cloned()
    }

    /// Drops a layer whose rows are in the trees now.
    pub(crate) fn drop_sealed(&self, layer: &Arc<Memtable>) {
        self.layers.write().sealed.retain(|kept| !Arc::ptr_eq(kept, layer));
    }

    /// The rows in all sealed layers whose keys begin with a byte, in key order, the newest layer's where several have one.
    pub(crate) fn sealed_rows(&self, tree: usize, first_byte: u8) -> Vec<(Key, Value)> {
        let sealed = self.layers.read().sealed.clone();
        let mut rows = BTreeMap::new();
        for layer in sealed {
            rows.extend(layer.rows(tree).filter(|(key, _)| key[0] == first_byte));
        }
        rows.into_iter().collect()
    }

    /// All layers, the newest first. A row that is in none of them is in the trees or nowhere: take the layers before
    /// looking into a tree.
    fn newest_first(&self) -> Vec<Arc<Memtable>> {
        let layers = self.layers.read();
        std::iter::once(&layers.active).chain(layers.sealed.iter().rev()).cloned().collect()
    }

    /// What the layers say of a row; `None` if they say nothing.
    pub(crate) fn get(&self, tree: usize, owner: &[u8], key: &Key) -> Option<Value> {
        self.newest_first().iter().find_map(|layer| layer.get(tree, owner, key))
    }

    /// The rows of one owner after a key and before another, in order, newest layer first where several have one.
    pub(crate) fn range(&self, tree: usize, owner: &[u8], after: Bound<Key>, end: Key) -> MemtableRange {
        let shard = shard_of(owner);
        let cursor =
            |layer| Cursor { layer, tree, shard, from: after, end, page: VecDeque::new(), ended: false };
        MemtableRange { cursors: self.newest_first().into_iter().map(cursor).collect() }
    }
}

/// Rows of several layers, merged.
pub(crate) struct MemtableRange {
    cursors: Vec<Cursor>,
}

impl MemtableRange {
    /// The next row, without taking it.
    pub(crate) fn peek(&mut self) -> Option<(Key, Value)> {
        let heads = self.cursors.iter_mut().filter_map(Cursor::peek);
        // The first of equal keys is the newest layer's, and `min_by` keeps the first.
        heads.min_by(|a, b| a.0.cmp(&b.0))
    }

    /// Takes all rows that are there now, so that later ones are not met.
    pub(crate) fn freeze(&mut self) {
        let mut rows = VecDeque::new();
        while let Some((key, value)) = self.peek() {
            self.pass(&key);
            rows.push_back((key, value));
        }
        // Any of the cursors will do: what it has is all that is left.
        self.cursors.truncate(1);
        self.cursors.iter_mut().for_each(|cursor| cursor.page = std::mem::take(&mut rows));
    }

    /// Passes over a row in all layers.
    pub(crate) fn pass(&mut self, key: &Key) {
        for cursor in &mut self.cursors {
            if cursor.peek().is_some_and(|(head, _)| head == *key) {
                cursor.page.pop_front();
            }
        }
    }
}

/// A position in one layer.
struct Cursor {
    layer: Arc<Memtable>,
    tree: usize,
    shard: usize,
    from: Bound<Key>,
    end: Key,
    page: VecDeque<(Key, Value)>,
    ended: bool,
}

impl Cursor {
    fn peek(&mut self) -> Option<(Key, Value)> {
        if self.page.is_empty() && !self.ended {
            self.page = self.layer.trees[self.tree].page(self.shard, self.from.as_ref(), &self.end);
            self.ended = self.page.len() < PAGE;
            if let Some(&(last, _)) = self.page.back() {
                self.from = Bound::Excluded(last);
            }
        }
        self.page.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Key = [0xff; 40];
    /// As long as the keys of integer ids, and of UUIDs.
    const KEY_BYTES: [usize; 2] = [23, 39];

    fn rows(recent: &Memtables, after: Bound<Key>) -> Vec<(u8, Value)> {
        let mut range = recent.range(0, b"o", after, END);
        std::iter::from_fn(|| {
            let (head, value) = range.peek()?;
            range.pass(&head);
            Some((head[0], value))
        })
        .collect()
    }

    #[test]
    fn newer_layers_override_older_ones() {
        for key_bytes in KEY_BYTES {
            let recent = Memtables::new(key_bytes);
            let put = |n: u8, value| Memtables::put(&recent.active(), 0, b"o", key(&[n]), value);
            put(1, Some([1; 6]));
            put(2, Some([1; 6]));
            recent.seal();
            put(2, None);
            put(3, Some([2; 6]));
            recent.seal();
            put(1, Some([3; 6]));
            assert_eq!(recent.sealed(), 2);
            assert_eq!(rows(&recent, Bound::Unbounded), [(1, Some([3; 6])), (2, None), (3, Some([2; 6]))]);
            assert_eq!(rows(&recent, Bound::Excluded(key(&[1]))), [(2, None), (3, Some([2; 6]))]);
            assert_eq!(recent.get(0, b"o", &key(&[2])), Some(None));
            assert_eq!(recent.get(0, b"o", &key(&[9])), None);
            let oldest = recent.oldest_sealed().unwrap();
            assert_eq!(oldest.rows(0).count(), 2);
            recent.drop_sealed(&oldest);
            assert_eq!(recent.sealed(), 1);
        }
    }

    #[test]
    fn a_frozen_range_meets_nothing_that_is_put_later() {
        for key_bytes in KEY_BYTES {
            let recent = Memtables::new(key_bytes);
            let put = |n: u8, value| Memtables::put(&recent.active(), 0, b"o", key(&[n]), value);
            (0..200).for_each(|n| put(n, Some([1; 6])));
            recent.seal();
            put(7, None);
            let mut range = recent.range(0, b"o", Bound::Unbounded, END);
            range.freeze();
            put(3, None);
            put(220, Some([2; 6]));
            for n in 0..200 {
                let value = if n == 7 { None } else { Some([1; 6]) };
                assert_eq!(range.peek(), Some((key(&[n]), value)));
                range.pass(&key(&[n]));
            }
            assert_eq!(range.peek(), None);
        }
    }

    #[test]
    fn long_ranges_come_in_pages() {
        for key_bytes in KEY_BYTES {
            let recent = Memtables::new(key_bytes);
            let wide = |n: u16| key(&n.to_be_bytes());
            for n in 0..1_000 {
                Memtables::put(&recent.active(), 0, b"o", wide(n), None);
            }
            let mut range = recent.range(0, b"o", Bound::Excluded(wide(9)), END);
            for n in 10..1_000 {
                assert_eq!(range.peek(), Some((wide(n), None)));
                range.pass(&wide(n));
            }
            assert_eq!(range.peek(), None);
        }
    }

    /// Whatever keys are inside, what comes out are the keys, in their order.
    #[test]
    fn keys_of_every_length_are_kept_and_ordered() {
        for key_bytes in KEY_BYTES {
            let recent = Memtables::new(key_bytes);
            let long = |byte: u8, last: u8| {
                let mut key = [byte; 40];
                key[key_bytes - 1] = last;
                key[key_bytes..].fill(0);
                key
            };
            let keys = [long(0, 1), long(7, 6), long(7, 8), long(0x80, 0), long(0xff, 0xff)];
            for key in keys.iter().rev() {
                Memtables::put(&recent.active(), 2, &key[..9], *key, None);
            }
            let rows: Vec<Key> = recent.active().rows(2).map(|(key, _)| key).collect();
            assert_eq!(rows, keys);
            assert!(keys.iter().all(|key| recent.get(2, &key[..9], key) == Some(None)));
        }
    }
}
