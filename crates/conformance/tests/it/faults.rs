//! Every planted fault must be caught, and by the case that is meant for it. This is how we know that the suite
//! can fail.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Arc;

use kinfolk_conformance::suite::{self, CaseScope};
use kinfolk_conformance::{
    Fault, ModelStore, SEED, comment_histories, comment_restarts, concurrent_comments, concurrent_feeds,
    concurrent_histories, feed_histories, feed_restarts, histories,
};
use kinfolk_core::{Clock, EdgeKind, IdKind};

use crate::one_at_a_time;

/// The number of shards that content is spread over.
pub(crate) const SHARDS: u16 = 4;

/// A race may go well by luck, but not so often.
const ATTEMPTS: usize = 20;

/// Makes the model's store with a fault or without.
pub(crate) fn model(shards: u16, fault: Option<Fault>) -> impl Fn(IdKind, Arc<dyn Clock>) -> ModelStore {
    move |id_kind, clock| match fault {
        Some(fault) => ModelStore::with_fault(id_kind, clock, fault).on_shards(shards),
        None => ModelStore::new(id_kind, clock).on_shards(shards),
    }
}

/// Runs a test that may panic, and says how it ended. Its panic is expected, so it prints nothing.
pub(crate) fn quietly(test: impl FnOnce()) -> Result<(), String> {
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let outcome = catch_unwind(AssertUnwindSafe(test));
    set_hook(hook);
    outcome.map_err(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

/// Runs a test that a fault names, on a store with a fault or without.
fn run(test: &str, fault: Option<Fault>) {
    let (test, shards) = match test.strip_prefix("on shards: ") {
        Some(case) => (case, SHARDS),
        None => (test, 1),
    };
    let make = model(shards, fault);
    let scope = CaseScope { id_kind: IdKind::Integer, edge_kind: EdgeKind::Follow };
    match test {
        "histories" => histories(&make, Some(&ModelStore::reopen), 30, SEED),
        "concurrent_histories" => concurrent_histories(&make, 3, SEED),
        "feed_histories" => feed_histories(&make, Some(&ModelStore::reopen), 2000, SEED),
        "feed_restarts" => feed_restarts(&make, &ModelStore::reopen),
        "concurrent_feeds" => concurrent_feeds(&make, 6, SEED),
        "comment_histories" => comment_histories(&make, Some(&ModelStore::reopen), 200, SEED),
        "comment_restarts" => comment_restarts(&make, &ModelStore::reopen),
        "concurrent_comments" => concurrent_comments(&make, 3, SEED),
        case => suite::named(&suite::all(), case).run_in(scope, &make),
    }
}

/// Each is caught by what is meant for it, which passes where there is no fault.
#[test]
fn every_fault_is_caught() {
    let _turn = one_at_a_time();
    let mut missed = Vec::new();
    for &(fault, tests) in Fault::CAUGHT_BY {
        for test in tests {
            let caught = (0..ATTEMPTS).any(|_| quietly(|| run(test, Some(fault))).is_err());
            println!("{:<28} -> {test}{}", format!("{fault:?}"), if caught { "" } else { ": NOT CAUGHT" });
            if !caught {
                missed.push((fault, test));
            }
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
    let tests: BTreeSet<_> = Fault::CAUGHT_BY.iter().flat_map(|(_, tests)| *tests).collect();
    tests.into_iter().for_each(|test| run(test, None));
}

/// Otherwise a fault could be caught by something that it was not planted for.
#[test]
fn a_fault_is_one_mistake() {
    let _turn = one_at_a_time();
    let alone = [
        Fault::EveryoneNeverAfresh,
        Fault::OverlapOfNothingFails,
        Fault::FreshnessIgnoredByInbox,
        Fault::FreshnessIgnoredByCandidates,
        Fault::FreshnessIgnoredByStored,
    ];
    for (fault, tests) in Fault::CAUGHT_BY.iter().filter(|(fault, _)| alone.contains(fault)) {
        let names = suite::all::<ModelStore>().into_iter().map(|case| case.name());
        let failed: Vec<&str> = names.filter(|case| quietly(|| run(case, Some(*fault))).is_err()).collect();
        assert_eq!(failed, tests[..1], "{fault:?}");
    }
}

/// A store with a fault reads feeds and comments in other ways than the model: they are right as long as the fault has nothing
/// to do with them.
#[test]
fn an_unrelated_fault_changes_nothing() {
    let _turn = one_at_a_time();
    let unrelated = Some(Fault::EpochChangesWithWrites);
    for test in ["feed_histories", "feed_restarts", "concurrent_feeds"] {
        run(test, unrelated);
    }
    for test in ["comment_histories", "comment_restarts", "concurrent_comments"] {
        run(test, unrelated);
    }
}

#[test]
fn a_failure_names_its_case_and_setting() {
    let _turn = one_at_a_time();
    let make = model(1, Some(Fault::LimitOffByOne));
    let message = quietly(|| suite::run(&suite::all(), &make)).expect_err("the suite fails");
    for part in
        ["case the_limit_is_exact", "with uuid ids and block edges", "with integer ids and follow edges"]
    {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    let message = quietly(|| histories(&make, None, 50, SEED)).expect_err("the histories fail");
    for part in ["seed", "Write { kind: Follow"] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
}
