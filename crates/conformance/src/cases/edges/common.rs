//! Cases of common followees and known followers, through the graph: pages, cursors, limits, tokens.

use crate::cases::client::Client;
use kinfolk_core::PageRequest;
use kinfolk_core::graph::{OverlapPage, Side, UserSet};
use kinfolk_core::{EdgeKind, ErrorCode, Id, Keyring, OverlapCursor, Result, SigningKey};

use crate::cases::subject::assert_code;
use crate::cases::subject::{PAGE_LIMIT_MAX, SETTINGS, Subject};
use crate::ports::EdgePorts;
use crate::threads::block_on;

crate::cases::list_cases![cases: EdgePorts;
    pages_of_an_overlap_end_without_a_next,
    common_and_known_followers_name_their_sets,
    a_cursor_of_an_overlap_is_good_for_its_sets_only,
    overlaps_keep_their_limits,
    a_token_makes_an_overlap_fresh,
];

/// What is asked of the graph.
#[derive(Clone, Debug)]
enum Question {
    Common(Vec<Id>),
    Known { viewer: Id, of: Id },
}

use Question::{Common, Known};

impl Question {
    fn ask<S: EdgePorts>(
        &self,
        graph: &Client<S>,
        kind: EdgeKind,
        page: PageRequest<'_>,
    ) -> Result<OverlapPage> {
        match self {
            Common(of) => block_on(graph.common(kind, of, page, None)),
            Known { viewer, of } => block_on(graph.known_followers(kind, *viewer, *of, page, None)),
        }
    }
}

fn page(limit: usize, cursor: Option<&str>) -> PageRequest<'_> {
    PageRequest { limit, cursor }
}

/// Users 1 and 2 follow 10 to 21, each of whom follows 3; and each of the three has some that no other has.
fn twelve_in_common<S: EdgePorts>(subject: &Subject<S>) -> [Question; 2] {
    subject.follow_all((10..=21).rev().flat_map(|number| [(1, number), (2, number), (number, 3)]));
    subject.follow_all([(1, 30), (2, 31), (32, 3), (1, 5), (2, 4)]);
    [Common(subject.ids([1, 2])), Known { viewer: subject.id(1), of: subject.id(3) }]
}

fn pages_of_an_overlap_end_without_a_next<S: EdgePorts>(subject: &Subject<S>) {
    for question in twelve_in_common(subject) {
        for limit in [1, 2, 3, 4, 5, 6, 11, 12, 13, PAGE_LIMIT_MAX] {
            let mut walked: Vec<Id> = Vec::new();
            let mut cursor: Option<String> = None;
            loop {
                let asked = page(limit, cursor.as_deref());
                let page = question.ask(&subject.graph, subject.kind(), asked).unwrap();
                assert_eq!(page.count, 12, "{question:?} by {limit} after {}", walked.len());
                walked.extend(&page.items);
                let is_last = walked.len() >= 12;
                assert_eq!(page.next.is_none(), is_last, "{question:?} by {limit} after {}", walked.len());
                assert!(is_last || page.items.len() == limit, "a page before the end is full");
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(walked, subject.ids(10..=21), "{question:?} by {limit}");
        }
    }
}

fn common_and_known_followers_name_their_sets<S: EdgePorts>(subject: &Subject<S>) {
    subject.follow_all([
        (1, 5),
        (1, 4),
        (2, 5),
        (2, 6),
        (3, 5),
        (3, 4),
        (5, 2),
        (4, 9),
        (5, 9),
        (6, 9),
        (9, 1),
    ]);
    let read = |question: Question| {
        let found = question.ask(&subject.graph, subject.kind(), page(20, None)).unwrap();
        assert_eq!((found.count, found.next), (found.items.len() as u64, None), "{question:?}");
        found.items
    };
    assert_eq!(read(Common(subject.ids([1]))), subject.ids([4, 5]), "one user's are those whom it follows");
    assert_eq!(read(Common(subject.ids([1, 3]))), subject.ids([4, 5]));
    assert_eq!(read(Common(subject.ids([1, 2, 3]))), subject.ids([5]));
    assert_eq!(read(Common(subject.ids([1, 1]))), subject.ids([4, 5]));
    assert_eq!(read(Common(subject.ids([1, 99]))), []);
    let known = |viewer, of| read(Known { viewer: subject.id(viewer), of: subject.id(of) });
    assert_eq!(known(1, 9), subject.ids([4, 5]));
    assert_eq!(known(2, 9), subject.ids([5, 6]));
    assert_eq!(known(9, 1), [], "whom the viewer follows, not who is followed by both");
    assert_eq!(known(2, 2), subject.ids([5]), "of themselves: their friends");
    assert_eq!((known(99, 9), known(1, 99)), (vec![], vec![]));
}

fn a_cursor_of_an_overlap_is_good_for_its_sets_only<S: EdgePorts>(subject: &Subject<S>) {
    let (graph, kind) = (&subject.graph, subject.kind());
    let [common, known] = twelve_in_common(subject);
    let before = subject.snapshot();
    let cursor_of = |question: &Question| {
        let first = question.ask(graph, kind, page(2, None)).unwrap();
        first.next.expect("there are twelve")
    };
    let (of_common, of_known) = (cursor_of(&common), cursor_of(&known));
    let turned = Common(subject.ids([2, 1]));
    let rest = turned.ask(graph, kind, page(20, Some(&of_common))).unwrap();
    assert_eq!((rest.items, rest.count), (subject.ids(12..=21), 12), "in any order of the users");

    let others = [
        (Common(subject.ids([1])), &of_common),
        (Common(subject.ids([1, 3])), &of_common),
        (Common(subject.ids([1, 2, 3])), &of_common),
        (known.clone(), &of_common),
        (common.clone(), &of_known),
        (Known { viewer: subject.id(2), of: subject.id(3) }, &of_known),
        (Known { viewer: subject.id(3), of: subject.id(1) }, &of_known),
    ];
    for (question, cursor) in others {
        assert_code(question.ask(graph, kind, page(2, Some(cursor))), ErrorCode::InvalidCursor);
    }
    for other in [subject.other_kind(), EdgeKind::Like] {
        assert_code(common.ask(graph, other, page(2, Some(&of_common))), ErrorCode::InvalidCursor);
    }
    let sets = [1, 2].map(|of| UserSet { side: Side::Following, of: subject.id(of) });
    let foreign_keys = Keyring::new(SigningKey::new([8; 32]), []);
    let foreign = OverlapCursor { kind, sets: &sets }.encode(subject.id(11), &foreign_keys);
    let list = block_on(graph.following(kind, subject.id(1), page(2, None), None)).unwrap();
    let token = graph.token(subject.newest_frontier());
    for forged in ["", "x", &of_common[1..], &token, &foreign, &list.next.expect("there are more")] {
        assert_code(common.ask(graph, kind, page(2, Some(forged))), ErrorCode::InvalidCursor);
    }
    assert_eq!(subject.snapshot(), before);
}

fn overlaps_keep_their_limits<S: EdgePorts>(subject: &Subject<S>) {
    let (graph, kind) = (&subject.graph, subject.kind());
    let questions = twelve_in_common(subject);
    let max = PAGE_LIMIT_MAX;
    for question in &questions {
        for limit in [0, max + 1, usize::MAX] {
            assert_code(question.ask(graph, kind, page(limit, None)), ErrorCode::LimitOutOfRange);
        }
    }
    let ask = |of: &[Id]| Common(of.to_vec()).ask(graph, kind, page(5, None));
    assert_code(ask(&[]), ErrorCode::InvalidRequest);
    assert_code(ask(&[subject.id(1); SETTINGS.sets_max + 1]), ErrorCode::TooMany);
    assert_eq!(ask(&[subject.id(1); SETTINGS.sets_max]).unwrap().count, 14);

    let (ours, foreign) = (subject.id(1), subject.foreign_id());
    assert_code(ask(&[ours, foreign]), ErrorCode::InvalidId);
    for (viewer, of) in [(ours, foreign), (foreign, ours)] {
        assert_code(Known { viewer, of }.ask(graph, kind, page(5, None)), ErrorCode::InvalidId);
    }
    let sets = [UserSet { side: Side::Followers, of: foreign }];
    assert_code(block_on(graph.overlap(kind, &sets, (None, 5), None)), ErrorCode::InvalidId);
    assert_code(block_on(graph.overlap(kind, &[], (None, 5), None)), ErrorCode::InvalidRequest);
    let sets = [UserSet { side: Side::Following, of: ours }; 5];
    assert_code(block_on(graph.overlap(kind, &sets, (None, 5), None)), ErrorCode::TooMany);
    let after = Some(subject.id(20));
    let found = block_on(graph.overlap(kind, &sets[..1], (after, 100), None)).unwrap();
    assert_eq!(
        (found.count, found.ids),
        (14, subject.ids([21, 30])),
        "callers without cursors set the limit"
    );
}

fn a_token_makes_an_overlap_fresh<S: EdgePorts>(subject: &Subject<S>) {
    let (graph, kind) = (&subject.graph, subject.kind());
    subject.follow_all((10..15).map(|number| (1, number)));
    for number in 10..15 {
        let written = block_on(graph.follow(kind, subject.id(2), subject.id(number))).unwrap();
        let fresh = Some(written.token.as_str());
        let common = block_on(graph.common(kind, &subject.ids([1, 2]), page(9, None), fresh)).unwrap();
        assert_eq!(common.items, subject.ids(10..=number));
        let known = graph.known_followers(kind, subject.id(2), subject.id(3), page(9, None), fresh);
        assert_eq!(block_on(known).unwrap().count, 0);
    }
    let forged = Some("x");
    let users = subject.ids([1, 2]);
    let common = graph.common(kind, &users, page(9, None), forged);
    assert_code(block_on(common), ErrorCode::InvalidToken);
    let known = graph.known_followers(kind, subject.id(1), subject.id(2), page(9, None), forged);
    assert_code(block_on(known), ErrorCode::InvalidToken);
}
