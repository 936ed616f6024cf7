//! Cases of walks while the list changes: what stays put is seen exactly once.

use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::graph::{EdgeAction, ListEntry, Side};

use super::lists::{expected_list, sixty_on_both_sides};
use crate::cases::subject::{Command, Subject, follow, unfollow};
use crate::ports::EdgePorts;
use crate::threads::meanwhile;

crate::cases::list_cases![cases: EdgePorts;
    a_removed_edge_is_still_a_place,
    a_walk_with_changes_between_pages,
    a_walk_with_changes_at_the_same_time,
    a_walk_of_friends_with_changes_between_pages,
];

const SIDES: [Side; 2] = [Side::Following, Side::Followers];

/// A command about an edge of user 0, seen from a side.
fn on_side(side: Side, action: EdgeAction, other: u64) -> Command {
    match side {
        Side::Following => (action, 0, other),
        Side::Followers => (action, other, 0),
    }
}

fn a_removed_edge_is_still_a_place<S: EdgePorts>(subject: &Subject<S>) {
    sixty_on_both_sides(subject);
    for side in SIDES {
        let list = expected_list(subject, side, 0, 1..=60);
        let first = subject.page(side, 0, None, 10);
        let last = *first.last().expect("ten entries");
        let number = (1..=60).find(|&number| subject.id(number) == last.id).expect("one of the sixty");
        subject.write(&[on_side(side, EdgeAction::Unfollow, number)]);
        assert_eq!(subject.page(side, 0, Some(last), 100), list[10..], "{side:?} after a removed edge");

        // Made again, it is a new edge at the top: the walk does not meet it a second time.
        subject.write(&[on_side(side, EdgeAction::Follow, number)]);
        assert_eq!(subject.page(side, 0, Some(last), 100), list[10..], "{side:?} after a moved edge");
    }
}

/// Whether a walk saw the entries that stayed exactly once and in order, and nothing twice.
pub(in crate::cases) fn assert_saw_once(walked: &[ListEntry], stayed: &[ListEntry]) {
    assert!(walked.is_sorted_by(|a, b| a < b), "out of order or twice: {walked:?}");
    let seen: Vec<ListEntry> = walked.iter().copied().filter(|entry| stayed.contains(entry)).collect();
    assert_eq!(seen, stayed);
}

/// Numbers that divide by 3 come and go; the others stay.
pub(in crate::cases) fn stays(number: &u64) -> bool {
    !number.is_multiple_of(3)
}

fn a_walk_with_changes_between_pages<S: EdgePorts>(subject: &Subject<S>) {
    sixty_on_both_sides(subject);
    for side in SIDES {
        for page_limit in [1, 4, 7] {
            let stayed = expected_list(subject, side, 0, (1..=60).filter(stays));
            let mut walked: Vec<ListEntry> = Vec::new();
            for round in 0.. {
                let page = subject.page(side, 0, walked.last().copied(), page_limit);
                walked.extend(&page);
                if page.len() < page_limit || walked.len() > 1_000 {
                    break;
                }
                let (comes, goes) = (3 * (round % 20) + 3, 3 * ((round + 10) % 20) + 3);
                let comes = [
                    on_side(side, EdgeAction::Follow, comes),
                    on_side(side, EdgeAction::Follow, 100 + round),
                ];
                subject.write(&comes);
                subject.write(&[on_side(side, EdgeAction::Unfollow, goes)]);
                subject.clock.advance(round % 2);
            }
            assert_saw_once(&walked, &stayed);
        }
    }
}

fn a_walk_with_changes_at_the_same_time<S: EdgePorts>(subject: &Subject<S>) {
    sixty_on_both_sides(subject);
    let stayed = SIDES.map(|side| expected_list(subject, side, 0, (1..=60).filter(stays)));
    let round = AtomicU64::new(0);
    let change = || {
        let round = round.fetch_add(1, Ordering::Relaxed);
        let number = 3 * (round % 20) + 3;
        let action = if (round / 20).is_multiple_of(2) { EdgeAction::Unfollow } else { EdgeAction::Follow };
        subject.write(&SIDES.map(|side| on_side(side, action, number)));
    };
    meanwhile(change, || {
        for page_limit in [1, 2, 5, 13, 40, 1, 3] {
            for (side, stayed) in SIDES.iter().zip(&stayed) {
                assert_saw_once(&subject.walk(*side, 0, page_limit), stayed);
            }
        }
    });
}

fn a_walk_of_friends_with_changes_between_pages<S: EdgePorts>(subject: &Subject<S>) {
    sixty_on_both_sides(subject);
    let stayed = expected_list(subject, Side::Followers, 0, (1..=60).filter(stays));
    let mut walked: Vec<ListEntry> = Vec::new();
    for round in 0..100 {
        let (kind, of) = (subject.kind(), subject.id(0));
        let page = crate::block_on(subject.store().friends(kind, of, walked.last().copied(), 4)).unwrap();
        walked.extend(&page);
        if page.len() < 4 {
            break;
        }
        let number = 3 * (round % 20) + 3;
        // An edge in each direction goes, and one comes back.
        subject.write(&[unfollow(0, number), unfollow(63 - number, 0), follow(0, 66 - number)]);
    }
    assert_saw_once(&walked, &stayed);
}
