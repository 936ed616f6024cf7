//! Background work that writers wait for when it falls behind: flushing rows, index snapshots, log retention. Merging
//! row files, which takes longer, is not here.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kinfolk_core::{EdgeKind, Position, Result, Timestamp};
use parking_lot::{Condvar, Mutex};
use tokio::sync::mpsc;

use crate::checkpoint::Checkpoint;
use crate::index;
use crate::projection::Projection;
use crate::store::Store;
use crate::writer::Command;

/// How often maintenance looks around when nobody wakes it.
const TICK: Duration = Duration::from_secs(1);

/// Wakes a thread that works in the background, or ends it.
#[derive(Debug, Default)]
pub struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    awake: bool,
    stopping: bool,
}

impl Signal {
    /// There is something to do.
    pub fn wake(&self) {
        self.state.lock().awake = true;
        self.changed.notify_one();
    }

    /// There will be nothing more to do.
    pub fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_one();
    }

    /// Whether it is time to end.
    pub fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }

    /// Waits for a wake-up, but not longer than given; false when it is time to end.
    pub fn wait(&self, longest: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.awake && !state.stopping {
            self.changed.wait_for(&mut state, longest);
        }
        state.awake = false;
        !state.stopping
    }
}

/// Gives the calling thread less of the processor than others, where they want it too: answers come first.
pub fn yield_to_others() {
    const NICENESS: i32 = 10;
    // Without the right to it, it works at the usual priority.
    let _ = rustix::process::nice(NICENESS);
}

/// Works until it is told to stop.
pub fn run(store: &Arc<Store>, commands: &mpsc::WeakSender<Command>) {
    yield_to_others();
    let mut tended = Position::START;
    while store.signal.wait(store.visibility.next_expiry().unwrap_or(TICK).min(TICK)) {
        store.visibility.expire();
        let done = flush(store).and_then(|()| snapshot_if_due(store));
        *store.stalled.lock() = done.err().inspect(|error| {
            tracing::error!(%error, "background work failed; it is tried again in a second");
        });
        // The mark and retention need the log, which is the writer's.
        if store.position() > tended
            && let Some(commands) = commands.upgrade()
        {
            tended = store.position();
            let tend = Command::Run(Box::new(|writer| {
                if let Err(error) = writer.tend_log() {
                    tracing::error!(%error, "the change log could not be tended; it is tried again later");
                }
            }));
            // A full queue means a busy writer: the next tick is early enough.
            let _ = commands.try_send(tend);
        }
    }
}

/// Writes sealed rows to disk.
fn flush(store: &Store) -> Result<()> {
    let sealed = store.sealed.load(Ordering::Acquire);
    // A flush of the writer's that failed has left something sealed as well: writers would wait for it for ever.
    if sealed > store.flushed.load(Ordering::Acquire) || store.has_sealed() {
        store.rows.flush()?;
        store.projections().try_for_each(Projection::flush)?;
        record_flushed(store, Position(sealed))?;
        store.merging.wake();
    }
    Ok(())
}

/// Remembers that rows are stored up to a position.
pub fn record_flushed(store: &Store, position: Position) -> Result<()> {
    // The writer and maintenance may both have flushed: one at a time, and never back.
    let _alone = store.checkpointing.lock();
    let position = position.max(Position(store.flushed.load(Ordering::Acquire)));
    let floor = Timestamp::from_millis(store.floor.load(Ordering::Acquire));
    Checkpoint { rows: position, floor }.write(&store.folder)?;
    store.flushed.fetch_max(position.0, Ordering::AcqRel);
    Ok(())
}

fn snapshot_if_due(store: &Store) -> Result<()> {
    let behind = store.position().0 - store.snapshotted.load(Ordering::Acquire);
    let repaired = store.index_repaired.load(Ordering::Acquire);
    if (behind >= store.settings.snapshot_events || repaired)
        && let Some(_open) = store.snapshot_gate.try_lock()
    {
        snapshot(store)?;
    }
    Ok(())
}

/// Writes an index snapshot. The caller holds the gate.
pub fn snapshot(store: &Store) -> Result<()> {
    store.index_repaired.store(false, Ordering::Release);
    // The position is read first: what the index gets meanwhile is replayed again, harmlessly.
    let position = store.position();
    index::save(&store.index, &store.folder, store.identity.epoch, position)?;
    store.snapshotted.fetch_max(position.0, Ordering::AcqRel);
    Ok(())
}

/// What a clean end leaves behind: little to replay at the next start.
pub fn settle(store: &Store) -> Result<()> {
    const REPLAY_EVENTS: u64 = 1_000;
    let position = store.position();
    if position.0 - store.flushed.load(Ordering::Acquire) >= REPLAY_EVENTS {
        store.flush_now()?;
    }
    let edges: u64 = EdgeKind::ALL.iter().map(|&kind| store.index.edge_count(kind)).sum();
    // Writing a snapshot costs about as much as replaying a twentieth of its edges.
    let behind = position.0 - store.snapshotted.load(Ordering::Acquire);
    if behind >= REPLAY_EVENTS.max(edges / 20) {
        let _open = store.snapshot_gate.lock();
        snapshot(store)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use kinfolk_conformance::block_on;
    use kinfolk_core::feed::{NewPost, PostStore};
    use kinfolk_core::{Id, IdKind};

    use super::*;
    use crate::{Embedded, Settings};

    /// What the writer seals and then fails to flush is flushed later, and keeps nobody waiting meanwhile.
    #[test]
    fn what_a_failed_flush_leaves_sealed_is_flushed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::create(folder.path(), IdKind::Integer, Settings::default()).unwrap();
        let post = |id| NewPost {
            id: Some(Id::Integer(id)),
            author: Id::Integer(1),
            created_at: None,
            payload: None,
            idempotency_key: None,
        };
        let (sender, done) = channel();
        let writing = store.clone();
        std::thread::spawn(move || {
            for id in 1..10 {
                block_on(writing.register(post(id))).unwrap();
                let seal = |writer: &mut crate::writer::Writer| {
                    let store = &writer.store;
                    store.projections().for_each(|tree| tree.seal(store.position()));
                    Ok(())
                };
                writing.ask_writer(seal).unwrap();
            }
            sender.send(()).unwrap();
        });
        if done.recv_timeout(Duration::from_secs(60)).is_err() {
            // A store whose writer waits for ever can't be closed.
            std::mem::forget(store);
            panic!("writers wait for ever");
        }
    }
}
