//! Cases of the change log and of positions: every change once, in order, without gaps; what is visible when.

use kinfolk_core::graph::{Change, ChangeBody};
use kinfolk_core::{Clock, Error, Position, Store, Token};

use super::subject::{NO_LIMIT, Subject, assert_limit, follow, keys, unfollow};
use crate::threads::{at_once, block_on};

super::list_cases![
    a_new_store_is_empty,
    the_log_tells_every_change_once_and_in_order,
    the_log_has_no_other_events,
    the_log_is_read_in_pages,
    the_log_holds_all_kinds,
    time_in_the_log_never_goes_back,
    a_reached_position_is_visible,
    a_position_of_the_future_is_not_visible,
    visible_waits_for_a_write_that_comes,
];

fn a_new_store_is_empty<S: Store>(subject: &Subject<S>) {
    assert_eq!(subject.store().id_kind(), subject.setting.id_kind);
    let span = subject.store().span();
    assert_eq!((span.trimmed, span.newest), (Position::START, Position::START));
    assert_eq!(span.epoch, subject.store().epoch());
    assert_eq!(subject.changes(), []);
    subject.follow(1, 2);
    assert_eq!(subject.store().span().epoch, span.epoch, "only a restore begins a new epoch");
    assert_eq!(subject.store().epoch(), span.epoch);
}

fn the_log_tells_every_change_once_and_in_order<S: Store>(subject: &Subject<S>) {
    let kind = subject.kind();
    let followed = |from, to| ChangeBody::Followed { kind, edge: subject.edge(from, to) };
    let unfollowed = |from, to, since| ChangeBody::Unfollowed { kind, edge: subject.edge(from, to), since };
    let mut expected = Vec::new();
    let mut expect = |body| {
        let position = Position(expected.len() as u64 + 1);
        expected.push(Change { position, at: subject.clock.now(), body });
    };

    subject.follow(1, 2);
    expect(followed(1, 2));
    let first = subject.clock.now();
    subject.clock.advance(5);
    subject.write(&[follow(2, 1), follow(1, 2), follow(3, 1), follow(1, 3)]);
    [followed(2, 1), followed(3, 1), followed(1, 3)].into_iter().for_each(&mut expect);
    let second = subject.clock.now();
    subject.clock.advance(5);
    subject.unfollow(1, 2);
    expect(unfollowed(1, 2, first));
    subject.clock.advance(5);
    subject.write(&[follow(1, 2), unfollow(3, 1), follow(4, 5)]);
    [followed(1, 2), unfollowed(3, 1, second), followed(4, 5)].into_iter().for_each(&mut expect);
    assert_eq!(subject.changes(), expected);
}

fn the_log_has_no_other_events<S: Store>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (1, 3)]);
    subject.follow(1, 2);
    subject.unfollow(2, 1);
    assert_limit(subject.write_limited(2, &[unfollow(1, 2), follow(1, 2), follow(1, 4)]), subject.id(1), 2);
    subject.write(&[]);
    assert_eq!((subject.newest(), subject.changes().len()), (Position(2), 2));
    subject.follow(4, 5);
    let positions: Vec<Position> = subject.changes().iter().map(|change| change.position).collect();
    assert_eq!(positions, [Position(1), Position(2), Position(3)]);
}

fn the_log_is_read_in_pages<S: Store>(subject: &Subject<S>) {
    subject.follow_all((1..=9).map(|number| (number, 0)));
    subject.unfollow(4, 0);
    subject.follow_all([(4, 0), (0, 1)]);
    let changes = subject.changes();
    assert_eq!(changes.len(), 12);
    assert_eq!(subject.newest(), Position(12));
    for after in 0..=12 {
        for limit in [1, 2, 5, 11, 12, 13, 1_000] {
            let page = block_on(subject.store().changes(Position(after), limit)).unwrap();
            let rest = &changes[after as usize..];
            assert_eq!(page, rest[..limit.min(rest.len())], "{limit} after {after}");
        }
    }
}

fn the_log_holds_all_kinds<S: Store>(subject: &Subject<S>) {
    let other = subject.other_kind();
    subject.follow(1, 2);
    let receipt = subject.try_write(other, subject.commands(&[follow(1, 2)]), NO_LIMIT).unwrap();
    assert_eq!(receipt.position, Position(2), "kinds share one order");
    subject.unfollow(1, 2);
    let kinds: Vec<_> = subject
        .changes()
        .into_iter()
        .map(|change| match change.body {
            ChangeBody::Followed { kind, .. } | ChangeBody::Unfollowed { kind, .. } => Some(kind),
            ChangeBody::Imported { .. }
            | ChangeBody::Posted { .. }
            | ChangeBody::PostDeleted { .. }
            | ChangeBody::Thread(_) => None,
        })
        .collect();
    assert_eq!(kinds, [Some(subject.kind()), Some(other), Some(subject.kind())]);
}

fn time_in_the_log_never_goes_back<S: Store>(subject: &Subject<S>) {
    for number in 1..=8 {
        subject.follow(number, 0);
        subject.clock.turn_back(60_000);
        if number % 2 == 0 {
            subject.unfollow(number, 0);
        }
        if number % 3 == 0 {
            subject.clock.advance(400_000);
        }
    }
    let changes = subject.changes();
    assert!(changes.is_sorted_by_key(|change| change.at), "{changes:?}");
    for change in changes {
        if let ChangeBody::Followed { edge, .. } = change.body {
            let since = block_on(subject.store().since(subject.kind(), &[edge])).unwrap()[0];
            assert!(since.is_none_or(|since| since == change.at), "the time of {change:?} is its since");
        }
    }
}

fn a_reached_position_is_visible<S: Store>(subject: &Subject<S>) {
    block_on(subject.store().visible(Position::START)).expect("before all events");
    for number in 1..=5 {
        let request = subject.commands(&[follow(number, 0)]);
        let receipt = subject.try_write(subject.kind(), request, NO_LIMIT).unwrap();
        assert_eq!(receipt.position, Position(number));
        assert!(subject.newest() >= receipt.position, "what is visible is in the log");
        for position in 0..=number {
            block_on(subject.store().visible(Position(position))).expect("it was reached");
        }
        assert!(subject.contains(number, 0));
        assert_eq!(subject.counts(0).followers, number);
        assert_eq!(subject.followers(0).len() as u64, number);
    }
}

fn a_position_of_the_future_is_not_visible<S: Store>(subject: &Subject<S>) {
    subject.follow(1, 2);
    let future = Position(1_000_000);
    let token = Token { epoch: subject.store().epoch(), position: future }.encode(&keys());
    // At once, since a store may wait a second for each.
    let outcomes = at_once(3, |thread| match thread {
        0 => block_on(subject.store().visible(future)),
        1 => {
            let edges = [subject.edge(1, 2)];
            block_on(subject.graph.check(subject.kind(), &edges, Some(&token))).map(drop)
        }
        _ => block_on(subject.graph.changes(Some(&token), 5)).map(drop),
    });
    for outcome in outcomes {
        match outcome {
            Err(Error::NotYetVisible { asked, current }) => {
                assert_eq!((asked, current), (future, Position(1)));
            }
            other => panic!("a position that was not reached is not visible yet, not {other:?}"),
        }
    }
}

fn visible_waits_for_a_write_that_comes<S: Store>(subject: &Subject<S>) {
    for number in 1..=5 {
        at_once(2, |thread| {
            if thread == 0 {
                subject.follow(number, 0);
                return;
            }
            // Under load the write may be later than a store waits; then it says so and is asked again.
            let came = (0..100).any(|_| match block_on(subject.store().visible(Position(number))) {
                Ok(()) => true,
                Err(Error::NotYetVisible { .. }) => false,
                Err(error) => panic!("waiting failed: {error}"),
            });
            assert!(came, "position {number} never came");
            assert!(subject.contains(number, 0), "what is visible can be read");
            assert!(subject.changes().len() as u64 >= number, "and is in the log");
        });
    }
}
