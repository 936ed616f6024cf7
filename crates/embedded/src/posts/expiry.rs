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
