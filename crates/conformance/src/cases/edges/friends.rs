//! Cases of friends: who follows a user and is followed back, by when they followed the user.

use kinfolk_core::graph::{ListEntry, Side};

use super::lists::expected_list;
use super::walks::{assert_saw_once, stays};
use crate::cases::subject::{Subject, follow, ids_of, unfollow};
use crate::ports::EdgePorts;

crate::cases::list_cases![cases: EdgePorts;
    friends_come_by_when_they_followed,
    friends_of_one_who_follows_many,
    friends_of_one_who_is_followed_by_many,
    friends_end_with_either_edge,
    friends_among_very_many_followers,
    friends_of_one_who_follows_very_many,
    friends_at_the_old_end_of_many_followers,
    a_walk_of_friends_of_one_who_is_followed_by_many,
    a_walk_of_friends_of_one_who_follows_many,
];

/// More than a store may look through at once.
const VERY_MANY: u64 = 3_000;

fn friends_come_by_when_they_followed<S: EdgePorts>(subject: &Subject<S>) {
    let steps = [follow(9, 1), follow(2, 9), follow(9, 3), follow(3, 9), follow(1, 9), follow(9, 2)];
    for step in steps {
        subject.clock.advance(1);
        subject.write(&[step]);
    }
    subject.follow_all([(4, 9), (9, 5)]);
    let friends = subject.friends(9, 10);
    assert_eq!(ids_of(&friends), subject.ids([1, 3, 2]), "4 only follows, 5 is only followed");
    assert_eq!(friends[0].since, subject.since(1, 9).expect("the edge exists"));
    assert_eq!(ids_of(&subject.friends(2, 10)), [subject.id(9)]);
    assert_eq!(subject.friends(4, 10), []);
    for page_limit in [1, 2, 3, 4] {
        assert_eq!(subject.friends(9, page_limit), friends);
    }
}

/// Walks the friends of user 0 in pages of several sizes; they are exactly those of `numbers`.
fn assert_friends<S: EdgePorts>(subject: &Subject<S>, numbers: impl Iterator<Item = u64>) {
    let expected = expected_list(subject, Side::Followers, 0, numbers);
    assert!(!expected.is_empty());
    for page_limit in [1, 3, expected.len(), expected.len() + 1, 500] {
        assert_eq!(subject.friends(0, page_limit), expected, "in pages of {page_limit}");
    }
}

fn friends_of_one_who_follows_many<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all((1..=400).map(|number| (0, number)));
    subject.clock.advance(1);
    // Few follow back: the newest followed, the oldest, some between; and one who is not followed.
    for group in [[400, 7], [1, 399], [200, 500]] {
        subject.follow_all(group.map(|number| (number, 0)));
        subject.clock.advance(1);
    }
    assert_friends(subject, [1, 7, 200, 399, 400].into_iter());
}

fn friends_of_one_who_is_followed_by_many<S: EdgePorts>(subject: &Subject<S>) {
    for from in (1..=400).step_by(100) {
        subject.follow_all((from..from + 100).map(|number| (number, 0)));
        subject.clock.advance(1);
    }
    subject.follow_all([400, 1, 150, 7, 399, 500].map(|number| (0, number)));
    assert_friends(subject, [1, 7, 150, 399, 400].into_iter());
}

fn friends_end_with_either_edge<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all((1..=6).flat_map(|number| [(0, number), (number, 0)]));
    subject.unfollow(0, 2);
    subject.unfollow(4, 0);
    assert_eq!(ids_of(&subject.friends(0, 10)), subject.ids([6, 5, 3, 1]));
    assert_eq!((subject.friends(2, 10), subject.friends(4, 10)), (vec![], vec![]));
    subject.clock.advance(1);
    subject.follow(4, 0);
    subject.follow(0, 2);
    assert_eq!(ids_of(&subject.friends(0, 10)), subject.ids([4, 6, 5, 3, 2, 1]));
}

/// Users 1 to [`VERY_MANY`] follow user 0, some hundreds in each millisecond.
fn very_many_follow<S: EdgePorts>(subject: &Subject<S>) {
    for from in (1..=VERY_MANY).step_by(300) {
        subject.follow_all((from..from + 300).map(|number| (number, 0)));
        subject.clock.advance(1);
    }
}

/// As [`assert_friends`], in pages that are worth it where every one looks far.
fn assert_many_friends<S: EdgePorts>(subject: &Subject<S>, numbers: impl Iterator<Item = u64>) {
    let expected = expected_list(subject, Side::Followers, 0, numbers);
    for page_limit in [7, 50, 500] {
        assert_eq!(subject.friends(0, page_limit), expected, "in pages of {page_limit}");
    }
}

/// Those who are followed are the shorter way to them.
fn friends_among_very_many_followers<S: EdgePorts>(subject: &Subject<S>) {
    very_many_follow(subject);
    let friends = || (1..=VERY_MANY / 25).map(|number| number * 25);
    // Some more are followed who do not follow.
    subject.follow_all(friends().chain(VERY_MANY + 1..VERY_MANY + 50).map(|number| (0, number)));
    assert_many_friends(subject, friends());
}

/// The followers are the shorter way.
fn friends_of_one_who_follows_very_many<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all((1..=VERY_MANY).map(|number| (0, number)));
    let friends = || (1..=150).map(|number| number * 17);
    for from in (1..=150).step_by(50) {
        subject.clock.advance(1);
        subject.follow_all((from..from + 50).map(|number| (number * 17, 0)));
    }
    subject.follow_all((1..50).map(|number| (VERY_MANY + number, 0)));
    assert_many_friends(subject, friends());
}

/// By their numbers alone, friends seem to be near: but the newest followers are none.
fn friends_at_the_old_end_of_many_followers<S: EdgePorts>(subject: &Subject<S>) {
    very_many_follow(subject);
    subject.follow_all((1..=200).map(|number| (0, number)));
    assert_many_friends(subject, 1..=200);
}

/// Walks the friends of user 0 while the edges of a third of them come and go, in both directions.
fn walk_with_changes<S: EdgePorts>(subject: &Subject<S>, friends: &[u64], page_limit: usize) {
    let stayed = expected_list(subject, Side::Followers, 0, friends.iter().copied().filter(stays));
    let restless: Vec<u64> = friends.iter().copied().filter(|number| !stays(number)).collect();
    let restless = |index: usize| restless[index % restless.len()];
    let mut walked: Vec<ListEntry> = Vec::new();
    for round in 0..=friends.len() {
        let (kind, of) = (subject.kind(), subject.id(0));
        let store = subject.store();
        let page = crate::block_on(store.friends(kind, of, walked.last().copied(), page_limit)).unwrap();
        walked.extend(&page);
        if page.len() < page_limit {
            break;
        }
        let [a, b, c, d] = [3, 11, 5, 7].map(|step| restless(round * step));
        subject.write(&[unfollow(0, a), unfollow(b, 0), follow(0, c), follow(d, 0)]);
        subject.clock.advance(1);
    }
    assert_saw_once(&walked, &stayed);
}

fn a_walk_of_friends_of_one_who_is_followed_by_many<S: EdgePorts>(subject: &Subject<S>) {
    very_many_follow(subject);
    let (few, old): (Vec<u64>, Vec<u64>) =
        ((1..=120).map(|number| number * 25).collect(), (1..=200).collect());
    subject.follow_all(few.iter().map(|&number| (0, number)));
    walk_with_changes(subject, &few, 9);
    let known = |number: &u64| few.contains(number);
    subject.follow_all(old.iter().copied().filter(|number| !known(number)).map(|number| (0, number)));
    walk_with_changes(subject, &old, 40);
}

fn a_walk_of_friends_of_one_who_follows_many<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all((1..=VERY_MANY).map(|number| (0, number)));
    let few: Vec<u64> = (1..=150).map(|number| number * 17).collect();
    for group in few.chunks(20) {
        subject.follow_all(group.iter().map(|&number| (number, 0)));
        subject.clock.advance(1);
    }
    walk_with_changes(subject, &few, 9);
}
