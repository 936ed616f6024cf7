//! Random histories of several clients at once. Nobody knows beforehand what the order will be; afterwards the
//! positions tell it, and everything must agree with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::graph::{EdgeAction, EdgeCommand, Side};
use kinfolk_core::{EdgeKind, Error, Frontier, GraphStore, Id, IdKind, Shard};

use crate::Make;
use crate::audit::{Record, audit};
use crate::clock::SimulatedClock;
use crate::compare::{KINDS, walk};
use crate::random::Random;
use crate::seen::Seen;
use crate::threads::{at_once, block_on, meanwhile};
use crate::users::{at, edge, user};
use crate::writes::write_with_positions;

const SHARED_USERS: u64 = 4;
const WRITERS: u64 = 3;
const STEPS: u64 = 25;
const FOLLOWING_LIMIT: u32 = 2;

/// Runs `rounds` histories, each on a fresh store: several threads write to few pairs while others read, and
/// in the end receipts, change log and final state must tell one story. Panics if they do not.
pub fn concurrent_histories<S: GraphStore>(make: Make<'_, S>, rounds: u32, seed: u64) {
    for round in 0..u64::from(rounds) {
        let id_kind = if round % 2 == 0 { IdKind::Integer } else { IdKind::Uuid };
        let clock = Arc::new(SimulatedClock::default());
        let store = make(id_kind, Arc::<SimulatedClock>::clone(&clock));
        let history = History { store, clock, id_kind, newest_read: AtomicU64::new(0) };
        let writers = || {
            at_once(WRITERS as usize, |writer| {
                let writer = writer as u64;
                history.write(writer, Random::new((seed ^ round) << 8 | writer))
            })
        };
        let threads = meanwhile(|| history.read(), writers);
        let numbers = (0..SHARED_USERS).chain((0..WRITERS).map(own_user));
        let users: Vec<Id> = numbers.map(|number| user(id_kind, number)).collect();
        audit(&history.store, &threads, u64::from(FOLLOWING_LIMIT), &users).unwrap_or_else(|wrong| {
            panic!("concurrent histories (seed {seed}, round {round}, {} ids): {wrong}", id_kind.name())
        });
    }
}

/// A user that only one writer's edges start from.
fn own_user(writer: u64) -> u64 {
    100 + writer
}

struct History<S> {
    store: S,
    clock: Arc<SimulatedClock>,
    id_kind: IdKind,
    /// The highest position that a reader has seen.
    newest_read: AtomicU64,
}

impl<S: GraphStore> History<S> {
    fn write(&self, writer: u64, mut random: Random) -> Vec<Record> {
        let mut records = Vec::new();
        for _ in 0..STEPS {
            match random.below(10) {
                0 => self.clock.advance(random.below(1_000)),
                1 => self.clock.turn_back(random.below(1_000)),
                2..4 => records.extend(self.write_own(writer, &mut random)),
                _ => {
                    let from = random.below(SHARED_USERS);
                    let commands =
                        (0..=random.below(2)).map(|_| self.shared_command(from, &mut random)).collect();
                    records.extend(self.try_write(KINDS[random.below(2) as usize], commands));
                }
            }
        }
        records
    }

    fn shared_command(&self, from: u64, random: &mut Random) -> EdgeCommand {
        let to = (from + 1 + random.below(SHARED_USERS - 1)) % SHARED_USERS;
        EdgeCommand { action: any_action(random), edge: edge(self.id_kind, from, to) }
    }

    /// Writes an edge that nobody else writes, and reads it back: a writer sees its own last write.
    fn write_own(&self, writer: u64, random: &mut Random) -> Option<Record> {
        let kind = EdgeKind::Follow;
        let edge = edge(self.id_kind, own_user(writer), random.below(2));
        let action = any_action(random);
        let record = self.try_write(kind, vec![EdgeCommand { action, edge }])?;
        let seen = Seen::new(&self.store, record.receipt.position);
        let found = block_on(seen.contains(kind, &[edge])).unwrap();
        assert_eq!(found, [action == EdgeAction::Follow], "{edge:?} after its only writer's {record:?}");
        Some(record)
    }

    fn try_write(&self, kind: EdgeKind, commands: Vec<EdgeCommand>) -> Option<Record> {
        match write_with_positions(&self.store, kind, &commands, FOLLOWING_LIMIT) {
            Ok((receipt, _)) => Some(Record { kind, commands, receipt }),
            Err(Error::FollowingLimit { .. }) => None,
            Err(error) => panic!("{commands:?} failed: {error}"),
        }
    }

    /// What must hold at every moment, whatever is going on.
    fn read(&self) {
        let store = Seen::new(&self.store, Frontier::default());
        for number in 0..SHARED_USERS {
            let of = user(self.id_kind, number);
            for kind in KINDS {
                let counts = block_on(store.counts(kind, &[of])).unwrap()[0];
                assert!(counts.following <= u64::from(FOLLOWING_LIMIT), "{of} has {counts:?}");
                assert!(counts.followers < SHARED_USERS + WRITERS, "{of} has {counts:?}");
                for side in [Side::Following, Side::Followers] {
                    let read = |after| Ok(block_on(store.list(kind, side, of, after, 2)).unwrap());
                    let entries = walk(2, read).unwrap_or_else(|wrong| panic!("{wrong}"));
                    assert!(entries.is_sorted_by(|a, b| a < b), "{side:?} of {of}: {entries:?}");
                }
            }
        }
        let newest = block_on(store.span()).unwrap().newest.get(Shard::ONLY).unwrap_or_default().0;
        let before = self.newest_read.swap(newest, Ordering::SeqCst);
        assert!(newest >= before, "the log went back from {before} to {newest}");
        let changes = block_on(store.whole_log()).unwrap();
        let gapless = changes.iter().zip(1..).all(|(change, position)| change.position == at(position));
        assert!(gapless && changes.len() as u64 >= newest, "the log to {newest}: {changes:?}");
    }
}

fn any_action(random: &mut Random) -> EdgeAction {
    if random.below(5) < 3 { EdgeAction::Follow } else { EdgeAction::Unfollow }
}
