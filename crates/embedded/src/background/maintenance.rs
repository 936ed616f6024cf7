//! Background work that writers wait for when it falls behind: flushing rows, and what the log needs. Snapshots and the compaction of
//! row files, which take longer, are not here.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kinfolk_core::{Clock, Error, Result, Sequence, Timestamp};
use tokio::sync::mpsc;

use crate::disk::free_space::FreeSpace;
use crate::engine::store::Store;
use crate::engine::writer::Command;
use crate::lsm::RowStorage;
use crate::runtime::signal;

/// How often maintenance looks around when nobody wakes it.
const TICK: Duration = Duration::from_secs(1);

/// Writing a snapshot costs about as much as replaying an event for each so many of its edges.
const SNAPSHOT_COST: u64 = 20;

/// Lets all go who wait for a position, at the end.
struct Released<'a>(&'a Store);

impl Drop for Released<'_> {
    fn drop(&mut self) {
        self.0.visibility.release();
    }
}

/// Works until it is stopped.
pub(crate) fn run(store: &Arc<Store>, clock: &dyn Clock, commands: &mpsc::WeakSender<Command>) {
    signal::lower_priority();
    // Nobody else lets those go who wait for a position, also if this thread dies.
    let _released = Released(store);
    let (mut tended, mut clock_said) = (Sequence::START, None);
    // Each has its own: a segment needs more room than rows, which writers wait for.
    let (mut flush_room, mut segment_room) = (FreeSpace::default(), FreeSpace::default());
    while store.flushing.wait(store.visibility.next_expiry().unwrap_or(TICK).min(TICK)) {
        store.visibility.expire();
        if store.folder.require().is_err() {
            store.flushes.beat(false);
            continue;
        }
        let now = clock.now();
        watch_clock(store, now, &mut clock_said);
        let retention = store.retention(now);
        if let Some(flushed) = flush_room.work(store.folder.path(), || flush(store)) {
            store.flushes.beat(flushed.is_ok());
            *store.flush_failure.lock() = flushed.err().inspect(|error| {
                note_failure(store, error, "rows could not be flushed; it is tried again");
            });
        }
        let position = store.position();
        if let Some(Err(error)) = prepare(store, &mut segment_room) {
            tracing::warn!(%error, "the next part of the change log could not be made ready; it is extended as it grows");
        }
        let is_due = position > tended || store.log.is_to_be_trimmed(&retention, position);
        if is_due && store.health.refusal().is_none() && tend(commands) {
            tended = position;
        }
    }
}

/// Reports that background work on row files failed, unless it is not tried again, which was reported then.
pub(crate) fn note_failure(store: &Store, error: &Error, tried_again: &'static str) {
    if store.shared.storing.failure().is_none() {
        tracing::error!(%error, "{tried_again}");
    }
}

/// Says once an hour that times were given out which the clock is far from: nothing else shows it before somebody looks at them.
fn watch_clock(store: &Store, now: Timestamp, said: &mut Option<Instant>) {
    const BEHIND_MAX: Duration = Duration::from_secs(60 * 60);
    const SAY_EVERY: Duration = Duration::from_secs(60 * 60);
    let behind = store.clock_behind(now);
    if behind > BEHIND_MAX && said.is_none_or(|said| said.elapsed() >= SAY_EVERY) {
        *said = Some(Instant::now());
        tracing::error!(
            clock = %now,
            newest = %Timestamp::from_millis(store.floor.load(Ordering::Acquire)),
            behind_seconds = behind.as_secs(),
            "the store has given out times far ahead of the clock, and what is written gets the newest of them until the clock is \
             there: set the clock; if it is right, restore a backup with --clamp-times"
        );
    }
}

/// Has the writer tend the log: the mark and retention need it. Returns whether it will.
fn tend(commands: &mpsc::WeakSender<Command>) -> bool {
    let tend = Command::Run(Box::new(|writer| {
        if let Err(error) = writer.tend_log() {
            tracing::error!(%error, "the change log could not be tended; it is tried again later");
        }
    }));
    // A full queue means a busy writer: the next tick is early enough.
    commands.upgrade().is_some_and(|commands| commands.try_send(tend).is_ok())
}

/// Makes the next segment of the log ready.
fn prepare(store: &Store, room: &mut FreeSpace) -> Option<Result<()>> {
    room.work(store.folder.path(), || {
        store.folder.require()?;
        store.log.prepare_next()
    })
}

/// Writes sealed rows to disk.
fn flush(store: &Store) -> Result<()> {
    let sealed = store.sealed.load(Ordering::Acquire);
    // A flush of the writer's that failed has left something sealed as well: writers would wait for it for ever.
    if sealed > store.flushed.load(Ordering::Acquire) || store.has_sealed() {
        store.rows().try_for_each(RowStorage::flush)?;
        store.record_flushed(Sequence(sealed))?;
        store.compacting.wake();
    }
    Ok(())
}

/// What a clean end leaves behind: little to replay at the next start.
pub(crate) fn settle(store: &Store) -> Result<()> {
    const REPLAY_EVENTS: u64 = 1_000;
    let position = store.position();
    if position.0 - store.flushed.load(Ordering::Acquire) >= REPLAY_EVENTS {
        store.flush_now()?;
    }
    let behind = position.0 - store.projections.snapshotted().0;
    if behind >= REPLAY_EVENTS.max(store.edge_count() / SNAPSHOT_COST) {
        let _open = store.snapshot_gate.lock();
        store.snapshot()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use kinfolk_conformance::{block_on, write_commands};
    use kinfolk_core::feeds::{NewPost, PostStore};
    use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand};
    use kinfolk_core::{EdgeKind, Id, IdKind};

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
                let seal = |writer: &mut crate::engine::writer::Writer| {
                    let store = &writer.store;
                    store.rows().for_each(|rows| rows.seal(store.position()));
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

    /// A snapshot that does not fit keeps no rows from being flushed, and nobody from writing.
    #[test]
    fn a_snapshot_without_room_holds_up_no_writes() {
        let folder = tempfile::tempdir().unwrap();
        let settings =
            Settings { flush_rows: 1, snapshot_events: 1, reconcile_rows: 0, ..Settings::default() };
        let store = Embedded::create(folder.path(), IdKind::Integer, settings).unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.path().join("index.tmp")).unwrap();
        for followee in 2..500 {
            let edge = Edge { follower: Id::Integer(1), followee: Id::Integer(followee) };
            let commands = vec![EdgeCommand { action: EdgeAction::Follow, edge }];
            write_commands(&store, EdgeKind::Follow, &commands, 1_000).unwrap();
        }
        let shared = &store.store;
        assert!(!folder.path().join("index.snapshot").exists(), "it was tried, and did not fit");
        let deadline = Instant::now() + Duration::from_secs(60);
        while shared.is_flush_waiting() {
            assert!(Instant::now() < deadline, "rows are not flushed");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(shared.maintenance_failure().is_none());
    }
}
