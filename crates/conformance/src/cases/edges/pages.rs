//! Cases of pages of lists, and of cursors, through the operations.

use kinfolk_core::graph::{ListEntry, ListPage};
use kinfolk_core::{EdgeKind, ErrorCode, Keyring, ListCursor, ListName, PageRequest, Result, SigningKey};

use crate::cases::client::Client;
use crate::cases::subject::{Subject, assert_code, ids_of};
use crate::ports::EdgePorts;
use crate::threads::block_on;

crate::cases::list_cases![cases: EdgePorts;
    a_cursor_is_good_for_its_list_only,
    pages_end_without_a_next,
];

pub(in crate::cases) const LISTS: [ListName; 3] =
    [ListName::Following, ListName::Followers, ListName::Friends];

pub(in crate::cases) fn read_list<S: EdgePorts>(
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
pub(in crate::cases) fn make_friends<S: EdgePorts>(subject: &Subject<S>, count: u64) {
    subject.follow_all((1..=count).flat_map(|number| [(0, number), (number, 0)]));
}

fn a_cursor_is_good_for_its_list_only<S: EdgePorts>(subject: &Subject<S>) {
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

fn pages_end_without_a_next<S: EdgePorts>(subject: &Subject<S>) {
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
