//! Snapshots of the projections in memory, in the background: they keep the replay of a start short. A snapshot takes long, and
//! nobody waits for it, so it has a thread of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kinfolk_core::{Clock, Result};
use tokio::sync::mpsc;

use crate::disk::free_space::FreeSpace;
use crate::engine::store::Store;
use crate::engine::writer::Command;
use crate::log::Retention;
use crate::runtime::signal;

/// How often it looks around when nobody wakes it.
const TICK: Duration = Duration::from_secs(1);

/// Works until it is stopped.
pub(crate) fn run(store: &Arc<Store>, clock: &dyn Clock, commands: &mpsc::WeakSender<Command>) {
    signal::lower_priority();
    // A snapshot needs much room.
    let mut room = FreeSpace::default();
    while store.snapshotting.wait(TICK) {
        if store.folder.require().is_err() {
            continue;
        }
        let stored = room.work(store.folder.path(), || {
            snapshot_if_due(store)?;
            store_what_is_too_old(store, &store.retention(clock.now()), commands)
        });
        if let Some(Err(error)) = stored {
            tracing::error!(%error, "the index could not be stored; it is tried again");
        }
    }
}

fn snapshot_if_due(store: &Store) -> Result<()> {
    let behind = store.position().0 - store.projections.snapshotted().0;
    let repaired = store.repaired.load(Ordering::Acquire);
    if (behind >= interval(store.settings.snapshot_events, store.edge_count()) || repaired)
        && let Some(_open) = store.snapshot_gate.try_lock()
    {
        store.snapshot()?;
    }
    Ok(())
}

/// After how many events a snapshot is due. A hundredth of the edges counts where they are many: such a store would write snapshots
/// all the time.
fn interval(setting: u64, edges: u64) -> u64 {
    const MANY: u64 = 200_000_000;
    if edges > MANY { setting.max(edges / 100) } else { setting }
}

/// Brings changes that are too old for the log to where a start finds them without it: a store in which little happens would
/// keep them for ever.
fn store_what_is_too_old(
    store: &Store,
    retention: &Retention,
    commands: &mpsc::WeakSender<Command>,
) -> Result<()> {
    store.log.date_oldest(retention.keep_after);
    let Some(needed) = store.log.held_up(retention, store.position()) else { return Ok(()) };
    if store.sealed.load(Ordering::Acquire) < needed.0
        && let Some(commands) = commands.upgrade()
    {
        let _ = commands.try_send(Command::Run(Box::new(|writer| writer.store.seal())));
    }
    if store.projections.snapshotted() < needed
        && let Some(_open) = store.snapshot_gate.try_lock()
    {
        store.snapshot()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_stores_write_snapshots_less_often() {
        let intervals =
            [(1, 500), (2_000_000, 100_000_000), (2_000_000, 1_000_000_000), (20_000_000, 1_000_000_000)]
                .map(|(setting, edges)| interval(setting, edges));
        assert_eq!(intervals, [1, 2_000_000, 10_000_000, 20_000_000]);
    }
}
