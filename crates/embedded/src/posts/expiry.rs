//! How long idempotency keys are remembered: older ones count for nothing, and go when the files that hold them are merged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kinfolk_core::{IdKind, Timestamp};
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};

use super::layout;

/// Whether a key that was used at some time is not remembered any more.
pub fn is_over(at: Timestamp, keep: Duration, now: Timestamp) -> bool {
    u128::from(now.millis().saturating_sub(at.millis())) > keep.as_millis()
}

/// Leaves keys out that are not remembered any more.
#[derive(Clone, Debug)]
pub struct ForgetKeys {
    pub ids: IdKind,
    pub newest_at: Arc<AtomicU64>,
    pub keep: Duration,
}

impl Factory for ForgetKeys {
    fn name(&self) -> &str {
        "forget idempotency keys"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(self.clone())
    }
}

impl CompactionFilter for ForgetKeys {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        if item.key().first() != Some(&layout::KEY) {
            return Ok(Verdict::Keep);
        }
        let now = Timestamp::from_millis(self.newest_at.load(Ordering::Relaxed));
        let row = layout::read_key_value(self.ids, &item.value()?);
        let over = row.is_some_and(|(_, at)| is_over(at, self.keep, now));
        // An older row of the key, which may come to light, is over as well.
        Ok(if over { Verdict::Destroy } else { Verdict::Keep })
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::{Id, Position};

    use super::*;
    use crate::posts::{Posts, key_hash};
    use crate::rows::Rows;

    #[test]
    fn merging_leaves_out_what_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let rows = Rows::open(&folder.path().join("rows"), IdKind::Integer, 1 << 20).unwrap();
        let keep = Duration::from_millis(10);
        let posts = Posts::open(&folder.path().join("posts"), IdKind::Integer, rows.shared(), keep).unwrap();
        for at in 0..20 {
            let hash = key_hash(&at.to_string());
            posts.put_key((Id::Integer(1), hash, Id::Integer(at), Timestamp::from_millis(at)));
        }
        posts.newest_at.store(19, Ordering::Relaxed);
        let kept = |posts: &Posts| posts.snapshot().unwrap().keys.count();
        posts.seal(Position(20));
        posts.flush().unwrap();
        assert_eq!(kept(&posts), 20);
        posts.compact_fully().unwrap();
        assert_eq!(kept(&posts), 11);
        let now = Timestamp::from_millis(19);
        assert_eq!(posts.keyed(Id::Integer(1), &key_hash("9"), now).unwrap(), Some(Id::Integer(9)));
        assert_eq!(posts.keyed(Id::Integer(1), &key_hash("8"), now).unwrap(), None);
    }
}
