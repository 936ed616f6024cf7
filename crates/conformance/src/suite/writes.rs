//! Cases of writing: what a follow and an unfollow do, that repeating changes nothing, that requests are whole.

use kinfolk_core::graph::Counts;
use kinfolk_core::{Position, Store};

use super::subject::{Subject, assert_limit, follow, ids_of, unfollow};

super::list_cases![
    a_follow_makes_one_edge,
    an_unfollow_removes_it,
    a_repeated_follow_changes_nothing,
    a_repeated_unfollow_changes_nothing,
    an_empty_request_changes_nothing,
    a_write_that_changes_nothing_returns_the_current_position,
    a_later_command_sees_an_earlier_one,
    a_refused_request_changes_nothing,
    a_request_may_concern_many_users,
];

fn a_follow_makes_one_edge<S: Store>(subject: &Subject<S>) {
    let receipt = subject.follow(1, 2);
    assert_eq!((receipt.position, receipt.changed), (Position(1), vec![true]));
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

fn an_unfollow_removes_it<S: Store>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (1, 3), (3, 2)]);
    let receipt = subject.unfollow(1, 2);
    assert_eq!((receipt.position, receipt.changed), (Position(4), vec![true]));
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

fn a_repeated_follow_changes_nothing<S: Store>(subject: &Subject<S>) {
    subject.follow(1, 2);
    let before = subject.snapshot();
    let since = subject.since(1, 2);
    for _ in 0..3 {
        subject.clock.advance(1_000);
        let receipt = subject.follow(1, 2);
        assert_eq!((receipt.position, receipt.changed), (Position(1), vec![false]));
    }
    assert_eq!(subject.snapshot(), before);
    assert_eq!(subject.since(1, 2), since);

    let receipt = subject.write(&[follow(1, 3), follow(1, 3), follow(1, 2)]);
    assert_eq!((receipt.position, receipt.changed), (Position(2), vec![true, false, false]));
    assert_eq!(subject.counts(1).following, 2);
    assert_eq!(subject.following(1).len(), 2);
    assert_eq!(subject.changes().len(), 2);
}

fn a_repeated_unfollow_changes_nothing<S: Store>(subject: &Subject<S>) {
    assert_eq!(subject.unfollow(1, 2).changed, [false], "what never was");
    assert_eq!(subject.counts(1), Counts::default());

    // Others' edges, for a count that is taken too far down to show.
    subject.follow_all([(1, 3), (4, 2), (1, 2)]);
    subject.unfollow(1, 2);
    let before = subject.snapshot();
    for _ in 0..3 {
        subject.clock.advance(1_000);
        let receipt = subject.unfollow(1, 2);
        assert_eq!((receipt.position, receipt.changed), (Position(4), vec![false]));
    }
    assert_eq!(subject.snapshot(), before);
    assert_eq!(subject.counts(1), Counts { following: 1, followers: 0 });
    assert_eq!(subject.counts(2), Counts { following: 0, followers: 1 });

    let receipt = subject.write(&[unfollow(1, 3), unfollow(1, 3), unfollow(1, 2)]);
    assert_eq!((receipt.position, receipt.changed), (Position(5), vec![true, false, false]));
}

fn an_empty_request_changes_nothing<S: Store>(subject: &Subject<S>) {
    assert_eq!(subject.write(&[]).position, Position::START);
    subject.follow(1, 2);
    let before = subject.snapshot();
    let receipt = subject.write(&[]);
    assert_eq!((receipt.position, receipt.changed), (Position(1), vec![]));
    assert_eq!(subject.snapshot(), before);
}

fn a_write_that_changes_nothing_returns_the_current_position<S: Store>(subject: &Subject<S>) {
    assert_eq!(subject.unfollow(1, 2).position, Position::START);
    subject.follow(1, 2);
    subject.follow_all([(3, 4), (5, 6), (7, 8)]);
    assert_eq!(subject.follow(1, 2).position, Position(4), "not the position of the pair's own change");
    assert_eq!(subject.unfollow(8, 7).position, Position(4));
    assert_eq!(subject.newest(), Position(4));
}

fn a_later_command_sees_an_earlier_one<S: Store>(subject: &Subject<S>) {
    let receipt = subject.write(&[follow(1, 2), unfollow(1, 2), unfollow(1, 2)]);
    assert_eq!((receipt.position, receipt.changed), (Position(2), vec![true, true, false]));
    assert!(!subject.contains(1, 2));
    assert_eq!(subject.counts(2), Counts::default());

    let receipt = subject.write(&[unfollow(1, 2), follow(1, 2), unfollow(1, 2), follow(1, 2)]);
    assert_eq!((receipt.position, receipt.changed), (Position(5), vec![false, true, true, true]));
    assert!(subject.contains(1, 2));
    assert_eq!(ids_of(&subject.followers(2)), [subject.id(1)]);
    assert_eq!(subject.counts(2), Counts { following: 0, followers: 1 });
    assert_eq!(subject.changes().len(), 5);
}

fn a_refused_request_changes_nothing<S: Store>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (1, 3), (4, 1), (4, 2)]);
    let before = subject.snapshot();
    let refused = [unfollow(4, 1), follow(5, 1), follow(4, 5), follow(1, 2), follow(1, 4), follow(6, 1)];
    assert_limit(subject.write_limited(2, &refused), subject.id(1), 2);
    assert_eq!(subject.snapshot(), before);
    assert!(subject.contains(4, 1) && !subject.contains(5, 1));

    let receipt = subject.follow(5, 1);
    assert_eq!((receipt.position, receipt.changed), (Position(5), vec![true]), "no position was used up");
    assert_eq!(subject.changes().len(), 5);
}

fn a_request_may_concern_many_users<S: Store>(subject: &Subject<S>) {
    let commands: Vec<_> = (0..40).map(|number| follow(number, (number + 1) % 40)).collect();
    let receipt = subject.write(&commands);
    assert_eq!((receipt.position, receipt.changed), (Position(40), vec![true; 40]));
    for number in 0..40 {
        assert!(subject.contains(number, (number + 1) % 40));
        assert_eq!(subject.counts(number), Counts { following: 1, followers: 1 });
    }
}
