//! What a projection of the change log is, and the one list of them that opening, replay, publishing, flushing, snapshots, compaction,
//! verification, reconciliation, backups and closing go through. `engine/open.rs` opens the projections of a store and lists them;
//! those that reads go to are fields of the store as well (`engine/store.rs`).

mod difference;
mod reconcile;
mod recount;
mod suspects;
mod tree;

use kinfolk_core::{Result, Sequence, Timestamp};

pub(crate) use difference::{Count, Counting, Difference, Fault, FaultOf, difference};
pub(crate) use reconcile::{Findings, Reconcile, Unreadable};
pub(crate) use recount::Recount;
pub(crate) use suspects::{Suspects, TOGETHER};
pub(crate) use tree::{Row, TreeProjection};

use crate::disk::backup_file::BackupPart;
use crate::disk::format::Content;
use crate::log::{Event, LogReader};
use crate::lsm::RowStorage;

/// State that follows from the events of the log.
///
/// The log is trimmed. Pairs, posts and comments keep what it no longer has: they are the records, and only a backup replaces them. Every
/// other projection can be dropped and built again, from records or from events.
///
/// An import is one event without its edges: rows and index of edges load them together, from files. Live, projections in memory then
/// get the event through [`Projection::apply`]; a replay does not pass it on. So whatever depends on edges must be rebuilt after one.
///
/// Only the writer applies events, in batches that are durable already; nothing is visible before all projections have a batch. No
/// method is on the path of a check.
pub(crate) trait Projection: Send + Sync {
    /// The content whose events it takes. A store whose format does not announce that content has none of them yet.
    ///
    /// A projection that is new to stores that exist lacks their log, which may be trimmed. It takes a content of its own, which
    /// begins with the first such event ([`Content`]); or it is rebuilt from rows when it is opened, as the index is; or it says
    /// that it has everything ([`Projection::applied`]) and catches up by itself ([`Projection::catch_up`]), as feeds do.
    fn content(&self) -> Content;

    /// Up to where it had the log when it was opened: a start replays what comes after the lowest.
    fn applied(&self) -> Result<Sequence>;

    /// Applies those of the events that it lacks.
    fn apply(&self, events: &[Event]) -> Result<()>;

    /// As [`Projection::apply`], at a start, before the newest position is known.
    fn replay(&self, events: &[Event]) -> Result<()> {
        self.apply(events)
    }

    /// The last step of a start, for a projection that the log is not kept for: it reads what it lacks by itself.
    fn catch_up(&self, _log: &LogReader, _newest: Sequence) -> Result<()> {
        Ok(())
    }

    /// Its rows on disk, which are flushed and compacted; `None` for a projection in memory.
    fn rows(&self) -> Option<&dyn RowStorage> {
        None
    }

    /// Whether its rows may be compacted now.
    fn may_be_compacted(&self) -> bool {
        true
    }

    /// Up to where the snapshot of a projection in memory has the log, which is kept from there on; `None` without one.
    fn snapshotted(&self) -> Option<Sequence> {
        None
    }

    /// Replaces the snapshot by one that has the log at least up to a position.
    fn snapshot(&self, _position: Sequence) -> Result<()> {
        Ok(())
    }

    /// Compares all of it with the truth. Writes go on meanwhile: what seems to differ is looked at again. `now` is not earlier than any
    /// event.
    fn compare(&self, _now: Timestamp, _suspects: &mut Suspects<'_>) -> Result<()> {
        Ok(())
    }

    /// The idempotency key that an event must have left in it, as something that may differ.
    fn logged_key(&self, _event: &Event) -> Option<Difference> {
        None
    }

    /// Compares it with the truth in the background, if that is more than dropping it.
    fn reconcile(&self) -> Option<Box<dyn Reconcile>> {
        None
    }

    /// A projection that it may be built from was repaired.
    fn source_repaired(&self) -> Result<()> {
        Ok(())
    }

    /// What it puts into a backup, as of now; nothing if a restore builds it from others. Called by the writer, between two batches.
    fn back_up(&self) -> Result<Option<BackupPart>> {
        Ok(None)
    }

    /// Stores what a clean end should leave behind.
    fn close(&self) -> Result<()> {
        Ok(())
    }
}

/// All projections of a store, in the order in which a batch is applied to them.
pub(crate) struct Projections(pub Vec<Box<dyn Projection>>);

impl Projections {
    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &dyn Projection> {
        self.0.iter().map(|projection| &**projection)
    }

    /// Those that a store with such content has events for.
    pub(crate) fn used(&self, content: Content) -> impl Iterator<Item = &dyn Projection> {
        self.all().filter(move |projection| content >= projection.content())
    }

    /// The rows of those.
    pub(crate) fn rows(&self, content: Content) -> impl Iterator<Item = &dyn RowStorage> {
        self.used(content).filter_map(Projection::rows)
    }

    /// Those that are kept in memory.
    pub(crate) fn in_memory(&self) -> impl Iterator<Item = &dyn Projection> {
        self.all().filter(|projection| projection.rows().is_none())
    }

    /// Up to where all snapshots have the log.
    pub(crate) fn snapshotted(&self) -> Sequence {
        self.all().filter_map(Projection::snapshotted).min().unwrap_or_default()
    }
}
