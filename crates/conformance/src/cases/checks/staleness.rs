//! Cases of reads without a token, on a store whose lag is measured by the clock that it was given.

use kinfolk_core::graph::{Counts, Side, UserSet};
use kinfolk_core::{Frontier, GraphStore};

use crate::cases::subject::{Subject, ids_of};
use crate::random::Random;
use crate::seen::Seen;
use crate::threads::block_on;

crate::cases::list_cases![cases: GraphStore;
    a_read_without_a_token_is_two_seconds_old_at_most,
];

/// How old what a read without a token shows may be.
const STALENESS_MS_MAX: u64 = 2_000;

/// The user that all others follow now and then, and that follows all of them.
const POPULAR: u64 = 0;
const OTHERS: u64 = 7;

/// Such a read never waits, and shows everything that was acknowledged more than 2 seconds before.
fn a_read_without_a_token_is_two_seconds_old_at_most<S: GraphStore>(subject: &Subject<S>) {
    let mut random = Random::new(13);
    let mut follows = [false; OTHERS as usize + 1];
    subject.follow_all((1..=OTHERS).map(|number| (POPULAR, number)));
    for round in 0..40 {
        for _ in 0..=random.below(3) {
            let number = 1 + random.below(OTHERS);
            let follows = &mut follows[number as usize];
            *follows = !*follows;
            if *follows {
                subject.follow(number, POPULAR)
            } else {
                subject.unfollow(number, POPULAR)
            };
        }
        // Somebody reads who may be shown less.
        let without_token = Seen::new(subject.graph.store(), Frontier::default());
        block_on(without_token.counts(subject.kind(), &subject.ids([POPULAR]))).unwrap();
        subject.clock.advance(STALENESS_MS_MAX + 1);
        assert_shown(subject, &follows, round);
    }
}

/// Every read without a token shows who follows user 0.
fn assert_shown<S: GraphStore>(subject: &Subject<S>, follows: &[bool], round: u64) {
    let (kind, of) = (subject.kind(), subject.id(POPULAR));
    let store = Seen::new(subject.graph.store(), Frontier::default());
    let numbers = (1..=OTHERS).filter(|&number| follows[number as usize]);
    let expected = subject.ids(numbers);
    let sorted = |mut ids: Vec<_>| {
        ids.sort_unstable();
        ids
    };
    let followers = block_on(store.list(kind, Side::Followers, of, None, 20)).unwrap();
    assert_eq!(sorted(ids_of(&followers)), expected, "followers in round {round}");
    let friends = block_on(store.friends(kind, of, None, 20)).unwrap();
    assert_eq!(sorted(ids_of(&friends)), expected, "friends in round {round}");
    let counts = block_on(store.counts(kind, &[of])).unwrap();
    let followers = expected.len() as u64;
    assert_eq!(counts, [Counts { following: OTHERS, followers }], "counts in round {round}");
    let sets = [Side::Followers, Side::Following].map(|side| UserSet { side, of });
    let overlap = block_on(store.overlap(kind, &sets, None, 20)).unwrap();
    assert_eq!((overlap.count, overlap.ids), (followers, expected), "an overlap in round {round}");
    for number in 1..=OTHERS {
        let (edge, expected) = (subject.edge(number, POPULAR), follows[number as usize]);
        let immediate = store.contains_now(kind, edge);
        assert_eq!(immediate.unwrap_or(expected), expected, "user {number}, immediately, in round {round}");
        assert_eq!(
            block_on(store.contains(kind, &[edge])).unwrap(),
            [expected],
            "user {number} in round {round}"
        );
        let since = block_on(store.since(kind, &[edge])).unwrap();
        assert_eq!(since[0].is_some(), expected, "the time of user {number} in round {round}");
    }
}
