//! Cases of `since`: it is the clock's time when the clock is sane, and never goes back when it is not.

use kinfolk_core::GraphStore;
use kinfolk_core::graph::ListKey;
use kinfolk_core::{Clock, Timestamp};

use crate::cases::subject::{Subject, follow, ids_of, unfollow};
use crate::ports::EdgePorts;

crate::cases::list_cases![cases: EdgePorts;
    since_is_the_time_of_the_clock,
    since_never_goes_back,
    since_follows_a_clock_that_jumps_ahead,
    both_sides_have_the_same_since,
    a_refollow_has_a_new_since,
    a_refollow_is_later_even_if_the_clock_stands,
    a_refollow_is_later_even_if_the_clock_goes_back,
];

crate::cases::list_cases![cases_with_checks: GraphStore;
    the_clock_does_not_decide_who_was_last,
];

const HOUR_MS: u64 = 3_600_000;

fn since_of<S: EdgePorts>(subject: &Subject<S>, from: u64, to: u64) -> Timestamp {
    subject.since(from, to).expect("the edge exists")
}

fn since_is_the_time_of_the_clock<S: EdgePorts>(subject: &Subject<S>) {
    for (to, step) in (2..).zip([0, 1, 876, 60_000, 0]) {
        subject.clock.advance(step);
        subject.follow(1, to);
        assert_eq!(since_of(subject, 1, to), subject.clock.now());
    }
}

fn since_never_goes_back<S: EdgePorts>(subject: &Subject<S>) {
    let mut newest = Timestamp::MIN;
    for to in 2..8 {
        subject.follow(1, to);
        let since = since_of(subject, 1, to);
        assert!(since >= newest, "{since} after {newest}");
        newest = since;
        subject.clock.turn_back(HOUR_MS);
    }
    // An unfollow is a change as well: what follows it is not earlier.
    subject.clock.advance(24 * HOUR_MS);
    let ahead = subject.clock.now();
    subject.unfollow(1, 2);
    subject.clock.turn_back(24 * HOUR_MS);
    subject.follow(1, 9);
    assert!(since_of(subject, 1, 9) >= ahead);

    let order = ids_of(&subject.following(1));
    assert_eq!(order.len(), 6);
    assert_eq!(order[0], subject.id(9), "the last follow is the newest");
}

fn since_follows_a_clock_that_jumps_ahead<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow(1, 2);
    subject.clock.turn_back(HOUR_MS);
    subject.follow(1, 3);
    subject.clock.advance(9 * HOUR_MS);
    subject.follow(1, 4);
    assert_eq!(since_of(subject, 1, 4), subject.clock.now());
}

fn both_sides_have_the_same_since<S: EdgePorts>(subject: &Subject<S>) {
    for (from, turn_back) in (1..6).zip([0, 5, HOUR_MS, 0, 1]) {
        subject.clock.turn_back(turn_back);
        subject.follow(from, 9);
        let since = since_of(subject, from, 9);
        assert_eq!(subject.following(from), [ListKey { since, id: subject.id(9) }]);
        let followers = subject.followers(9);
        assert!(followers.contains(&ListKey { since, id: subject.id(from) }), "{followers:?}");
    }
}

fn a_refollow_has_a_new_since<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (3, 2), (1, 4)]);
    subject.clock.advance(HOUR_MS);
    subject.unfollow(1, 2);
    subject.clock.advance(HOUR_MS);
    subject.follow(1, 2);
    let since = since_of(subject, 1, 2);
    assert_eq!(since, subject.clock.now());
    assert_eq!(subject.following(1)[0], ListKey { since, id: subject.id(2) }, "it is the newest now");
    assert_eq!(subject.followers(2)[0], ListKey { since, id: subject.id(1) });
}

fn a_refollow_is_later_even_if_the_clock_stands<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow(1, 2);
    for _ in 0..4 {
        let before = since_of(subject, 1, 2);
        subject.unfollow(1, 2);
        subject.follow(1, 2);
        assert!(since_of(subject, 1, 2) > before, "after two requests");
        let before = since_of(subject, 1, 2);
        subject.write(&[unfollow(1, 2), follow(1, 2)]);
        assert!(since_of(subject, 1, 2) > before, "within one request");
    }
    // The other pairs of that millisecond come in between.
    let before = since_of(subject, 1, 2);
    subject.write(&[unfollow(1, 2), follow(3, 4), unfollow(3, 4), follow(5, 6), follow(1, 2)]);
    assert!(since_of(subject, 1, 2) > before);
}

fn a_refollow_is_later_even_if_the_clock_goes_back<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow(1, 2);
    for _ in 0..4 {
        let before = since_of(subject, 1, 2);
        subject.clock.turn_back(HOUR_MS);
        subject.unfollow(1, 2);
        subject.clock.turn_back(HOUR_MS);
        subject.follow(1, 2);
        assert!(since_of(subject, 1, 2) > before);
    }
}

fn the_clock_does_not_decide_who_was_last<S: GraphStore>(subject: &Subject<S>) {
    subject.follow(1, 2);
    subject.clock.turn_back(HOUR_MS);
    assert_eq!(subject.unfollow(1, 2).changed[..], [true]);
    assert!(!subject.contains(1, 2));
    assert_eq!((subject.following(1), subject.followers(2)), (vec![], vec![]));
    subject.clock.turn_back(HOUR_MS);
    assert_eq!(subject.follow(1, 2).changed[..], [true]);
    assert!(subject.contains(1, 2));
    assert_eq!((subject.following(1).len(), subject.followers(2).len()), (1, 1));
}
