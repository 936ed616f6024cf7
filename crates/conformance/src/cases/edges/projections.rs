//! Cases of what projections make of many changes: lists and counts that come and go with their edges.

use kinfolk_core::graph::Counts;

use crate::cases::subject::{Subject, ids_of};
use crate::ports::EdgePorts;
use crate::random::Random;
use crate::threads::block_on;

crate::cases::list_cases![cases: EdgePorts;
    many_users_are_counted_in_the_order_asked,
    edges_that_come_and_go_leave_nothing_behind,
];

fn many_users_are_counted_in_the_order_asked<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (1, 3), (1, 4), (5, 4), (6, 4)]);
    let counts = block_on(subject.store().counts(subject.kind(), &subject.ids([4, 9, 1, 2, 4]))).unwrap();
    let expected = [(0, 3), (0, 0), (3, 0), (0, 1), (0, 3)];
    let expected = expected.map(|(following, followers)| Counts { following, followers });
    assert_eq!(counts, expected);
    assert_eq!(block_on(subject.store().counts(subject.kind(), &[])).unwrap(), []);
}

/// Whether everything about user 0 is what it should be, with `following[n]` for user n.
fn assert_followers<S: EdgePorts>(subject: &Subject<S>, following: &[bool], round: u64) {
    let numbers = (0..).zip(following).filter(|(_, follows)| **follows).map(|(number, _)| number);
    let mut expected = subject.ids(numbers);
    let mut found = ids_of(&subject.followers(0));
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "in round {round}");
    assert_eq!(subject.counts(0).followers, expected.len() as u64, "in round {round}");
}

/// Users 1 to 7 follow and unfollow user 0; after each step every list and count shows it.
fn edges_that_come_and_go_leave_nothing_behind<S: EdgePorts>(subject: &Subject<S>) {
    let mut random = Random::new(11);
    let mut following = [false; 8];
    for round in 0..150 {
        let number = 1 + random.below(7);
        let follows = &mut following[number as usize];
        *follows = !*follows;
        let receipt = if *follows { subject.follow(number, 0) } else { subject.unfollow(number, 0) };
        assert_eq!(receipt.changed[..], [true], "in round {round}");
        if random.below(3) > 0 {
            assert_followers(subject, &following, round);
        }
        subject.clock.advance(random.below(2));
    }
    assert_followers(subject, &following, 150);
}
