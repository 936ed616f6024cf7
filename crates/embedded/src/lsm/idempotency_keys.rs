//! Idempotency keys in a tree: their rows, how long they are kept, and how they are compared with the log. Expired ones count for
//! nothing, and go when the files that hold them are compacted.
//!
//! ```text
//! tag u8 | author | hash of the key, 16 bytes -> id | at u48
//! ```
//!
//! Everything is big-endian. In a backup, a row is its key without the tag, and its value.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kinfolk_core::{Id, IdKind, KeyHash, Result, Timestamp};
use lsm_tree::SeqNo;
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};

use super::{LsmTree, damaged_row, decode_since, since_value};
use crate::disk::byte_reader::ByteReader;

/// The keys of a tree: rows that begin with a tag, and whose values end with the time when the key was used, in 48 bits.
#[derive(Clone, Debug)]
pub(crate) struct IdempotencyKeys {
    tag: u8,
    /// The kind of the authors' ids.
    authors: IdKind,
    /// The kind of the ids that keys stand for.
    ids: IdKind,
    keep: Duration,
    /// When the newest key was used, in milliseconds.
    newest_at: Arc<AtomicU64>,
}

impl IdempotencyKeys {
    /// Keys under a tag that are kept for `keep`, and stand for ids of a kind.
    pub(crate) fn new(tag: u8, authors: IdKind, ids: IdKind, keep: Duration) -> Self {
        Self { tag, authors, ids, keep, newest_at: Arc::default() }
    }

    /// Something was written at a time: keys that have expired by then may be forgotten.
    pub(crate) fn note(&self, at: Timestamp) {
        self.newest_at.fetch_max(at.millis(), Ordering::Relaxed);
    }

    /// Whether a key that was used at some time has expired.
    pub(crate) fn is_expired(&self, at: Timestamp, now: Timestamp) -> bool {
        u128::from(now.millis().saturating_sub(at.millis())) > self.keep.as_millis()
    }
}

/// What a key stands for, and when it was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyUse {
    pub id: Id,
    pub at: Timestamp,
}

/// A key of an author, and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyRow {
    pub author: Id,
    pub hash: KeyHash,
    pub used: KeyUse,
}

impl KeyRow {
    /// Appends it as a record of a backup.
    pub(crate) fn push_to(&self, bytes: &mut Vec<u8>) {
        self.author.push_to(bytes);
        bytes.extend_from_slice(&self.hash);
        self.used.id.push_to(bytes);
        bytes.extend_from_slice(&since_value(self.used.at));
    }
}

/// A key of an author, and what it stands for by the log; `None` where the log is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LoggedKey {
    pub author: Id,
    pub hash: KeyHash,
    pub logged: Option<KeyUse>,
}

/// What is stored under a key.
#[derive(Clone, Copy, Debug)]
enum StoredKey {
    Missing,
    /// It can't be read, or names what is not there or another's.
    Wrong,
    Sound(KeyUse),
}

impl IdempotencyKeys {
    /// Whether a row is one of a key.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        key.first() == Some(&self.tag)
    }

    fn key(&self, author: Id, hash: &KeyHash) -> Vec<u8> {
        let mut key = vec![self.tag];
        author.push_to(&mut key);
        key.extend_from_slice(hash);
        key
    }

    fn read_value(&self, value: &[u8]) -> Option<KeyUse> {
        let mut value = ByteReader { ids: self.ids, bytes: value };
        Some(KeyUse { id: value.id()?, at: decode_since(value.bytes)? })
    }

    /// The key in a row, which the log is not asked about.
    pub(crate) fn read_key(&self, tree: &LsmTree, key: &[u8]) -> Result<LoggedKey> {
        let mut key = ByteReader { ids: self.authors, bytes: key.get(1..).unwrap_or_default() };
        let read = key.id().zip(key.take());
        read.map(|(author, hash)| LoggedKey { author, hash, logged: None }).ok_or_else(|| tree.damaged())
    }

    /// Puts a key into the tree.
    pub(crate) fn put(&self, tree: &LsmTree, row: KeyRow) {
        let mut record = vec![self.tag];
        row.push_to(&mut record);
        let value = record.split_off(1 + self.authors.id_len() + row.hash.len());
        tree.insert(record, value);
    }

    /// What a key stands for, if it is known and has not expired.
    pub(crate) fn find(
        &self,
        tree: &LsmTree,
        author: Id,
        hash: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Id>> {
        let Some(value) = tree.get(self.key(author, hash))? else { return Ok(None) };
        let used = self.read_value(&value).ok_or_else(|| tree.damaged())?;
        Ok((!self.is_expired(used.at, now)).then_some(used.id))
    }

    /// All keys as of a moment.
    pub(crate) fn rows(
        &self,
        tree: &LsmTree,
        moment: SeqNo,
    ) -> impl Iterator<Item = Result<KeyRow>> + Send + use<> {
        let (keys, name) = (self.clone(), tree.name);
        tree.rows(&[self.tag], (None, None), moment).map(move |row| {
            let (key, value) = row?;
            let record = [key.get(1..).unwrap_or_default(), &value].concat();
            let mut record = ByteReader { ids: keys.authors, bytes: &record };
            let row = keys.read_record(&mut record, &|time| time).filter(|_| record.bytes.is_empty());
            row.ok_or_else(|| damaged_row(name))
        })
    }

    /// Reads a record of a backup.
    pub(crate) fn read_record(
        &self,
        block: &mut ByteReader<'_>,
        clamped: &dyn Fn(Timestamp) -> Timestamp,
    ) -> Option<KeyRow> {
        let (author, hash) = (block.id()?, block.take()?);
        let id = self.ids.read(block.slice(self.ids.id_len())?)?;
        let at = clamped(decode_since(&block.take::<6>()?)?);
        Some(KeyRow { author, hash, used: KeyUse { id, at } })
    }

    /// What should be stored under a key, if that is not what is. `is_sound` says whether the author has what the key stands for.
    pub(crate) fn difference(
        &self,
        tree: &LsmTree,
        key: &LoggedKey,
        now: Timestamp,
        is_sound: impl FnOnce(KeyUse) -> Result<bool>,
    ) -> Result<Option<Option<KeyUse>>> {
        let row = tree.get(self.key(key.author, &key.hash))?;
        let stored = match row.map(|value| self.read_value(&value)) {
            None => StoredKey::Missing,
            Some(Some(used)) if is_sound(used)? => StoredKey::Sound(used),
            Some(_) => StoredKey::Wrong,
        };
        Ok(self.expected(stored, key.logged, now))
    }

    /// Stores what [`IdempotencyKeys::difference`] says should be stored.
    pub(crate) fn mend(&self, tree: &LsmTree, key: &LoggedKey, expected: Option<Option<KeyUse>>) {
        let LoggedKey { author, hash, .. } = *key;
        match expected {
            None => {}
            Some(Some(used)) => self.put(tree, KeyRow { author, hash, used }),
            Some(None) => tree.remove(self.key(author, &hash)),
        }
    }

    /// What should be stored under a key, if that is not what is; `now` is not earlier than any event.
    fn expected(&self, stored: StoredKey, logged: Option<KeyUse>, now: Timestamp) -> Option<Option<KeyUse>> {
        let Some(logged) = logged else {
            return matches!(stored, StoredKey::Wrong).then_some(None);
        };
        let is_right = match stored {
            StoredKey::Missing => false,
            // It is met by itself.
            StoredKey::Wrong => true,
            // Once it has expired, the key may stand for something newer.
            StoredKey::Sound(stored) => stored == logged || (stored.id != logged.id && stored.at > logged.at),
        };
        (!is_right && !self.is_expired(logged.at, now)).then_some(Some(logged))
    }
}

impl Factory for IdempotencyKeys {
    fn name(&self) -> &str {
        "forget idempotency keys"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(self.clone())
    }
}

impl CompactionFilter for IdempotencyKeys {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        if !self.has(item.key()) {
            return Ok(Verdict::Keep);
        }
        let now = Timestamp::from_millis(self.newest_at.load(Ordering::Relaxed));
        let value = item.value()?;
        let at = value.last_chunk::<6>().and_then(|at| decode_since(at));
        // An older row of the key, which may come to light, has expired as well.
        Ok(if at.is_some_and(|at| self.is_expired(at, now)) { Verdict::Destroy } else { Verdict::Keep })
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::Sequence;

    use super::*;
    use crate::lsm::{RowStorage, Shared};

    #[test]
    fn the_log_decides_what_a_key_stands_for() {
        let keys = IdempotencyKeys::new(3, IdKind::Integer, IdKind::Integer, Duration::from_millis(10));
        let used = |id, at| KeyUse { id: Id::Integer(id), at: Timestamp::from_millis(at) };
        let expected = |stored, logged| keys.expected(stored, logged, Timestamp::from_millis(20));
        let logged = used(1, 15);
        assert_eq!(expected(StoredKey::Sound(logged), Some(logged)), None);
        assert_eq!(expected(StoredKey::Missing, Some(logged)), Some(Some(logged)));
        assert_eq!(expected(StoredKey::Sound(used(2, 15)), Some(logged)), Some(Some(logged)));
        assert_eq!(expected(StoredKey::Sound(used(1, 14)), Some(logged)), Some(Some(logged)));
        assert_eq!(expected(StoredKey::Sound(used(1, 16)), Some(logged)), Some(Some(logged)));
        assert_eq!(expected(StoredKey::Sound(used(2, 16)), Some(logged)), None, "it was used again");
        assert_eq!(expected(StoredKey::Missing, Some(used(1, 9))), None, "it has expired");
        assert_eq!(expected(StoredKey::Wrong, None), Some(None));
        assert_eq!(expected(StoredKey::Sound(used(2, 3)), None), None);
        assert_eq!(expected(StoredKey::Missing, None), None);
    }

    /// The layout is a promise to every store and backup on disk.
    #[test]
    fn rows_are_laid_out_as_documented() {
        let folder = tempfile::tempdir().unwrap();
        let keys = IdempotencyKeys::new(3, IdKind::Integer, IdKind::Uuid, Duration::from_secs(1));
        let shared = Shared::new(1 << 20, Sequence::START, &Arc::default());
        let tree = LsmTree::open("keys", &folder.path().join("keys"), &shared, &keys).unwrap();
        let used = KeyUse { id: Id::Uuid(5), at: Timestamp::from_millis(6) };
        let row = KeyRow { author: Id::Integer(4), hash: [7; 16], used };
        keys.put(&tree, row);
        assert_eq!(keys.rows(&tree, SeqNo::MAX).next().unwrap().unwrap(), row);
        let (key, value) = tree.rows(&[3], (None, None), SeqNo::MAX).next().unwrap().unwrap();
        let number = |value: u8, length: usize| [vec![0; length - 1], vec![value]].concat();
        assert_eq!(*key, [vec![3], number(4, 8), vec![7; 16]].concat());
        assert_eq!(*value, [number(5, 16), number(6, 6)].concat());
        assert_eq!(keys.read_key(&tree, &key).unwrap().author, row.author);
        assert_eq!(keys.find(&tree, row.author, &row.hash, used.at).unwrap(), Some(used.id));
        let record = [&key[1..], &value].concat();
        let mut block = ByteReader { ids: IdKind::Integer, bytes: &record };
        assert_eq!(keys.read_record(&mut block, &|time| time), Some(row));
    }

    #[test]
    fn compaction_leaves_out_expired_keys() {
        const TAG: u8 = 3;
        let folder = tempfile::tempdir().unwrap();
        let keys = IdempotencyKeys::new(TAG, IdKind::Integer, IdKind::Integer, Duration::from_millis(10));
        let tree = LsmTree::open(
            "keys",
            &folder.path().join("keys"),
            &Shared::new(1 << 20, Sequence::START, &Arc::default()),
            &keys,
        )
        .unwrap();
        for at in 0..20 {
            tree.insert([TAG, at], since_value(Timestamp::from_millis(at.into())));
            tree.insert([TAG + 1, at], since_value(Timestamp::from_millis(at.into())));
        }
        keys.note(Timestamp::from_millis(19));
        let kept = |tag: u8| {
            let rows = tree.rows(&[tag], (None, None), SeqNo::MAX);
            rows.map(|row| row.unwrap().0[1]).collect::<Vec<u8>>()
        };
        tree.seal(Sequence(20));
        tree.flush().unwrap();
        assert_eq!(kept(TAG).len(), 20);
        tree.compact_fully().unwrap();
        assert_eq!(kept(TAG), (9..20).collect::<Vec<u8>>());
        assert_eq!(kept(TAG + 1).len(), 20);
        let now = Timestamp::from_millis(19);
        assert!(
            keys.is_expired(Timestamp::from_millis(8), now)
                && !keys.is_expired(Timestamp::from_millis(9), now)
        );
    }
}
