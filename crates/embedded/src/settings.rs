//! What a deployment may tune. The defaults suit a small machine.

use std::time::Duration;

use crate::log::LogSizes;
use crate::runtime::clock::ClockLimits;

/// Settings of an embedded store.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Memory for blocks of rows.
    pub cache_bytes: u64,
    /// The change log is kept up to this size…
    pub log_keep_bytes: u64,
    /// …and no longer than this.
    pub log_keep: Duration,
    /// So long after a start nothing is removed for its age: consumers can go on, and a wrong clock can be set right.
    pub log_keep_at_start: Duration,
    /// A log segment that has reached this size is closed; retention removes whole segments.
    pub segment_bytes: u64,
    /// So many recent rows, three for each change, are kept in memory before they are written to disk.
    pub flush_rows: u64,
    /// So many bytes of posts, and of comments, are kept in memory before they are written to disk.
    pub flush_post_bytes: u64,
    /// An author with so many followers has posts pulled by those who read; with fewer, they are pushed to followers.
    pub fan_out_threshold: u64,
    /// A post goes to so many followers, then it is another author's turn.
    pub fan_out_turn: usize,
    /// How many posts an inbox holds.
    pub inbox_entries: usize,
    /// How many posts of somebody who was followed are brought into an inbox.
    pub backfill_posts: usize,
    /// A user that has not read for so long has no inbox.
    pub inbox_idle: Duration,
    /// Memory for inboxes; the least recently read are evicted first.
    pub inbox_bytes: u64,
    /// Idempotency keys of posts are kept for this long.
    pub post_key_keep: Duration,
    /// Idempotency keys of comments are kept for this long.
    pub comment_key_keep: Duration,
    /// Bodies of comments that were purged are erased from all files after this time at the latest.
    pub erase_after: Duration,
    /// So many rows a second are compared with the truth in the background; 0 turns it off.
    pub reconcile_rows: usize,
    /// A new index snapshot is written after this many events.
    pub snapshot_events: u64,
    /// Memory for sorting while an import is applied.
    pub sort_memory: usize,
    /// How far ahead the system's clock is followed.
    pub clock: ClockLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            log_keep_bytes: 10 << 30,
            log_keep: Duration::from_secs(7 * 24 * 60 * 60),
            log_keep_at_start: Duration::from_secs(60 * 60),
            segment_bytes: 64 << 20,
            flush_rows: 1_200_000,
            flush_post_bytes: 16 << 20,
            fan_out_threshold: 10_000,
            fan_out_turn: 1_000,
            inbox_entries: 200,
            backfill_posts: 100,
            inbox_idle: Duration::from_secs(30 * 24 * 60 * 60),
            inbox_bytes: 1 << 30,
            post_key_keep: Duration::from_secs(7 * 24 * 60 * 60),
            comment_key_keep: Duration::from_secs(7 * 24 * 60 * 60),
            erase_after: Duration::from_secs(24 * 60 * 60),
            reconcile_rows: 5_000,
            snapshot_events: 2_000_000,
            sort_memory: 512 << 20,
            clock: ClockLimits::default(),
        }
    }
}

impl Settings {
    pub(crate) fn log_sizes(&self) -> LogSizes {
        /// A log is this many segments long at least when its oldest one goes for its age…
        const SEGMENTS_BY_AGE: u32 = 8;
        /// …unless they would be shorter than this.
        const ROLL_AFTER_MIN: Duration = Duration::from_secs(1);
        LogSizes {
            segment_bytes: self.segment_bytes,
            allocate_bytes: self.segment_bytes.min(1 << 20),
            roll_after: (self.log_keep / SEGMENTS_BY_AGE).max(ROLL_AFTER_MIN),
        }
    }
}
