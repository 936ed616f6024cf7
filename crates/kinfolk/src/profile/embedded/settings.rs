//! Applies the configuration to a store in a folder.

use kinfolk_embedded::{ClockLimits, Settings};

use crate::settings::{Configuration, TuningArguments};

/// The settings of a store: those of the configuration, with the sizes that a test asks for.
pub(super) fn store_settings(configuration: &Configuration, tuning: &TuningArguments) -> Settings {
    let Configuration { log, feed, comments, clock, cache, .. } = configuration;
    let defaults = Settings::default();
    Settings {
        cache_bytes: cache.size.0,
        log_keep: log.keep.0,
        log_keep_bytes: tuning.log_keep_bytes.unwrap_or(log.keep_bytes.0),
        segment_bytes: tuning.segment_bytes.unwrap_or(defaults.segment_bytes),
        flush_rows: tuning.flush_rows.unwrap_or(defaults.flush_rows),
        flush_post_bytes: tuning.flush_post_bytes.unwrap_or(defaults.flush_post_bytes),
        snapshot_events: tuning.snapshot_events.unwrap_or(defaults.snapshot_events),
        fan_out_threshold: feed.fan_out_threshold.into(),
        inbox_entries: feed.inbox_entries.0,
        inbox_idle: feed.inbox_idle.0,
        inbox_bytes: feed.inbox_memory.0,
        backfill_posts: feed.backfill_posts as usize,
        comment_key_keep: comments.key_keep.0,
        erase_after: comments.erase_after.0,
        clock: ClockLimits { jump_max: clock.jump_max.0, gap_max: clock.gap_max.0 },
        ..defaults
    }
}
