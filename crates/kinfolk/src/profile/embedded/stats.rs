//! The statistics of the embedded store for Prometheus. The server adds its own.

use kinfolk_core::Timestamp;
use kinfolk_core::bulk::SuggestionRun;
use kinfolk_embedded::{Embedded, Layer, Stats};
use kinfolk_server::{LayerTimes, Stat, counter, gauge};

/// All statistics of the store. Cheap: it reads counters.
pub(crate) fn stats(store: &Embedded) -> Vec<Stat> {
    let stats = store.stats();
    let mut all = rows_and_log(&stats);
    all.extend(writes_and_repairs(&stats));
    all.extend(health(&stats));
    all.extend(feeds_and_comments(&stats));
    all.extend(suggestions(&stats, store.suggestion_run()));
    all
}

/// The latencies of the layers of the store.
pub(crate) fn layers(store: &Embedded) -> Vec<LayerTimes> {
    Layer::ALL.map(|layer| LayerTimes { layer: layer.name(), times: store.layer_times(layer) }).into()
}

#[rustfmt::skip]
fn rows_and_log(stats: &Stats) -> Vec<Stat> {
    let mean_batch = stats.requests as f64 / stats.batches.max(1) as f64;
    vec![
        gauge("kinfolk_edges", "Edges in the graph.", stats.edges as f64),
        gauge("kinfolk_index_users", "Users in the index.", stats.users as f64),
        gauge("kinfolk_index_bytes", "Approximate memory of the index.", stats.index_bytes as f64),
        gauge("kinfolk_cache_bytes", "Maximum memory of cached blocks of rows.", stats.cache_bytes_max as f64),
        gauge("kinfolk_recent_rows", "Rows in memory only.", stats.recent_rows as f64),
        gauge("kinfolk_sealed_layers", "Layers of rows that wait for a flush.", stats.sealed_layers as f64),
        gauge("kinfolk_unmerged_runs", "Runs that wait for compaction, in the tree with the most.", stats.runs as f64),
        gauge("kinfolk_log_bytes", "Bytes of the change log on disk.", stats.log_bytes as f64),
        gauge("kinfolk_disk_bytes", "Bytes of the change log and of the files of rows.", stats.disk_bytes as f64),
        gauge("kinfolk_log_position_newest", "The newest visible position.", stats.newest.0 as f64),
        gauge("kinfolk_log_position_trimmed", "Changes up to this position are no longer kept.", stats.trimmed.0 as f64),
        gauge("kinfolk_flushed_position", "Rows up to this position are on disk.", stats.flushed.0 as f64),
        gauge("kinfolk_snapshot_position", "The position of the index snapshot.", stats.snapshotted.0 as f64),
        gauge("kinfolk_read_only", "1 if writes are refused because the storage failed.", f64::from(stats.read_only)),
        gauge("kinfolk_writer_queue_length", "Requests that wait for the writer.", stats.queued as f64),
        gauge("kinfolk_writer_batch_size", "Mean requests per batch since the start.", mean_batch),
    ]
}

#[rustfmt::skip]
fn writes_and_repairs(stats: &Stats) -> Vec<Stat> {
    let sync_seconds = stats.sync_time.as_secs_f64();
    vec![
        counter("kinfolk_writer_batches_total", "Batches written.", stats.batches as f64),
        counter("kinfolk_writer_requests_total", "Requests in those batches.", stats.requests as f64),
        counter("kinfolk_writer_events_total", "Events in those batches.", stats.events as f64),
        counter("kinfolk_writer_syncs_total", "Syncs that the writer waited for.", stats.syncs as f64),
        counter("kinfolk_writer_sync_seconds_total", "Time that the writer waited for syncs.", sync_seconds),
        counter("kinfolk_reconciled_rows_total", "Rows compared with the truth.", stats.reconciled_rows as f64),
        counter("kinfolk_repaired_total", "Differences found by reconciliation and repaired.", stats.repaired as f64),
        counter("kinfolk_unreadable_total", "Rows or blocks that reconciliation could not read.", stats.unreadable as f64),
    ]
}

fn health(stats: &Stats) -> Vec<Stat> {
    vec![
        gauge(
            "kinfolk_store_failed",
            "1 if a thread of the store has failed; the server then stops.",
            f64::from(stats.failed),
        ),
        gauge(
            "kinfolk_flush_stalled_seconds",
            "Seconds since the last successful flush, while rows wait for one.",
            stats.flush_stalled.as_secs_f64(),
        ),
        counter(
            "kinfolk_flush_failures_total",
            "Failed flushes of rows and index snapshots.",
            stats.flush_failures as f64,
        ),
        gauge(
            "kinfolk_merge_stalled_seconds",
            "Seconds since the last successful compaction, while files wait for one.",
            stats.merge_stalled.as_secs_f64(),
        ),
        counter("kinfolk_merge_failures_total", "Failed compactions.", stats.merge_failures as f64),
        gauge(
            "kinfolk_clock_ahead_seconds",
            "How far the system's clock is ahead of the store's time, if the store ignores it.",
            stats.clock_ahead.as_secs_f64(),
        ),
        gauge(
            "kinfolk_clock_behind_seconds",
            "How far the clock is behind the newest assigned time.",
            stats.clock_behind.as_secs_f64(),
        ),
    ]
}

#[rustfmt::skip]
fn feeds_and_comments(stats: &Stats) -> Vec<Stat> {
    vec![
        gauge("kinfolk_fan_out_lag_events", "Changes that inboxes do not reflect yet.", stats.fan_out_lag_events as f64),
        gauge("kinfolk_fan_out_lag_seconds", "Age of the oldest of those changes.", stats.fan_out_lag.as_secs_f64()),
        counter("kinfolk_fan_out_entries_total", "Posts pushed to inboxes.", stats.fan_out_entries as f64),
        gauge("kinfolk_inboxes", "Users with an inbox.", stats.inboxes as f64),
        gauge("kinfolk_inbox_bytes", "Approximate memory of the inboxes.", stats.inbox_bytes as f64),
        gauge("kinfolk_purged_comments_waiting", "Purged comments whose bodies are still in files.", stats.purged_waiting as f64),
    ]
}

fn suggestions(stats: &Stats, run: Option<SuggestionRun>) -> Vec<Stat> {
    let seconds = |at: Option<Timestamp>| at.map_or(0.0, |at| at.millis() as f64 / 1_000.0);
    vec![
        gauge("kinfolk_walks_running", "Walks and large overlaps in progress.", stats.walks_running as f64),
        gauge("kinfolk_walks_waiting", "Walks that wait for a worker.", stats.walks_waiting as f64),
        counter("kinfolk_walks_total", "Finished walks.", stats.walks as f64),
        counter(
            "kinfolk_walks_given_up_total",
            "Finished walks whose caller had disconnected.",
            stats.walks_given_up as f64,
        ),
        gauge(
            "kinfolk_suggest_users_done",
            "Users that the latest computation of suggestions has visited since the start.",
            stats.suggest_users_done as f64,
        ),
        gauge("kinfolk_suggest_users", "Users that it has to visit.", stats.suggest_users_total as f64),
        gauge(
            "kinfolk_suggest_started_timestamp_seconds",
            "When the latest computation of suggestions started; 0 if there was none.",
            seconds(run.map(|run| run.started_at)),
        ),
        gauge(
            "kinfolk_suggest_finished_timestamp_seconds",
            "When it finished; 0 if it has not.",
            seconds(run.and_then(|run| run.finished_at)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use kinfolk_core::{ErrorCode, IdKind};
    use kinfolk_embedded::Settings;
    use kinfolk_server::{Metrics, Operation, Protocol, StatKind};

    use super::*;
    use crate::profile::dashboard::metrics_of;

    /// Statistics that need no panel.
    const NOT_SHOWN: [&str; 7] = [
        "kinfolk_recent_rows",
        "kinfolk_sealed_layers",
        "kinfolk_unmerged_runs",
        "kinfolk_reconciled_rows_total",
        "kinfolk_repaired_total",
        "kinfolk_unreadable_total",
        "kinfolk_purged_comments_waiting",
    ];

    #[test]
    fn the_dashboard_shows_all_statistics_and_only_metrics_that_exist() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        let store = Embedded::create(&path, IdKind::Integer, Settings::default()).unwrap();
        let metrics = Metrics::default();
        metrics.observe(Protocol::Rest, Operation::Check, 1, Duration::from_micros(1));
        metrics.failed(Protocol::Rest, Operation::Check, ErrorCode::InvalidId);
        let stats = stats(&store);
        let rendered = metrics.render(&stats, &layers(&store));
        let samples: BTreeSet<&str> = rendered
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split(['{', ' ']).next())
            .collect();
        let shown = metrics_of(include_str!("../../../../../docs/operating/grafana.json"));
        for name in &shown {
            assert!(samples.contains(name.as_str()), "the dashboard asks for {name}, which is not rendered");
        }
        for Stat { name, kind, .. } in &stats {
            assert_eq!(*kind == StatKind::Counter, name.ends_with("_total"), "{name}");
            assert_eq!(shown.contains(*name), !NOT_SHOWN.contains(name), "{name}");
        }
        for name in [
            "kinfolk_request_duration_seconds_bucket",
            "kinfolk_request_failures_total",
            "kinfolk_connections",
            "kinfolk_suggestions_served_total",
            "kinfolk_layer_duration_seconds_bucket",
        ] {
            assert!(shown.contains(name), "the dashboard does not show {name}");
        }
        store.close().unwrap();
    }
}
