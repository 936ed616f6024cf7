//! Threads of a store that die for real: the store says so and refuses writes, and another start mends it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kinfolk_conformance::{SimulatedClock, block_on, write_commands};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand, EdgeStore, Receipt};
use kinfolk_core::{Clock, EdgeKind, Error, Id, IdKind, Result, Sequence, Shard, Timestamp};
use kinfolk_embedded::{Embedded, Settings};
use parking_lot::Mutex;

const PATIENCE: Duration = Duration::from_secs(60);

/// A clock that panics on the thread of a name.
#[derive(Default)]
struct FailingClock {
    clock: SimulatedClock,
    fails_on: Mutex<Option<&'static str>>,
}

impl Clock for FailingClock {
    fn now(&self) -> Timestamp {
        let fails_on = *self.fails_on.lock();
        assert!(fails_on.is_none() || std::thread::current().name() != fails_on, "the clock fails");
        self.clock.now()
    }
}

fn follow(store: &Embedded, followee: u64) -> Result<Receipt> {
    let edge = Edge { follower: Id::Integer(1), followee: Id::Integer(followee) };
    let commands = vec![EdgeCommand { action: EdgeAction::Follow, edge }];
    write_commands(store, EdgeKind::Follow, &commands, 1_000)
}

#[test]
fn a_store_that_loses_a_thread_has_failed() {
    // The others look at no clock, or rarely; they are started in the same way.
    for thread in ["kinfolk-writer", "kinfolk-maintenance", "kinfolk-erasing"] {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(FailingClock::default());
        let settings = Settings { erase_after: Duration::from_secs(1), ..Settings::default() };
        let store = Embedded::create_with_clock(
            folder.path(),
            IdKind::Integer,
            settings.clone(),
            Arc::clone(&clock) as Arc<dyn Clock>,
        )
        .unwrap();
        follow(&store, 2).unwrap();
        assert!(store.failure().is_none() && !store.stats().failed);

        *clock.fails_on.lock() = Some(thread);
        // Which a writer notices with its next write, and the others by themselves.
        let unknown = (thread == "kinfolk-writer").then(|| follow(&store, 3).unwrap_err());
        assert!(unknown.is_none_or(|error| matches!(error, Error::Closed | Error::ReadOnly { .. })));
        let deadline = Instant::now() + PATIENCE;
        while store.failure().is_none() {
            assert!(Instant::now() < deadline, "nobody has noticed that {thread} is dead");
            std::thread::sleep(Duration::from_millis(1));
        }
        let reason = store.failure().unwrap();
        assert!(reason.contains(thread) && reason.contains("the clock fails"), "{reason}");
        let stats = store.stats();
        assert!(stats.failed && stats.read_only);
        assert!(matches!(follow(&store, 4), Err(Error::ReadOnly { reason }) if reason.contains(thread)));
        let edge = |followee| Edge { follower: Id::Integer(1), followee: Id::Integer(followee) };
        assert!(store.follows(EdgeKind::Follow, edge(2)), "reads go on");
        // Readers that wait for a position are let go, though nobody keeps the time any more.
        assert!(block_on(store.counts(EdgeKind::Follow, &[], &Sequence(99).on(Shard::ONLY).into())).is_err());
        assert!(store.close().unwrap_err().to_string().contains(thread));

        let store = Embedded::open(folder.path(), settings).unwrap();
        assert!(store.follows(EdgeKind::Follow, edge(2)) && !store.follows(EdgeKind::Follow, edge(4)));
        follow(&store, 5).unwrap();
        store.close().unwrap();
    }
}
