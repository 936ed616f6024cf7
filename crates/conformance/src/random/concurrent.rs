//! Random histories of several clients at once. Nobody knows beforehand what the order will be; afterwards the
//! positions tell it, and everything must agree with it.

use std::ops::Deref;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::changes::LogSpan;
use kinfolk_core::graph::{Counts, EdgeAction, EdgeCommand, ListEntry, Side};
use kinfolk_core::{EdgeKind, Error, Frontier, GraphStore, Id, Sequence};

use crate::StoreFactory;
use crate::model::suggestions::locked;
use crate::random::Random;
use crate::random::answers::Attempt;
use crate::random::audit::{Outcome, Record, audit};
use crate::random::compare::{KINDS, Verdict, answer};
use crate::random::observed::{Observation, Observations, Shown};
use crate::random::pairs::{Event, Timeline};
use crate::random::shared::{Rounds, Shared};
use crate::random::unsettled::TimeoutFault;
use crate::seen::Seen;
use crate::threads::{at_once, block_on, meanwhile};
use crate::users::{by_shard, edge, user};
use crate::writes::write_with_positions;

const SHARED_USERS: u64 = 4;
const WRITERS: u64 = 3;
const STEPS: u64 = 25;
const FOLLOWING_LIMIT: u32 = 2;

const WHAT: &str = "concurrent histories";

/// Runs `rounds` histories, each on a fresh store: several threads write to few pairs while others read, and
/// in the end receipts, change log and final state must tell one story, and one order must explain what was answered about
/// each pair. Panics if they do not. Operations may be refused, and writes may have an unknown outcome.
pub fn concurrent_histories<S: GraphStore>(make: StoreFactory<'_, S>, rounds: u32, seed: u64) {
    Rounds { what: WHAT, count: rounds, seed }.run(make, run);
}

/// As [`concurrent_histories`], with connections in front of the store that get lost: some writes time out, whether they were
/// applied, were not, or are applied later, and some operations are refused.
pub fn concurrent_histories_with_timeouts<S: GraphStore>(make: StoreFactory<'_, S>, rounds: u32, seed: u64) {
    Rounds { what: WHAT, count: rounds, seed }.run_with_timeouts(make, None, run);
}

/// As [`concurrent_histories_with_timeouts`], with a mistake in front of the store.
pub fn concurrent_histories_with_fault<S: GraphStore>(
    make: StoreFactory<'_, S>,
    fault: TimeoutFault,
    rounds: u32,
    seed: u64,
) {
    Rounds { what: WHAT, count: rounds, seed }.run_with_timeouts(make, Some(fault), run);
}

/// A user that only one writer's edges start from.
fn own_user(writer: u64) -> u64 {
    100 + writer
}

struct History<S> {
    shared: Shared<S>,
    timeline: Timeline,
    observed: Observations,
    /// How often everything was read.
    passes: AtomicU64,
    /// How far the log was read.
    newest_read: Mutex<Frontier>,
}

impl<S> Deref for History<S> {
    type Target = Shared<S>;

    fn deref(&self) -> &Shared<S> {
        &self.shared
    }
}

fn run<S: GraphStore>(shared: Shared<S>, seed: u64, settle: &dyn Fn(&S)) -> Verdict {
    let history = History {
        shared,
        timeline: Timeline::default(),
        observed: Observations::default(),
        passes: AtomicU64::default(),
        newest_read: Mutex::default(),
    };
    let writers = || {
        at_once(WRITERS as usize, |writer| {
            let writer = writer as u64;
            history.write(writer, Random::new(seed << 8 | writer))
        })
    };
    let threads = meanwhile(|| history.read(), writers);
    let numbers = (0..SHARED_USERS).chain((0..WRITERS).map(own_user));
    let users: Vec<Id> = numbers.map(|number| history.id(number)).collect();
    let explained = history.timeline.check();
    history.answers.require_enough();
    settle(&history.store);
    let log = answer("changes", history.reader().whole_log())?;
    history.observed.check(&log)?;
    audit(&history.store, &threads, u64::from(FOLLOWING_LIMIT), &users).and(explained)
}

impl<S: GraphStore> History<S> {
    fn write(&self, writer: u64, mut random: Random) -> Vec<Record> {
        let mut records = Vec::new();
        let mut own_is_certain = true;
        for _ in 0..STEPS {
            match random.below(10) {
                0 => self.clock.advance(random.below(1_000)),
                1 => self.clock.turn_back(random.below(1_000)),
                2..4 => {
                    let record = self.write_own(writer, own_is_certain, &mut random);
                    own_is_certain &=
                        !matches!(record, Some(Record { outcome: Outcome::Unknown { .. }, .. }));
                    records.extend(record);
                }
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

    /// Writes an edge that nobody else writes, and reads it back: a writer sees its own last write, unless one before it has
    /// an unknown outcome.
    fn write_own(&self, writer: u64, is_certain: bool, random: &mut Random) -> Option<Record> {
        let kind = EdgeKind::Follow;
        let edge = edge(self.id_kind, own_user(writer), random.below(2));
        let action = any_action(random);
        let record = self.try_write(kind, vec![EdgeCommand { action, edge }])?;
        if let (Outcome::Acknowledged(receipt), true) = (&record.outcome, is_certain) {
            let seen = Seen::new(&self.store, receipt.position);
            let found = self.answers.read(block_on(seen.contains(kind, &[edge])));
            let Some(found) = found else { return Some(record) };
            assert_eq!(found, [action == EdgeAction::Follow], "{edge:?} after its only writer's {record:?}");
        }
        Some(record)
    }

    fn try_write(&self, kind: EdgeKind, commands: Vec<EdgeCommand>) -> Option<Record> {
        let pairs = commands.iter().map(|command| (kind, command.edge));
        let (began, after) = (self.timeline.begin_write(pairs), self.seen());
        let result = write_with_positions(&self.store, kind, &commands, FOLLOWING_LIMIT);
        let outcome = match self.answers.write(result) {
            Attempt::Done((receipt, positions)) => {
                positions.into_iter().for_each(|position| self.saw(position));
                Outcome::Acknowledged(receipt)
            }
            Attempt::Refused(Error::FollowingLimit { .. }) | Attempt::Unavailable => return None,
            Attempt::Refused(error) => panic!("{commands:?} failed: {error}"),
            Attempt::Unknown => Outcome::Unknown { after },
        };
        for (place, &EdgeCommand { action, edge }) in commands.iter().enumerate() {
            let event = match &outcome {
                Outcome::Acknowledged(receipt) => Event::Written { action, changed: receipt.changed[place] },
                Outcome::Unknown { .. } => Event::Unknown { action },
            };
            self.timeline.record((kind, edge), event, began);
        }
        Some(Record { kind, commands, outcome })
    }

    /// What must hold at every moment, whatever is going on.
    fn read(&self) {
        self.check_pairs();
        // The first read makes a projection catch up, so that each kind of read has its turn.
        let pass = self.passes.fetch_add(1, Ordering::Relaxed);
        for number in 0..SHARED_USERS {
            let of = user(self.id_kind, (number + pass) % SHARED_USERS);
            for kind in KINDS {
                let mut seen = self.seen();
                seen.join(&locked(&self.newest_read));
                self.observe(kind, of, seen, pass.is_multiple_of(2));
                self.observe(kind, of, Frontier::default(), false);
            }
        }
        self.read_log(&Seen::new(&self.store, Frontier::default()));
    }

    /// Reads the counts and lists of a user as one who has seen a frontier.
    fn observe(&self, kind: EdgeKind, of: Id, seen: Frontier, counts_first: bool) {
        let store = Seen::new(&self.store, seen.clone());
        let mut shown = Vec::new();
        if counts_first {
            shown.extend(self.read_counts(&store, kind, of));
        }
        for side in [Side::Followers, Side::Following] {
            let read = |after| block_on(store.list(kind, side, of, after, 2));
            let Some(entries) = self.answers.walk(|entry: &ListEntry| *entry, 2, read) else {
                continue;
            };
            assert!(entries.is_sorted_by(|a, b| a < b), "{side:?} of {of}: {entries:?}");
            let ids = entries.into_iter().map(|entry| entry.id).collect();
            shown.push(Shown::List { side, ids });
        }
        if !counts_first {
            shown.extend(self.read_counts(&store, kind, of));
        }
        self.observed.record((kind, of), Observation { seen, shown });
    }

    fn read_counts(&self, store: &Seen<'_, S>, kind: EdgeKind, of: Id) -> Vec<Shown> {
        let found = self.answers.read(block_on(store.counts(kind, &[of]))).unwrap_or_default();
        let shown = |Counts { following, followers }: Counts| {
            assert!(following <= u64::from(FOLLOWING_LIMIT), "{of} has {following} followees");
            [(Side::Following, following), (Side::Followers, followers)]
        };
        found.into_iter().flat_map(shown).map(|(side, count)| Shown::Count { side, count }).collect()
    }

    /// Checks pairs as a client does that has seen everything that was acknowledged.
    fn check_pairs(&self) {
        for from in 0..SHARED_USERS {
            for to in (0..SHARED_USERS).filter(|&to| to != from) {
                let (kind, edge) = (KINDS[0], edge(self.id_kind, from, to));
                let began = self.timeline.now();
                let store = self.reader();
                let found = self.answers.read(block_on(store.contains(kind, &[edge])));
                for exists in found.into_iter().flatten() {
                    self.timeline.record((kind, edge), Event::Read { exists }, began);
                }
                let (began, store) = (self.timeline.now(), self.reader());
                if let Some(exists) = store.contains_now(kind, edge) {
                    self.timeline.record((kind, edge), Event::Read { exists }, began);
                }
            }
        }
    }

    fn read_log(&self, store: &Seen<'_, S>) {
        let Some(LogSpan { newest, .. }) = self.answers.read(block_on(store.span())) else { return };
        let mut before = locked(&self.newest_read);
        assert!(newest.covers_all(&before), "the log went back from {before} to {newest}");
        before.join(&newest);
        let Some(changes) = self.answers.read(block_on(store.whole_log())) else { return };
        let changes = by_shard(changes);
        for log in changes.chunk_by(|a, b| a.position.shard == b.position.shard) {
            let gapless =
                log.iter().zip(1..).all(|(change, next)| change.position.sequence == Sequence(next));
            assert!(gapless, "the log to {newest}: {log:?}");
        }
        let read: Frontier = changes.iter().map(|change| change.position).collect();
        assert!(read.covers_all(&newest), "the log to {newest} ends at {read}");
    }
}

fn any_action(random: &mut Random) -> EdgeAction {
    if random.below(5) < 3 { EdgeAction::Follow } else { EdgeAction::Unfollow }
}
