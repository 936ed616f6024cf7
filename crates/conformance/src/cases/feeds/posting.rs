//! Cases of posts and feeds through the graph: who may do what, limits, cursors, tokens.

use crate::cases::client::Client;
use kinfolk_core::PageRequest;
use kinfolk_core::feeds::{NewPost, Post, PostPage};
use kinfolk_core::{
    EdgeKind, Error, ErrorCode, Id, Keyring, ListCursor, ListName, Result, Sequence, SigningKey, Token,
};

use crate::cases::posts::helpers::{newest_first, payload};
use crate::cases::subject::assert_code;
use crate::cases::subject::{FEED, PAGE_LIMIT_MAX, Subject, keys};
use crate::ports::FeedPorts;
use crate::threads::{at_once, block_on};

crate::cases::list_cases![cases: FeedPorts;
    posts_with_ids_of_the_other_kind_are_refused,
    payloads_and_keys_have_a_longest,
    only_its_author_deletes_a_post,
    what_is_not_there_is_not_found,
    pages_of_posts_have_a_longest,
    pages_of_posts_end_without_a_next,
    a_cursor_of_posts_is_good_for_its_list_only,
    a_token_makes_posts_and_feeds_fresh,
    a_token_of_the_future_waits_for_posts,
];

const LISTS: [ListName; 2] = [ListName::Posts, ListName::Feed];

fn list(list: ListName, of: Id) -> ListCursor {
    ListCursor { list, kind: EdgeKind::Follow, of }
}

fn read<S: FeedPorts>(
    graph: &Client<S>,
    list: ListCursor,
    (limit, cursor): (usize, Option<&str>),
    fresh: Option<&str>,
) -> Result<PostPage> {
    let page = PageRequest { limit, cursor };
    match list.list {
        ListName::Feed => block_on(graph.feed(list.of, page, fresh)),
        _ => block_on(graph.posts_by(list.of, page, fresh)),
    }
}

fn posts_with_ids_of_the_other_kind_are_refused<S: FeedPorts>(subject: &Subject<S>) {
    let (graph, foreign, refused) = (&subject.graph, subject.foreign_id(), ErrorCode::InvalidId);
    subject.post(1);
    let requests = [
        NewPost { author: foreign, ..subject.post_request(1) },
        NewPost { id: Some(foreign), ..subject.post_request(1) },
        NewPost { author: foreign, ..subject.named(1, 50) },
    ];
    for request in requests {
        assert_code(block_on(graph.register_post(request)), refused);
    }
    assert_code(block_on(graph.post(foreign, None)), refused);
    assert_code(block_on(graph.delete_post(None, foreign)), refused);
    for name in LISTS {
        assert_code(read(graph, list(name, foreign), (5, None), None), refused);
    }
    assert_eq!(subject.log_length(), 1);
}

fn payloads_and_keys_have_a_longest<S: FeedPorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    let (payload_max, key_max) = (FEED.payload_bytes_max, FEED.key_bytes_max);
    // Bytes count, not characters.
    for too_long in ["x".repeat(payload_max + 1), "ä".repeat(payload_max / 2 + 1)] {
        let request = NewPost { payload: payload(&too_long), ..subject.keyed(1, "key") };
        match block_on(graph.register_post(request)) {
            Err(Error::PayloadTooLarge { max }) => assert_eq!(max, payload_max),
            other => panic!("a payload of {} bytes, but {other:?}", too_long.len()),
        }
    }
    for key in ["", &"k".repeat(key_max + 1), &"ä".repeat(key_max / 2 + 1)] {
        assert_code(block_on(graph.register_post(subject.keyed(1, key))), ErrorCode::InvalidRequest);
    }
    assert_eq!(subject.log_length(), 0);
    let longest =
        NewPost { payload: payload(&"ä".repeat(payload_max / 2)), ..subject.keyed(1, &"k".repeat(key_max)) };
    let written = block_on(graph.register_post(longest.clone())).expect("the longest");
    let again = block_on(graph.register_post(longest)).expect("the longest again");
    assert_eq!((written.is_new, again.is_new), (true, false));
    assert_eq!((again.post, again.token), (written.post, written.token));
}

fn only_its_author_deletes_a_post<S: FeedPorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    let post = subject.post(1);
    let (author, other) = (subject.id(1), subject.id(2));
    assert_code(block_on(graph.delete_post(Some(other), post.id)), ErrorCode::Forbidden);
    assert_eq!(block_on(graph.post(post.id, None)).unwrap(), post);
    let (token, changed) = block_on(graph.delete_post(Some(author), post.id)).unwrap();
    assert!(changed);
    assert_code(block_on(graph.post(post.id, Some(&token))), ErrorCode::NotFound);
    assert_code(block_on(graph.delete_post(Some(other), post.id)), ErrorCode::Forbidden);
    assert_eq!(block_on(graph.delete_post(Some(author), post.id)).unwrap(), (token, false));
    let second = subject.post(1);
    assert!(block_on(graph.delete_post(None, second.id)).unwrap().1, "the caller has made sure");
}

fn what_is_not_there_is_not_found<S: FeedPorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    for actor in [None, Some(subject.id(1))] {
        assert_code(block_on(graph.delete_post(actor, subject.id(50))), ErrorCode::NotFound);
    }
    assert_code(block_on(graph.post(subject.id(50), None)), ErrorCode::NotFound);
    let post = block_on(graph.register_post(subject.named(1, 50))).unwrap().post;
    assert_eq!(block_on(graph.post(post.id, None)).unwrap(), post);
}

/// User 0 follows 1 and 2, who have made posts; those of 1 first, then all, each newest first.
fn two_authors<S: FeedPorts>(subject: &Subject<S>, each: usize) -> [Vec<Post>; 2] {
    subject.subscribe(0, 1);
    subject.subscribe(0, 2);
    let one = subject.posts(1, each);
    let all = [one.clone(), subject.posts(2, each)].concat();
    [newest_first(&one), newest_first(&all)]
}

fn pages_of_posts_have_a_longest<S: FeedPorts>(subject: &Subject<S>) {
    let max = PAGE_LIMIT_MAX;
    for name in LISTS {
        for limit in [0, max + 1, usize::MAX] {
            let page = read(&subject.graph, list(name, subject.id(1)), (limit, None), None);
            assert_code(page, ErrorCode::LimitOutOfRange);
        }
        let empty = read(&subject.graph, list(name, subject.id(1)), (max, None), None).unwrap();
        assert_eq!(empty, PostPage { items: vec![], next: None });
    }
}

fn pages_of_posts_end_without_a_next<S: FeedPorts>(subject: &Subject<S>) {
    let expected = two_authors(subject, 6);
    let lists = [list(ListName::Posts, subject.id(1)), list(ListName::Feed, subject.id(0))];
    for (list, expected) in lists.into_iter().zip(expected) {
        for limit in [1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 20] {
            let mut walked: Vec<Post> = Vec::new();
            let mut cursor: Option<String> = None;
            loop {
                let page = read(&subject.graph, list, (limit, cursor.as_deref()), None).unwrap();
                walked.extend(page.items.iter().cloned());
                let is_last = walked.len() >= expected.len();
                assert_eq!(page.next.is_none(), is_last, "{list:?} by {limit} after {}", walked.len());
                assert!(is_last || page.items.len() == limit, "a page before the end is full");
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(walked, expected, "{list:?} by {limit}");
        }
    }
}

fn a_cursor_of_posts_is_good_for_its_list_only<S: FeedPorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    let [_, all] = two_authors(subject, 3);
    let (user, key) = (subject.id(0), all[1].key());
    let next = read(graph, list(ListName::Feed, user), (2, None), None).unwrap().next.expect("there are six");
    assert_eq!(next, list(ListName::Feed, user).encode(key, &keys()));
    let rest = read(graph, list(ListName::Feed, user), (20, Some(&next)), None).unwrap();
    assert_eq!(rest, PostPage { items: all[2..].to_vec(), next: None });

    let others = [
        list(ListName::Posts, user),
        list(ListName::Feed, subject.id(1)),
        list(ListName::Following, user),
        ListCursor { kind: EdgeKind::Block, ..list(ListName::Feed, user) },
    ];
    let foreign_keys = Keyring::new(SigningKey::new([8; 32]), []);
    let mut forged: Vec<String> = others.iter().map(|other| other.encode(key, &keys())).collect();
    forged.extend([String::new(), "x".into(), next[1..].into(), graph.token(subject.newest_frontier())]);
    forged.push(list(ListName::Feed, user).encode(key, &foreign_keys));
    for cursor in &forged {
        let page = read(graph, list(ListName::Feed, user), (2, Some(cursor)), None);
        assert_code(page, ErrorCode::InvalidCursor);
    }
    for other in [list(ListName::Posts, user), list(ListName::Feed, subject.id(1))] {
        assert_code(read(graph, other, (2, Some(&next)), None), ErrorCode::InvalidCursor);
    }
}

fn a_token_makes_posts_and_feeds_fresh<S: FeedPorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    subject.subscribe(0, 1);
    let lists = [list(ListName::Posts, subject.id(1)), list(ListName::Feed, subject.id(0))];
    for number in 1..=4 {
        let written = block_on(graph.register_post(subject.named(1, 50 + number))).unwrap();
        let ours = Token::decode(&written.token, &keys()).unwrap();
        assert_eq!(ours.epoch, subject.store().epoch());
        subject.assert_newest(&ours.frontier);
        let fresh = Some(written.token.as_str());
        assert_eq!(block_on(graph.post(written.post.id, fresh)).unwrap(), written.post);
        for list in lists {
            let page = read(graph, list, (20, None), fresh).unwrap();
            assert_eq!((&page.items[0], page.items.len()), (&written.post, number as usize));
        }
    }
    let (token, _) = block_on(graph.delete_post(None, subject.id(54))).unwrap();
    for list in lists {
        assert_eq!(read(graph, list, (20, None), Some(&token)).unwrap().items.len(), 3);
    }
    for forged in ["", "x", &token[1..]] {
        assert_code(block_on(graph.post(subject.id(51), Some(forged))), ErrorCode::InvalidToken);
        for list in lists {
            assert_code(read(graph, list, (20, None), Some(forged)), ErrorCode::InvalidToken);
        }
    }
}

fn a_token_of_the_future_waits_for_posts<S: FeedPorts>(subject: &Subject<S>) {
    subject.subscribe(0, 1);
    let posted = subject.register(subject.named(1, 50));
    let token = subject.graph.token(Sequence(1_000_000).on(posted.position.shard));
    // At once, since a store may wait a second for each.
    let outcomes = at_once(3, |thread| match thread {
        0 => block_on(subject.graph.post(subject.id(50), Some(&token))).map(drop),
        1 => read(&subject.graph, list(ListName::Posts, subject.id(1)), (5, None), Some(&token)).map(drop),
        _ => read(&subject.graph, list(ListName::Feed, subject.id(0)), (5, None), Some(&token)).map(drop),
    });
    for outcome in outcomes {
        assert_code(outcome, ErrorCode::NotYetVisible);
    }
}
