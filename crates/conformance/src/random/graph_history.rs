//! Random histories of one client over the graph alone, for stores with any number of shards: compared with the reference
//! after every write, as a whole from time to time, and shrunk when they differ.

use std::sync::Arc;

use kinfolk_core::graph::{Counts, EdgeAction, EdgeCommand, Receipt, WriteRequest};
use kinfolk_core::{Clock, EdgeKind, GraphStore, Id, IdKind, Result};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};

use crate::StoreFactory;
use crate::clock::SimulatedClock;
use crate::model::Model;
use crate::model::reference::Reference;
use crate::random::compare::{KINDS, Verdict, answer, compare, equal};
use crate::random::history::{Reopen, run_random};
use crate::seen::Seen;
use crate::threads::block_on;
use crate::users::{by_shard, edge, shards_of, user};
use crate::writes::requests;

/// Few users and a small limit, so that steps meet each other often.
const USERS: u64 = 6;
const FOLLOWING_LIMIT: u32 = 3;
pub(crate) const STEPS_MAX: usize = 40;
/// Everything is compared after so many steps, and after every restart and the last step.
const STEPS_BETWEEN_COMPARISONS: usize = 8;

/// Restores a store from a backup, which begins a new epoch and may lose the newest changes of any shard.
pub type Restore<'a, S> = &'a dyn Fn(&S);

/// What a test can do to a store besides using it.
pub(crate) struct Controls<'a, S> {
    pub reopen: Option<Reopen<'a, S>>,
    pub restore: Option<Restore<'a, S>>,
}

impl<S> Clone for Controls<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Controls<'_, S> {}

/// What one step of a history does.
#[derive(Clone, Debug)]
pub(crate) enum GraphStep {
    Write { kind: EdgeKind, commands: Vec<(EdgeAction, u64, u64)> },
    Advance(u64),
    TurnBack(u64),
    Restart,
    Restore,
}

/// Runs `cases` random histories of edges against a store and the reference, and panics with the shortest history that it
/// finds for which they differ. See [`crate::histories`].
pub fn graph_histories<S: GraphStore>(
    make: StoreFactory<'_, S>,
    reopen: Option<Reopen<'_, S>>,
    cases: u32,
    seed: u64,
) {
    run_graph_histories("graph histories", make, Controls { reopen, restore: None }, (cases, seed));
}

/// As [`graph_histories`], with restores.
pub fn graph_restores<S: GraphStore>(
    make: StoreFactory<'_, S>,
    restore: Restore<'_, S>,
    cases: u32,
    seed: u64,
) {
    let controls = Controls { reopen: None, restore: Some(restore) };
    run_graph_histories("graph restores", make, controls, (cases, seed));
}

fn run_graph_histories<S: GraphStore>(
    what: &str,
    make: StoreFactory<'_, S>,
    controls: Controls<'_, S>,
    (cases, seed): (u32, u64),
) {
    run_random(what, vec(graph_step(), 1..=STEPS_MAX), (cases, seed), |id_kind, steps| {
        let mut run = GraphRun::new(make, controls, id_kind);
        for (step, number) in steps.iter().zip(1..) {
            if run.step(step)? || is_time_to_compare(number) {
                run.compare().map_err(|wrong| format!("after step {number}: {wrong}"))?;
            }
        }
        run.compare()
    });
}

/// Whether everything is compared after a step.
pub(crate) fn is_time_to_compare(number: usize) -> bool {
    number.is_multiple_of(STEPS_BETWEEN_COMPARISONS)
}

pub(crate) fn graph_step() -> impl Strategy<Value = GraphStep> {
    let action = prop_oneof![3 => Just(EdgeAction::Follow), 2 => Just(EdgeAction::Unfollow)];
    // The second user is drawn from the others, as self-follows do not reach a store.
    let command = (action, 0..USERS, 1..USERS)
        .prop_map(|(action, from, distance)| (action, from, (from + distance) % USERS));
    let kind = || prop_oneof![8 => Just(KINDS[0]), 2 => Just(KINDS[1]), 1 => Just(EdgeKind::Dismissal)];
    let write_one =
        (kind(), vec(command.clone(), 1)).prop_map(|(kind, commands)| GraphStep::Write { kind, commands });
    let write_many =
        (kind(), vec(command, 0..6)).prop_map(|(kind, commands)| GraphStep::Write { kind, commands });
    prop_oneof![
        14 => write_one,
        6 => write_many,
        3 => (1..3_u64).prop_map(GraphStep::Advance),
        1 => (1..10_000_000_u64).prop_map(GraphStep::Advance),
        2 => (1..10_000_000_u64).prop_map(GraphStep::TurnBack),
        2 => Just(GraphStep::Restart),
        1 => Just(GraphStep::Restore),
    ]
}

/// A store and its reference, side by side.
pub(crate) struct GraphRun<'a, S> {
    /// Not there only while it is reopened.
    store: Option<S>,
    controls: Controls<'a, S>,
    reference: Reference,
    pub clock: Arc<SimulatedClock>,
    pub users: Vec<Id>,
    id_kind: IdKind,
}

impl<'a, S: GraphStore> GraphRun<'a, S> {
    pub(crate) fn new(make: StoreFactory<'_, S>, controls: Controls<'a, S>, id_kind: IdKind) -> Self {
        let clock = Arc::new(SimulatedClock::default());
        let store = make(id_kind, Arc::<SimulatedClock>::clone(&clock));
        let reference = Reference::new(shards_of(&store));
        let users = (0..USERS).map(|number| user(id_kind, number)).collect();
        Self { store: Some(store), controls, reference, clock, users, id_kind }
    }

    pub(crate) fn store(&self) -> &S {
        self.store.as_ref().expect("it was opened again")
    }

    /// The graph as it should be.
    pub(crate) fn graph(&self) -> Model {
        self.reference.graph()
    }

    /// Takes a step. Returns whether everything is to be compared after it.
    pub(crate) fn step(&mut self, step: &GraphStep) -> std::result::Result<bool, String> {
        match step {
            GraphStep::Write { kind, commands } => {
                self.write(*kind, commands).map_err(|wrong| format!("{step:?}: {wrong}"))?;
            }
            GraphStep::Advance(millis) => self.clock.advance(*millis),
            GraphStep::TurnBack(millis) => self.clock.turn_back(*millis),
            GraphStep::Restart => {
                if let Some(reopen) = self.controls.reopen {
                    self.store = self.store.take().map(reopen);
                    return Ok(true);
                }
            }
            GraphStep::Restore => {
                if let Some(restore) = self.controls.restore {
                    self.restore(restore)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    pub(crate) fn compare(&self) -> Verdict {
        compare(self.store(), &self.graph(), &self.users)
    }

    /// Writes to both and compares the receipts, then what the commands were about.
    fn write(&mut self, kind: EdgeKind, commands: &[(EdgeAction, u64, u64)]) -> Verdict {
        let command = |&(action, from, to): &_| EdgeCommand { action, edge: edge(self.id_kind, from, to) };
        let commands: Vec<EdgeCommand> = commands.iter().map(command).collect();
        let requests: Vec<WriteRequest> =
            requests(kind, &commands, FOLLOWING_LIMIT).into_iter().map(|(request, _)| request).collect();
        let expected = self.reference.write_all(&requests, self.clock.now());
        let found = block_on(self.store().write(requests));
        // Errors have no equality, but their text holds all that they say.
        let comparable = |results: Vec<Result<Receipt>>| -> Vec<_> {
            results.into_iter().map(|result| result.map_err(|error| error.to_string())).collect()
        };
        equal(|| "receipts".to_owned(), &comparable(found), &comparable(expected))?;

        let model = self.graph();
        let store = Seen::new(self.store(), model.frontier());
        let edges: Vec<_> = commands.iter().map(|command| command.edge).collect();
        let contains = answer("contains", store.contains(kind, &edges))?;
        let expected: Vec<bool> = edges.iter().map(|&edge| model.contains(kind, edge)).collect();
        equal(|| "contains".to_owned(), &contains, &expected)?;
        let users: Vec<Id> = edges.iter().flat_map(|edge| [edge.follower, edge.followee]).collect();
        let counts = answer("counts", store.counts(kind, &users))?;
        let expected: Vec<Counts> = users.iter().map(|&of| model.counts(kind, of)).collect();
        equal(|| "counts".to_owned(), &counts, &expected)
    }

    /// After a restore there is a new epoch, and the log of each shard is the beginning of what it was.
    fn restore(&mut self, restore: Restore<'_, S>) -> Verdict {
        let (old_epoch, old) = (self.store().epoch(), by_shard(self.graph().changes));
        restore(self.store());
        equal(|| "whether a new epoch began".to_owned(), &(self.store().epoch() != old_epoch), &true)?;
        let span = answer("span", self.store().span())?;
        equal(|| "the epoch of the log".to_owned(), &span.epoch, &self.store().epoch())?;
        let seen = Seen::new(self.store(), span.newest.clone());
        let log = by_shard(answer("changes", seen.whole_log())?);
        let kept: Vec<_> = old.into_iter().filter(|change| span.newest.covers(change.position)).collect();
        equal(|| format!("the log after a restore to {}", span.newest), &log, &kept)?;
        self.reference = Reference::replay(shards_of(self.store()), log);
        Ok(())
    }
}
