//! Cases of the following limit: exact, atomic, per follower and kind, and no obstacle to what changes nothing.

use kinfolk_core::Error;
use kinfolk_core::GraphStore;
use kinfolk_core::graph::Counts;

use crate::cases::subject::{NO_LIMIT, Subject, assert_limit, follow, unfollow};
use crate::ports::EdgePorts;
use crate::threads::at_once;

crate::cases::list_cases![cases: EdgePorts;
    a_repeated_follow_at_the_limit_succeeds,
    the_limit_counts_what_the_request_adds,
    an_unfollow_in_the_request_frees_a_place,
    the_limit_is_per_follower_and_kind,
    a_lowered_limit_keeps_what_exists,
    threads_cannot_exceed_the_limit,
];

crate::cases::list_cases![cases_with_checks: GraphStore;
    the_limit_is_exact,
    a_place_is_not_free_before_its_unfollow,
];

fn the_limit_is_exact<S: GraphStore>(subject: &Subject<S>) {
    for to in 2..5 {
        assert_eq!(subject.write_limited(3, &[follow(1, to)]).unwrap().changed[..], [true]);
    }
    assert_limit(subject.write_limited(3, &[follow(1, 5)]), subject.id(1), 3);
    assert_eq!(subject.counts(1).following, 3);
    assert!(!subject.contains(1, 5));

    subject.unfollow(1, 2);
    assert_eq!(subject.write_limited(3, &[follow(1, 5)]).unwrap().changed[..], [true]);
    assert_limit(subject.write_limited(3, &[follow(1, 2)]), subject.id(1), 3);
    assert_limit(subject.write_limited(0, &[follow(9, 2)]), subject.id(9), 0);
}

fn a_repeated_follow_at_the_limit_succeeds<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (1, 3)]);
    assert_eq!(subject.write_limited(2, &[follow(1, 2)]).unwrap().changed[..], [false]);
    assert_eq!(subject.write_limited(2, &[follow(1, 3), follow(1, 2)]).unwrap().changed[..], [false, false]);
    assert_eq!(subject.write_limited(2, &[unfollow(1, 9)]).unwrap().changed[..], [false]);
    assert_eq!(subject.write_limited(2, &[unfollow(1, 3)]).unwrap().changed[..], [true]);
}

fn the_limit_counts_what_the_request_adds<S: EdgePorts>(subject: &Subject<S>) {
    let four = [follow(1, 2), follow(1, 3), follow(1, 4), follow(1, 5)];
    assert_limit(subject.write_limited(3, &four), subject.id(1), 3);
    assert_eq!(subject.counts(1), Counts::default());
    assert_eq!(subject.write_limited(3, &four[..3]).unwrap().changed[..], [true; 3]);

    // The same edge twice takes one place.
    let repeated = [follow(6, 2), follow(6, 2), follow(6, 3)];
    assert_eq!(subject.write_limited(2, &repeated).unwrap().changed[..], [true, false, true]);
}

fn an_unfollow_in_the_request_frees_a_place<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (1, 3)]);
    let swap = [unfollow(1, 2), follow(1, 4)];
    assert_eq!(subject.write_limited(2, &swap).unwrap().changed[..], [true, true]);
    assert_eq!(subject.counts(1).following, 2);

    // An unfollow of nothing frees nothing.
    let no_swap = [unfollow(1, 2), follow(1, 5)];
    assert_limit(subject.write_limited(2, &no_swap), subject.id(1), 2);
}

fn a_place_is_not_free_before_its_unfollow<S: GraphStore>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (1, 3)]);
    assert_limit(subject.write_limited(2, &[follow(1, 4), unfollow(1, 2)]), subject.id(1), 2);
    assert!(subject.contains(1, 2) && !subject.contains(1, 4));
}

fn the_limit_is_per_follower_and_kind<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (1, 3)]);
    assert_eq!(subject.write_limited(2, &[follow(4, 2)]).unwrap().changed[..], [true], "another follower");
    let commands = subject.commands(&[follow(1, 4), follow(1, 5)]);
    let receipt = subject.try_write(subject.other_kind(), &commands, 2).unwrap();
    assert_eq!(receipt.changed[..], [true, true], "another kind");
    assert_limit(subject.write_limited(2, &[follow(1, 4)]), subject.id(1), 2);

    let followers: Vec<_> = (10..20).map(|from| follow(from, 1)).collect();
    assert_eq!(
        subject.write_limited(2, &followers).unwrap().changed[..],
        [true; 10],
        "followers are not limited"
    );
}

fn a_lowered_limit_keeps_what_exists<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all((2..8).map(|to| (1, to)));
    assert_limit(subject.write_limited(3, &[follow(1, 9)]), subject.id(1), 3);
    assert_eq!(subject.write_limited(3, &[follow(1, 2), unfollow(1, 3)]).unwrap().changed[..], [false, true]);
    assert_limit(subject.write_limited(3, &[follow(1, 3)]), subject.id(1), 3);
    assert_eq!(subject.following(1).len(), 5);
    assert_eq!(subject.write_limited(NO_LIMIT, &[follow(1, 3)]).unwrap().changed[..], [true]);
}

fn threads_cannot_exceed_the_limit<S: EdgePorts>(subject: &Subject<S>) {
    const LIMIT: u32 = 3;
    for follower in 0..6 {
        let accepted = at_once(4, |thread| {
            let targets = (0..3).map(|target| 100 + 10 * thread as u64 + target);
            let accepted = |to: &u64| match subject.write_limited(LIMIT, &[follow(follower, *to)]) {
                Ok(receipt) => receipt.changed[..] == [true],
                Err(Error::FollowingLimit { .. }) => false,
                Err(error) => panic!("follow failed: {error}"),
            };
            targets.filter(accepted).count()
        });
        let accepted: usize = accepted.into_iter().sum();
        assert_eq!(accepted, LIMIT as usize, "of twelve attempts just as many as there are places");
        assert_eq!(subject.following(follower).len(), LIMIT as usize);
        assert_eq!(subject.counts(follower).following, u64::from(LIMIT));
    }
}
