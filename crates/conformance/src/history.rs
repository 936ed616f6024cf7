//! Random histories of one client, compared with the model after every step and shrunk when they differ.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use kinfolk_core::graph::{Counts, EdgeAction, EdgeCommand, Receipt, WriteRequest};
use kinfolk_core::suggest::{EveryoneReport, EveryoneRequest, Ranking, WalkBounds};
use kinfolk_core::{Clock, EdgeKind, Id, IdKind, Result, Timestamp};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::Make;
use crate::clock::SimulatedClock;
use crate::compare::{KINDS, Verdict, answer, compare, compare_candidates, compare_stored, equal};
use crate::model::Model;
use crate::ports::SuggestionPorts;
use crate::seen::Seen;
use crate::suggestions::{Everyone, Kept, locked};
use crate::threads::block_on;
use crate::users::{edge, user};
use crate::writes::requests;

/// Few users and a small limit, so that steps meet each other often.
const USERS: u64 = 6;
const FOLLOWING_LIMIT: u32 = 3;
const STEPS_MAX: usize = 40;
/// Everything is compared after so many steps, and after every restart and the last step.
const STEPS_BETWEEN_COMPARISONS: usize = 8;

/// Closes a store and opens it again, as a restart does.
pub type Reopen<'a, S> = &'a dyn Fn(S) -> S;

/// What one step of a history does.
#[derive(Clone, Debug)]
enum Step {
    Write { kind: EdgeKind, commands: Vec<(EdgeAction, u64, u64)> },
    Advance(u64),
    TurnBack(u64),
    SuggestForEveryone(WalkBounds),
    Restart,
}

/// Runs `cases` random histories against a store and the model side by side, and panics with the shortest
/// history that it finds for which they differ.
///
/// With `reopen`, histories contain restarts; a store that is durable should be given it. The generator starts
/// from `seed`, so that a run can be repeated; the message of a failure names it.
pub fn histories<S: SuggestionPorts>(
    make: Make<'_, S>,
    reopen: Option<Reopen<'_, S>>,
    cases: u32,
    seed: u64,
) {
    run_random("histories", vec(step(), 1..=STEPS_MAX), (cases, seed), |id_kind, steps| {
        run_history(make, reopen, id_kind, steps)
    });
}

/// Runs random histories of steps, for both kinds of ids, and panics with the shortest that it finds for which `run`
/// says no.
pub(crate) fn run_random<T: Debug>(
    what: &str,
    steps: impl Strategy<Value = Vec<T>>,
    (cases, seed): (u32, u64),
    run: impl Fn(IdKind, &[T]) -> Verdict,
) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    let mut seed_bytes = [0; 32];
    seed_bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed_bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let strategy = (prop_oneof![Just(IdKind::Integer), Just(IdKind::Uuid)], steps);
    let outcome = runner.run(&strategy, |(id_kind, steps)| run(id_kind, &steps).map_err(TestCaseError::fail));
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, (id_kind, steps))) => {
            let steps: Vec<String> = steps.iter().map(|step| format!("  {step:?}")).collect();
            let steps = steps.join("\n");
            panic!("{what} (seed {seed}): {reason}\nwith {} ids, after\n{steps}", id_kind.name());
        }
        Err(TestError::Abort(reason)) => panic!("{what} (seed {seed}) could not run: {reason}"),
    }
}

fn step() -> impl Strategy<Value = Step> {
    let action = prop_oneof![3 => Just(EdgeAction::Follow), 2 => Just(EdgeAction::Unfollow)];
    // The second user is drawn from the others, as self-follows do not reach a store.
    let command = (action, 0..USERS, 1..USERS)
        .prop_map(|(action, from, distance)| (action, from, (from + distance) % USERS));
    let kind = || prop_oneof![8 => Just(KINDS[0]), 2 => Just(KINDS[1]), 1 => Just(EdgeKind::Dismissal)];
    let bounds =
        (prop_oneof![Just(None), Just(Some(1)), Just(Some(2))], 1..4_usize, 0..Ranking::ALL.len()).prop_map(
            |(per_node, results, ranking)| WalkBounds { per_node, results, ranking: Ranking::ALL[ranking] },
        );
    let write_one =
        (kind(), vec(command.clone(), 1)).prop_map(|(kind, commands)| Step::Write { kind, commands });
    let write_many = (kind(), vec(command, 0..6)).prop_map(|(kind, commands)| Step::Write { kind, commands });
    prop_oneof![
        14 => write_one,
        6 => write_many,
        3 => (1..3_u64).prop_map(Step::Advance),
        1 => (1..10_000_000_u64).prop_map(Step::Advance),
        2 => (1..10_000_000_u64).prop_map(Step::TurnBack),
        2 => bounds.prop_map(Step::SuggestForEveryone),
        2 => Just(Step::Restart),
    ]
}

fn run_history<S: SuggestionPorts>(
    make: Make<'_, S>,
    reopen: Option<Reopen<'_, S>>,
    id_kind: IdKind,
    steps: &[Step],
) -> Verdict {
    let clock = Arc::new(SimulatedClock::default());
    let mut store = make(id_kind, Arc::<SimulatedClock>::clone(&clock));
    let mut model = Model::default();
    let kept = Mutex::new(Kept::default());
    let users: Vec<Id> = (0..USERS).map(|number| user(id_kind, number)).collect();
    for (step, number) in steps.iter().zip(1..) {
        let mut compare_all = number % STEPS_BETWEEN_COMPARISONS == 0;
        match step {
            Step::Write { kind, commands } => {
                let commands = self::commands(id_kind, commands);
                write(&store, &mut model, *kind, &commands, &clock)
                    .map_err(|wrong| format!("{step:?}: {wrong}"))?;
            }
            Step::Advance(millis) => clock.advance(*millis),
            Step::TurnBack(millis) => clock.turn_back(*millis),
            Step::SuggestForEveryone(bounds) => {
                suggest_for_everyone(&store, (&model, &kept), *bounds, &clock)?;
                compare_all = true;
            }
            Step::Restart => {
                if let Some(reopen) = reopen {
                    store = reopen(store);
                    compare_all = true;
                }
            }
        }
        if compare_all {
            let compared = compare_everything(&store, &model, &locked(&kept), &users, clock.now());
            compared.map_err(|wrong| format!("after step {number}: {wrong}"))?;
        }
    }
    compare_everything(&store, &model, &locked(&kept), &users, clock.now())
}

fn compare_everything<S: SuggestionPorts>(
    store: &S,
    model: &Model,
    kept: &Kept,
    users: &[Id],
    now: Timestamp,
) -> Verdict {
    compare(store, model, users)?;
    compare_candidates(&Seen::new(store, model.frontier()), model, users)?;
    compare_stored(store, kept, users, now)
}

/// A whole run for everyone, of the store and of the model.
fn suggest_for_everyone<S: SuggestionPorts>(
    store: &S,
    (model, kept): (&Model, &Mutex<Kept>),
    bounds: WalkBounds,
    clock: &SimulatedClock,
) -> Verdict {
    let request = EveryoneRequest { bounds, threads: 2, afresh: false };
    let model = Mutex::new(model.clone());
    let expected = Everyone { model: &model, kept, clock }.run(request, &|_, _| true);
    let found = store.suggest_for_everyone(request, &|_, _| true);
    let found = found.map_err(|error| format!("suggest_for_everyone failed: {error}"))?;
    // Whoever follows nobody any more need not be looked at where nothing is stored.
    let comparable = |report: EveryoneReport| (report.suggested, report.resumed, report.complete);
    equal(|| format!("suggestions for everyone with {bounds:?}"), &comparable(found), &comparable(expected))
}

fn commands(id_kind: IdKind, commands: &[(EdgeAction, u64, u64)]) -> Vec<EdgeCommand> {
    let command = |&(action, from, to): &_| EdgeCommand { action, edge: edge(id_kind, from, to) };
    commands.iter().map(command).collect()
}

/// Writes to both and compares the receipts, then what the commands were about.
fn write<S: SuggestionPorts>(
    store: &S,
    model: &mut Model,
    kind: EdgeKind,
    commands: &[EdgeCommand],
    clock: &SimulatedClock,
) -> Verdict {
    let requests: Vec<WriteRequest> =
        requests(kind, commands, FOLLOWING_LIMIT).into_iter().map(|(request, _)| request).collect();
    let expected = model.write_all(&requests, clock.now());
    let found = block_on(store.write(requests));
    // Errors have no equality, but their text holds all that they say.
    let comparable = |results: Vec<Result<Receipt>>| -> Vec<_> {
        results.into_iter().map(|result| result.map_err(|error| error.to_string())).collect()
    };
    equal(|| "receipts".to_owned(), &comparable(found), &comparable(expected))?;

    let store = Seen::new(store, model.frontier());
    let edges: Vec<_> = commands.iter().map(|command| command.edge).collect();
    let contains = answer("contains", store.contains(kind, &edges))?;
    let expected: Vec<bool> = edges.iter().map(|&edge| model.contains(kind, edge)).collect();
    equal(|| "contains".to_owned(), &contains, &expected)?;
    let users: Vec<Id> = edges.iter().flat_map(|edge| [edge.follower, edge.followee]).collect();
    let counts = answer("counts", store.counts(kind, &users))?;
    let expected: Vec<Counts> = users.iter().map(|&of| model.counts(kind, of)).collect();
    equal(|| "counts".to_owned(), &counts, &expected)
}
