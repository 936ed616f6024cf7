//! Cases of suggestions through the graph: what was stored and what is found, dismissals, limits, tokens.

use kinfolk_core::graph::{Counts, Edge, EdgeAction};
use kinfolk_core::suggestions::{Ranking, SuggestionPage, WalkBounds};
use kinfolk_core::{Clock, EdgeKind, ErrorCode, Frontier, Position, Sequence};

use super::candidates::{candidates, dismiss, follow_all, ids_of};
use super::everyone::{BEST_TEN, run};
use crate::cases::subject::assert_code;
use crate::cases::subject::{SUGGEST, Subject, follow, unfollow};
use crate::ports::SuggestionPorts;
use crate::seen::Seen;
use crate::threads::block_on;

crate::cases::list_cases![cases: SuggestionPorts;
    without_stored_suggestions_there_is_a_walk,
    stored_suggestions_are_served_while_fresh,
    stored_suggestions_leave_out_who_is_known_since,
    where_nothing_stored_is_left_there_is_a_walk,
    suggestions_keep_their_limits,
    a_dismissal_is_for_good,
    a_dismissal_of_oneself_is_refused,
    dismissals_have_a_limit_of_their_own,
    a_token_makes_suggestions_fresh,
    candidates_wait_for_a_position,
    stored_suggestions_wait_for_a_position,
];

fn suggestions<S: SuggestionPorts>(subject: &Subject<S>, of: u64, limit: usize) -> SuggestionPage {
    block_on(subject.graph.suggestions(subject.id(of), limit, None)).unwrap()
}

/// 1 follows 2, 3, 4 and then 5, each of whom leads to some of 10 to 15.
fn small_graph<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, [(2, 10), (2, 11), (2, 12), (3, 10), (3, 11), (3, 13), (4, 10), (4, 14), (5, 15)]);
    for to in [2, 3, 4, 5] {
        subject.clock.advance(1);
        follow_all(subject, [(1, to)]);
    }
}

/// What a walk in a request finds.
fn walked<S: SuggestionPorts>(subject: &Subject<S>, of: u64, limit: usize) -> SuggestionPage {
    let per_node = Some(SUGGEST.per_node);
    let bounds = WalkBounds { per_node, results: limit, ranking: Ranking::Count };
    SuggestionPage { items: candidates(subject, of, bounds), computed_at: None }
}

fn without_stored_suggestions_there_is_a_walk<S: SuggestionPorts>(subject: &Subject<S>) {
    assert_eq!(suggestions(subject, 1, 5), SuggestionPage::default());
    small_graph(subject);
    // 2 is beyond the three most recent, so 12 is not found; 10 and 11 have one less in between.
    let found = suggestions(subject, 1, 10);
    assert_eq!(ids_of(&found.items), subject.ids([10, 15, 14, 11, 13]));
    assert_eq!(found, walked(subject, 1, 10));
    for limit in 1..=SUGGEST.results_max {
        assert_eq!(suggestions(subject, 1, limit).items, found.items[..limit.min(5)]);
    }
}

fn stored_suggestions_are_served_while_fresh<S: SuggestionPorts>(subject: &Subject<S>) {
    small_graph(subject);
    let computed_at = subject.clock.now();
    run(subject, BEST_TEN);
    let found = suggestions(subject, 1, 10);
    assert_eq!(found.computed_at, Some(computed_at));
    assert_eq!(ids_of(&found.items), subject.ids([10, 11, 15, 14, 12, 13]), "without a bound");
    // They stay as they were while the graph changes.
    subject.write_follows(&[follow(5, 16), follow(5, 14), unfollow(2, 12)]);
    subject.clock.advance(SUGGEST.fresh_for.as_millis() as u64);
    assert_eq!(suggestions(subject, 1, 10), found);
    for limit in 1..=6 {
        let some = suggestions(subject, 1, limit);
        assert_eq!((some.items, some.computed_at), (found.items[..limit].to_vec(), Some(computed_at)));
    }
    // A millisecond later they are stale.
    subject.clock.advance(1);
    assert_eq!(suggestions(subject, 1, 10), walked(subject, 1, 10));
    assert_ne!(suggestions(subject, 1, 10).items, found.items);
}

fn stored_suggestions_leave_out_who_is_known_since<S: SuggestionPorts>(subject: &Subject<S>) {
    small_graph(subject);
    run(subject, BEST_TEN);
    subject.write_follows(&[follow(1, 10)]);
    block_on(subject.graph.dismiss(subject.id(1), subject.id(15))).unwrap();
    let left = suggestions(subject, 1, 10);
    assert_eq!(ids_of(&left.items), subject.ids([11, 14, 12, 13]));
    assert!(left.computed_at.is_some());
    assert_eq!(
        ids_of(&suggestions(subject, 1, 3).items),
        subject.ids([11, 14, 12]),
        "others take their place"
    );
    // What is known to one is not known to another, and may become unknown again.
    subject.write_follows(&[unfollow(1, 10), follow(2, 14)]);
    assert_eq!(ids_of(&suggestions(subject, 1, 2).items), subject.ids([10, 11]));
}

fn where_nothing_stored_is_left_there_is_a_walk<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, [(1, 2), (2, 10), (2, 11)]);
    run(subject, BEST_TEN);
    subject.clock.advance(1);
    subject.write_follows(&[follow(1, 10), follow(10, 20)]);
    assert_eq!(ids_of(&suggestions(subject, 1, 5).items), subject.ids([11]));
    dismiss(subject, EdgeAction::Follow, 1, 11);
    let found = suggestions(subject, 1, 5);
    assert_eq!((ids_of(&found.items), found.computed_at), (subject.ids([20]), None));
    // The same for users without stored suggestions.
    subject.write_follows(&[follow(20, 1)]);
    let found = suggestions(subject, 20, 5);
    assert_eq!((ids_of(&found.items), found.computed_at), (subject.ids([2, 10]), None));
}

fn suggestions_keep_their_limits<S: SuggestionPorts>(subject: &Subject<S>) {
    small_graph(subject);
    for stored in [false, true] {
        if stored {
            run(subject, BEST_TEN);
        }
        for limit in [0, SUGGEST.results_max + 1, usize::MAX] {
            let asked = block_on(subject.graph.suggestions(subject.id(1), limit, None));
            assert_code(asked, ErrorCode::LimitOutOfRange);
        }
    }
    let (ours, foreign) = (subject.id(1), subject.foreign_id());
    assert_code(block_on(subject.graph.suggestions(foreign, 5, None)), ErrorCode::InvalidId);
    assert_code(block_on(subject.graph.dismiss(foreign, ours)), ErrorCode::InvalidId);
    assert_code(block_on(subject.graph.dismiss(ours, foreign)), ErrorCode::InvalidId);
}

fn a_dismissal_is_for_good<S: SuggestionPorts>(subject: &Subject<S>) {
    small_graph(subject);
    let (one, target) = (subject.id(1), subject.id(10));
    let counted = || block_on(subject.store().counts(EdgeKind::Follow, &[one, target])).unwrap();
    let counts_before = counted();
    let written = block_on(subject.graph.dismiss(one, target)).unwrap();
    assert_eq!(written.changed[..], [true]);
    let again = block_on(subject.graph.dismiss(one, target)).unwrap();
    assert_eq!((again.changed, again.token), (vec![false], written.token), "once more changes nothing");
    assert_eq!(counted(), counts_before, "to dismiss is not to follow");
    let edge = Edge { follower: one, followee: target };
    assert_eq!(block_on(subject.store().contains(EdgeKind::Dismissal, &[edge])).unwrap(), [true]);
    assert_eq!(block_on(subject.store().contains(EdgeKind::Follow, &[edge])).unwrap(), [false]);
    let dismissed = |of| !ids_of(&suggestions(subject, of, 10).items).contains(&target);
    assert!(dismissed(1));
    // Also after a run, and after time has passed.
    run(subject, BEST_TEN);
    assert!(dismissed(1) && suggestions(subject, 1, 10).computed_at.is_some());
    subject.clock.advance(2 * SUGGEST.fresh_for.as_millis() as u64);
    assert!(dismissed(1) && suggestions(subject, 1, 10).computed_at.is_none());
    // Nobody else has dismissed it, and a strange one can be dismissed as well.
    follow_all(subject, [(9, 2)]);
    assert!(!dismissed(9));
    assert_eq!(block_on(subject.graph.dismiss(one, subject.id(99))).unwrap().changed[..], [true]);
}

fn a_dismissal_of_oneself_is_refused<S: SuggestionPorts>(subject: &Subject<S>) {
    small_graph(subject);
    let before = subject.newest_frontier();
    let refused = block_on(subject.graph.dismiss(subject.id(1), subject.id(1)));
    assert_code(refused, ErrorCode::InvalidRequest);
    assert_eq!(subject.newest_frontier(), before);
}

fn dismissals_have_a_limit_of_their_own<S: SuggestionPorts>(subject: &Subject<S>) {
    small_graph(subject);
    let dismiss = |of: u64, target: u64| block_on(subject.graph.dismiss(subject.id(of), subject.id(target)));
    let max = u64::from(SUGGEST.dismissed_max);
    for number in 0..max {
        assert_eq!(dismiss(1, 20 + number).unwrap().changed[..], [true]);
    }
    let before = subject.newest_frontier();
    assert_code(dismiss(1, 20 + max), ErrorCode::InvalidRequest);
    assert_eq!(subject.newest_frontier(), before);
    assert_eq!(dismiss(1, 20).unwrap().changed[..], [false], "what is dismissed already needs no place");
    assert_eq!(dismiss(2, 20 + max).unwrap().changed[..], [true], "the limit is of each user");
    let followed = block_on(subject.graph.follow(EdgeKind::Follow, subject.id(1), subject.id(30))).unwrap();
    assert_eq!(followed.changed[..], [true], "and not that of follows");
    let counts = block_on(subject.store().counts(EdgeKind::Dismissal, &subject.ids([1, 20]))).unwrap();
    assert_eq!(counts, [Counts { following: max, followers: 0 }, Counts { following: 0, followers: 1 }]);
}

fn a_token_makes_suggestions_fresh<S: SuggestionPorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    follow_all(subject, [(1, 2), (9, 2)]);
    let ask = |of: u64, fresh: &str| block_on(graph.suggestions(subject.id(of), 10, Some(fresh)));
    for number in 10..15 {
        let written = block_on(graph.follow(EdgeKind::Follow, subject.id(2), subject.id(number))).unwrap();
        // Within a millisecond, the highest are the most recent; three are looked at.
        let found = ids_of(&ask(1, &written.token).unwrap().items);
        assert!(found.contains(&subject.id(number)), "{number} was followed, found {found:?}");
        let written = block_on(graph.dismiss(subject.id(1), subject.id(number))).unwrap();
        let found = ids_of(&ask(1, &written.token).unwrap().items);
        assert!(!found.contains(&subject.id(number)), "{number} was dismissed, found {found:?}");
    }
    assert_code(ask(1, "x"), ErrorCode::InvalidToken);
    run(subject, BEST_TEN);
    assert_code(ask(9, "x"), ErrorCode::InvalidToken);
    let found = ask(9, &graph.token(subject.newest_frontier())).unwrap();
    assert_eq!((found.items.len(), found.computed_at), (5, Some(subject.clock.now())));
}

/// A position that was not reached, on the shard of a follow that was.
fn position_of_the_future<S: SuggestionPorts>(subject: &Subject<S>) -> Position {
    let followed = subject.write_follows(&[follow(1, 50)]);
    Sequence(1_000_000).on(followed.position.shard)
}

fn candidates_wait_for_a_position<S: SuggestionPorts>(subject: &Subject<S>) {
    small_graph(subject);
    let future = position_of_the_future(subject);
    let candidates = |seen: Frontier| {
        block_on(Seen::new(subject.graph.store(), seen).candidates(subject.id(1), BEST_TEN.bounds))
    };
    assert!(!candidates(subject.graph.seen()).expect("it is visible").is_empty());
    assert_code(candidates(future.into()), ErrorCode::NotYetVisible);
}

fn stored_suggestions_wait_for_a_position<S: SuggestionPorts>(subject: &Subject<S>) {
    small_graph(subject);
    let future = position_of_the_future(subject);
    run(subject, BEST_TEN);
    let stored = |seen: Frontier| {
        let store = Seen::new(subject.graph.store(), seen);
        block_on(store.stored_suggestions(subject.id(1), SUGGEST.fresh_for))
    };
    assert!(stored(subject.graph.seen()).expect("it is visible").is_some());
    assert_code(stored(future.into()), ErrorCode::NotYetVisible);
}
