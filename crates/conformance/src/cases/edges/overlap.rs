//! Cases of overlaps: who is in all of some sets, how many, and in which order. That the work is refused where even
//! the smallest set is huge takes more edges than a case has.

use kinfolk_core::Id;
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand, Overlap, Side, UserSet};

use crate::cases::subject::{NO_LIMIT, Subject, follow, unfollow};
use crate::ports::EdgePorts;
use crate::threads::block_on;

crate::cases::list_cases![cases: EdgePorts;
    an_overlap_is_whom_all_follow,
    an_overlap_may_mix_both_sides,
    an_overlap_of_many_sets,
    a_set_alone_is_itself,
    a_set_named_twice_counts_once,
    an_overlap_with_nobody_is_empty,
    a_small_set_and_a_large_one,
    two_large_sets,
    overlaps_are_paged_by_id,
    any_id_is_a_place_in_an_overlap,
    an_overlap_of_extreme_ids,
    an_overlap_follows_every_change,
    an_overlap_is_of_one_kind,
];

/// A set in a case's words.
type Set = (Side, u64);

fn following(of: u64) -> Set {
    (Side::Following, of)
}

fn followers(of: u64) -> Set {
    (Side::Followers, of)
}

fn read<S: EdgePorts>(subject: &Subject<S>, sets: &[Set], after: Option<Id>, limit: usize) -> Overlap {
    let sets: Vec<UserSet> = sets.iter().map(|&(side, of)| UserSet { side, of: subject.id(of) }).collect();
    block_on(subject.store().overlap(subject.kind(), &sets, after, limit)).unwrap()
}

/// The members are exactly those of `numbers`, in pages of several sizes, whatever the order of the sets.
fn assert_overlap<S: EdgePorts>(subject: &Subject<S>, sets: &[Set], numbers: impl IntoIterator<Item = u64>) {
    let expected = subject.ids(numbers);
    let mut sets = sets.to_vec();
    for _ in 0..sets.len() {
        // Some twenty pages at most, whatever there is.
        let shortest = expected.len() / 20 + 1;
        for page_limit in [shortest, shortest + 2, expected.len().max(1), expected.len() + 1, usize::MAX] {
            assert_pages(subject, &sets, &expected, page_limit);
        }
        sets.rotate_left(1);
    }
}

/// Walks an overlap in pages: the members come by id, and every page has the count of all of them.
fn assert_pages<S: EdgePorts>(subject: &Subject<S>, sets: &[Set], expected: &[Id], page_limit: usize) {
    let mut walked: Vec<Id> = Vec::new();
    loop {
        let page = read(subject, sets, walked.last().copied(), page_limit);
        let what = format!("{sets:?} by {page_limit} after {}", walked.len());
        assert_eq!(page.count, expected.len() as u64, "{what}");
        assert!(page.ids.len() <= page_limit, "{what}: a page of {}", page.ids.len());
        let is_last = page.ids.len() < page_limit;
        walked.extend(page.ids);
        assert!(walked.len() <= expected.len(), "{what}: too many in {walked:?}");
        if is_last {
            break;
        }
    }
    assert_eq!(walked, expected, "{sets:?} in pages of {page_limit}");
}

fn an_overlap_is_whom_all_follow<S: EdgePorts>(subject: &Subject<S>) {
    // From high to low, and some later: the order of an overlap is that of ids, not of times or arrival.
    subject.follow_all([9, 5, 8, 3].map(|to| (1, to)));
    subject.clock.advance(5);
    subject.follow_all([4, 8, 3, 9, 7].map(|to| (2, to)));
    assert_overlap(subject, &[following(1), following(2)], [3, 8, 9]);
    assert_eq!(read(subject, &[following(1), following(2)], None, 0), Overlap { count: 3, ids: vec![] });
    // A user's followers are not its followees.
    assert_overlap(subject, &[following(1), following(3)], []);
}

fn an_overlap_may_mix_both_sides<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all([(1, 3), (1, 4), (1, 5), (3, 2), (5, 2), (6, 2), (2, 4), (3, 7), (6, 7), (5, 1)]);
    assert_overlap(subject, &[following(1), followers(2)], [3, 5]);
    assert_overlap(subject, &[followers(2), followers(7)], [3, 6]);
    assert_overlap(subject, &[following(1), following(2)], [4]);
    assert_overlap(subject, &[followers(1), followers(2), following(1)], [5]);
    // Both sides of one user are its friends.
    assert_overlap(subject, &[following(1), followers(1)], [5]);
}

fn an_overlap_of_many_sets<S: EdgePorts>(subject: &Subject<S>) {
    // User 100 + n follows the multiples of n.
    for of in 1..=6 {
        subject.follow_all((1..=60).filter(|to| to % of == 0).map(|to| (100 + of, to)));
    }
    let all: Vec<Set> = (1..=6).map(|of| following(100 + of)).collect();
    assert_overlap(subject, &all, [60]);
    assert_overlap(subject, &all[..4], [12, 24, 36, 48, 60]);
    assert_overlap(subject, &all[2..4], [12, 24, 36, 48, 60]);
    assert_overlap(subject, &[all[1], all[2], all[4]], [30, 60]);
    // The first two sets alone have more in common than all of them.
    assert_overlap(subject, &[all[0], all[1], all[5], following(99)], []);
    subject.follow(60, 99);
    assert_overlap(subject, &[all[0], all[1], all[5], followers(99)], [60]);
}

fn a_set_alone_is_itself<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all([7, 3, 9, 4].map(|to| (1, to)));
    subject.follow_all([8, 2, 6].map(|from| (from, 5)));
    assert_overlap(subject, &[following(1)], [3, 4, 7, 9]);
    assert_overlap(subject, &[followers(5)], [2, 6, 8]);
}

fn a_set_named_twice_counts_once<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all([(1, 3), (1, 4), (1, 5), (2, 4), (2, 5), (2, 6)]);
    assert_overlap(subject, &[following(1), following(1)], [3, 4, 5]);
    assert_overlap(subject, &[following(1), following(2), following(1)], [4, 5]);
    assert_overlap(subject, &[followers(4), followers(4), followers(5)], [1, 2]);
}

fn an_overlap_with_nobody_is_empty<S: EdgePorts>(subject: &Subject<S>) {
    assert_eq!(read(subject, &[], None, 10), Overlap::default());
    assert_overlap(subject, &[following(1), following(2)], []);
    subject.follow_all([(1, 3), (1, 4), (2, 3)]);
    assert_eq!(read(subject, &[], None, 10), Overlap::default());
    // 8 and 9 were never seen; 3 follows nobody; nobody follows 1.
    for nobody in [following(8), followers(9), following(3), followers(1)] {
        assert_overlap(subject, &[nobody], []);
        assert_overlap(subject, &[following(1), nobody], []);
        assert_overlap(subject, &[following(1), following(2), nobody], []);
        assert_overlap(subject, &[followers(3), nobody], []);
    }
    assert_overlap(subject, &[followers(3), following(8), followers(9)], []);
}

/// Far more than the small set, so that a store goes through the small one and asks the large one.
const LARGE: u64 = 1_500;

fn a_small_set_and_a_large_one<S: EdgePorts>(subject: &Subject<S>) {
    // 5000 follows every even number and is followed by every number that divides by 3.
    subject.follow_all((1..=LARGE).map(|number| (5_000, 2 * number)));
    subject.follow_all((1..=LARGE).map(|number| (3 * number, 5_000)));
    let some = [1, 2, 3, 600, 2_998, 2_999, 3_000, 3_001, 4_500, 4_503];
    subject.follow_all(some.map(|number| (6_001, number)));
    subject.follow_all(some.map(|number| (number, 6_002)));
    for small in [following(6_001), followers(6_002)] {
        assert_overlap(subject, &[small, following(5_000)], [2, 600, 2_998, 3_000]);
        assert_overlap(subject, &[small, followers(5_000)], [3, 600, 3_000, 4_500]);
        assert_overlap(subject, &[small, followers(5_000), following(5_000)], [600, 3_000]);
    }
    // One member against many, at both ends and in the middle.
    for only in [2, 1_502, 3_000] {
        subject.follow(7_000 + only, only);
        assert_overlap(subject, &[following(7_000 + only), following(5_000)], [only]);
    }
}

fn two_large_sets<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all((1..=LARGE).map(|number| (5_000, number)));
    subject.follow_all((1..=LARGE).map(|number| (5_001, 3 * number)));
    subject.follow_all((1..=LARGE).map(|number| (2 * number, 5_002)));
    let in_common: Vec<u64> = (1..=LARGE / 3).map(|number| 3 * number).collect();
    assert_overlap(subject, &[following(5_000), following(5_001)], in_common.clone());
    let even = in_common.into_iter().filter(|number| number.is_multiple_of(2));
    assert_overlap(subject, &[following(5_000), following(5_001), followers(5_002)], even);
}

fn overlaps_are_paged_by_id<S: EdgePorts>(subject: &Subject<S>) {
    let numbers: Vec<u64> = (1..=60).map(|index| index * 37 % 61).collect();
    for group in numbers.chunks(7) {
        subject.follow_all(group.iter().flat_map(|&number| [(100, number), (number, 101)]));
        subject.clock.advance(1);
    }
    subject.follow_all((61..=80).map(|number| (100, number)));
    let expected = subject.ids(1..=60);
    for page_limit in 1..=62 {
        assert_pages(subject, &[following(100), followers(101)], &expected, page_limit);
    }
}

fn any_id_is_a_place_in_an_overlap<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all((2..=20).step_by(2).flat_map(|to| [(100, to), (101, to)]));
    let sets = [following(100), following(101)];
    let after = |place: u64| read(subject, &sets, Some(subject.id(place)), 3);
    // No members: one between two of them, one before all, one after all.
    assert_eq!(after(9), Overlap { count: 10, ids: subject.ids([10, 12, 14]) });
    assert_eq!(after(1), Overlap { count: 10, ids: subject.ids([2, 4, 6]) });
    assert_eq!(after(21), Overlap { count: 10, ids: vec![] });
    // A member that leaves between two pages leaves its place, and the count follows.
    assert_eq!(after(10).ids, subject.ids([12, 14, 16]));
    subject.write(&[unfollow(100, 10), unfollow(101, 14), unfollow(100, 2)]);
    assert_eq!(after(10), Overlap { count: 7, ids: subject.ids([12, 16, 18]) });
    let extremes = subject.extreme_ids();
    let of_extreme = |place: Option<&Id>| read(subject, &sets, place.copied(), 20).ids.len();
    assert_eq!((of_extreme(extremes.first()), of_extreme(extremes.last())), (7, 0));
}

fn an_overlap_of_extreme_ids<S: EdgePorts>(subject: &Subject<S>) {
    let ids = subject.extreme_ids();
    let edges = ids.iter().flat_map(|&follower| ids.iter().map(move |&followee| Edge { follower, followee }));
    let follow = |edge| EdgeCommand { action: EdgeAction::Follow, edge };
    let commands: Vec<_> = edges.filter(|edge| edge.follower != edge.followee).map(follow).collect();
    subject.try_write(subject.kind(), &commands, NO_LIMIT).unwrap();
    for (&one, &other) in ids.iter().zip(ids.iter().rev()) {
        let expected: Vec<Id> = ids.iter().copied().filter(|&id| id != one && id != other).collect();
        for sides in [[Side::Following; 2], [Side::Following, Side::Followers], [Side::Followers; 2]] {
            let sets = [UserSet { side: sides[0], of: one }, UserSet { side: sides[1], of: other }];
            for (after, skipped) in [(None, 0), (expected.first().copied(), 1)] {
                let found = block_on(subject.store().overlap(subject.kind(), &sets, after, 100)).unwrap();
                let expected = Overlap { count: expected.len() as u64, ids: expected[skipped..].to_vec() };
                assert_eq!(found, expected, "{sets:?} after {after:?}");
            }
        }
    }
}

fn an_overlap_follows_every_change<S: EdgePorts>(subject: &Subject<S>) {
    let sets = [following(1), followers(2)];
    for number in [5, 4, 3] {
        subject.write(&[follow(1, number), follow(number, 2)]);
    }
    assert_overlap(subject, &sets, [3, 4, 5]);
    subject.unfollow(1, 4);
    assert_overlap(subject, &sets, [3, 5]);
    subject.unfollow(5, 2);
    assert_overlap(subject, &sets, [3]);
    subject.write(&[follow(1, 4), follow(5, 2), follow(1, 6)]);
    assert_overlap(subject, &sets, [3, 4, 5]);
}

fn an_overlap_is_of_one_kind<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all([(1, 3), (1, 4), (2, 3)]);
    let others = subject.commands(&[follow(2, 4), follow(1, 5), follow(2, 5)]);
    subject.try_write(subject.other_kind(), &others, NO_LIMIT).unwrap();
    assert_overlap(subject, &[following(1), following(2)], [3]);
    let sets = [1, 2].map(|of| UserSet { side: Side::Following, of: subject.id(of) });
    let of_other = block_on(subject.store().overlap(subject.other_kind(), &sets, None, 9)).unwrap();
    assert_eq!(of_other, Overlap { count: 1, ids: subject.ids([5]) });
}
