//! Idempotency keys: what stands for one, and how long they are remembered. Older ones count for nothing, and go when the
//! files that hold them are merged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kinfolk_core::Timestamp;
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};

use crate::log::KeyHash;
use crate::rows::keys::decode_since;

/// The keys of a tree: rows that begin with a tag, and whose values end with the time when the key was used, in 48 bits.
#[derive(Clone, Debug)]
pub struct RememberedKeys {
    tag: u8,
    keep: Duration,
    /// When the newest key was used, in milliseconds.
    newest_at: Arc<AtomicU64>,
}

impl RememberedKeys {
    /// Keys under a tag that are remembered for `keep`.
    pub fn new(tag: u8, keep: Duration) -> Self {
        Self { tag, keep, newest_at: Arc::default() }
    }

    /// Something was written at a time: keys that are too old then may be forgotten.
    pub fn note(&self, at: Timestamp) {
        self.newest_at.fetch_max(at.millis(), Ordering::Relaxed);
    }

    /// Whether a key that was used at some time is not remembered any more.
    pub fn is_over(&self, at: Timestamp, now: Timestamp) -> bool {
        u128::from(now.millis().saturating_sub(at.millis())) > self.keep.as_millis()
    }
}

/// What stands for an idempotency key.
pub fn key_hash(key: &str) -> KeyHash {
    let hash = blake3::hash(key.as_bytes());
    std::array::from_fn(|at| hash.as_bytes()[at])
}

impl Factory for RememberedKeys {
    fn name(&self) -> &str {
        "forget idempotency keys"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(self.clone())
    }
}

impl CompactionFilter for RememberedKeys {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        if item.key().first() != Some(&self.tag) {
            return Ok(Verdict::Keep);
        }
        let now = Timestamp::from_millis(self.newest_at.load(Ordering::Relaxed));
        let value = item.value()?;
        let at = value.last_chunk::<6>().and_then(|at| decode_since(at));
        // An older row of the key, which may come to light, is over as well.
        Ok(if at.is_some_and(|at| self.is_over(at, now)) { Verdict::Destroy } else { Verdict::Keep })
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::{IdKind, Position};
    use lsm_tree::SeqNo;

    use super::*;
    use crate::projection::Projection;
    use crate::rows::Rows;
    use crate::rows::keys::since_value;

    #[test]
    fn merging_leaves_out_what_is_over() {
        const TAG: u8 = 3;
        let folder = tempfile::tempdir().unwrap();
        let rows = Rows::open(&folder.path().join("rows"), IdKind::Integer, 1 << 20).unwrap();
        let keys = RememberedKeys::new(TAG, Duration::from_millis(10));
        let tree = Projection::open("keys", &folder.path().join("keys"), rows.shared(), &keys).unwrap();
        for at in 0..20 {
            tree.insert([TAG, at], since_value(Timestamp::from_millis(at.into())));
            tree.insert([TAG + 1, at], since_value(Timestamp::from_millis(at.into())));
        }
        keys.note(Timestamp::from_millis(19));
        let kept = |tag: u8| {
            let rows = tree.rows(&[tag], (None, None), SeqNo::MAX);
            rows.map(|row| row.unwrap().0[1]).collect::<Vec<u8>>()
        };
        tree.seal(Position(20));
        tree.flush().unwrap();
        assert_eq!(kept(TAG).len(), 20);
        tree.compact_fully().unwrap();
        assert_eq!(kept(TAG), (9..20).collect::<Vec<u8>>());
        assert_eq!(kept(TAG + 1).len(), 20);
        let now = Timestamp::from_millis(19);
        assert!(
            keys.is_over(Timestamp::from_millis(8), now) && !keys.is_over(Timestamp::from_millis(9), now)
        );
    }
}
