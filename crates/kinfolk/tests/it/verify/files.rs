//! Changes the files of a store that no process has open, as no bug should: rows of its LSM trees, its stored inboxes,
//! its index snapshot. The layouts are those that the store's own files document.

use std::fs;
use std::path::Path;

use lsm_tree::{AbstractTree, AnyTree, Config, Guard, SeqNo, SequenceNumberCounter};

/// An edge of the kind `follow`.
#[derive(Clone, Copy, Debug)]
pub struct Follow {
    pub follower: u64,
    pub followee: u64,
}

const FOLLOW_KIND: u8 = 1;

/// One of a store's LSM trees.
pub struct Tree {
    tree: AnyTree,
    sequence: SeqNo,
}

impl Tree {
    pub fn open(folder: &Path) -> Self {
        let counter = SequenceNumberCounter::default;
        let tree = Config::new(folder, counter(), counter()).open().unwrap();
        let sequence = tree.get_highest_seqno().map_or(0, |highest| highest + 1);
        Self { tree, sequence }
    }

    /// All rows whose keys begin with a prefix.
    pub fn rows(&self, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let rows = self.tree.iter(SeqNo::MAX, None).map(|row| row.into_inner().unwrap());
        rows.filter(|(key, _)| key.starts_with(prefix))
            .map(|(key, value)| (key.to_vec(), value.to_vec()))
            .collect()
    }

    /// The only row whose key begins with a prefix.
    pub fn row(&self, prefix: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let mut rows = self.rows(prefix);
        assert_eq!(rows.len(), 1, "one row begins with {prefix:?}");
        rows.remove(0)
    }

    pub fn insert(&mut self, key: &[u8], value: &[u8]) {
        self.tree.insert(key, value, self.sequence);
        self.sequence += 1;
    }

    pub fn remove(&mut self, key: &[u8]) {
        self.tree.remove(key, self.sequence);
        self.sequence += 1;
    }

    /// Puts the only row whose key begins with a prefix somewhere else in the same tree: takes it out.
    pub fn remove_only(&mut self, prefix: &[u8]) {
        let (key, _) = self.row(prefix);
        self.remove(&key);
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.tree.flush_active_memtable(0).unwrap();
    }
}

/// A tag, and numbers of eight bytes behind it.
pub fn tagged(tag: u8, numbers: &[u64]) -> Vec<u8> {
    let numbers = numbers.iter().flat_map(|number| number.to_be_bytes());
    [tag].into_iter().chain(numbers).collect()
}

/// The key of an edge among the pairs.
pub fn pair_key(Follow { follower, followee }: Follow) -> Vec<u8> {
    tagged(FOLLOW_KIND, &[follower, followee])
}

/// The key of an entry in a list: whose, since when as six bytes, who.
pub fn list_key(owner: u64, since: &[u8], entry: u64) -> Vec<u8> {
    let mut key = tagged(FOLLOW_KIND, &[owner]);
    key.extend(since.iter().map(|byte| !byte));
    key.extend((!entry).to_be_bytes());
    key
}

/// Since when an edge exists, as the six bytes of the pairs.
pub fn since(store: &Path, edge: Follow) -> Vec<u8> {
    Tree::open(&store.join("rows/pairs")).row(&pair_key(edge)).1
}

/// Changes a file that ends with a checksum of all before.
pub fn change_checksummed(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    bytes.truncate(bytes.len() - 4);
    change(&mut bytes);
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend(checksum.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

/// Changes the keys of the only inbox that is stored, each a time of six bytes and an id.
pub fn change_inbox(store: &Path, change: impl FnOnce(&mut Vec<[u8; 14]>)) {
    /// Header, a mark, whose it is, when it was seen, and that it is complete from the beginning.
    const KEYS_LENGTH_AT: usize = 32 + 1 + 8 + 8 + 1;
    change_checksummed(&store.join("inboxes.snapshot"), |bytes| {
        assert_eq!(bytes[KEYS_LENGTH_AT - 1], 0, "it holds everything");
        let (head, rest) = bytes.split_at(KEYS_LENGTH_AT);
        let (_, rest) = rest.split_at(4);
        let (keys, end) = rest.split_at(rest.len() - 1);
        assert_eq!(end, [0], "there is one inbox");
        let mut keys = keys.as_chunks::<14>().0.to_vec();
        change(&mut keys);
        keys.sort_unstable();
        let length = (keys.len() * 14) as u32;
        *bytes = [head, &length.to_le_bytes(), &keys.concat(), end].concat();
    });
}
