//! Cases of suggestions for everyone: what a run stores, for how long it is good, and how a stopped run goes on.
//!
//! How often a store asks whether to go on is its own affair: a case that stops a run has nothing to see where the
//! store never asked before the end.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kinfolk_core::suggestions::{
    Ranking, StoredSuggestions, SuggestionRunReport, SuggestionRunRequest, WalkBounds,
};
use kinfolk_core::{Clock, EdgeKind, Timestamp};

use super::candidates::{ALL, candidates, dismiss, follow_all, model_of, random_graph};
use crate::cases::subject::{Subject, follow, unfollow};
use crate::model::Model;
use crate::ports::SuggestionPorts;
use crate::threads::{block_on, meanwhile};

crate::cases::list_cases![cases: SuggestionPorts;
    everyone_gets_what_a_walk_finds,
    nothing_is_stored_before_a_run,
    nothing_is_stored_for_whom_there_is_nothing,
    a_run_replaces_what_was_stored,
    stored_suggestions_have_an_age,
    stored_suggestions_outlive_a_clock_that_is_turned_back,
    a_run_has_no_bound_unless_it_is_set,
    a_run_tells_how_far_it_is,
    a_stopped_run_goes_on,
    a_run_with_other_bounds_starts_over,
    a_run_may_start_afresh,
    a_run_that_was_stopped_long_ago_starts_over,
    a_run_holds_nobody_up,
    what_was_computed_elsewhere_is_stored,
];

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What most cases ask for.
pub(in crate::cases) const BEST_TEN: SuggestionRunRequest = SuggestionRunRequest {
    bounds: WalkBounds { per_node: None, results: 10, ranking: Ranking::Count },
    threads: 2,
    afresh: false,
};

/// A whole run.
pub(in crate::cases) fn run<S: SuggestionPorts>(
    subject: &Subject<S>,
    request: SuggestionRunRequest,
) -> SuggestionRunReport {
    let report = subject.store().compute_suggestions(request, &|_, _| true).unwrap();
    assert!(report.complete, "nobody stopped it: {report:?}");
    report
}

fn stored<S: SuggestionPorts>(subject: &Subject<S>, of: u64, max_age: Duration) -> Option<StoredSuggestions> {
    block_on(subject.store().stored_suggestions(subject.id(of), max_age)).unwrap()
}

/// What is stored for a user is what a walk of that model finds, as of that time.
fn assert_stored<S: SuggestionPorts>(
    subject: &Subject<S>,
    model: &Model,
    of: u64,
    (bounds, computed_at): (WalkBounds, Timestamp),
) {
    let items = model.candidates(subject.id(of), bounds);
    let expected = (!items.is_empty()).then_some(StoredSuggestions { computed_at, items });
    assert_eq!(stored(subject, of, DAY), expected, "of {of} with {bounds:?}");
}

fn everyone_gets_what_a_walk_finds<S: SuggestionPorts>(subject: &Subject<S>) {
    random_graph(subject, 40, 17);
    let model = model_of(subject);
    let mut requests: Vec<SuggestionRunRequest> = Vec::new();
    for (ranking, threads) in Ranking::ALL.into_iter().zip([1, 2, 3]) {
        for (per_node, results) in [(None, 100), (None, 3), (Some(2), 100)] {
            let bounds = WalkBounds { per_node, results, ranking };
            requests.push(SuggestionRunRequest { bounds, threads, afresh: false });
        }
    }
    for request in requests {
        subject.clock.advance(1_000);
        let report = run(subject, request);
        for of in 0..41 {
            assert_stored(subject, &model, of, (request.bounds, subject.clock.now()));
        }
        let suggested = (0..40).filter(|&of| stored(subject, of, DAY).is_some()).count() as u64;
        let following = (0..40).filter(|&of| !model.most_recent(subject.id(of), None).is_empty()).count();
        assert_eq!(report.suggested, suggested, "{request:?}");
        assert!((following as u64..=40).contains(&report.users), "{report:?}, {following} follow somebody");
        assert_eq!(report.resumed, 0);
    }
}

fn nothing_is_stored_before_a_run<S: SuggestionPorts>(subject: &Subject<S>) {
    assert_eq!(stored(subject, 1, DAY), None);
    follow_all(subject, [(1, 2), (2, 3)]);
    assert_eq!(stored(subject, 1, Duration::MAX), None);
    candidates(subject, 1, ALL);
    assert_eq!(stored(subject, 1, Duration::MAX), None, "a walk stores nothing");
}

fn nothing_is_stored_for_whom_there_is_nothing<S: SuggestionPorts>(subject: &Subject<S>) {
    let report = run(subject, BEST_TEN);
    assert_eq!(report.suggested, 0, "nobody is there: {report:?}");
    follow_all(subject, [(1, 2), (2, 3), (3, 2), (4, 3)]);
    dismiss(subject, kinfolk_core::graph::EdgeAction::Follow, 4, 2);
    assert_eq!(run(subject, BEST_TEN).suggested, 1);
    assert!(stored(subject, 1, DAY).is_some());
    for of in [2, 3, 4, 5] {
        assert_eq!(stored(subject, of, DAY), None, "user {of}");
    }
}

fn a_run_replaces_what_was_stored<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, [(1, 2), (2, 3), (4, 2), (5, 2)]);
    run(subject, BEST_TEN);
    let before = stored(subject, 5, DAY).expect("3 is suggested to 5");
    subject.clock.advance(1_000);
    subject.write_follows(&[follow(2, 6), follow(4, 3), follow(4, 6), unfollow(5, 2)]);
    assert_eq!(stored(subject, 5, DAY), Some(before), "nothing changes until the next run");
    run(subject, BEST_TEN);
    let model = model_of(subject);
    for of in 1..=6 {
        assert_stored(subject, &model, of, (BEST_TEN.bounds, subject.clock.now()));
    }
    assert_eq!(stored(subject, 1, DAY).expect("3 and 6").items.len(), 2);
    assert_eq!(stored(subject, 4, DAY), None, "4 follows all of them by now");
    assert_eq!(stored(subject, 5, DAY), None, "5 follows nobody by now");
}

fn stored_suggestions_have_an_age<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, [(1, 2), (2, 3)]);
    let computed_at = subject.clock.now();
    run(subject, BEST_TEN);
    for (advance, served, not_served) in [
        (0, Duration::ZERO, None),
        (1, Duration::from_millis(1), Some(Duration::ZERO)),
        (999, Duration::from_secs(1), Some(Duration::from_millis(999))),
        (24 * 3_600_000 - 1_000, DAY, Some(DAY - Duration::from_millis(1))),
        (1, Duration::MAX, Some(DAY)),
    ] {
        subject.clock.advance(advance);
        let found = stored(subject, 1, served).expect("it is fresh enough");
        assert_eq!(found.computed_at, computed_at);
        if let Some(max_age) = not_served {
            assert_eq!(stored(subject, 1, max_age), None, "older than {max_age:?}");
        }
    }
    // Time passes for what is stored, not for the graph: a new run makes it young again.
    run(subject, BEST_TEN);
    assert_eq!(stored(subject, 1, Duration::ZERO).expect("just computed").computed_at, subject.clock.now());
}

fn stored_suggestions_outlive_a_clock_that_is_turned_back<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, [(1, 2), (2, 3)]);
    run(subject, BEST_TEN);
    subject.clock.turn_back(5_000);
    assert!(stored(subject, 1, Duration::ZERO).is_some(), "what is of the future is not old");
    run(subject, BEST_TEN);
    assert!(stored(subject, 1, DAY).is_some());
}

fn a_run_has_no_bound_unless_it_is_set<S: SuggestionPorts>(subject: &Subject<S>) {
    // The first whom 1 followed leads to 900; whoever came later leads nowhere. The same with 2, one step on.
    subject.clock.advance(1);
    follow_all(subject, [(1, 3), (3, 900), (2, 4), (4, 901)]);
    subject.clock.advance(1);
    follow_all(subject, (100..700).flat_map(|to| [(1, to), (4, to)]));
    let everything = SuggestionRunRequest { bounds: WalkBounds { results: 1_000, ..ALL }, ..BEST_TEN };
    run(subject, everything);
    let ids = |of| super::candidates::ids_of(&stored(subject, of, DAY).expect("suggested").items);
    assert_eq!(ids(1), subject.ids([900]));
    assert_eq!(ids(2).len(), 601);
    assert!(ids(2).contains(&subject.id(901)));
    let bounds = WalkBounds { per_node: Some(500), ..everything.bounds };
    run(subject, SuggestionRunRequest { bounds, ..everything });
    assert_eq!(stored(subject, 1, DAY), None);
    assert_eq!(ids(2).len(), 500);
}

fn a_run_tells_how_far_it_is<S: SuggestionPorts>(subject: &Subject<S>) {
    random_graph(subject, 30, 4);
    let reported: Mutex<Vec<(u64, u64)>> = Mutex::default();
    let watch = |done: u64, all: u64| {
        reported.lock().unwrap().push((done, all));
        true
    };
    let report = subject.store().compute_suggestions(BEST_TEN, &watch).unwrap();
    let reported = reported.into_inner().unwrap();
    assert!(!reported.is_empty(), "it tells something");
    assert!(reported.iter().all(|(done, all)| done <= all), "{reported:?}");
    assert!(reported.iter().any(|(done, all)| done == all), "it tells the end: {reported:?}");
    assert!(report.complete && report.users > 0);
}

/// Enough users that most stores ask more than once whether to go on.
const MANY: u64 = 300;

/// Users in a ring, each of whom may know the next but one.
fn ring<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, (0..MANY).map(|from| (from, (from + 1) % MANY)));
}

/// Stops a run when it asks for the first time. None if it had nobody left by then.
fn stop_early<S: SuggestionPorts>(
    subject: &Subject<S>,
    request: SuggestionRunRequest,
) -> Option<SuggestionRunReport> {
    let done_first = AtomicU64::new(u64::MAX);
    let watch = |done: u64, all: u64| {
        _ = done_first.compare_exchange(u64::MAX, all - done, Ordering::SeqCst, Ordering::SeqCst);
        false
    };
    let one_thread = SuggestionRunRequest { threads: 1, ..request };
    let report = subject.store().compute_suggestions(one_thread, &watch).unwrap();
    let was_stopped = done_first.load(Ordering::SeqCst) > 0;
    assert_eq!(report.complete, !was_stopped, "{report:?}");
    was_stopped.then_some(report)
}

/// Which users have suggestions as of some moment.
fn stored_at<S: SuggestionPorts>(subject: &Subject<S>, moment: Timestamp) -> BTreeSet<u64> {
    let of_moment = |of: &u64| stored(subject, *of, Duration::MAX).is_some_and(|it| it.computed_at == moment);
    (0..MANY).filter(of_moment).collect()
}

fn a_stopped_run_goes_on<S: SuggestionPorts>(subject: &Subject<S>) {
    ring(subject);
    let first = subject.clock.now();
    let Some(stopped) = stop_early(subject, BEST_TEN) else { return };
    assert!(0 < stopped.users && stopped.users < MANY, "{stopped:?}");
    let before = stored_at(subject, first);
    assert_eq!(before.len() as u64, stopped.suggested);

    // Up to a day later; what changed meanwhile does not bring anybody back who was done.
    subject.clock.advance(DAY.as_millis() as u64);
    let report = run(subject, BEST_TEN);
    assert_eq!((report.resumed, report.users), (stopped.users, MANY - stopped.users));
    assert_eq!(stored_at(subject, first), before, "not looked at again");
    assert_eq!(
        stored_at(subject, first).len() + stored_at(subject, subject.clock.now()).len(),
        MANY as usize
    );

    // That one is complete, so the next is a new one.
    subject.clock.advance(1_000);
    let report = run(subject, BEST_TEN);
    assert_eq!((report.resumed, report.users), (0, MANY));
    assert_eq!(stored_at(subject, subject.clock.now()).len(), MANY as usize);
}

/// Stops a run, lets some time pass, and runs again: everyone is looked at again.
fn assert_starts_over<S: SuggestionPorts>(
    subject: &Subject<S>,
    later: Duration,
    again: SuggestionRunRequest,
) {
    ring(subject);
    stop_early(subject, BEST_TEN);
    subject.clock.advance(later.as_millis() as u64);
    let report = run(subject, again);
    assert_eq!((report.resumed, report.users, report.suggested), (0, MANY, MANY));
    assert_eq!(stored_at(subject, subject.clock.now()).len(), MANY as usize);
}

fn a_run_with_other_bounds_starts_over<S: SuggestionPorts>(subject: &Subject<S>) {
    let bounds = WalkBounds { ranking: Ranking::Jaccard, ..BEST_TEN.bounds };
    assert_starts_over(subject, Duration::from_secs(1), SuggestionRunRequest { bounds, ..BEST_TEN });
}

fn a_run_may_start_afresh<S: SuggestionPorts>(subject: &Subject<S>) {
    assert_starts_over(subject, Duration::from_secs(1), SuggestionRunRequest { afresh: true, ..BEST_TEN });
}

fn a_run_that_was_stopped_long_ago_starts_over<S: SuggestionPorts>(subject: &Subject<S>) {
    assert_starts_over(subject, DAY + Duration::from_millis(1), BEST_TEN);
}

fn a_run_holds_nobody_up<S: SuggestionPorts>(subject: &Subject<S>) {
    ring(subject);
    let next = AtomicU64::new(MANY);
    let use_it = || {
        let from = next.fetch_add(1, Ordering::SeqCst);
        let commands = subject.commands(&[follow(from, from + 1)]);
        subject.try_write(EdgeKind::Follow, &commands, 100).expect("a write during a run");
        let edge = subject.edge(from, from + 1);
        assert_eq!(block_on(subject.store().contains(EdgeKind::Follow, &[edge])).unwrap(), [true]);
        candidates(subject, 0, ALL);
    };
    meanwhile(use_it, || run(subject, SuggestionRunRequest { afresh: true, ..BEST_TEN }));
    let found = stored(subject, 5, DAY).expect("7 is suggested to 5");
    assert_eq!(super::candidates::ids_of(&found.items), subject.ids([7]));
}

fn what_was_computed_elsewhere_is_stored<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, [(1, 2), (2, 3), (4, 2), (5, 2)]);
    run(subject, BEST_TEN);
    let [one, other] = [1, 4].map(|of| stored(subject, of, DAY).expect("3 is suggested"));
    subject.clock.advance(60_000);
    // By another ranking, earlier than now and later than what is there.
    let computed_at = one.computed_at.plus_millis(30_000);
    let model = model_of(subject);
    let items = |of| model.candidates(subject.id(of), BEST_TEN.bounds);
    let mut better = items(1);
    better[0].mutual_count += 6;
    better[0].jaccard = f64::from(better[0].mutual_count) / 40.0;
    let nothing = StoredSuggestions { computed_at, items: Vec::new() };
    let elsewhere = StoredSuggestions { computed_at, items: better };
    let computed = vec![
        (subject.id(5), nothing),
        (subject.id(1), elsewhere.clone()),
        (subject.id(77), elsewhere.clone()),
    ];
    block_on(subject.store().store_suggestions(computed)).unwrap();
    assert_eq!(stored(subject, 1, DAY), Some(elsewhere.clone()), "it replaces what was there");
    assert_eq!(stored(subject, 77, DAY), Some(elsewhere), "the graph is not asked");
    assert_eq!(stored(subject, 5, DAY), None, "nothing was found");
    assert_eq!(stored(subject, 4, DAY), Some(other), "others stay as they are");
    assert_eq!(stored(subject, 1, Duration::from_secs(20)), None, "its age is that of the computation");
    run(subject, BEST_TEN);
    assert_stored(subject, &model, 1, (BEST_TEN.bounds, subject.clock.now()));
}
