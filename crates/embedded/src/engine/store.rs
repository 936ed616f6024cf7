//! What an open store shares between its writer, its background work and its readers, and how rows get from memory to disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kinfolk_core::{EdgeKind, Error, Keyring, Result, Sequence, Timestamp};
use parking_lot::Mutex;

use super::visibility::Visibility;
use super::worker_pool::WorkerPool;
use crate::comments::Comments;
use crate::disk::checkpoint::Checkpoint;
use crate::disk::format::{self, Content, Identity};
use crate::edges::Edges;
use crate::feeds::Feeds;
use crate::log::{Event, LogReader, Retention};
use crate::lsm::{RowStorage, Shared};
use crate::posts::Posts;
use crate::projection::{Projection, Projections};
use crate::runtime::folder::StoreFolder;
use crate::runtime::health::Health;
use crate::runtime::layers::Layers;
use crate::runtime::pulse::Pulse;
use crate::runtime::signal::Signal;
use crate::settings::Settings;
use crate::stats::Counters;
use crate::suggestions::ComputedSuggestions;

/// An open store.
pub(crate) struct Store {
    pub folder: StoreFolder,
    pub identity: Identity,
    pub settings: Settings,
    /// What the log may have.
    pub(super) content: AtomicU32,
    pub log: LogReader,
    pub keys: Keyring,
    /// What all row trees share.
    pub shared: Shared,
    /// All projections of the log. Those that reads go to are named below, too.
    pub projections: Projections,
    pub edges: Arc<Edges>,
    pub posts: Arc<Posts>,
    pub comments: Arc<Comments>,
    pub feeds: Arc<Feeds>,
    /// Suggestions computed for everyone. No projection: they follow from the graph when they are computed, not from events.
    pub suggestions: ComputedSuggestions,
    /// The newest position that every read sees, and who waits for a later one.
    pub visibility: Visibility,
    /// Everything up to here is in flushed rows.
    pub flushed: AtomicU64,
    /// Everything up to here is in sealed or flushed rows.
    pub sealed: AtomicU64,
    /// The earliest `since` that may be given out, in milliseconds; the writer's, for the checkpoint.
    pub floor: AtomicU64,
    /// Held while no snapshot may be taken: while an import is half applied.
    pub snapshot_gate: Mutex<()>,
    /// Held while the checkpoint is written.
    pub(super) checkpointing: Mutex<()>,
    /// A projection was repaired. Repairs are not in the log: they last once they are in a snapshot.
    pub repaired: AtomicBool,
    /// A batch could not be applied whole: rows in memory must not be stored.
    pub(super) half_applied: AtomicBool,
    /// Wakes the thread that flushes rows.
    pub flushing: Signal,
    /// Wakes the thread that takes snapshots.
    pub snapshotting: Signal,
    /// Wakes the thread that compacts row files and reconciles.
    pub compacting: Signal,
    /// Wakes the thread that erases purged bodies.
    pub erasing: Signal,
    /// How flushing is doing.
    pub flushes: Pulse,
    /// How compaction is doing.
    pub compactions: Pulse,
    /// What keeps maintenance from writing rows to disk.
    pub flush_failure: Mutex<Option<Error>>,
    /// What keeps row files from being compacted.
    pub compaction_failure: Mutex<Option<Error>>,
    pub(super) opened: Instant,
    pub counters: Counters,
    /// How long what takes.
    pub layers: Layers,
    /// Threads for long work in requests.
    pub workers: Arc<WorkerPool>,
    /// Why writes are refused, if they are, and whether a thread has died.
    pub health: Arc<Health>,
}

impl Store {
    /// Makes durable events visible.
    pub(crate) fn publish(&self, events: &[Event]) -> Result<()> {
        // A batch that follows one that was applied in part was decided on top of it.
        self.require_whole()?;
        let Some(last) = events.last() else { return Ok(()) };
        for projection in self.projections.all() {
            projection.apply(events).inspect_err(|_| self.half_applied.store(true, Ordering::Release))?;
        }
        self.visibility.publish(last.position);
        Ok(())
    }

    /// What may be in it.
    pub(crate) fn content(&self) -> Content {
        Content::from_number(self.content.load(Ordering::Acquire)).unwrap_or(Content::NEWEST)
    }

    /// Whether there may be such content.
    pub(crate) fn has(&self, content: Content) -> bool {
        self.content.load(Ordering::Acquire) >= content as u32
    }

    /// Makes the store ready for its first post, comment or moderator. Called by the writer.
    pub(crate) fn begin(&self, content: Content) -> Result<()> {
        self.folder.require()?;
        // Before the format announces content, the rows of its projections say up to where the log has none of it.
        let later = self.projections.all().filter(|projection| projection.content() > Content::Edges);
        for rows in later.filter_map(Projection::rows) {
            // What could not be flushed before does not pile up.
            rows.flush()?;
            rows.seal(self.position());
            rows.flush()?;
        }
        format::write_identity(self.folder.path(), Identity { content, ..self.identity })?;
        self.content.store(content as u32, Ordering::Release);
        Ok(())
    }

    /// The rows of all projections, as far as there may be any.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &dyn RowStorage> {
        self.projections.rows(self.content())
    }

    /// Those that may be compacted in the background now.
    pub(crate) fn compactable_rows(&self) -> impl Iterator<Item = &dyn RowStorage> {
        let used = self.projections.used(self.content());
        used.filter(|projection| projection.may_be_compacted()).filter_map(Projection::rows)
    }

    /// Whether rows are handed over for flushing.
    pub(crate) fn has_sealed(&self) -> bool {
        self.rows().any(|rows| rows.backlog().sealed > 0)
    }

    /// The newest position that every read sees.
    pub(crate) fn position(&self) -> Sequence {
        self.visibility.position()
    }

    /// No event that is visible is later than this.
    pub(crate) fn newest_time(&self) -> Timestamp {
        Timestamp::from_millis(self.floor.load(Ordering::Acquire))
    }

    /// Hands rows in memory over for flushing when there are many. Called by the writer, between batches.
    pub(crate) fn seal_if_large(&self) {
        if self.rows().any(|rows| rows.is_large(&self.settings)) {
            self.seal();
        }
    }

    /// Hands all rows in memory over for flushing, unless they have a part of a batch. Called by the writer, between batches.
    pub(crate) fn seal(&self) {
        if self.require_whole().is_err() {
            return;
        }
        let position = self.position();
        self.rows().for_each(|rows| rows.seal(position));
        self.sealed.store(position.0, Ordering::Release);
        self.flushing.wake();
        self.snapshotting.wake();
    }

    /// Brings all rows to where a scan meets them: to disk or, where that is full, into sealed layers. Called by the writer,
    /// between batches.
    pub(crate) fn settle_rows(&self) -> Result<()> {
        match self.flush_now() {
            Err(Error::StorageFull { .. }) => {
                self.seal();
                Ok(())
            }
            other => other,
        }
    }

    /// Brings all rows into files. Called by the writer, between batches.
    pub(crate) fn flush_now(&self) -> Result<()> {
        self.require_whole()?;
        self.folder.require()?;
        let position = self.position();
        self.flush_rows(position)?;
        self.sealed.fetch_max(position.0, Ordering::AcqRel);
        self.record_flushed(position)
    }

    /// Brings all rows into files, with the position that everything is applied up to. Called by the writer, between batches.
    pub(crate) fn flush_rows(&self, position: Sequence) -> Result<()> {
        self.rows().try_for_each(|rows| {
            rows.seal(position);
            rows.flush()
        })
    }

    /// Records that rows are stored up to a position.
    pub(crate) fn record_flushed(&self, position: Sequence) -> Result<()> {
        // The writer and maintenance may both have flushed: one at a time, and never back.
        let _alone = self.checkpointing.lock();
        let position = position.max(Sequence(self.flushed.load(Ordering::Acquire)));
        Checkpoint { rows: position, floor: self.newest_time() }.write(self.folder.path())?;
        self.flushed.fetch_max(position.0, Ordering::AcqRel);
        Ok(())
    }

    /// Takes snapshots of the projections in memory. The caller holds the gate.
    pub(crate) fn snapshot(&self) -> Result<()> {
        self.repaired.store(false, Ordering::Release);
        // The position is read first: what projections get meanwhile is replayed again, harmlessly.
        let position = self.position();
        self.projections.all().try_for_each(|projection| projection.snapshot(position))
    }

    /// Refuses to store rows that have a part of a batch: their position would say that all of it is in. The log has the whole
    /// batch, and the next start applies it.
    pub(crate) fn require_whole(&self) -> Result<()> {
        if self.half_applied.load(Ordering::Acquire) { self.health.require_writable() } else { Ok(()) }
    }

    /// A start needs the log only after this position.
    pub(crate) fn recoverable(&self) -> Sequence {
        Sequence(self.flushed.load(Ordering::Acquire)).min(self.projections.snapshotted())
    }

    /// What is kept of the log.
    pub(crate) fn retention(&self, now: Timestamp) -> Retention {
        let Settings { log_keep, log_keep_at_start, log_keep_bytes, .. } = self.settings;
        let age_counts = self.opened.elapsed() >= log_keep.min(log_keep_at_start);
        let keep_millis = u64::try_from(log_keep.as_millis()).unwrap_or(u64::MAX);
        let keep_after = if age_counts { now.millis().saturating_sub(keep_millis) } else { 0 };
        Retention {
            keep_bytes: log_keep_bytes,
            keep_after: Timestamp::from_millis(keep_after),
            needed_after: self.recoverable(),
        }
    }

    /// How long until the clock reaches the newest time that was given out.
    pub(crate) fn clock_behind(&self, now: Timestamp) -> Duration {
        Duration::from_millis(self.floor.load(Ordering::Acquire).saturating_sub(now.millis()))
    }

    /// How many edges there are, of all kinds.
    pub(crate) fn edge_count(&self) -> u64 {
        EdgeKind::ALL.iter().map(|&kind| self.edges.index.of(kind).edge_count()).sum()
    }

    /// Whether rows wait to be written to disk.
    pub(crate) fn is_flush_waiting(&self) -> bool {
        self.sealed.load(Ordering::Acquire) > self.flushed.load(Ordering::Acquire)
    }

    /// Why rows can't be written to disk, if that is so.
    pub(crate) fn maintenance_failure(&self) -> Option<Error> {
        self.flush_failure.lock().clone().or_else(|| self.compaction_failure.lock().clone())
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::block_on;
    use kinfolk_core::feeds::{NewPost, PostStore};
    use kinfolk_core::{Frontier, Id, IdKind};

    use super::*;
    use crate::Embedded;

    /// Clocks of machines that have just started may be wrong, and consumers come back with the server.
    #[test]
    fn nothing_goes_for_its_age_just_after_a_start() {
        let week = Duration::from_secs(7 * 24 * 3_600);
        for (log_keep, log_keep_at_start, kept_after) in [
            (week, Duration::from_secs(3_600), Timestamp::MIN),
            (week, Duration::ZERO, Timestamp::from_millis(1)),
            (Duration::ZERO, Duration::from_secs(3_600), Timestamp::from_millis(week.as_millis() as u64 + 1)),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let settings = Settings { log_keep, log_keep_at_start, ..Settings::default() };
            let store = Embedded::create(folder.path(), IdKind::Integer, settings).unwrap();
            let now = Timestamp::from_millis(week.as_millis() as u64 + 1);
            assert_eq!(store.store.retention(now).keep_after, kept_after);
        }
    }

    /// Segments go as soon as nothing needs them; posts must not.
    #[test]
    fn the_log_is_kept_for_as_long_as_posts_need_it() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { segment_bytes: 1 << 10, log_keep_bytes: 0, ..Settings::default() };
        let mut store = Embedded::create(folder.path(), IdKind::Integer, settings.clone()).unwrap();
        let author = Id::Integer(1);
        let request = NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None };
        for round in 1..=3 {
            for _ in 0..100 {
                block_on(store.register(request.clone())).unwrap();
            }
            let tend = |store: &Embedded| {
                store
                    .ask_writer(|writer| {
                        writer.store.snapshot()?;
                        writer.tend_log()?;
                        Ok(writer.store.log.trimmed())
                    })
                    .unwrap()
            };
            let unflushed = tend(&store);
            assert!(unflushed <= Sequence(store.store.flushed.load(Ordering::Acquire)));
            if round == 2 {
                store.flush().unwrap();
                assert!(tend(&store) > unflushed);
            }
            drop(store);
            store = Embedded::open(folder.path(), settings.clone()).unwrap();
            assert_eq!(
                block_on(store.posts_by(author, None, 1_000, Frontier::EMPTY)).unwrap().len(),
                round * 100
            );
            assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
        }
    }

    /// What a batch has left that was not applied to its end is brought to no file, on no path.
    #[test]
    fn half_of_a_batch_is_never_stored() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::create(folder.path(), IdKind::Integer, Settings::default()).unwrap();
        let author = Id::Integer(1);
        let post = NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None };
        block_on(store.register(post)).unwrap();
        let shared = Arc::clone(&store.store);
        let flushed = || shared.flushed.load(Ordering::Acquire);
        let before = flushed();
        shared.half_applied.store(true, Ordering::Release);
        shared.health.refuse_writes("a batch is applied in part");
        let seal = |writer: &mut crate::engine::writer::Writer| {
            writer.store.seal();
            Ok(())
        };
        store.ask_writer(seal).unwrap();
        assert!(!shared.has_sealed() && shared.sealed.load(Ordering::Acquire) == before);
        assert!(matches!(shared.flush_now(), Err(Error::ReadOnly { .. })));
        assert!(matches!(shared.require_whole(), Err(Error::ReadOnly { .. })));
        // Nor is a batch that follows it made visible, one that changes nothing included.
        assert!(matches!(shared.publish(&[]), Err(Error::ReadOnly { .. })));
        drop(store);
        assert_eq!(flushed(), before);
    }
}
