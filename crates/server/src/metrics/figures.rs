//! The figures about the store that dashboards and alarms rely on. Who serves a store must give all of them.

use crate::administration::FigureKind;

/// The names and kinds of the figures that [`crate::Administration::figures`] has at least.
pub const STORE_FIGURES: [(&str, FigureKind); 30] = [
    ("kinfolk_edges", FigureKind::Gauge),
    ("kinfolk_index_users", FigureKind::Gauge),
    ("kinfolk_index_bytes", FigureKind::Gauge),
    ("kinfolk_cache_bytes", FigureKind::Gauge),
    ("kinfolk_log_bytes", FigureKind::Gauge),
    ("kinfolk_log_position_newest", FigureKind::Gauge),
    ("kinfolk_log_position_trimmed", FigureKind::Gauge),
    ("kinfolk_flushed_position", FigureKind::Gauge),
    ("kinfolk_snapshot_position", FigureKind::Gauge),
    ("kinfolk_read_only", FigureKind::Gauge),
    ("kinfolk_writer_queue_length", FigureKind::Gauge),
    ("kinfolk_writer_batch_size", FigureKind::Gauge),
    ("kinfolk_writer_batches_total", FigureKind::Counter),
    ("kinfolk_writer_requests_total", FigureKind::Counter),
    ("kinfolk_writer_events_total", FigureKind::Counter),
    ("kinfolk_writer_syncs_total", FigureKind::Counter),
    ("kinfolk_writer_sync_seconds_total", FigureKind::Counter),
    ("kinfolk_walks_running", FigureKind::Gauge),
    ("kinfolk_walks_waiting", FigureKind::Gauge),
    ("kinfolk_walks_total", FigureKind::Counter),
    ("kinfolk_walks_given_up_total", FigureKind::Counter),
    ("kinfolk_suggest_users", FigureKind::Gauge),
    ("kinfolk_suggest_users_done", FigureKind::Gauge),
    ("kinfolk_suggest_started_timestamp_seconds", FigureKind::Gauge),
    ("kinfolk_suggest_finished_timestamp_seconds", FigureKind::Gauge),
    ("kinfolk_fan_out_lag_events", FigureKind::Gauge),
    ("kinfolk_fan_out_lag_seconds", FigureKind::Gauge),
    ("kinfolk_fan_out_entries_total", FigureKind::Counter),
    ("kinfolk_inboxes", FigureKind::Gauge),
    ("kinfolk_inbox_bytes", FigureKind::Gauge),
];
