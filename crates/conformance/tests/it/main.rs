//! Shows that the suite passes for a right store and fails for every planted fault.

mod faults;
mod sharded;

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kinfolk_conformance::suite::CaseScope;
use kinfolk_conformance::{
    ModelStore, SEED, comment_histories, comment_restarts, concurrent_comments, concurrent_feeds,
    concurrent_histories, feed_histories, feed_restarts, histories, suite,
};

/// The test of faults silences panics, which it expects by the hundred, for the whole process: the others wait,
/// so that their messages are not lost.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn the_model_passes_the_suite() {
    let _turn = one_at_a_time();
    suite::run(&suite::all(), &ModelStore::new);
}

/// Cases do not expect an event on a certain shard.
#[test]
fn the_model_passes_the_suite_on_several_shards() {
    let _turn = one_at_a_time();
    for shards in [faults::SHARDS, 7] {
        suite::run(&suite::all(), &|id_kind, clock| ModelStore::new(id_kind, clock).on_shards(shards));
    }
}

#[test]
fn the_model_passes_the_histories() {
    let _turn = one_at_a_time();
    histories(&ModelStore::new, Some(&ModelStore::reopen), 100, SEED);
    histories(&ModelStore::new, None, 20, SEED);
    concurrent_histories(&ModelStore::new, 20, SEED);
}

#[test]
fn the_model_passes_the_histories_of_feeds() {
    let _turn = one_at_a_time();
    feed_histories(&ModelStore::new, Some(&ModelStore::reopen), 10_000, SEED);
    feed_histories(&ModelStore::new, None, 100, SEED);
    feed_restarts(&ModelStore::new, &ModelStore::reopen);
    concurrent_feeds(&ModelStore::new, 20, SEED);
}

#[test]
fn the_model_passes_the_histories_of_comments() {
    let _turn = one_at_a_time();
    comment_histories(&ModelStore::new, Some(&ModelStore::reopen), 3_000, SEED);
    comment_histories(&ModelStore::new, None, 100, SEED);
    comment_restarts(&ModelStore::new, &ModelStore::reopen);
    concurrent_comments(&ModelStore::new, 20, SEED);
}

#[test]
fn case_names_are_unique_and_can_be_run_alone() {
    let _turn = one_at_a_time();
    let cases = suite::all::<ModelStore>();
    cases[0].run_in(CaseScope::all().next().unwrap(), &ModelStore::new);
    let names: BTreeSet<_> = cases.iter().map(kinfolk_conformance::cases::Case::name).collect();
    assert_eq!(names.len(), cases.len());
}
