//! Cases of writing: what a follow and an unfollow do, that repeating changes nothing, that requests are whole.

use kinfolk_core::GraphStore;
use kinfolk_core::graph::{Counts, EdgeAction, FollowerCommand, FollowerCommands, Receipt, WriteRequest};

use crate::cases::subject::{NO_LIMIT, Subject, assert_limit, follow, ids_of, unfollow};
use crate::ports::EdgePorts;
use crate::threads::block_on;

crate::cases::list_cases![cases: EdgePorts;
    a_repeated_follow_changes_nothing,
    a_repeated_unfollow_changes_nothing,
    an_empty_request_changes_nothing,
    a_write_that_changes_nothing_returns_the_current_position,
    requests_of_one_call_are_independent,
];

crate::cases::list_cases![cases_with_checks: GraphStore;
    a_follow_makes_one_edge,
    an_unfollow_removes_it,
    a_later_command_sees_an_earlier_one,
    a_refused_request_changes_nothing,
    a_call_may_concern_many_users,
];

fn a_follow_makes_one_edge<S: GraphStore>(subject: &Subject<S>) {
    let receipt = subject.follow(1, 2);
    assert_eq!((receipt.position, receipt.changed), (subject.after([1]), vec![true].into()));
    assert!(subject.contains(1, 2));
    assert!(!subject.contains(2, 1), "an edge has a direction");
    assert!(subject.since(1, 2).is_some());
    assert_eq!(subject.since(2, 1), None);
    assert_eq!(ids_of(&subject.following(1)), [subject.id(2)]);
    assert_eq!(ids_of(&subject.followers(2)), [subject.id(1)]);
    assert_eq!(subject.following(2), []);
    assert_eq!(subject.followers(1), []);
    assert_eq!(subject.counts(1), Counts { following: 1, followers: 0 });
    assert_eq!(subject.counts(2), Counts { following: 0, followers: 1 });
    assert_eq!(subject.changes().len(), 1);
}

fn an_unfollow_removes_it<S: GraphStore>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (1, 3), (3, 2)]);
    let receipt = subject.unfollow(1, 2);
    assert_eq!((receipt.position, receipt.changed), (subject.after([1, 1, 3, 1]), vec![true].into()));
    assert!(!subject.contains(1, 2));
    assert_eq!(subject.since(1, 2), None);
    assert_eq!(ids_of(&subject.following(1)), [subject.id(3)]);
    assert_eq!(ids_of(&subject.followers(2)), [subject.id(3)]);
    assert_eq!(subject.counts(1), Counts { following: 1, followers: 0 });
    assert_eq!(subject.counts(2), Counts { following: 0, followers: 1 });

    subject.unfollow(1, 3);
    subject.unfollow(3, 2);
    for of in 1..=3 {
        assert_eq!(subject.counts(of), Counts::default());
        assert_eq!((subject.following(of), subject.followers(of)), (vec![], vec![]));
    }
}

fn a_repeated_follow_changes_nothing<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow(1, 2);
    let before = subject.snapshot();
    let since = subject.since(1, 2);
    for _ in 0..3 {
        subject.clock.advance(1_000);
        let receipt = subject.follow(1, 2);
        assert_eq!((receipt.position, receipt.changed), (subject.after([1]), vec![false].into()));
    }
    assert_eq!(subject.snapshot(), before);
    assert_eq!(subject.since(1, 2), since);

    let receipt = subject.write(&[follow(1, 3), follow(1, 3), follow(1, 2)]);
    assert_eq!((receipt.position, receipt.changed), (subject.after([1, 1]), vec![true, false, false].into()));
    assert_eq!(subject.counts(1).following, 2);
    assert_eq!(subject.following(1).len(), 2);
    assert_eq!(subject.changes().len(), 2);
}

fn a_repeated_unfollow_changes_nothing<S: EdgePorts>(subject: &Subject<S>) {
    assert_eq!(subject.unfollow(1, 2).changed[..], [false], "what never was");
    assert_eq!(subject.counts(1), Counts::default());

    // Others' edges, for a count that is taken too far down to show.
    subject.follow_all([(1, 3), (4, 2), (1, 2)]);
    subject.unfollow(1, 2);
    let before = subject.snapshot();
    for _ in 0..3 {
        subject.clock.advance(1_000);
        let receipt = subject.unfollow(1, 2);
        assert_eq!((receipt.position, receipt.changed), (subject.after([1, 4, 1, 1]), vec![false].into()));
    }
    assert_eq!(subject.snapshot(), before);
    assert_eq!(subject.counts(1), Counts { following: 1, followers: 0 });
    assert_eq!(subject.counts(2), Counts { following: 0, followers: 1 });

    let receipt = subject.write(&[unfollow(1, 3), unfollow(1, 3), unfollow(1, 2)]);
    assert_eq!(
        (receipt.position, receipt.changed),
        (subject.after([1, 4, 1, 1, 1]), vec![true, false, false].into())
    );
}

fn an_empty_request_changes_nothing<S: EdgePorts>(subject: &Subject<S>) {
    assert!(block_on(subject.store().write(Vec::new())).is_empty());
    let nothing = || {
        let (kind, follower) = (subject.kind(), subject.id(1));
        let request =
            WriteRequest { kind, follower, commands: FollowerCommands::new(), following_limit: NO_LIMIT };
        block_on(subject.store().write_one(request)).unwrap()
    };
    assert_eq!(nothing().position, subject.start(1));
    subject.follow(1, 2);
    let before = subject.snapshot();
    assert_eq!(nothing(), Receipt { position: subject.after([1]), changed: vec![].into() });
    assert_eq!(subject.snapshot(), before);
}

fn a_write_that_changes_nothing_returns_the_current_position<S: EdgePorts>(subject: &Subject<S>) {
    assert_eq!(subject.unfollow(1, 2).position, subject.start(1));
    subject.follow(1, 2);
    subject.follow_all([(3, 4), (5, 6), (7, 8), (1, 9)]);
    let newest = subject.newest_frontier();
    let newest_of = |number| newest.get(subject.shard(number)).unwrap().on(subject.shard(number));
    assert_eq!(subject.after([1, 3, 5, 7, 1]), newest_of(1));
    assert_eq!(subject.follow(1, 2).position, newest_of(1), "not the position of the pair's own change");
    assert_eq!(subject.unfollow(8, 7).position, newest_of(8));
    assert_eq!((subject.newest_frontier(), subject.log_length()), (newest, 5));
}

fn a_later_command_sees_an_earlier_one<S: GraphStore>(subject: &Subject<S>) {
    let receipt = subject.write(&[follow(1, 2), unfollow(1, 2), unfollow(1, 2)]);
    assert_eq!((receipt.position, receipt.changed), (subject.after([1; 2]), vec![true, true, false].into()));
    assert!(!subject.contains(1, 2));
    assert_eq!(subject.counts(2), Counts::default());

    let receipt = subject.write(&[unfollow(1, 2), follow(1, 2), unfollow(1, 2), follow(1, 2)]);
    assert_eq!(
        (receipt.position, receipt.changed),
        (subject.after([1; 5]), vec![false, true, true, true].into())
    );
    assert!(subject.contains(1, 2));
    assert_eq!(ids_of(&subject.followers(2)), [subject.id(1)]);
    assert_eq!(subject.counts(2), Counts { following: 0, followers: 1 });
    assert_eq!(subject.changes().len(), 5);
}

fn a_refused_request_changes_nothing<S: GraphStore>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (1, 3), (4, 1), (4, 2)]);
    let before = subject.snapshot();
    let refused = [unfollow(1, 2), follow(1, 5), follow(1, 3), follow(1, 4), unfollow(1, 5)];
    assert_limit(subject.write_limited(2, &refused), subject.id(1), 2);
    assert_eq!(subject.snapshot(), before);
    assert!(subject.contains(1, 2) && !subject.contains(1, 5));

    let receipt = subject.follow(5, 1);
    assert_eq!(
        (receipt.position, receipt.changed),
        (subject.after([1, 1, 4, 4, 5]), vec![true].into()),
        "no position was used up"
    );
    assert_eq!(subject.changes().len(), 5);
}

fn requests_of_one_call_are_independent<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (1, 3)]);
    let request = |follower: u64, to: &[u64]| WriteRequest {
        kind: subject.kind(),
        follower: subject.id(follower),
        commands: to
            .iter()
            .map(|&to| FollowerCommand { action: EdgeAction::Follow, followee: subject.id(to) })
            .collect(),
        following_limit: 2,
    };
    let requests = vec![request(4, &[1, 2]), request(1, &[2, 4]), request(5, &[1]), request(4, &[2, 3])];
    let mut results = block_on(subject.store().write(requests));
    assert_limit(results.remove(3), subject.id(4), 2);
    assert_limit(results.remove(1), subject.id(1), 2);
    let receipts: Vec<Receipt> = results.into_iter().map(|result| result.expect("it has room")).collect();
    assert_eq!(
        receipts.iter().map(|receipt| receipt.changed.as_slice()).collect::<Vec<_>>(),
        [&[true, true][..], &[true]]
    );
    receipts.iter().for_each(|receipt| subject.saw(receipt.position));
    assert_eq!([1, 4, 5].map(|of| subject.counts(of).following), [2, 2, 1]);
}

fn a_call_may_concern_many_users<S: GraphStore>(subject: &Subject<S>) {
    let commands: Vec<_> = (0..40).map(|number| follow(number, (number + 1) % 40)).collect();
    let receipt = subject.write(&commands);
    assert_eq!((receipt.position, receipt.changed), (subject.after(0..40), vec![true; 40].into()));
    for number in 0..40 {
        assert!(subject.contains(number, (number + 1) % 40));
        assert_eq!(subject.counts(number), Counts { following: 1, followers: 1 });
    }
}
