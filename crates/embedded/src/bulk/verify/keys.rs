//! Compares the idempotency keys with the log, which says what each of them stands for. Keys that the log has trimmed, or that
//! came with a backup, are only compared with the records: by the rows themselves.

use std::time::Duration;

use kinfolk_core::{Error, Result, Sequence, Timestamp};

use crate::engine::store::Store;
use crate::projection::Suspects;

/// How many events are read together.
const EVENTS_TOGETHER: usize = 4_096;

/// Compares the keys of all posts and comments that the log has and that have not expired.
pub(crate) fn compare(store: &Store, suspects: &mut Suspects<'_>) -> Result<()> {
    let (newest, now) = (store.position(), store.newest_time());
    let longest = store.settings.post_key_keep.max(store.settings.comment_key_keep);
    let mut after = first_remembered(store, newest, now, longest)?;
    let mut done = 0;
    while after < newest {
        let events = match store.log.read(after, newest, EVENTS_TOGETHER) {
            // Retention has removed it since.
            Err(Error::PositionExpired { .. }) if store.log.trimmed() > after => {
                after = store.log.trimmed();
                continue;
            }
            other => other?,
        };
        let Some(last) = events.last() else { return Ok(()) };
        after = last.position;
        for event in &events {
            done += 1;
            suspects.step("comparing idempotency keys", done);
            for key in store.projections.all().filter_map(|projection| projection.logged_key(event)) {
                if key.recheck(now)?.is_some() {
                    suspects.add(key)?;
                }
            }
        }
    }
    Ok(())
}

/// A position before the first event whose key may not have expired. Events are in the order of time: it is searched for by
/// halves.
fn first_remembered(store: &Store, newest: Sequence, now: Timestamp, keep: Duration) -> Result<Sequence> {
    let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
    let oldest = Timestamp::from_millis(now.millis().saturating_sub(keep));
    let (mut low, mut high) = (store.log.trimmed(), newest);
    while low < high {
        let middle = Sequence(u64::midpoint(low.0, high.0));
        let event = match store.log.read(middle, newest, 1) {
            Err(Error::PositionExpired { .. }) => None,
            other => other?.first().map(|event| event.at),
        };
        // What is gone is older than all that is not.
        if event.is_none_or(|at| at < oldest) {
            low = middle.next();
        } else {
            high = middle;
        }
    }
    Ok(low)
}
