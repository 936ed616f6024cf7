//! The statistics of the embedded store for Prometheus. The server adds its own.

use kinfolk_core::Timestamp;
use kinfolk_core::bulk::SuggestionRun;
use kinfolk_embedded::{Embedded, Figures, Layer};
use kinfolk_server::{Figure, FigureKind, LayerTimes};

/// All statistics of the store. Cheap: it reads counters.
pub(crate) fn stats(store: &Embedded) -> Vec<Figure> {
    let figures = store.figures();
    let mut all = gauges(&figures);
    all.extend(counters(&figures));
    all.extend(health(&figures));
    all.extend(feeds_and_comments(&figures));
    all.extend(suggestions(&figures, store.suggestion_run()));
    all
}

/// The latencies of the layers of the store.
pub(crate) fn layers(store: &Embedded) -> Vec<LayerTimes> {
    Layer::ALL.map(|layer| LayerTimes { layer: layer.name(), times: store.layer_times(layer) }).into()
}

fn gauges(figures: &Figures) -> Vec<Figure> {
    let mean_batch = figures.requests as f64 / figures.batches.max(1) as f64;
    [
        ("kinfolk_edges", "Edges in the graph.", figures.edges as f64),
        ("kinfolk_index_users", "Users that the index knows.", figures.users as f64),
        ("kinfolk_index_bytes", "Memory of the index, roughly.", figures.index_bytes as f64),
        (
            "kinfolk_cache_bytes",
            "Memory that cached blocks of rows may take.",
            figures.cache_bytes_max as f64,
        ),
        ("kinfolk_recent_rows", "Rows that are in memory only.", figures.recent_rows as f64),
        (
            "kinfolk_sealed_layers",
            "Layers of rows that wait to be written to disk.",
            figures.sealed_layers as f64,
        ),
        ("kinfolk_unmerged_runs", "Un-merged runs of the tree that has most.", figures.runs as f64),
        ("kinfolk_log_bytes", "Bytes of the change log on disk.", figures.log_bytes as f64),
        ("kinfolk_log_position_newest", "The newest visible position.", figures.newest.0 as f64),
        ("kinfolk_log_position_trimmed", "Changes up to here are no longer kept.", figures.trimmed.0 as f64),
        ("kinfolk_flushed_position", "Rows up to here are on disk.", figures.flushed.0 as f64),
        ("kinfolk_snapshot_position", "The index snapshot is as of here.", figures.snapshotted.0 as f64),
        (
            "kinfolk_read_only",
            "1 if writes are refused since the storage failed.",
            f64::from(figures.read_only),
        ),
        ("kinfolk_writer_queue_length", "Requests that wait for the writer.", figures.queued as f64),
        ("kinfolk_writer_batch_size", "Requests in a batch, on average since the start.", mean_batch),
    ]
    .map(|(name, help, value)| Figure { name, help, kind: FigureKind::Gauge, value })
    .to_vec()
}

fn counters(figures: &Figures) -> Vec<Figure> {
    let sync_seconds = figures.sync_time.as_secs_f64();
    [
        ("kinfolk_writer_batches_total", "Batches made visible.", figures.batches as f64),
        ("kinfolk_writer_requests_total", "Requests that they answered.", figures.requests as f64),
        ("kinfolk_writer_events_total", "Events in them.", figures.events as f64),
        ("kinfolk_writer_syncs_total", "How often the writer waited for a sync.", figures.syncs as f64),
        ("kinfolk_writer_sync_seconds_total", "How long it waited for them.", sync_seconds),
        ("kinfolk_reconciled_rows_total", "Rows compared with the truth.", figures.reconciled_rows as f64),
        ("kinfolk_repaired_total", "Differences found by that and repaired.", figures.repaired as f64),
        (
            "kinfolk_unreadable_total",
            "Rows or blocks that could not be read for that.",
            figures.unreadable as f64,
        ),
    ]
    .map(|(name, help, value)| Figure { name, help, kind: FigureKind::Counter, value })
    .to_vec()
}

fn health(figures: &Figures) -> Vec<Figure> {
    use FigureKind::{Counter, Gauge};
    [
        (
            "kinfolk_store_failed",
            "1 if a thread of the store has died; the server then ends.",
            Gauge,
            f64::from(figures.failed),
        ),
        (
            "kinfolk_flush_stalled_seconds",
            "While rows wait to be written to disk: seconds since that last succeeded.",
            Gauge,
            figures.flush_stalled.as_secs_f64(),
        ),
        (
            "kinfolk_flush_failures_total",
            "How often rows or an index snapshot could not be written to disk.",
            Counter,
            figures.flush_failures as f64,
        ),
        (
            "kinfolk_merge_stalled_seconds",
            "While row files wait to be merged: seconds since that last succeeded.",
            Gauge,
            figures.merge_stalled.as_secs_f64(),
        ),
        (
            "kinfolk_merge_failures_total",
            "How often row files could not be merged.",
            Counter,
            figures.merge_failures as f64,
        ),
        (
            "kinfolk_clock_ahead_seconds",
            "How far the system's clock is ahead of the store's time, where that is too far to be followed.",
            Gauge,
            figures.clock_ahead.as_secs_f64(),
        ),
        (
            "kinfolk_clock_behind_seconds",
            "How far the newest time that was given out is ahead of the clock.",
            Gauge,
            figures.clock_behind.as_secs_f64(),
        ),
    ]
    .map(|(name, help, kind, value)| Figure { name, help, kind, value })
    .to_vec()
}

fn feeds_and_comments(figures: &Figures) -> Vec<Figure> {
    use FigureKind::{Counter, Gauge};
    [
        (
            "kinfolk_fan_out_lag_events",
            "Changes whose effect on inboxes is not done yet.",
            Gauge,
            figures.fan_out_lag_events as f64,
        ),
        (
            "kinfolk_fan_out_lag_seconds",
            "How long ago the oldest of them was accepted.",
            Gauge,
            figures.fan_out_lag.as_secs_f64(),
        ),
        ("kinfolk_fan_out_entries_total", "Posts put into inboxes.", Counter, figures.fan_out_entries as f64),
        ("kinfolk_inboxes", "Users with an inbox.", Gauge, figures.inboxes as f64),
        ("kinfolk_inbox_bytes", "Memory of the inboxes, roughly.", Gauge, figures.inbox_bytes as f64),
        (
            "kinfolk_purged_comments_waiting",
            "Comments that were purged and whose texts are still in files.",
            Gauge,
            figures.purged_waiting as f64,
        ),
    ]
    .map(|(name, help, kind, value)| Figure { name, help, kind, value })
    .to_vec()
}

fn suggestions(figures: &Figures, run: Option<SuggestionRun>) -> Vec<Figure> {
    use FigureKind::{Counter, Gauge};
    let seconds = |at: Option<Timestamp>| at.map_or(0.0, |at| at.millis() as f64 / 1_000.0);
    let started = seconds(run.map(|run| run.started_at));
    let finished = seconds(run.and_then(|run| run.finished_at));
    [
        ("kinfolk_walks_running", "Walks and large overlaps under way.", Gauge, figures.walks_running as f64),
        ("kinfolk_walks_waiting", "Those that wait for their turn.", Gauge, figures.walks_waiting as f64),
        ("kinfolk_walks_total", "Those that have ended.", Counter, figures.walks as f64),
        (
            "kinfolk_walks_given_up_total",
            "Those of them whose caller had gone.",
            Counter,
            figures.walks_given_up as f64,
        ),
        (
            "kinfolk_suggest_users_done",
            "Users that the newest run of suggestions has looked at since the start.",
            Gauge,
            figures.suggest_users_done as f64,
        ),
        ("kinfolk_suggest_users", "Users that it has to look at.", Gauge, figures.suggest_users_total as f64),
        (
            "kinfolk_suggest_started_timestamp_seconds",
            "When the newest run of suggestions for everyone began; 0 if there was none.",
            Gauge,
            started,
        ),
        ("kinfolk_suggest_finished_timestamp_seconds", "When it ended; 0 if it has not.", Gauge, finished),
    ]
    .map(|(name, help, kind, value)| Figure { name, help, kind, value })
    .to_vec()
}

#[cfg(test)]
mod tests {
    use kinfolk_core::IdKind;
    use kinfolk_embedded::Settings;
    use kinfolk_server::STORE_FIGURES;

    use super::*;

    #[test]
    fn all_metrics_of_the_dashboard_exist() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        let store = Embedded::create(&path, IdKind::Integer, Settings::default()).unwrap();
        let stats = stats(&store);
        for (name, kind) in STORE_FIGURES {
            assert!(stats.iter().any(|figure| figure.name == name && figure.kind == kind), "{name}");
        }
        store.close().unwrap();
    }
}
