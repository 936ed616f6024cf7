//! Cases of friends: who follows a user and is followed back, by when they followed the user.

use kinfolk_core::Store;
use kinfolk_core::graph::Side;

use super::lists::expected_list;
use super::subject::{Subject, follow, ids_of};

super::list_cases![
    friends_come_by_when_they_followed,
    friends_of_one_who_follows_many,
    friends_of_one_who_is_followed_by_many,
    friends_end_with_either_edge,
];

fn friends_come_by_when_they_followed<S: Store>(subject: &Subject<S>) {
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
fn assert_friends<S: Store>(subject: &Subject<S>, numbers: impl Iterator<Item = u64>) {
    let expected = expected_list(subject, Side::Followers, 0, numbers);
    assert!(!expected.is_empty());
    for page_limit in [1, 3, expected.len(), expected.len() + 1, 500] {
        assert_eq!(subject.friends(0, page_limit), expected, "in pages of {page_limit}");
    }
}

fn friends_of_one_who_follows_many<S: Store>(subject: &Subject<S>) {
    subject.follow_all((1..=400).map(|number| (0, number)));
    subject.clock.advance(1);
    // Few follow back: the newest followed, the oldest, some between; and one who is not followed.
    for group in [[400, 7], [1, 399], [200, 500]] {
        subject.follow_all(group.map(|number| (number, 0)));
        subject.clock.advance(1);
    }
    assert_friends(subject, [1, 7, 200, 399, 400].into_iter());
}

fn friends_of_one_who_is_followed_by_many<S: Store>(subject: &Subject<S>) {
    for from in (1..=400).step_by(100) {
        subject.follow_all((from..from + 100).map(|number| (number, 0)));
        subject.clock.advance(1);
    }
    subject.follow_all([400, 1, 150, 7, 399, 500].map(|number| (0, number)));
    assert_friends(subject, [1, 7, 150, 399, 400].into_iter());
}

fn friends_end_with_either_edge<S: Store>(subject: &Subject<S>) {
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
