//! Random histories of one client over edges and suggestions, compared with the model after every step and shrunk when they
//! differ.

use std::fmt::Debug;
use std::sync::Mutex;

use kinfolk_core::suggestions::{Ranking, SuggestionRunReport, SuggestionRunRequest, WalkBounds};
use kinfolk_core::{Clock, IdKind};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::StoreFactory;
use crate::clock::SimulatedClock;
use crate::model::Model;
use crate::model::suggestions::{Everyone, Kept, locked};
use crate::ports::SuggestionPorts;
use crate::random::compare::{Verdict, compare_candidates, compare_stored, equal};
use crate::random::graph_history::{
    Controls, GraphRun, GraphStep, STEPS_MAX, graph_step, is_time_to_compare,
};
use crate::seen::Seen;

/// Closes a store and opens it again, as a restart does.
pub type Reopen<'a, S> = &'a dyn Fn(S) -> S;

/// What one step of a history does.
#[derive(Clone, Debug)]
enum Step {
    Graph(GraphStep),
    SuggestForEveryone(WalkBounds),
}

/// Runs `cases` random histories against a store and the model side by side, and panics with the shortest
/// history that it finds for which they differ.
///
/// With `reopen`, histories contain restarts; a store that is durable should be given it. The generator starts
/// from `seed`, so that a run can be repeated; the message of a failure names it.
pub fn histories<S: SuggestionPorts>(
    make: StoreFactory<'_, S>,
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

/// Runs a script with a restart as each of its steps in turn, and with one after every step, for both kinds of ids.
pub(crate) fn run_restarts<T: Clone>(script: &[T], restart: &T, run: impl Fn(IdKind, &[T]) -> Verdict) {
    for id_kind in [IdKind::Integer, IdKind::Uuid] {
        let ids = id_kind.name();
        for at in 0..=script.len() {
            let mut steps = script.to_vec();
            steps.insert(at, restart.clone());
            run(id_kind, &steps)
                .unwrap_or_else(|wrong| panic!("with {ids} ids and a restart as step {}: {wrong}", at + 1));
        }
        let steps: Vec<T> = script.iter().flat_map(|step| [step.clone(), restart.clone()]).collect();
        run(id_kind, &steps)
            .unwrap_or_else(|wrong| panic!("with {ids} ids and restarts after every step: {wrong}"));
    }
}

fn step() -> impl Strategy<Value = Step> {
    let bounds =
        (prop_oneof![Just(None), Just(Some(1)), Just(Some(2))], 1..4_usize, 0..Ranking::ALL.len()).prop_map(
            |(per_node, results, ranking)| WalkBounds { per_node, results, ranking: Ranking::ALL[ranking] },
        );
    prop_oneof![
        14 => graph_step().prop_map(Step::Graph),
        1 => bounds.prop_map(Step::SuggestForEveryone),
    ]
}

fn run_history<S: SuggestionPorts>(
    make: StoreFactory<'_, S>,
    reopen: Option<Reopen<'_, S>>,
    id_kind: IdKind,
    steps: &[Step],
) -> Verdict {
    let mut run = GraphRun::new(make, Controls { reopen, restore: None }, id_kind);
    let kept = Mutex::new(Kept::default());
    for (step, number) in steps.iter().zip(1..) {
        let compare_all = match step {
            Step::Graph(step) => run.step(step)?,
            Step::SuggestForEveryone(bounds) => {
                compute_suggestions(run.store(), (&run.graph(), &kept), *bounds, &run.clock)?;
                true
            }
        };
        if compare_all || is_time_to_compare(number) {
            compare_everything(&run, &kept).map_err(|wrong| format!("after step {number}: {wrong}"))?;
        }
    }
    compare_everything(&run, &kept)
}

fn compare_everything<S: SuggestionPorts>(run: &GraphRun<'_, S>, kept: &Mutex<Kept>) -> Verdict {
    run.compare()?;
    let model = run.graph();
    compare_candidates(&Seen::new(run.store(), model.frontier()), &model, &run.users)?;
    compare_stored(run.store(), &locked(kept), &run.users, run.clock.now())
}

/// A whole run for everyone, of the store and of the model.
fn compute_suggestions<S: SuggestionPorts>(
    store: &S,
    (model, kept): (&Model, &Mutex<Kept>),
    bounds: WalkBounds,
    clock: &SimulatedClock,
) -> Verdict {
    let request = SuggestionRunRequest { bounds, threads: 2, afresh: false };
    let model = Mutex::new(model.clone());
    let expected = Everyone { model: &model, kept, clock }.run(request, &|_, _| true);
    let found = store.compute_suggestions(request, &|_, _| true);
    let found = found.map_err(|error| format!("compute_suggestions failed: {error}"))?;
    // Whoever follows nobody any more need not be looked at where nothing is stored.
    let comparable = |report: SuggestionRunReport| (report.suggested, report.resumed, report.complete);
    equal(|| format!("suggestions for everyone with {bounds:?}"), &comparable(found), &comparable(expected))
}
