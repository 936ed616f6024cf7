//! Cases of checks and counts: many at once, unknown users, kinds, and ids at the ends of their range.

use kinfolk_core::graph::{Counts, Edge, EdgeAction, EdgeCommand, Side};
use kinfolk_core::{GraphStore, Id};

use crate::cases::subject::{Command, NO_LIMIT, Subject, follow, ids_of, unfollow};
use crate::model::Model;
use crate::random::Random;
use crate::random::compare::compare;
use crate::threads::block_on;

crate::cases::list_cases![cases: GraphStore;
    many_edges_are_answered_in_the_order_asked,
    many_followers_are_all_known,
    unknown_users_have_nothing,
    kinds_do_not_see_each_other,
    counts_equal_the_lists,
    ids_may_be_extreme,
    ids_that_differ_in_one_bit_are_different,
];

fn many_edges_are_answered_in_the_order_asked<S: GraphStore>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (3, 4), (5, 6)]);
    let asked = [(5, 6), (9, 8), (1, 2), (2, 1), (3, 4), (1, 4), (1, 2), (0, 7)];
    let edges: Vec<Edge> = asked.iter().map(|&(from, to)| subject.edge(from, to)).collect();
    let expected = [true, false, true, false, true, false, true, false];
    assert_eq!(block_on(subject.store().contains(subject.kind(), &edges)).unwrap(), expected);
    let since = block_on(subject.store().since(subject.kind(), &edges)).unwrap();
    assert_eq!(since.iter().map(Option::is_some).collect::<Vec<_>>(), expected);
    assert_eq!(since[0], subject.since(5, 6));

    assert_eq!(block_on(subject.store().contains(subject.kind(), &[])).unwrap(), []);
    assert_eq!(block_on(subject.store().since(subject.kind(), &[])).unwrap(), []);
}

fn many_followers_are_all_known<S: GraphStore>(subject: &Subject<S>) {
    subject.follow_all((0..100).flat_map(|from| [(from, 200), (from, 300 + from)]));
    let edges: Vec<Edge> =
        (0..100).flat_map(|from| [subject.edge(from, 200), subject.edge(from, 301 + from)]).collect();
    let found = block_on(subject.store().contains(subject.kind(), &edges)).unwrap();
    assert_eq!(found, [true, false].repeat(100));
    assert_eq!(subject.counts(200).followers, 100);
}

fn unknown_users_have_nothing<S: GraphStore>(subject: &Subject<S>) {
    let ask = || {
        for (from, to) in [(8, 9), (1, 9), (9, 2), (2, 1)] {
            assert!(!subject.contains(from, to));
            assert_eq!(subject.since(from, to), None);
        }
        assert_eq!(subject.counts(9), Counts::default());
        assert_eq!((subject.following(9), subject.followers(9)), (vec![], vec![]));
        assert_eq!(subject.friends(9, 10), []);
    };
    ask();
    subject.follow(1, 2);
    ask();
    // Asking made nobody known, and a user whose edges are gone is like one that never had any.
    subject.write(&[follow(9, 8), follow(1, 9)]);
    subject.write(&[unfollow(9, 8), unfollow(1, 9)]);
    ask();
}

fn kinds_do_not_see_each_other<S: GraphStore>(subject: &Subject<S>) {
    let other = subject.other_kind();
    let write_other =
        |commands: &[Command]| subject.try_write(other, &subject.commands(commands), NO_LIMIT).unwrap();
    subject.follow_all([(1, 2), (3, 1)]);
    write_other(&[follow(2, 1), follow(1, 4)]);

    assert!(!subject.contains(2, 1) && !subject.contains(1, 4));
    assert_eq!(subject.since(2, 1), None);
    assert_eq!(subject.counts(1), Counts { following: 1, followers: 1 });
    assert_eq!(ids_of(&subject.following(1)), [subject.id(2)]);
    assert_eq!(ids_of(&subject.followers(1)), [subject.id(3)]);
    assert_eq!(subject.friends(1, 10), [], "a friend follows and is followed in one kind");

    assert_eq!(write_other(&[unfollow(1, 2)]).changed[..], [false]);
    assert_eq!(write_other(&[follow(1, 2)]).changed[..], [true], "the edge is new in that kind");
    assert_eq!(subject.unfollow(1, 2).changed[..], [true]);
    let edges = [subject.edge(1, 2), subject.edge(2, 1), subject.edge(3, 1)];
    assert_eq!(block_on(subject.store().contains(other, &edges)).unwrap(), [true, true, false]);
    assert_eq!(subject.counts(1), Counts { following: 0, followers: 1 });
}

fn counts_equal_the_lists<S: GraphStore>(subject: &Subject<S>) {
    let mut random = Random::new(5);
    for _ in 0..25 {
        let commands: Vec<_> = (0..4)
            .map(|_| {
                let from = random.below(7);
                let to = (from + 1 + random.below(6)) % 7;
                if random.below(2) == 0 { follow(from, to) } else { unfollow(from, to) }
            })
            .collect();
        subject.clock.advance(random.below(2));
        subject.write(&commands);
        for of in 0..7 {
            let lens = (subject.following(of).len() as u64, subject.followers(of).len() as u64);
            let counts = subject.counts(of);
            assert_eq!((counts.following, counts.followers), lens, "user {of} after {commands:?}");
        }
    }
    let model = Model::replay(subject.changes());
    compare(&*subject.store(), &model, &subject.ids(0..7)).unwrap_or_else(|wrong| panic!("{wrong}"));
}

fn ids_may_be_extreme<S: GraphStore>(subject: &Subject<S>) {
    let ids = subject.extreme_ids();
    let others = |of: Id| ids.iter().rev().copied().filter(move |&id| id != of);
    let edge = |follower| move |followee| Edge { follower, followee };
    let edges: Vec<Edge> = ids.iter().flat_map(|&follower| others(follower).map(edge(follower))).collect();
    let follow = |&edge: &Edge| EdgeCommand { action: EdgeAction::Follow, edge };
    let commands: Vec<_> = edges.iter().map(follow).collect();
    subject.try_write(subject.kind(), &commands, NO_LIMIT).unwrap();

    let found = block_on(subject.store().contains(subject.kind(), &edges)).unwrap();
    assert_eq!(found, vec![true; edges.len()]);
    let expected = Counts { following: ids.len() as u64 - 1, followers: ids.len() as u64 - 1 };
    assert_eq!(block_on(subject.store().counts(subject.kind(), &ids)).unwrap(), vec![expected; ids.len()]);
    // All are of one millisecond, so the ids alone decide the order: from the highest to the lowest.
    for &of in &ids {
        let expected: Vec<Id> = others(of).collect();
        for side in [Side::Following, Side::Followers] {
            let entries = block_on(subject.store().list(subject.kind(), side, of, None, 100)).unwrap();
            assert_eq!(ids_of(&entries), expected, "{side:?} of {of}");
        }
        let friends = block_on(subject.store().friends(subject.kind(), of, None, 100)).unwrap();
        assert_eq!(ids_of(&friends), expected);
    }
}

fn ids_that_differ_in_one_bit_are_different<S: GraphStore>(subject: &Subject<S>) {
    let (from, to) = (subject.id(1), subject.id(2));
    subject.follow(1, 2);
    let flipped = |id: Id| -> Vec<Id> {
        match id {
            Id::Integer(value) => (0..63).map(|bit| Id::Integer(value ^ 1 << bit)).collect(),
            Id::Uuid(value) => (0..128).map(|bit| Id::Uuid(value ^ 1 << bit)).collect(),
        }
    };
    let to_near = flipped(to).into_iter().map(|followee| Edge { follower: from, followee });
    let from_near = flipped(from).into_iter().map(|follower| Edge { follower, followee: to });
    let edges: Vec<Edge> = to_near.chain(from_near).filter(|edge| edge.follower != edge.followee).collect();
    let found = block_on(subject.store().contains(subject.kind(), &edges)).unwrap();
    assert_eq!(found, vec![false; edges.len()]);
    let near: Vec<Id> = flipped(to).into_iter().filter(|&id| id != from).collect();
    let counts = block_on(subject.store().counts(subject.kind(), &near)).unwrap();
    assert_eq!(counts, vec![Counts::default(); near.len()]);
}
