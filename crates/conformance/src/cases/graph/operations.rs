//! Cases through the graph: the rules of `kinfolk_core::graph::Graph` on top of this store.

use std::fmt::Debug;

use crate::cases::client::Client;
use kinfolk_core::PageRequest;
use kinfolk_core::graph::{Edge, ListEntry, ListPage, Relationship};
use kinfolk_core::{
    EdgeKind, Epoch, Error, ErrorCode, GraphStore, Keyring, ListCursor, ListName, Result, SigningKey, Token,
};

use crate::cases::subject::{
    PAGE_LIMIT_MAX, SETTINGS, Subject, assert_limit, follow, ids_of, keys, unfollow,
};
use crate::threads::block_on;
use crate::users::by_shard;

crate::cases::list_cases![GraphStore;
    following_yourself_is_refused,
    ids_of_the_other_kind_are_refused,
    the_graph_keeps_its_limits,
    a_cursor_is_good_for_its_list_only,
    a_token_must_be_our_own,
    pages_end_without_a_next,
    relationships_tell_all_four_states,
    a_follower_can_be_removed,
    a_token_makes_a_read_fresh,
    changes_go_on_from_a_token,
];

const LISTS: [ListName; 3] = [ListName::Following, ListName::Followers, ListName::Friends];

pub(in crate::cases) fn assert_code<T: Debug>(result: Result<T>, code: ErrorCode) {
    match result {
        Err(error) => assert_eq!(error.code(), code, "{error}"),
        Ok(answer) => panic!("expected {code:?}, not {answer:?}"),
    }
}

fn read_list<S: GraphStore>(
    graph: &Client<S>,
    list: ListCursor,
    limit: usize,
    cursor: Option<&str>,
) -> Result<ListPage> {
    let (ListCursor { kind, of, .. }, page) = (list, PageRequest { limit, cursor });
    match list.list {
        ListName::Following => block_on(graph.following(kind, of, page, None)),
        ListName::Followers => block_on(graph.followers(kind, of, page, None)),
        ListName::Friends => block_on(graph.friends(kind, of, page, None)),
        ListName::Posts | ListName::Feed => unreachable!("lists of posts have cases of their own"),
    }
}

/// Users 1 to `count` and user 0 follow each other.
fn make_friends<S: GraphStore>(subject: &Subject<S>, count: u64) {
    subject.follow_all((1..=count).flat_map(|number| [(0, number), (number, 0)]));
}

fn following_yourself_is_refused<S: GraphStore>(subject: &Subject<S>) {
    let (graph, kind) = (&subject.graph, subject.kind());
    subject.follow(1, 2);
    let before = subject.snapshot();
    let id = subject.id(1);
    assert_code(block_on(graph.follow(kind, id, id)), ErrorCode::SelfFollow);
    assert_eq!(
        block_on(graph.unfollow(kind, id, id)).unwrap().changed[..],
        [false],
        "there is nothing to undo"
    );
    let mut results = block_on(graph.apply(kind, subject.commands(&[unfollow(1, 3), follow(2, 2)])));
    assert_code(results.remove(1), ErrorCode::SelfFollow);
    assert_eq!(
        results.remove(0).unwrap().changed[..],
        [false],
        "changes of other followers are not affected"
    );
    assert_eq!(subject.snapshot(), before);
    let found = block_on(graph.check(kind, &[subject.edge(1, 1)], None)).unwrap();
    assert_eq!(found, [false], "asking is no sin");
}

fn ids_of_the_other_kind_are_refused<S: GraphStore>(subject: &Subject<S>) {
    let (graph, kind) = (&subject.graph, subject.kind());
    subject.follow(1, 2);
    let before = subject.snapshot();
    let (ours, foreign) = (subject.id(1), subject.foreign_id());
    let refused = ErrorCode::InvalidId;
    assert_code(block_on(graph.follow(kind, ours, foreign)), refused);
    assert_code(block_on(graph.follow(kind, foreign, ours)), refused);
    assert_code(block_on(graph.unfollow(kind, ours, foreign)), refused);
    assert_code(block_on(graph.remove_follower(kind, ours, foreign)), refused);
    let edge = Edge { follower: ours, followee: foreign };
    assert_code(block_on(graph.check(kind, &[subject.edge(1, 2), edge], None)), refused);
    assert_code(block_on(graph.relationships(kind, foreign, &[ours], None)), refused);
    assert_code(block_on(graph.relationships(kind, ours, &[foreign], None)), refused);
    assert_code(block_on(graph.counts(kind, &[ours, foreign], None)), refused);
    for list in LISTS {
        assert_code(read_list(graph, ListCursor { list, kind, of: foreign }, 5, None), refused);
    }
    assert_eq!(subject.snapshot(), before);
    assert_eq!(graph.id_kind(), ours.kind());
}

fn the_graph_keeps_its_limits<S: GraphStore>(subject: &Subject<S>) {
    let (graph, kind) = (&subject.graph, subject.kind());
    for to in 2..7 {
        let written = block_on(graph.follow(kind, subject.id(1), subject.id(to))).unwrap();
        assert_eq!(written.changed[..], [true]);
        let found = block_on(graph.check(kind, &[subject.edge(1, to)], Some(&written.token))).unwrap();
        assert_eq!(found, [true]);
    }
    let over = block_on(graph.follow(kind, subject.id(1), subject.id(7)));
    assert_limit(over, subject.id(1), SETTINGS.following_limit);

    let max = PAGE_LIMIT_MAX;
    for list in LISTS {
        let list = ListCursor { list, kind, of: subject.id(1) };
        for limit in [0, max + 1, usize::MAX] {
            assert_code(read_list(graph, list, limit, None), ErrorCode::LimitOutOfRange);
        }
        read_list(graph, list, max, None).expect("the largest page");
    }
    assert_code(block_on(graph.changes(None, 0)), ErrorCode::LimitOutOfRange);
    assert_code(block_on(graph.changes(None, max + 1)), ErrorCode::LimitOutOfRange);

    let pairs = vec![subject.edge(1, 2); SETTINGS.check_pairs_max + 1];
    assert_code(block_on(graph.check(kind, &pairs, None)), ErrorCode::TooMany);
    assert_eq!(block_on(graph.check(kind, &pairs[1..], None)).unwrap(), vec![true; pairs.len() - 1]);
    let ids = vec![subject.id(2); SETTINGS.users_max + 1];
    assert_code(block_on(graph.counts(kind, &ids, None)), ErrorCode::TooMany);
    assert_code(block_on(graph.relationships(kind, subject.id(1), &ids, None)), ErrorCode::TooMany);
    assert_eq!(block_on(graph.counts(kind, &ids[1..], None)).unwrap().len(), SETTINGS.users_max);
}

fn a_cursor_is_good_for_its_list_only<S: GraphStore>(subject: &Subject<S>) {
    let graph = &subject.graph;
    make_friends(subject, 6);
    let before = subject.snapshot();
    let all = LISTS.map(|list| ListCursor { list, kind: subject.kind(), of: subject.id(0) });
    for list in all {
        let next = read_list(graph, list, 2, None).unwrap().next.expect("there are six");
        let rest = read_list(graph, list, 20, Some(&next)).unwrap();
        assert_eq!((ids_of(&rest.items), rest.next), (subject.ids([4, 3, 2, 1]), None));

        let others = all.into_iter().filter(|other| *other != list).chain([
            ListCursor { of: subject.id(1), ..list },
            ListCursor { kind: subject.other_kind(), ..list },
            ListCursor { kind: EdgeKind::Like, ..list },
        ]);
        for other in others {
            assert_code(read_list(graph, other, 2, Some(&next)), ErrorCode::InvalidCursor);
        }
        let last: ListEntry = rest.items[0];
        let foreign_keys = Keyring::new(SigningKey::new([8; 32]), []);
        let token = graph.token(subject.newest_frontier());
        let changed = next.replace(&next[8..9], if &next[8..9] == "x" { "y" } else { "x" });
        for forged in ["", "x", &changed, &next[1..], &token, &list.encode(last, &foreign_keys)] {
            assert_code(read_list(graph, list, 2, Some(forged)), ErrorCode::InvalidCursor);
        }
    }
    assert_eq!(subject.snapshot(), before);
}

fn a_token_must_be_our_own<S: GraphStore>(subject: &Subject<S>) {
    let (graph, kind) = (&subject.graph, subject.kind());
    let written = block_on(graph.follow(kind, subject.id(1), subject.id(2))).unwrap();
    block_on(graph.check(kind, &[], Some(&written.token))).expect("our own token");
    let before = subject.snapshot();
    let ours = Token::decode(&written.token, &keys()).unwrap();
    assert_eq!((ours.epoch, &ours.frontier), (subject.store().epoch(), &subject.after([1]).into()));
    let foreign_keys = Keyring::new(SigningKey::new([8; 32]), []);
    let list = ListCursor { list: ListName::Following, kind, of: subject.id(1) };
    let cursor = list.encode(subject.following(1)[0], &keys());
    for forged in ["", "x", &written.token[1..], &cursor, &ours.encode(&foreign_keys)] {
        let fresh = Some(forged);
        assert_code(block_on(graph.check(kind, &[], fresh)), ErrorCode::InvalidToken);
        assert_code(block_on(graph.counts(kind, &[], fresh)), ErrorCode::InvalidToken);
        assert_code(block_on(graph.changes(fresh, 5)), ErrorCode::InvalidToken);
        let page = PageRequest { limit: 5, cursor: None };
        assert_code(block_on(graph.following(kind, subject.id(1), page, fresh)), ErrorCode::InvalidToken);
    }
    let old = Token { epoch: Epoch(!ours.epoch.0), ..ours }.encode(&keys());
    for outcome in [
        block_on(graph.check(kind, &[], Some(&old))).map(drop),
        block_on(graph.changes(Some(&old), 5)).map(drop),
    ] {
        assert!(matches!(outcome, Err(Error::TokenFromOtherEpoch)), "{outcome:?}");
    }
    assert_eq!(subject.snapshot(), before);
}

fn pages_end_without_a_next<S: GraphStore>(subject: &Subject<S>) {
    make_friends(subject, 12);
    // Followers who are no friends, so that a page of friends has to look further.
    subject.follow_all((20..30).map(|number| (number, 0)));
    for list in LISTS {
        let expected = if list == ListName::Followers { 22 } else { 12 };
        let list = ListCursor { list, kind: subject.kind(), of: subject.id(0) };
        for limit in [1, 2, 3, 4, 5, 6, 11, 12, 13, 20] {
            let mut walked: Vec<ListEntry> = Vec::new();
            let mut cursor: Option<String> = None;
            loop {
                let page = read_list(&subject.graph, list, limit, cursor.as_deref()).unwrap();
                walked.extend(&page.items);
                let is_last = walked.len() >= expected;
                assert_eq!(page.next.is_none(), is_last, "{list:?} by {limit} after {}", walked.len());
                assert!(is_last || page.items.len() == limit, "a page before the end is full");
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(walked.len(), expected);
            assert!(walked.is_sorted_by(|a, b| a < b), "{walked:?}");
        }
    }
    let nobody = ListCursor { list: ListName::Friends, kind: subject.kind(), of: subject.id(99) };
    let empty = read_list(&subject.graph, nobody, 5, None).unwrap();
    assert_eq!(empty, ListPage { items: vec![], next: None });
}

fn relationships_tell_all_four_states<S: GraphStore>(subject: &Subject<S>) {
    subject.follow_all([(1, 2), (1, 3), (3, 1), (4, 1), (2, 3)]);
    let others = subject.ids([5, 4, 3, 2, 3]);
    let found = block_on(subject.graph.relationships(subject.kind(), subject.id(1), &others, None)).unwrap();
    assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), others, "in the order asked");
    let states: Vec<_> = found.iter().map(|one| (one.following(), one.followed_by, one.mutual())).collect();
    let mutual = (true, true, true);
    assert_eq!(states, [(false, false, false), (false, true, false), mutual, (true, false, false), mutual]);
    let expected = Relationship { id: subject.id(2), since: subject.since(1, 2), followed_by: false };
    assert_eq!(found[3], expected);
}

fn a_follower_can_be_removed<S: GraphStore>(subject: &Subject<S>) {
    let (graph, kind) = (&subject.graph, subject.kind());
    make_friends(subject, 2);
    let written = block_on(graph.remove_follower(kind, subject.id(0), subject.id(1))).unwrap();
    assert_eq!(written.changed[..], [true]);
    let edges = [subject.edge(1, 0), subject.edge(0, 1), subject.edge(2, 0)];
    let found = block_on(graph.check(kind, &edges, Some(&written.token))).unwrap();
    assert_eq!(found, [false, true, true]);
    assert_eq!(ids_of(&subject.followers(0)), [subject.id(2)]);
    let again = block_on(graph.remove_follower(kind, subject.id(0), subject.id(1))).unwrap();
    assert_eq!((again.changed, again.token), (vec![false], written.token));
}

fn a_token_makes_a_read_fresh<S: GraphStore>(subject: &Subject<S>) {
    let (graph, kind) = (&subject.graph, subject.kind());
    for number in 1..=5 {
        let written = block_on(graph.follow(kind, subject.id(0), subject.id(number))).unwrap();
        let fresh = Some(written.token.as_str());
        assert_eq!(block_on(graph.check(kind, &[subject.edge(0, number)], fresh)).unwrap(), [true]);
        assert_eq!(block_on(graph.counts(kind, &subject.ids([0]), fresh)).unwrap()[0].following, number);
        let page = PageRequest { limit: 20, cursor: None };
        let followers = block_on(graph.followers(kind, subject.id(number), page, fresh)).unwrap();
        assert_eq!(ids_of(&followers.items), [subject.id(0)]);
        let others = subject.ids([number]);
        let one = block_on(graph.relationships(kind, subject.id(0), &others, fresh)).unwrap()[0];
        assert!(one.following() && !one.followed_by);
    }
}

fn changes_go_on_from_a_token<S: GraphStore>(subject: &Subject<S>) {
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
