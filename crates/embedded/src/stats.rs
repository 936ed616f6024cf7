//! Statistics of an open store: sizes, positions and what was done since it was opened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kinfolk_core::Sequence;

/// The state of a store at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that wait for the writer.
    pub queued: u64,
    /// Batches made visible; each had at most one sync.
    pub batches: u64,
    /// Requests in them.
    pub requests: u64,
    /// Events in them.
    pub events: u64,
    /// How often the writer waited for a sync of the log.
    pub syncs: u64,
    /// How long it waited for them, in all.
    pub sync_time: Duration,
    /// Users that the index knows, over all kinds.
    pub users: u64,
    /// Edges, over all kinds.
    pub edges: u64,
    /// Bytes that the index takes in memory, roughly.
    pub index_bytes: u64,
    /// Bytes that cached blocks of rows may take in memory.
    pub cache_bytes_max: u64,
    /// Rows that are in memory only.
    pub recent_rows: u64,
    /// Layers of rows that wait to be written to disk.
    pub sealed_layers: u64,
    /// Runs that are not compacted, of the tree that has most.
    pub runs: u64,
    /// Bytes of the change log on disk.
    pub log_bytes: u64,
    /// Bytes of the log and of the files of rows together. Index snapshots and indexes for a quick start are not counted.
    pub disk_bytes: u64,
    /// The newest visible position.
    pub newest: Sequence,
    /// Changes up to here are trimmed from the log.
    pub trimmed: Sequence,
    /// Rows up to here are on disk.
    pub flushed: Sequence,
    /// The index snapshot is as of here.
    pub snapshotted: Sequence,
    /// Whether writes are refused since the storage failed.
    pub read_only: bool,
    /// Whether a thread of the store has died: it should be opened again.
    pub failed: bool,
    /// While rows wait to be written to disk: how long ago that last succeeded.
    pub flush_stalled: Duration,
    /// How often it failed, or an index snapshot did.
    pub flush_failures: u64,
    /// While row files wait for compaction: how long ago that last succeeded.
    pub merge_stalled: Duration,
    /// How often it failed.
    pub merge_failures: u64,
    /// How far the system's clock is ahead of the store's time, where it is not followed.
    pub clock_ahead: Duration,
    /// How far the newest time that was given out is ahead of the clock.
    pub clock_behind: Duration,
    /// Rows that were compared with the truth in the background.
    pub reconciled_rows: u64,
    /// Differences that were found by that and repaired.
    pub repaired: u64,
    /// Rows, or blocks of them, that could not be read for that.
    pub unreadable: u64,
    /// Walks and large overlaps that are under way.
    pub walks_running: u64,
    /// Those that wait for their turn.
    pub walks_waiting: u64,
    /// Those that have ended.
    pub walks: u64,
    /// Those of them whose caller had gone.
    pub walks_given_up: u64,
    /// Users that the newest run of suggestions for everyone has looked at…
    pub suggest_users_done: u64,
    /// …of so many.
    pub suggest_users_total: u64,
    /// Events whose effect on inboxes is not done yet.
    pub fan_out_lag_events: u64,
    /// How long ago the oldest of them was accepted.
    pub fan_out_lag: Duration,
    /// Posts that were put into inboxes.
    pub fan_out_entries: u64,
    /// Users with an inbox.
    pub inboxes: u64,
    /// Bytes that inboxes take in memory, roughly.
    pub inbox_bytes: u64,
    /// How many comments were purged whose bodies are still in files.
    pub purged_waiting: u64,
}

/// What is counted while a store is open.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    batches: AtomicU64,
    requests: AtomicU64,
    events: AtomicU64,
    syncs: AtomicU64,
    sync_nanos: AtomicU64,
    reconciled_rows: AtomicU64,
    repaired: AtomicU64,
    unreadable: AtomicU64,
}

impl Counters {
    /// A batch was made visible.
    pub(crate) fn batch(&self, requests: usize, events: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
        self.events.fetch_add(events as u64, Ordering::Relaxed);
    }

    /// The writer waited for a sync.
    pub(crate) fn synced(&self, waited: Duration) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.sync_nanos.fetch_add(waited.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Rows were compared with the truth.
    pub(crate) fn reconciled(&self, rows: usize) {
        self.reconciled_rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Differences were repaired.
    pub(crate) fn repaired(&self, differences: usize) {
        self.repaired.fetch_add(differences as u64, Ordering::Relaxed);
    }

    /// How many differences were ever repaired.
    pub(crate) fn repairs(&self) -> u64 {
        self.repaired.load(Ordering::Relaxed)
    }

    /// Rows could not be read to be compared.
    pub(crate) fn unreadable(&self, times: u64) {
        self.unreadable.fetch_add(times, Ordering::Relaxed);
    }

    /// The counters' part of the statistics.
    pub(crate) fn stats(&self) -> Stats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            batches: of(&self.batches),
            requests: of(&self.requests),
            events: of(&self.events),
            syncs: of(&self.syncs),
            sync_time: Duration::from_nanos(of(&self.sync_nanos)),
            reconciled_rows: of(&self.reconciled_rows),
            repaired: of(&self.repaired),
            unreadable: of(&self.unreadable),
            ..Stats::default()
        }
    }
}
