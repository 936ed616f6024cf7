//! The sharded, lagging store passes what concerns the graph, and fails it with each of its faults.

use std::sync::Arc;

use kinfolk_conformance::suite::{self, Case, CaseScope};
use kinfolk_conformance::{
    Fault, LagFault, ModelStore, SEED, ShardedStore, Sharding, SimulatedClock, TimeoutFault, block_on,
    concurrent_comments_with_fault, concurrent_comments_with_timeouts, concurrent_feeds_with_fault,
    concurrent_feeds_with_timeouts, concurrent_histories, concurrent_histories_with_fault,
    concurrent_histories_with_timeouts, edge, graph_histories, graph_restores, graph_trims, user,
};
use kinfolk_core::changes::ChangeLog;
use kinfolk_core::graph::{CheckStore, EdgeAction, EdgeList, EdgeStore, FollowerCommand, Side, WriteRequest};
use kinfolk_core::{Clock, EdgeKind, Error, IdKind};

use crate::faults::{model, quietly};
use crate::one_at_a_time;

/// How often to repeat what depends on a seed: as often as the environment asks for.
fn runs(usual: u64) -> u64 {
    let asked = std::env::var("KINFOLK_SHARDED_RUNS").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(usual)
}

fn make(shards: u16, seed: u64) -> impl Fn(IdKind, Arc<dyn Clock>) -> ShardedStore {
    move |id_kind, clock| ShardedStore::new(id_kind, clock, Sharding::new(shards, seed))
}

/// What concerns the graph.
fn graph() -> Vec<Case<ShardedStore>> {
    [suite::graph(), suite::staleness()].concat()
}

#[test]
fn it_passes_the_suite() {
    let _turn = one_at_a_time();
    for seed in 0..runs(3) {
        for shards in [1, 4, 7] {
            suite::run(&graph(), &make(shards, SEED + seed));
        }
    }
}

#[test]
fn it_passes_the_histories() {
    let _turn = one_at_a_time();
    for seed in 0..runs(2) {
        for shards in [1, 4, 7] {
            let make = make(shards, SEED + seed);
            graph_histories(&make, Some(&ShardedStore::reopen), 20, SEED + seed);
            graph_restores(&make, &ShardedStore::new_epoch, 20, SEED + seed);
            graph_trims(&make, &ShardedStore::trim, 20, SEED + seed);
            concurrent_histories(&make, 20, SEED + seed);
        }
    }
}

#[test]
fn unknown_outcomes_are_accepted() {
    let _turn = one_at_a_time();
    concurrent_histories_with_timeouts(&ModelStore::new, 40, SEED);
    for seed in 0..runs(4) {
        for shards in [1, 4] {
            concurrent_histories_with_timeouts(&make(shards, SEED + seed), 20, SEED + seed);
        }
    }
    for shards in [1, 4] {
        concurrent_feeds_with_timeouts(&model(shards, None), 20, SEED);
        concurrent_comments_with_timeouts(&model(shards, None), 20, SEED);
    }
}

/// A follower's own check needs only its own shard: it is answered while all projections stand still.
fn own_checks(store: &ShardedStore) {
    store.pause_projections();
    let kind = EdgeKind::Follow;
    let id = |number| user(IdKind::Integer, number);
    let followers = EdgeList { kind, side: Side::Followers, of: id(0) };
    for number in 1..20 {
        let commands = vec![FollowerCommand { action: EdgeAction::Follow, followee: id(0) }];
        let request =
            WriteRequest { kind, follower: id(number), commands: commands.into(), following_limit: 5 };
        let seen = block_on(store.write_one(request)).expect("a follow").position.into();
        let found = block_on(store.contains(kind, &[edge(IdKind::Integer, number, 0)], &seen));
        assert!(matches!(found.as_deref(), Ok([true])), "{found:?}");
        let listed = block_on(store.list(followers, None, 50, &seen));
        assert!(matches!(listed, Err(Error::NotYetVisible { .. })), "{listed:?}");
    }
    store.resume_projections();
    let seen = block_on(store.span()).expect("a span").newest;
    assert_eq!(block_on(store.list(followers, None, 50, &seen)).expect("a list").len(), 19);
}

/// A fault depends on the seed to show: on at least one of these it does.
const FAULT_SEEDS: u64 = 12;

fn run(test: &str, fault: Option<LagFault>, seed: u64) {
    let sharding = Sharding::new(4, SEED + seed);
    let make = |id_kind, clock: Arc<dyn Clock>| match fault {
        Some(fault) => ShardedStore::with_fault(id_kind, clock, sharding, fault),
        None => ShardedStore::new(id_kind, clock, sharding),
    };
    let scope = CaseScope { id_kind: IdKind::Integer, edge_kind: EdgeKind::Follow };
    match test {
        "graph_histories" => graph_histories(&make, Some(&ShardedStore::reopen), 30, SEED + seed),
        "concurrent_histories" => concurrent_histories(&make, 3, SEED + seed),
        "own_checks" => own_checks(&make(IdKind::Integer, Arc::new(SimulatedClock::default()))),
        "graph_trims" => graph_trims(&make, &ShardedStore::trim, 20, SEED + seed),
        "graph_restores" => graph_restores(&make, &ShardedStore::new_epoch, 20, SEED + seed),
        case => suite::named(&graph(), case).run_in(scope, &make),
    }
}

/// Each is caught by what is meant for it, which passes with the same seed where there is no fault.
#[test]
fn every_fault_is_caught() {
    let _turn = one_at_a_time();
    let mut missed = Vec::new();
    for &(fault, tests) in LagFault::CAUGHT_BY {
        for test in tests {
            let caught = (0..FAULT_SEEDS).find(|&seed| quietly(|| run(test, Some(fault), seed)).is_err());
            println!("{:<20} -> {test}, with seed {caught:?}", format!("{fault:?}"));
            match caught {
                Some(seed) => run(test, None, seed),
                None => missed.push((fault, test)),
            }
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

/// A race may go well by luck, but not so often.
const ATTEMPTS: u64 = 20;

/// That timeouts are accepted hides no mistake: neither those about timeouts, nor those of the store behind them.
#[test]
fn faults_behind_unknown_outcomes_are_caught() {
    let _turn = one_at_a_time();
    let caught = |run: &dyn Fn(u64)| (0..ATTEMPTS).any(|attempt| quietly(|| run(SEED + attempt)).is_err());
    for fault in TimeoutFault::ALL {
        let of_model = |seed| concurrent_histories_with_fault(&ModelStore::new, fault, 3, seed);
        let of_shards = |seed| concurrent_histories_with_fault(&make(4, seed), fault, 3, seed);
        assert!(caught(&of_model) && caught(&of_shards), "{fault:?}");
        for shards in [1, 4] {
            let of_feeds = |seed| concurrent_feeds_with_fault(&model(shards, None), fault, 3, seed);
            let of_comments = |seed| concurrent_comments_with_fault(&model(shards, None), fault, 3, seed);
            assert!(caught(&of_feeds), "{fault:?} of feeds");
            assert!(caught(&of_comments), "{fault:?} of comments");
        }
    }
    for fault in [Fault::FeedEndsWithInbox, Fault::FeedLagsBehind, Fault::FeedShowsDeleted] {
        let run = |seed| concurrent_feeds_with_timeouts(&model(4, Some(fault)), 3, seed);
        assert!(caught(&run), "{fault:?}");
    }
    for fault in [Fault::CommentRetryWritesAgain, Fault::CommentEditOfWithdrawn, Fault::ThreadLockIgnored] {
        let run = |seed| concurrent_comments_with_timeouts(&model(4, Some(fault)), 3, seed);
        assert!(caught(&run), "{fault:?}");
    }
    for fault in [Fault::RepeatEmitsEvent, Fault::RepeatSaysChanged, Fault::LogLosesEvent] {
        let run = |seed| concurrent_histories_with_timeouts(&model(1, Some(fault)), 3, seed);
        assert!(caught(&run), "{fault:?}");
    }
    for fault in [LagFault::EventLost, LagFault::CacheFillsStale, LagFault::OldShardMap] {
        let run = |seed| {
            let make = |id_kind, clock: Arc<dyn Clock>| {
                ShardedStore::with_fault(id_kind, clock, Sharding::new(4, seed), fault)
            };
            concurrent_histories_with_timeouts(&make, 3, seed);
        };
        assert!(caught(&run), "{fault:?}");
    }
}
