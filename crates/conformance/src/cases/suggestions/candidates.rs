//! Cases of the walk for suggestions: who is found, who never is, how they are scored and in which order they come.
//! Bounded work and giving up when the caller has gone cannot be seen from here.

use std::collections::BTreeSet;

use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand};
use kinfolk_core::suggestions::{Ranking, Score, Suggestion, WalkBounds, jaccard, weight};
use kinfolk_core::{EdgeKind, GraphStore, Id};

use crate::cases::subject::{NO_LIMIT, Subject, follow, unfollow};
use crate::model::Model;
use crate::ports::SuggestionPorts;
use crate::random::Random;
use crate::random::compare::compare_candidates;
use crate::threads::block_on;

crate::cases::list_cases![cases: SuggestionPorts;
    candidates_are_whom_followees_follow,
    nobody_is_suggested_to_themselves_or_again,
    whom_a_user_followed_long_ago_is_not_suggested,
    the_dismissed_are_not_suggested,
    only_the_most_recent_followees_count,
    only_the_most_recent_of_each_followee_count,
    within_one_millisecond_high_ids_are_most_recent,
    scores_do_not_depend_on_bounds,
    ties_are_broken_by_score_then_id,
    via_names_those_who_say_most,
    rankings_differ,
    the_best_are_kept,
    candidates_of_extreme_ids,
    other_kinds_suggest_nobody,
    every_change_counts_in_the_next_walk,
    nobody_is_suggested_to_who_follows_nobody,
    candidates_of_one_who_follows_many,
    candidates_of_a_random_graph,
];

/// All that there is, by count.
pub(in crate::cases) const ALL: WalkBounds =
    WalkBounds { per_node: None, results: 1_000, ranking: Ranking::Count };

fn recent(per_node: usize) -> WalkBounds {
    WalkBounds { per_node: Some(per_node), ..ALL }
}

/// Makes many edges in one millisecond.
pub(in crate::cases) fn follow_all<S: GraphStore>(
    subject: &Subject<S>,
    edges: impl IntoIterator<Item = (u64, u64)>,
) {
    let commands: Vec<_> = edges.into_iter().map(|(from, to)| follow(from, to)).collect();
    for request in commands.chunks(250) {
        assert!(!subject.write_follows(request).changed.contains(&false), "every edge is new");
    }
}

/// One user follows others one after the other, so that the last is the most recent.
fn follow_in_turn<S: SuggestionPorts>(
    subject: &Subject<S>,
    from: u64,
    others: impl IntoIterator<Item = u64>,
) {
    for to in others {
        subject.clock.advance(1);
        follow_all(subject, [(from, to)]);
    }
}

pub(in crate::cases) fn dismiss<S: SuggestionPorts>(
    subject: &Subject<S>,
    action: EdgeAction,
    from: u64,
    to: u64,
) {
    let commands = subject.commands(&[(action, from, to)]);
    let receipt = subject.try_write(EdgeKind::Dismissal, &commands, NO_LIMIT).expect("the write succeeds");
    assert_eq!(receipt.changed[..], [true]);
}

pub(in crate::cases) fn candidates<S: SuggestionPorts>(
    subject: &Subject<S>,
    of: u64,
    bounds: WalkBounds,
) -> Vec<Suggestion> {
    block_on(subject.store().candidates(subject.id(of), bounds)).unwrap()
}

/// The suggested are these, the best first; and the model says the same, with all scores.
fn assert_suggested<S: SuggestionPorts>(
    subject: &Subject<S>,
    of: u64,
    bounds: WalkBounds,
    expected: impl IntoIterator<Item = u64>,
) {
    let found = candidates(subject, of, bounds);
    assert_eq!(ids_of(&found), subject.ids(expected), "of {of} with {bounds:?}");
    assert_eq!(found, model_of(subject).candidates(subject.id(of), bounds), "of {of} with {bounds:?}");
}

/// The graph according to the log.
pub(in crate::cases) fn model_of<S: GraphStore>(subject: &Subject<S>) -> Model {
    Model::replay(subject.changes())
}

pub(in crate::cases) fn ids_of(items: &[Suggestion]) -> Vec<Id> {
    items.iter().map(|item| item.id).collect()
}

fn sum_of_weights(edges: impl IntoIterator<Item = u64>) -> Score {
    edges.into_iter().map(weight).sum()
}

fn candidates_are_whom_followees_follow<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, [(1, 2), (1, 3), (2, 4), (3, 4), (2, 5), (3, 6), (4, 7), (8, 6), (8, 9)]);
    // 2 has 3 edges and 3 has 3; 4 is followed by two and 6 by two, 5 by one.
    let item = |id, via: &[u64], followers| Suggestion {
        id: subject.id(id),
        mutual_count: via.len() as u32,
        score: sum_of_weights(via.iter().map(|_| 3)),
        jaccard: jaccard(via.len() as u64, 2, followers),
        via: subject.ids(via.iter().copied()),
    };
    let expected = [item(4, &[2, 3], 2), item(5, &[2], 1), item(6, &[3], 2)];
    assert_eq!(candidates(subject, 1, ALL), expected);
    assert!((expected[0].jaccard - 1.0).abs() < f64::EPSILON);
    assert!((expected[2].jaccard - 1.0 / 3.0).abs() < f64::EPSILON);
    // Two steps, not three; and nothing leads backwards.
    assert_suggested(subject, 2, ALL, [7]);
    assert_suggested(subject, 4, ALL, []);
    assert_suggested(subject, 8, ALL, []);
}

fn nobody_is_suggested_to_themselves_or_again<S: SuggestionPorts>(subject: &Subject<S>) {
    // All of them lead back to 1 and to each other.
    follow_all(subject, [(1, 2), (1, 3), (2, 1), (3, 1), (2, 3), (3, 2), (2, 4), (4, 1)]);
    assert_suggested(subject, 1, ALL, [4]);
    assert_suggested(subject, 2, ALL, []);
    assert_suggested(subject, 3, ALL, [4]);
    assert_suggested(subject, 4, ALL, [2, 3]);
    // A bound on the walk is no reason either.
    for per_node in 1..4 {
        for of in 1..=4 {
            let found = ids_of(&candidates(subject, of, recent(per_node)));
            assert!(!found.contains(&subject.id(of)), "{of} is suggested to itself");
        }
    }
}

fn whom_a_user_followed_long_ago_is_not_suggested<S: SuggestionPorts>(subject: &Subject<S>) {
    // 1 followed 10 to 19 first and 2 and 3 last; these lead to all of 10 to 20.
    follow_in_turn(subject, 1, (10..20).chain([2, 3]));
    follow_all(subject, (10..=20).flat_map(|to| [(2, to), (3, to)]));
    for bounds in [recent(2), recent(11), ALL] {
        assert_suggested(subject, 1, bounds, [20]);
    }
    subject.write_follows(&[unfollow(1, 10)]);
    assert_suggested(subject, 1, recent(20), [10, 20]);
}

fn the_dismissed_are_not_suggested<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, [(1, 2), (2, 4), (2, 5), (2, 6), (9, 2)]);
    assert_suggested(subject, 1, ALL, [4, 5, 6]);
    dismiss(subject, EdgeAction::Follow, 1, 5);
    assert_suggested(subject, 1, ALL, [4, 6]);
    assert_suggested(subject, 9, ALL, [4, 5, 6]);
    assert_suggested(subject, 1, WalkBounds { results: 2, ..ALL }, [4, 6]);
    // Whoever is dismissed may still be followed, and leads on; dismissals lead nowhere.
    subject.write_follows(&[follow(1, 5), follow(5, 7)]);
    dismiss(subject, EdgeAction::Follow, 2, 8);
    assert_suggested(subject, 1, ALL, [7, 4, 6]);
    subject.write_follows(&[unfollow(1, 5)]);
    dismiss(subject, EdgeAction::Unfollow, 1, 5);
    assert_suggested(subject, 1, ALL, [4, 5, 6]);
}

fn only_the_most_recent_followees_count<S: SuggestionPorts>(subject: &Subject<S>) {
    // Each of 10 to 14 leads to one of 60 to 64; they were followed in no order of ids.
    follow_all(subject, (10..15).map(|from| (from, 50 + from)));
    follow_in_turn(subject, 1, [12, 10, 14, 11, 13]);
    assert_suggested(subject, 1, recent(1), [63]);
    assert_suggested(subject, 1, recent(2), [61, 63]);
    assert_suggested(subject, 1, recent(3), [61, 63, 64]);
    for bounds in [recent(5), recent(1_000), ALL] {
        assert_suggested(subject, 1, bounds, [60, 61, 62, 63, 64]);
    }
    // Followed again, the oldest is the most recent; a repeated follow changes nothing.
    subject.clock.advance(1);
    subject.write_follows(&[unfollow(1, 12)]);
    subject.write_follows(&[follow(1, 12), follow(1, 10)]);
    assert_suggested(subject, 1, recent(1), [62]);
    assert_suggested(subject, 1, recent(2), [62, 63]);
    subject.write_follows(&[unfollow(1, 13)]);
    assert_suggested(subject, 1, recent(2), [61, 62]);
}

fn only_the_most_recent_of_each_followee_count<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, [(1, 2), (1, 3)]);
    follow_in_turn(subject, 2, [40, 45, 41, 44]);
    follow_in_turn(subject, 3, [44, 40]);
    assert_suggested(subject, 1, recent(2), [44, 40, 41]);
    assert_eq!(candidates(subject, 1, recent(2))[1].mutual_count, 1, "40 is not among the last two of 2");
    assert_suggested(subject, 1, ALL, [40, 44, 41, 45]);
    subject.clock.advance(1);
    subject.write_follows(&[unfollow(2, 45)]);
    subject.write_follows(&[follow(2, 45)]);
    assert_suggested(subject, 1, recent(2), [44, 40, 45]);
}

fn within_one_millisecond_high_ids_are_most_recent<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, [14, 11, 13, 12].map(|to| (1, to)));
    follow_all(subject, (11..15).flat_map(|from| [33, 31, 34, 32].map(|to| (from, to + from))));
    // 14 and 13 lead to the highest two of theirs each.
    assert_suggested(subject, 1, recent(2), [47, 46, 48]);
    assert_suggested(subject, 1, recent(1), [48]);
}

fn scores_do_not_depend_on_bounds<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_in_turn(subject, 1, [2, 3, 4]);
    follow_in_turn(subject, 4, [20, 21, 22, 23, 24]);
    follow_all(subject, (30..36).flat_map(|from| [(from, 24), (from, 4)]));
    let found = candidates(subject, 1, recent(1));
    // 4 has 7 followers and follows 5, of whom one is looked at; 1 follows 3; 24 has 7 followers.
    let expected = Suggestion {
        id: subject.id(24),
        mutual_count: 1,
        score: weight(12),
        jaccard: jaccard(1, 3, 7),
        via: subject.ids([4]),
    };
    assert_eq!(found, [expected]);
}

fn ties_are_broken_by_score_then_id<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, [(1, 2), (1, 3), (1, 4)]);
    // 2 is followed by many and 4 by few, so that a way through 4 says more.
    follow_all(subject, (100..110).map(|from| (from, 2)));
    follow_all(subject, (100..104).map(|from| (from, 3)));
    follow_all(subject, [(2, 20), (2, 25), (3, 24), (3, 22), (4, 23), (4, 21)]);
    assert_suggested(subject, 1, ALL, [21, 23, 22, 24, 20, 25]);
    // More in between count for more than any score.
    follow_all(subject, [(2, 26), (3, 26)]);
    assert_suggested(subject, 1, ALL, [26, 21, 23, 22, 24, 20, 25]);
    assert_suggested(subject, 1, WalkBounds { results: 4, ..ALL }, [26, 21, 23, 22]);
}

fn via_names_those_who_say_most<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, (2..=7).map(|to| (1, to)));
    follow_all(subject, (2..=8).map(|from| (from, 20)));
    // Edges of 2: many; 3 and 5: few; 4, 6 and 7: some. 8 has the fewest, but 1 does not follow it.
    follow_all(subject, (100..120).map(|from| (from, 2)));
    follow_all(subject, [4, 6, 7].into_iter().flat_map(|to| (100..103).map(move |from| (from, to))));
    let found = candidates(subject, 1, ALL);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].via, subject.ids([3, 5, 4]), "by weight, then by id");
    assert_eq!(found[0].mutual_count, 6);
    assert_eq!(found[0].score, sum_of_weights([22, 2, 5, 2, 5, 5]));
    assert_suggested(subject, 1, ALL, [20]);
    subject.write_follows(&[unfollow(1, 3), unfollow(1, 2), unfollow(1, 4), unfollow(1, 7)]);
    assert_eq!(candidates(subject, 1, ALL)[0].via, subject.ids([5, 6]), "no more than there are");
    // Only those within the bound lead anywhere.
    subject.clock.advance(1);
    subject.write_follows(&[follow(1, 2)]);
    assert_eq!(candidates(subject, 1, recent(1))[0].via, subject.ids([2]));
}

fn rankings_differ<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, (2..=5).map(|to| (1, to)));
    // 2 and 3 are followed by many and lead to 20; 4, followed by few, leads to 21 and 22; 5 too.
    follow_all(subject, (100..130).flat_map(|from| [(from, 2), (from, 3)]));
    follow_all(subject, [(2, 20), (3, 20), (4, 21), (5, 22), (2, 23), (3, 23), (4, 24), (3, 24)]);
    // 20 is followed by many others besides.
    follow_all(subject, (100..140).map(|from| (from, 20)));
    follow_all(subject, (100..102).map(|from| (from, 23)));
    follow_all(subject, (100..108).map(|from| (from, 24)));
    let by = |ranking| WalkBounds { ranking, ..ALL };
    assert_suggested(subject, 1, by(Ranking::Count), [24, 20, 23, 22, 21]);
    assert_suggested(subject, 1, by(Ranking::Jaccard), [23, 22, 21, 24, 20]);
    assert_suggested(subject, 1, by(Ranking::AdamicAdar), [22, 24, 21, 20, 23]);
    for ranking in Ranking::ALL {
        let all = candidates(subject, 1, by(ranking));
        for results in 1..=all.len() {
            let best = candidates(subject, 1, WalkBounds { results, ..by(ranking) });
            assert_eq!(best, all[..results], "the best {results} by {ranking:?}");
        }
    }
}

fn the_best_are_kept<S: SuggestionPorts>(subject: &Subject<S>) {
    // Whoever has a higher number has more in between; the best of all are already followed, or dismissed.
    follow_all(subject, (0..30).map(|number| (1, 200 + number)));
    follow_all(subject, (0..30).flat_map(|number| (0..=number).map(move |from| (200 + from, 100 + number))));
    follow_all(subject, [(1, 129), (1, 128)]);
    dismiss(subject, EdgeAction::Follow, 1, 127);
    let expected: Vec<u64> = (100..127).rev().collect();
    for results in [1, 2, 10, 26, 27, 28, 1_000] {
        let kept = expected.iter().copied().take(results);
        assert_suggested(subject, 1, WalkBounds { results, ..ALL }, kept);
    }
}

fn candidates_of_extreme_ids<S: SuggestionPorts>(subject: &Subject<S>) {
    // Besides the extremes, ids that have their low halves in common with them.
    let mut ids = subject.extreme_ids();
    ids.extend(ids.clone().into_iter().map(|id| match id {
        Id::Integer(value) => Id::Integer(value ^ 1 << 45),
        Id::Uuid(value) => Id::Uuid(value ^ 1 << 97),
    }));
    let mut random = Random::new(11);
    for (round, &follower) in ids.iter().chain(&ids).enumerate() {
        let followee = |_| ids[random.below(ids.len() as u64) as usize];
        let edges = (0..4).map(followee).map(|followee| Edge { follower, followee });
        let commands: Vec<_> = edges
            .filter(|edge| edge.follower != edge.followee)
            .map(|edge| EdgeCommand { action: EdgeAction::Follow, edge })
            .collect();
        subject.clock.advance(round as u64 % 2);
        subject.try_write(EdgeKind::Follow, &commands, NO_LIMIT).unwrap();
    }
    let model = model_of(subject);
    let most = ids.iter().map(|&of| model.candidates(of, ALL).len()).max();
    assert!(most > Some(5), "there is something to find");
    compare_candidates(&subject.store(), &model, &ids).unwrap_or_else(|wrong| panic!("{wrong}"));
}

fn other_kinds_suggest_nobody<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, [(1, 2), (2, 3), (4, 5)]);
    for kind in EdgeKind::ALL.into_iter().filter(|&kind| kind != EdgeKind::Follow) {
        let commands = [follow(1, 4), follow(2, 6), follow(7, 2), follow(5, 8)];
        subject.try_write(kind, &subject.commands(&commands), NO_LIMIT).unwrap();
    }
    assert_suggested(subject, 1, ALL, [3]);
    assert_suggested(subject, 4, ALL, []);
    assert_suggested(subject, 7, ALL, []);
    // Nor does it count for a weight: 2 has two edges.
    assert_eq!(candidates(subject, 1, ALL)[0].score, weight(2));
    // To block, mute or like somebody is not to follow or dismiss them.
    subject.try_write(EdgeKind::Mute, &subject.commands(&[follow(1, 3)]), NO_LIMIT).unwrap();
    assert_suggested(subject, 1, ALL, [3]);
}

fn every_change_counts_in_the_next_walk<S: SuggestionPorts>(subject: &Subject<S>) {
    follow_all(subject, [(1, 2), (2, 3)]);
    assert_suggested(subject, 1, ALL, [3]);
    subject.write_follows(&[follow(2, 4)]);
    assert_suggested(subject, 1, ALL, [3, 4]);
    subject.write_follows(&[follow(1, 5)]);
    subject.write_follows(&[follow(5, 4)]);
    assert_suggested(subject, 1, ALL, [4, 3]);
    subject.write_follows(&[follow(6, 4)]);
    assert_eq!(candidates(subject, 1, ALL)[0].jaccard, jaccard(2, 2, 3));
    subject.write_follows(&[unfollow(2, 4)]);
    assert_suggested(subject, 1, ALL, [3, 4]);
    subject.write_follows(&[unfollow(1, 5)]);
    assert_suggested(subject, 1, ALL, [3]);
    dismiss(subject, EdgeAction::Follow, 1, 3);
    assert_suggested(subject, 1, ALL, []);
    dismiss(subject, EdgeAction::Unfollow, 1, 3);
    assert_suggested(subject, 1, ALL, [3]);
    subject.write_follows(&[follow(1, 3)]);
    assert_suggested(subject, 1, ALL, []);
    subject.write_follows(&[unfollow(1, 3), unfollow(1, 2)]);
    assert_suggested(subject, 1, ALL, []);
}

fn nobody_is_suggested_to_who_follows_nobody<S: SuggestionPorts>(subject: &Subject<S>) {
    for bounds in [ALL, recent(3)] {
        assert_suggested(subject, 9, bounds, []);
    }
    follow_all(subject, [(1, 2), (3, 1), (9, 1)]);
    subject.write_follows(&[unfollow(9, 1)]);
    for bounds in [ALL, recent(3)] {
        for of in [1, 2, 8, 9] {
            assert_suggested(subject, of, bounds, []);
        }
    }
}

fn candidates_of_one_who_follows_many<S: SuggestionPorts>(subject: &Subject<S>) {
    // 1 follows 600, some of them again later; each of these follows 3 of 50 and one that nobody else does.
    for group in 0..6 {
        subject.clock.advance(1);
        follow_all(subject, (0..100).map(|number| (1, 1_000 + number * 6 + group)));
    }
    let own = |from: u64| [2_000 + from % 50, 2_000 + from * 7 % 50, 2_000 + from * 11 % 50, 3_000 + from];
    let edges_from = |from| {
        let others: BTreeSet<u64> = own(from).into_iter().collect();
        others.into_iter().map(move |to| (from, to))
    };
    follow_all(subject, (1_000..1_600).flat_map(edges_from));
    subject.clock.advance(1);
    for number in [1_006, 1_600 - 6, 1_300] {
        subject.write_follows(&[unfollow(1, number)]);
        subject.write_follows(&[follow(1, number)]);
    }
    let model = model_of(subject);
    for bounds in [recent(500), recent(100), ALL, WalkBounds { ranking: Ranking::Jaccard, ..recent(500) }] {
        let found = candidates(subject, 1, bounds);
        assert!(found.len() > 100, "{} found", found.len());
        assert_eq!(found, model.candidates(subject.id(1), bounds), "with {bounds:?}");
    }
}

/// Follows, unfollows and dismissals among `users` users, in no order, some in one millisecond.
pub(in crate::cases) fn random_graph<S: SuggestionPorts>(subject: &Subject<S>, users: u64, seed: u64) {
    let mut random = Random::new(seed);
    for round in 0..users {
        let mut commands = Vec::new();
        for _ in 0..6 {
            let from = random.below(users);
            // Low numbers are followed by more.
            let to = random.below(users).min(random.below(users));
            let action = if random.below(6) == 0 { EdgeAction::Unfollow } else { EdgeAction::Follow };
            if from != to {
                commands.push((action, from, to));
            }
        }
        subject.clock.advance(random.below(2));
        subject.write_follows(&commands);
        if round % 3 == 0 {
            let (from, to) = (random.below(users), random.below(users));
            let dismissed = subject.commands(&[follow(from, (to + u64::from(from == to)) % users)]);
            subject.try_write(EdgeKind::Dismissal, &dismissed, NO_LIMIT).unwrap();
        }
    }
}

fn candidates_of_a_random_graph<S: SuggestionPorts>(subject: &Subject<S>) {
    random_graph(subject, 40, 3);
    let users = subject.ids(0..41);
    let compared = compare_candidates(&subject.store(), &model_of(subject), &users);
    compared.unwrap_or_else(|wrong| panic!("{wrong}"));
}
