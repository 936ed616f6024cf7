//! Idempotency keys: how long they are kept. Expired ones count for nothing, and go when the
//! files that hold them are compacted.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kinfolk_core::{Id, KeyHash, Timestamp};
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};

use super::decode_since;

/// The keys of a tree: rows that begin with a tag, and whose values end with the time when the key was used, in 48 bits.
#[derive(Clone, Debug)]
pub struct IdempotencyKeys {
    tag: u8,
    keep: Duration,
    /// When the newest key was used, in milliseconds.
    newest_at: Arc<AtomicU64>,
}

impl IdempotencyKeys {
    /// Keys under a tag that are kept for `keep`.
    pub fn new(tag: u8, keep: Duration) -> Self {
        Self { tag, keep, newest_at: Arc::default() }
    }

    /// Something was written at a time: keys that have expired by then may be forgotten.
    pub fn note(&self, at: Timestamp) {
        self.newest_at.fetch_max(at.millis(), Ordering::Relaxed);
    }

    /// Whether a key that was used at some time has expired.
    pub fn is_expired(&self, at: Timestamp, now: Timestamp) -> bool {
        u128::from(now.millis().saturating_sub(at.millis())) > self.keep.as_millis()
    }
}

/// What a key stands for, and when it was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyUse<I> {
    pub id: I,
    pub at: Timestamp,
}

/// A key of an author, and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRow<I> {
    pub author: Id,
    pub hash: KeyHash,
    pub used: KeyUse<I>,
}

/// A key of an author, and what it stands for by the log; `None` where the log is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoggedKey<I> {
    pub author: Id,
    pub hash: KeyHash,
    pub logged: Option<KeyUse<I>>,
}

impl<I: fmt::Display> LoggedKey<I> {
    /// Says what is wrong with it.
    pub fn describe(&self, out: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        let author = self.author;
        match &self.logged {
            Some(logged) => {
                write!(
                    out,
                    "an idempotency key of {author} does not name {what} {} as the log does",
                    logged.id
                )
            }
            None => write!(out, "an idempotency key of {author} names no {what} of theirs"),
        }
    }
}

/// What is stored under a key.
#[derive(Clone, Copy, Debug)]
pub enum StoredKey<I> {
    Missing,
    /// It can't be read, or names what is not there or another's.
    Wrong,
    Sound(KeyUse<I>),
}

impl IdempotencyKeys {
    /// What should be stored under a key, if that is not what is; `now` is not earlier than any event.
    pub fn expected<I: Copy + PartialEq>(
        &self,
        stored: StoredKey<I>,
        logged: Option<KeyUse<I>>,
        now: Timestamp,
    ) -> Option<Option<KeyUse<I>>> {
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
        if item.key().first() != Some(&self.tag) {
            return Ok(Verdict::Keep);
        }
        let now = Timestamp::from_millis(self.newest_at.load(Ordering::Relaxed));
        let value = item.value()?;
        let at = value.last_chunk::<6>().and_then(|at| decode_since(at));
        // An older row of the key, which may come to light, is over as well.
        Ok(if at.is_some_and(|at| self.is_expired(at, now)) { Verdict::Destroy } else { Verdict::Keep })
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::Sequence;
    use lsm_tree::SeqNo;

    use super::*;
    use crate::lsm::{LsmTree, RowStorage, Shared, since_value};

    #[test]
    fn the_log_decides_what_a_key_stands_for() {
        let keys = IdempotencyKeys::new(3, Duration::from_millis(10));
        let used = |id: u8, at| KeyUse { id, at: Timestamp::from_millis(at) };
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

    #[test]
    fn compaction_leaves_out_expired_keys() {
        const TAG: u8 = 3;
        let folder = tempfile::tempdir().unwrap();
        let keys = IdempotencyKeys::new(TAG, Duration::from_millis(10));
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
