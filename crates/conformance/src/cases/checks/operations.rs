//! Cases through the graph: the rules of `kinfolk_core::graph::Graph` on top of this store.

use kinfolk_core::graph::{Edge, Relationship};
use kinfolk_core::{
    Epoch, Error, ErrorCode, GraphStore, Keyring, ListCursor, ListName, PageRequest, SigningKey, Token,
};

use crate::cases::edges::pages::{LISTS, make_friends, read_list};
use crate::cases::subject::{
    PAGE_LIMIT_MAX, SETTINGS, Subject, assert_code, assert_limit, follow, ids_of, keys, unfollow,
};
use crate::threads::block_on;

crate::cases::list_cases![cases: GraphStore;
    following_yourself_is_refused,
    ids_of_the_other_kind_are_refused,
    the_graph_keeps_its_limits,
    a_token_must_be_our_own,
    relationships_tell_all_four_states,
    a_follower_can_be_removed,
    a_token_makes_a_read_fresh,
];

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
