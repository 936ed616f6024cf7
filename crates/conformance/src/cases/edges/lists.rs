//! Cases of lists at rest: their order, their pages, their length.

use kinfolk_core::GraphStore;
use std::cmp::Reverse;

use kinfolk_core::graph::{ListEntry, ListKey, Side};
use kinfolk_core::{Clock, Timestamp};

use crate::cases::subject::{Subject, follow, ids_of};
use crate::ports::EdgePorts;

crate::cases::list_cases![cases: EdgePorts;
    lists_run_from_new_to_old,
    one_millisecond_runs_from_high_ids_to_low,
    pages_of_every_size_make_the_list,
    a_page_may_end_inside_one_millisecond,
    any_key_is_a_place,
];

crate::cases::list_cases![cases_with_checks: GraphStore;
    long_lists_are_whole,
];

/// User 0 follows, and is followed by, users 1 to 60: several in each millisecond, in no order of ids.
pub(in crate::cases) fn sixty_on_both_sides<S: EdgePorts>(subject: &Subject<S>) {
    let numbers: Vec<u64> = (1..=60).map(|index| index * 37 % 61).collect();
    for group in numbers.chunks(7) {
        let edges = group.iter().flat_map(|&number| [(0, number), (number, 0)]);
        subject.follow_all(edges);
        subject.clock.advance(1);
    }
}

/// What a list must be, from checks of single edges.
pub(in crate::cases) fn expected_list<S: EdgePorts>(
    subject: &Subject<S>,
    side: Side,
    of: u64,
    others: impl IntoIterator<Item = u64>,
) -> Vec<ListEntry> {
    let since = |other| match side {
        Side::Following => subject.since(of, other),
        Side::Followers => subject.since(other, of),
    };
    let entry = |other| since(other).map(|since| ListKey { since, id: subject.id(other) });
    let mut entries: Vec<ListEntry> = others.into_iter().filter_map(entry).collect();
    entries.sort_by_key(|entry| Reverse((entry.since, entry.id)));
    entries
}

fn lists_run_from_new_to_old<S: EdgePorts>(subject: &Subject<S>) {
    for other in [5, 2, 9, 1, 7] {
        subject.clock.advance(10);
        subject.write(&[follow(3, other), follow(other, 3)]);
    }
    let expected = subject.ids([7, 1, 9, 2, 5]);
    assert_eq!(ids_of(&subject.following(3)), expected);
    assert_eq!(ids_of(&subject.followers(3)), expected);
    let newest = subject.following(3)[0];
    assert_eq!(newest.since, subject.clock.now());
}

fn one_millisecond_runs_from_high_ids_to_low<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all((1..=30).map(|index| (0, index * 11 % 31)));
    subject.follow_all((1..=30).map(|index| (index * 11 % 31, 0)));
    let expected = subject.ids((1..=30).rev());
    for page_limit in [1, 4, 30, 100] {
        assert_eq!(ids_of(&subject.walk(Side::Following, 0, page_limit)), expected);
        assert_eq!(ids_of(&subject.walk(Side::Followers, 0, page_limit)), expected);
    }
}

fn pages_of_every_size_make_the_list<S: EdgePorts>(subject: &Subject<S>) {
    sixty_on_both_sides(subject);
    for side in [Side::Following, Side::Followers] {
        let expected = expected_list(subject, side, 0, 1..=60);
        assert_eq!(expected.len(), 60);
        for page_limit in [1, 2, 3, 7, 20, 30, 59, 60, 61, 1_000] {
            let mut after = None;
            for page in expected.chunks(page_limit) {
                assert_eq!(subject.page(side, 0, after, page_limit), page, "{side:?} by {page_limit}");
                after = page.last().copied();
            }
            assert_eq!(subject.page(side, 0, after, page_limit), [], "nothing comes after the end");
        }
    }
}

fn a_page_may_end_inside_one_millisecond<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow(1, 9);
    subject.clock.advance(1);
    subject.follow_all([(2, 9), (3, 9), (4, 9), (5, 9)]);
    subject.clock.advance(1);
    subject.follow(6, 9);
    let first = subject.page(Side::Followers, 9, None, 3);
    assert_eq!(ids_of(&first), subject.ids([6, 5, 4]));
    assert_eq!(first[1].since, first[2].since);
    let second = subject.page(Side::Followers, 9, Some(first[2]), 3);
    assert_eq!(ids_of(&second), subject.ids([3, 2, 1]));
}

fn any_key_is_a_place<S: EdgePorts>(subject: &Subject<S>) {
    sixty_on_both_sides(subject);
    for side in [Side::Following, Side::Followers] {
        let list = expected_list(subject, side, 0, 1..=60);
        let (newest, oldest) = (list[0].since, list[59].since);
        // Ids that are in no edge, before, inside and after the list, and the ends of time.
        for since in [Timestamp::MAX, newest.plus_millis(1), newest, oldest, Timestamp::MIN] {
            for id in subject.ids([0, 30, 500]) {
                let after = ListKey { since, id };
                let expected: Vec<ListEntry> =
                    list.iter().copied().filter(|entry| (entry.since, entry.id) < (since, id)).collect();
                assert_eq!(subject.page(side, 0, Some(after), 100), expected, "{side:?} after {after:?}");
            }
        }
    }
}

fn long_lists_are_whole<S: GraphStore>(subject: &Subject<S>) {
    const MANY: u64 = 1_100;
    for from in (1..=MANY).step_by(100) {
        subject.follow_all((from..from + 100).map(|number| (number, 0)));
        subject.follow_all((from..from + 100).map(|number| (0, number)));
        subject.clock.advance(1);
    }
    let expected = subject.ids((1..=MANY).rev());
    for side in [Side::Following, Side::Followers] {
        let first = subject.page(side, 0, None, 1_000);
        assert_eq!(first.len(), 1_000);
        assert_eq!(subject.page(side, 0, first.last().copied(), 1_000).len(), 100);
        assert!(ids_of(&subject.walk(side, 0, 1_000)) == expected, "{side:?} by 1,000");
        assert!(ids_of(&subject.walk(side, 0, 83)) == expected, "{side:?} by 83");
    }
    assert_eq!((subject.counts(0).following, subject.counts(0).followers), (MANY, MANY));
    assert!(subject.contains(1, 0) && subject.contains(MANY, 0) && !subject.contains(MANY + 1, 0));
    assert!(ids_of(&subject.friends(0, 500)) == expected, "friends");
}
