//! Random histories of one client whose log is trimmed meanwhile, shard by shard: what is kept can be read from its beginning and
//! from every position in it, and a position before it has expired on its own shard alone.

use std::sync::Arc;

use kinfolk_core::changes::{Change, LogPage, LogSpan};
use kinfolk_core::graph::{EdgeAction, EdgeCommand};
use kinfolk_core::{EdgeKind, Error, Frontier, GraphStore, IdKind, Position, Sequence};

use crate::StoreFactory;
use crate::clock::SimulatedClock;
use crate::random::Random;
use crate::random::compare::{ENTRIES_MAX, Verdict, answer, equal};
use crate::threads::block_on;
use crate::users::{by_shard, edge, shards_of};
use crate::writes::write_with_positions;

/// Trims the oldest changes of some shards, which the store chooses.
pub type Trim<'a, S> = &'a dyn Fn(&S);

const USERS: u64 = 12;
const STEPS: u64 = 60;

/// Runs `rounds` histories, each on a fresh store whose log `trim` trims now and then. Panics if the log is not what it must
/// be, or if nothing was ever trimmed.
pub fn graph_trims<S: GraphStore>(make: StoreFactory<'_, S>, trim: Trim<'_, S>, rounds: u32, seed: u64) {
    let mut expired = 0;
    for round in 0..u64::from(rounds) {
        let id_kind = if round % 2 == 0 { IdKind::Integer } else { IdKind::Uuid };
        let clock = Arc::new(SimulatedClock::default());
        let store = make(id_kind, Arc::<SimulatedClock>::clone(&clock));
        let mut reader = Reader { store: &store, log: Vec::new(), trimmed: Frontier::default(), expired: 0 };
        reader.run(trim, Random::new(seed ^ round)).unwrap_or_else(|wrong| {
            panic!("graph trims (seed {seed}, round {round}, {} ids): {wrong}", id_kind.name())
        });
        expired += reader.expired;
    }
    assert!(expired > 0, "nothing was trimmed");
}

/// One who reads every change before it is trimmed.
struct Reader<'a, S> {
    store: &'a S,
    log: Vec<Change>,
    trimmed: Frontier,
    /// How often a position had expired.
    expired: u64,
}

impl<S: GraphStore> Reader<'_, S> {
    fn run(&mut self, trim: Trim<'_, S>, mut random: Random) -> Verdict {
        for _ in 0..STEPS {
            let from = random.below(USERS);
            let edge = edge(self.store.id_kind(), from, (from + 1 + random.below(USERS - 1)) % USERS);
            let action = if random.below(3) > 0 { EdgeAction::Follow } else { EdgeAction::Unfollow };
            let command = EdgeCommand { action, edge };
            let written = write_with_positions(self.store, EdgeKind::Follow, &[command], USERS as u32);
            let (receipt, _) = written.map_err(|error| format!("{command:?} failed: {error}"))?;
            self.catch_up(receipt.position)?;
            if random.below(4) == 0 {
                trim(self.store);
                self.check(&mut random)?;
            }
        }
        self.check(&mut random)
    }

    /// Reads what is new.
    fn catch_up(&mut self, written: Position) -> Verdict {
        let after: Frontier =
            self.trimmed.iter().chain(self.log.iter().map(|change| change.position)).collect();
        let page = answer("changes", self.store.changes(&after, ENTRIES_MAX))?;
        self.log.extend(page.changes);
        let read: Frontier = self.log.iter().map(|change| change.position).collect();
        equal(|| format!("whether {written} was read, to {read}"), &read.covers(written), &true)
    }

    fn check(&mut self, random: &mut Random) -> Verdict {
        let LogSpan { trimmed, newest, .. } = answer("span", self.store.span())?;
        let shards = usize::from(shards_of(self.store).get());
        equal(|| format!("shards of {trimmed}"), &trimmed.iter().len(), &shards)?;
        let is_between = trimmed.covers_all(&self.trimmed) && newest.covers_all(&trimmed);
        let what = || format!("whether {trimmed} is between {} and {newest}", self.trimmed);
        equal(what, &is_between, &true)?;
        self.trimmed = trimmed;
        self.walk(&Frontier::default(), 1 + random.below(5) as usize)?;
        for _ in 0..4 {
            let after = self.some_kept(random);
            self.walk(&after, 1 + random.below(9) as usize)?;
        }
        let expired: Vec<Position> =
            self.trimmed.iter().filter(|position| position.sequence > Sequence::START).collect();
        expired.into_iter().try_for_each(|trimmed| self.check_expired(trimmed, &newest, random))
    }

    /// A frontier that names some shards, at what was trimmed or later.
    fn some_kept(&self, random: &mut Random) -> Frontier {
        let mut after: Frontier = self.trimmed.iter().filter(|_| random.below(2) == 0).collect();
        for change in &self.log {
            if !self.trimmed.covers(change.position) && random.below(8) == 0 {
                after.advance(change.position);
            }
        }
        after
    }

    /// Reads to the end in pages: a shard that is not named starts at the oldest kept.
    fn walk(&self, after: &Frontier, limit: usize) -> Verdict {
        let mut begin = self.trimmed.clone();
        begin.join(after);
        let expected: Vec<Change> =
            self.log.iter().filter(|change| !begin.covers(change.position)).cloned().collect();
        let (mut found, mut next) = (Vec::new(), after.clone());
        loop {
            let what = format!("{limit} changes after {next}, where {} was trimmed", self.trimmed);
            let page: LogPage = answer(&what, self.store.changes(&next, limit))?;
            let is_last = page.changes.len() < limit;
            page.changes.iter().for_each(|change| begin.advance(change.position));
            equal(|| format!("where to go on from {what}"), &page.next, &begin)?;
            found.extend(page.changes);
            next = page.next;
            if is_last || found.len() > ENTRIES_MAX {
                break;
            }
        }
        equal(|| format!("the log after {after}"), &by_shard(found), &by_shard(expected))
    }

    /// What was before a trimmed change has expired, whatever is named of other shards; these go on.
    fn check_expired(&mut self, trimmed: Position, newest: &Frontier, random: &mut Random) -> Verdict {
        let asked = Sequence(random.below(trimmed.sequence.0)).on(trimmed.shard);
        let others: Frontier = newest.iter().filter(|position| position.shard != trimmed.shard).collect();
        for named in [Frontier::default(), others.clone()] {
            let after: Frontier = named.iter().chain([asked]).collect();
            match block_on(self.store.changes(&after, 5)) {
                Err(Error::PositionExpired { asked: reported, oldest }) => {
                    equal(
                        || format!("what expired after {after}"),
                        &(reported, oldest),
                        &(asked, trimmed.next()),
                    )?;
                }
                other => return Err(format!("{asked} has expired, but {other:?}")),
            }
            self.expired += 1;
        }
        self.walk(&others, 2)?;
        let rest: Frontier = self.trimmed.iter().filter(|position| position.shard != trimmed.shard).collect();
        self.walk(&rest, 3)
    }
}
