//! Cases of the change log and of positions: every change once, in order, without gaps; what is visible when.

use kinfolk_core::GraphStore;
use kinfolk_core::changes::{Change, ChangeBody, LogSpan};
use kinfolk_core::graph::{Side, UserSet};
use kinfolk_core::{Clock, Error, Frontier, Position, Result, Sequence, Token};

use crate::cases::edges::pages::make_friends;
use crate::cases::subject::{NO_LIMIT, Subject, assert_limit, follow, keys, unfollow};
use crate::ports::EdgePorts;
use crate::seen::Seen;
use crate::threads::{at_once, block_on};
use crate::users::by_shard;

crate::cases::list_cases![cases: EdgePorts;
    a_new_store_is_empty,
    the_log_tells_every_change_once_and_in_order,
    the_log_has_no_other_events,
    the_log_is_read_in_pages,
    the_log_holds_all_kinds,
    time_in_the_log_never_goes_back,
    waiting_for_changes_ends_with_one,
    changes_go_on_from_a_token,
];

crate::cases::list_cases![cases_with_checks: GraphStore;
    a_reached_position_is_visible,
    a_position_of_the_future_is_not_visible,
    reads_wait_for_a_write_that_comes,
];

fn span<S: EdgePorts>(subject: &Subject<S>) -> LogSpan {
    block_on(subject.store().span()).unwrap()
}

fn a_new_store_is_empty<S: EdgePorts>(subject: &Subject<S>) {
    assert_eq!(subject.store().id_kind(), subject.scope.id_kind);
    let before = span(subject);
    let start: Frontier = before.newest.iter().map(|position| Sequence::START.on(position.shard)).collect();
    assert_eq!((&before.trimmed, &before.newest), (&start, &start), "every shard is named and empty");
    assert_eq!(before.epoch, subject.store().epoch());
    assert_eq!(subject.changes(), []);
    subject.follow(1, 2);
    assert_eq!(span(subject).epoch, before.epoch, "only a restore begins a new epoch");
    assert_eq!(subject.store().epoch(), before.epoch);
}

fn the_log_tells_every_change_once_and_in_order<S: EdgePorts>(subject: &Subject<S>) {
    let kind = subject.kind();
    let followed = |from, to| (from, ChangeBody::Followed { kind, edge: subject.edge(from, to) });
    let unfollowed = |from, to, since| {
        let edge = subject.edge(from, to);
        (from, ChangeBody::Unfollowed { kind, edge, since })
    };
    let (mut expected, mut followers) = (Vec::new(), Vec::new());
    let mut expect = |(follower, body)| {
        followers.push(follower);
        let position = subject.after(followers.iter().copied());
        expected.push(Change { position, at: subject.clock.now(), body });
    };

    subject.follow(1, 2);
    expect(followed(1, 2));
    let first = subject.clock.now();
    subject.clock.advance(5);
    subject.write(&[follow(2, 1), follow(1, 2), follow(3, 1), follow(1, 3)]);
    [followed(2, 1), followed(1, 3), followed(3, 1)].into_iter().for_each(&mut expect);
    let second = subject.clock.now();
    subject.clock.advance(5);
    subject.unfollow(1, 2);
    expect(unfollowed(1, 2, first));
    subject.clock.advance(5);
    subject.write(&[follow(1, 2), unfollow(3, 1), follow(4, 5)]);
    [followed(1, 2), unfollowed(3, 1, second), followed(4, 5)].into_iter().for_each(&mut expect);
    assert_eq!(subject.changes(), by_shard(expected));
}

fn the_log_has_no_other_events<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (1, 3)]);
    subject.follow(1, 2);
    subject.unfollow(2, 1);
    assert_limit(subject.write_limited(2, &[unfollow(1, 2), follow(1, 2), follow(1, 4)]), subject.id(1), 2);
    subject.write(&[]);
    assert_eq!((subject.log_length(), subject.changes().len()), (2, 2));
    subject.follow(4, 5);
    let positions: Vec<Position> = subject.changes().iter().map(|change| change.position).collect();
    assert_eq!(positions.len(), 3);
    for position in [subject.after([1]), subject.after([1, 1]), subject.after([1, 1, 4])] {
        assert!(positions.contains(&position), "{position} is not in {positions:?}");
    }
}

fn the_log_is_read_in_pages<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all((1..=9).map(|number| (number, 0)));
    subject.unfollow(4, 0);
    subject.follow_all([(4, 0), (0, 1)]);
    let changes = subject.changes();
    assert_eq!((changes.len(), subject.log_length()), (12, 12));
    let start = span(subject).trimmed;
    for known in 0..=12 {
        // Some of the first shards' logs, then some of the next one's: with one shard, all places there are.
        let mut after = start.clone();
        changes[..known].iter().for_each(|change| after.advance(change.position));
        for limit in [1, 2, 5, 11, 12, 13, 1_000] {
            let page = block_on(subject.graph.store().changes(&after, limit)).unwrap();
            assert_eq!(page.changes.len(), limit.min(12 - known), "{limit} after {after}");
            let mut next = after.clone();
            for change in &page.changes {
                let before = next.get(change.position.shard).expect("every shard is named");
                assert_eq!(change.position.sequence, before.next(), "{limit} after {after}: in order");
                assert!(changes.contains(change), "{limit} after {after}: {change:?}");
                next.advance(change.position);
            }
            assert_eq!(page.next, next, "{limit} after {after}");
        }
    }
    // A shard that is not named starts at the oldest kept.
    for position in start.iter() {
        let page = block_on(subject.graph.store().changes(&position.into(), 1_000)).unwrap();
        assert_eq!(by_shard(page.changes), changes, "after {position}");
    }
}

fn the_log_holds_all_kinds<S: EdgePorts>(subject: &Subject<S>) {
    let other = subject.other_kind();
    subject.follow(1, 2);
    let receipt = subject.try_write(other, &subject.commands(&[follow(1, 2)]), NO_LIMIT).unwrap();
    assert_eq!(receipt.position, subject.after([1, 1]), "kinds share one order");
    subject.unfollow(1, 2);
    let kinds: Vec<_> = subject
        .changes()
        .into_iter()
        .map(|change| match change.body {
            ChangeBody::Followed { kind, .. } | ChangeBody::Unfollowed { kind, .. } => Some(kind),
            ChangeBody::Imported { .. }
            | ChangeBody::Posted { .. }
            | ChangeBody::PostDeleted { .. }
            | ChangeBody::Comment(_) => None,
        })
        .collect();
    assert_eq!(kinds, [Some(subject.kind()), Some(other), Some(subject.kind())]);
}

fn time_in_the_log_never_goes_back<S: EdgePorts>(subject: &Subject<S>) {
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
    for of_shard in changes.chunk_by(|a, b| a.position.shard == b.position.shard) {
        assert!(of_shard.is_sorted_by_key(|change| change.at), "{of_shard:?}");
    }
    for change in changes {
        if let ChangeBody::Followed { edge, .. } = change.body {
            let since = block_on(subject.store().since(subject.kind(), &[edge])).unwrap()[0];
            assert!(since.is_none_or(|since| since == change.at), "the time of {change:?} is its since");
        }
    }
}

/// A read of any kind that shows at least a position.
fn read_at<S: EdgePorts>(subject: &Subject<S>, position: Position) -> Result<()> {
    let store = Seen::new(subject.graph.store(), position);
    block_on(store.counts(subject.kind(), &subject.ids([0]))).map(drop)
}

fn a_reached_position_is_visible<S: GraphStore>(subject: &Subject<S>) {
    let mut receipts = vec![subject.start(0), subject.start(1)];
    read_at(subject, receipts[0]).expect("before all events");
    for number in 1..=5 {
        let request = subject.commands(&[follow(number, 0)]);
        let receipt = subject.try_write(subject.kind(), &request, NO_LIMIT).unwrap();
        assert_eq!(receipt.position, subject.after(1..=number));
        assert!(subject.newest_frontier().covers(receipt.position), "what is visible is in the log");
        receipts.push(receipt.position);
        for &position in &receipts {
            read_at(subject, position).expect("it was reached");
        }
        assert!(subject.contains(number, 0));
        assert_eq!(subject.counts(0).followers, number);
        assert_eq!(subject.followers(0).len() as u64, number);
    }
}

/// Every read waits for what it is to show, and says so when it does not come.
fn a_position_of_the_future_is_not_visible<S: GraphStore>(subject: &Subject<S>) {
    subject.follow(1, 2);
    let future = Sequence(1_000_000).on(subject.shard(1));
    let store = &Seen::new(subject.graph.store(), future);
    let token = Token { epoch: store.epoch(), frontier: future.into() }.encode(&keys());
    let (kind, edges, ids) = (subject.kind(), [subject.edge(1, 2)], subject.ids([1, 2]));
    let set = UserSet { side: Side::Following, of: ids[0] };
    // At once, since a store may wait a second for each.
    let outcomes = at_once(9, |thread| match thread {
        0 => block_on(store.contains(kind, &edges)).map(drop),
        1 => block_on(store.since(kind, &edges)).map(drop),
        2 => block_on(store.list(kind, Side::Following, ids[0], None, 5)).map(drop),
        3 => block_on(store.friends(kind, ids[0], None, 5)).map(drop),
        4 => block_on(store.overlap(kind, &[set], None, 5)).map(drop),
        5 => block_on(store.counts(kind, &ids)).map(drop),
        6 => block_on(subject.graph.store().changes(&future.into(), 5)).map(drop),
        7 => block_on(subject.graph.check(kind, &edges, Some(&token))).map(drop),
        _ => block_on(subject.graph.changes(Some(&token), 5)).map(drop),
    });
    for (read, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Err(Error::NotYetVisible { asked, current }) => {
                assert_eq!((asked, current), (future, subject.after([1])));
            }
            other => {
                panic!("a position that was not reached is not visible yet, not {other:?} (read {read})")
            }
        }
    }
    let at_once = subject.graph.store().contains_now(kind, edges[0], &future.into());
    assert_eq!(at_once, None, "what can't be said yet is not said at once");
}

fn reads_wait_for_a_write_that_comes<S: GraphStore>(subject: &Subject<S>) {
    for number in 1..=5 {
        at_once(2, |thread| {
            if thread == 0 {
                subject.follow(number, 0);
                return;
            }
            // Under load the write may be later than a store waits; then it says so and is asked again.
            let position = subject.after(1..=number);
            let came = (0..100).any(|_| match read_at(subject, position) {
                Ok(()) => true,
                Err(Error::NotYetVisible { .. }) => false,
                Err(error) => panic!("waiting failed: {error}"),
            });
            assert!(came, "position {position} never came");
            let store = Seen::new(subject.graph.store(), position);
            let found = block_on(store.contains(subject.kind(), &[subject.edge(number, 0)])).unwrap();
            assert_eq!(found, [true], "what is visible can be read");
            assert!(subject.changes().len() as u64 >= number, "and is in the log");
        });
    }
}

fn waiting_for_changes_ends_with_one<S: EdgePorts>(subject: &Subject<S>) {
    let store = subject.graph.store();
    let wait = |after: &Frontier| block_on(store.wait_for_changes(after)).unwrap();
    let start = span(subject).newest;
    subject.follow(1, 2);
    assert!(wait(&start), "there is one already");
    let newest = span(subject).newest;
    assert!(!wait(&newest), "none comes");
    // On the same shard and on any other.
    for follower in 1..=4 {
        let newest = span(subject).newest;
        at_once(2, |thread| {
            if thread == 0 {
                subject.follow(follower, 9);
                return;
            }
            assert!((0..100).any(|_| wait(&newest)), "one comes");
        });
    }
    assert!(wait(&Frontier::default()), "from the oldest kept");
}

fn changes_go_on_from_a_token<S: EdgePorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    let start = block_on(graph.changes(None, 5)).unwrap();
    assert_eq!(start.items, []);
    make_friends(subject, 6);
    let all = subject.changes();
    assert_eq!(all.len(), 12);
    for limit in [1, 4, 5, 12, 20] {
        for first in [None, Some(&start.next)] {
            let mut page = block_on(graph.changes(first.map(String::as_str), limit)).unwrap();
            let mut walked = Vec::new();
            while !page.items.is_empty() {
                assert!(page.items.len() <= limit);
                walked.extend(page.items);
                assert!(walked.len() <= all.len(), "a walk of the log must end");
                page = block_on(graph.changes(Some(&page.next), limit)).unwrap();
            }
            assert_eq!(by_shard(walked), all);
            // At the end the token stays, and what comes later follows on it.
            assert_eq!(page.next, graph.token(subject.newest_frontier()));
        }
    }
    let end = graph.token(subject.newest_frontier());
    subject.follow(7, 8);
    let page = block_on(graph.changes(Some(&end), 5)).unwrap();
    let position = subject.after((1..=6).flat_map(|number| [0, number]).chain([7]));
    let new: Vec<_> = subject.changes().into_iter().filter(|change| change.position == position).collect();
    assert_eq!((new.len(), page.items), (1, new));
}
