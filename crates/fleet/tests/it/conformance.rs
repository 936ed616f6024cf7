//! The fleet passes what any store of the graph must pass: on 4 shards and two hosts, with a follower side that follows at once
//! and with one that lags.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kinfolk_conformance::suite::{self, Case, CaseScope};
use kinfolk_conformance::{
    SEED, StoreFactory, concurrent_histories, concurrent_histories_with_timeouts, graph_histories,
};
use kinfolk_fleet::{Fleet, Settings};

use crate::deployments::{Projecting, Stores, patient, servers};

/// Runs cases, each on an empty store, and names those that failed; their messages are printed where they fail.
pub fn all_pass(cases: &[Case<Fleet>], scope: CaseScope, make: StoreFactory<'_, Fleet>) {
    let failed = |case: &&Case<Fleet>| catch_unwind(AssertUnwindSafe(|| case.run_in(scope, make))).is_err();
    let failures: Vec<_> = cases.iter().filter(failed).map(Case::name).collect();
    println!("{} of {} cases pass", cases.len() - failures.len(), cases.len());
    assert!(failures.is_empty(), "{failures:?}");
}

fn the_suite_passes(setting: usize, projecting: Projecting) {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, projecting).with_settings(patient);
    let setting = CaseScope::all().nth(setting).unwrap();
    let make = |ids, clock| stores.make(ids, clock);
    all_pass(&suite::graph(), setting, &make);
    all_pass(&suite::candidates(), setting, &make);
}

macro_rules! suite_tests {
    ($($name:ident: $setting:literal, $projecting:expr;)+) => {
        $(#[test]
        fn $name() {
            the_suite_passes($setting, $projecting);
        })+
    };
}

suite_tests! {
    the_suite_passes_with_the_first_setting: 0, Projecting::AtOnce;
    the_suite_passes_with_the_second_setting: 1, Projecting::AtOnce;
    the_suite_passes_with_the_third_setting: 2, Projecting::AtOnce;
    the_suite_passes_with_the_last_setting: 3, Projecting::AtOnce;
    the_suite_passes_with_the_first_setting_and_lag: 0, Projecting::Late(SEED);
    the_suite_passes_with_the_second_setting_and_lag: 1, Projecting::Late(SEED + 1);
    the_suite_passes_with_the_third_setting_and_lag: 2, Projecting::Late(SEED + 2);
    the_suite_passes_with_the_last_setting_and_lag: 3, Projecting::Late(SEED + 3);
}

/// Every account is hot from its first read on.
fn all_hot(settings: Settings) -> Settings {
    Settings { hot_reads: Some(1), ..patient(settings) }
}

#[test]
fn the_suite_passes_with_hot_accounts_and_lag() {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, Projecting::Late(SEED)).with_settings(all_hot);
    let make = |ids, clock| stores.make(ids, clock);
    all_pass(&suite::graph(), CaseScope::all().next().unwrap(), &make);
}

#[test]
fn histories_of_hot_accounts_with_lag_agree_with_the_model() {
    histories_agree(Projecting::Late(SEED), all_hot);
}

fn histories_agree(projecting: Projecting, settings: fn(Settings) -> Settings) {
    let Some(servers) = servers() else { return };
    let stores = Stores::new(servers, 4, projecting).with_settings(settings);
    let make = |ids, clock| stores.make(ids, clock);
    graph_histories(&make, Some(&|store| stores.reopen(store)), 15, SEED);
    concurrent_histories(&make, 8, SEED);
    concurrent_histories_with_timeouts(&make, 4, SEED);
}

#[test]
fn histories_agree_with_the_model() {
    histories_agree(Projecting::AtOnce, patient);
}

#[test]
fn histories_with_lag_agree_with_the_model() {
    histories_agree(Projecting::Late(SEED), patient);
}

/// As many shards as a deployment has unless it is set otherwise: users are seldom on the same one. With `KINFOLK_FLEET_SUITE=whole`
/// it runs all settings, at once and with lag, which takes a while.
#[test]
fn the_suite_passes_on_256_shards() {
    let Some(servers) = servers() else { return };
    let is_whole = std::env::var("KINFOLK_FLEET_SUITE").is_ok_and(|suite| suite == "whole");
    let runs = [Projecting::AtOnce, Projecting::Late(SEED)].into_iter().take(if is_whole { 2 } else { 1 });
    for projecting in runs {
        let stores = Stores::new(servers.clone(), 256, projecting).with_settings(patient);
        let make = |ids, clock| stores.make(ids, clock);
        for setting in CaseScope::all().take(if is_whole { usize::MAX } else { 1 }) {
            all_pass(&suite::graph(), setting, &make);
            all_pass(&suite::candidates(), setting, &make);
        }
        graph_histories(&make, Some(&|store| stores.reopen(store)), 3, SEED);
        concurrent_histories(&make, 2, SEED);
    }
}
