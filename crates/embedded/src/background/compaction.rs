//! Background work that nobody waits for unless it falls far behind: compacting row files, and comparing projections with
//! the truth. It runs at a low priority: what users ask for comes first.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kinfolk_core::{Result, Sequence};
use tokio::sync::mpsc;

use super::maintenance;
use crate::background::reconcile::Reconciler;
use crate::disk::free_space::FreeSpace;
use crate::engine::store::Store;
use crate::engine::writer::Command;
use crate::lsm::RowStorage;
use crate::runtime::signal;

/// How often it looks around when nobody wakes it.
const TICK: Duration = Duration::from_secs(1);
/// So many changes a second make a store busy: then files are compacted later, and more of them at once.
const BUSY_CHANGES: f64 = 2_000.0;
/// How many runs are worth compacting in a calm store, and in a busy one.
const RUNS_CALM: u8 = 4;
const RUNS_BUSY: u8 = 16;

/// Works until it is stopped.
pub(crate) fn run(store: &Arc<Store>, commands: &mpsc::WeakSender<Command>) {
    signal::lower_priority();
    let mut pace = Pace { position: store.position(), at: Instant::now(), busy: false };
    let mut reconciler = Reconciler::new(Arc::clone(store), store.settings.reconcile_rows);
    let (mut reconciled, mut room) = (Instant::now(), FreeSpace::default());
    while store.compacting.wait(TICK) {
        let busy = pace.is_busy(store.position(), Instant::now());
        if store.folder.require().is_err() {
            store.compactions.beat(false);
            continue;
        }
        let Some(compacted) = room.work(store.folder.path(), || compact(store, busy)) else { continue };
        store.compactions.beat(compacted.is_ok());
        *store.compaction_failure.lock() = compacted.err().inspect(|error| {
            maintenance::note_failure(store, error, "row files could not be compacted; it is tried again");
        });
        // Once a second at most, and not while writers may be waiting for compaction.
        if reconciled.elapsed() < TICK || store.edges.rows.backlog().runs > usize::from(RUNS_BUSY) {
            continue;
        }
        reconciled = Instant::now();
        reconciler.step(reconciled, commands);
    }
}

fn compact(store: &Store, busy: bool) -> Result<()> {
    let runs = if busy { RUNS_BUSY } else { RUNS_CALM };
    let should_stop = || store.compacting.is_stopping();
    // Also without a flush: runs that an earlier process left would otherwise keep writers waiting for ever.
    let mut grown = store.compactable_rows().filter(|rows| rows.backlog().runs >= usize::from(runs));
    grown.try_for_each(|rows| rows.compact(runs, &should_stop))
}

/// Whether there are enough runs to be worth compacting, at least in a calm store.
pub(crate) fn is_waiting(store: &Store) -> bool {
    store.compactable_rows().any(|rows| rows.backlog().runs >= usize::from(RUNS_CALM))
}

/// How fast the graph changes.
struct Pace {
    position: Sequence,
    at: Instant,
    busy: bool,
}

impl Pace {
    fn is_busy(&mut self, position: Sequence, now: Instant) -> bool {
        let seconds = now.duration_since(self.at).as_secs_f64();
        if seconds >= TICK.as_secs_f64() / 2.0 {
            self.busy = (position.0 - self.position.0) as f64 / seconds >= BUSY_CHANGES;
            (self.position, self.at) = (position, now);
        }
        self.busy
    }
}
