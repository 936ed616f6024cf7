//! Cases of comments through the graph: who may do and see what, texts, limits, cursors, tokens.

use std::sync::Arc;

use crate::cases::client::Client;
use kinfolk_core::PageRequest;
use kinfolk_core::comments::{
    Comment, CommentEdit, CommentId, CommentOrder, CommentStatus, CommentThreadState, CommentWritten,
    Moderator, NewComment, Parent, ParentKind, TreeShape, Viewer, Withdrawal,
};
use kinfolk_core::{Error, ErrorCode, Id, Result, Sequence, Token};

use super::helpers::{NOBODY, ids, key, withdrawals};
use crate::cases::subject::assert_code;
use crate::cases::subject::{COMMENTS, FEED, PAGE_LIMIT_MAX, Subject, keys};
use crate::ports::CommentPorts;
use crate::threads::{at_once, block_on};

super::list_cases![cases: CommentPorts;
    comments_with_ids_of_the_other_kind_are_refused,
    texts_are_not_blank,
    texts_have_a_longest,
    texts_have_no_control_characters_but_later_ones,
    line_ends_of_texts_become_plain,
    a_repetition_with_other_line_ends_is_the_same_comment,
    keys_of_comments_have_a_longest,
    the_graph_sets_how_deep_replies_go,
    only_its_author_edits_and_deletes_a_comment,
    moderators_remove_and_purge,
    withdrawn_texts_are_for_moderators,
    a_history_is_for_its_author_and_moderators,
    the_thread_of_a_deleted_post_is_gone,
    pages_of_comments_have_a_longest,
    pages_of_comments_end_without_a_next,
    a_cursor_of_comments_is_good_for_its_list_only,
    a_token_makes_comments_fresh,
    a_token_of_the_future_waits_for_comments,
];

const ANYBODY: Viewer = Viewer { user: None, is_moderator: false };
const MODERATOR: Viewer = Viewer { user: None, is_moderator: true };

fn user<S: CommentPorts>(subject: &Subject<S>, number: u64) -> Viewer {
    Viewer { user: Some(subject.id(number)), is_moderator: false }
}

fn page(limit: usize, cursor: Option<&str>) -> PageRequest<'_> {
    PageRequest { limit, cursor }
}

/// A list that has pages.
#[derive(Clone, Copy, Debug)]
enum List {
    Thread(Parent, CommentOrder),
    Tree(Parent),
    By(Id),
    History(CommentId),
}

impl List {
    /// What identifies an entry: its id, or its version.
    fn read<S: CommentPorts>(
        self,
        graph: &Client<S>,
        asked: PageRequest<'_>,
        fresh: Option<&str>,
    ) -> Result<(Vec<u128>, Option<String>)> {
        let by = (MODERATOR, fresh);
        match self {
            Self::Thread(parent, order) => {
                let page = block_on(graph.comment_thread(parent, order, asked, by))?;
                Ok((page.items.iter().map(|comment| comment.id.0).collect(), page.next))
            }
            Self::Tree(parent) => {
                let shape = TreeShape { depth: 0, replies: 1 };
                let tree = block_on(graph.comment_tree(parent, shape, asked, by))?;
                Ok((tree.items.iter().map(|node| node.comment.id.0).collect(), tree.next))
            }
            Self::By(author) => {
                let page = block_on(graph.comments_by(author, asked, by))?;
                Ok((page.items.iter().map(|comment| comment.id.0).collect(), page.next))
            }
            Self::History(id) => {
                let page = block_on(graph.comment_history(id, asked, by))?;
                Ok((page.items.iter().map(|version| version.version.into()).collect(), page.next))
            }
        }
    }
}

/// Twelve comments of users 1 and 2 in the threads of a post and an item, and one of them edited eleven times.
fn twelve_of_each<S: CommentPorts>(subject: &Subject<S>) -> (Vec<(List, Vec<u128>)>, [Parent; 3]) {
    let parents = subject.threads_of_all_kinds();
    let [post, item, _] = parents;
    let here = subject.say_many(post, 1, 12);
    let there = subject.say_many(item, 2, 12);
    let mut edited = here[0].clone();
    for number in 0..11 {
        edited = subject.edit(&edited, &format!("edit {number}"));
    }
    let numbers =
        |comments: &[Comment]| -> Vec<u128> { comments.iter().map(|comment| comment.id.0).collect() };
    let reversed = |comments: &[Comment]| -> Vec<u128> { numbers(comments).into_iter().rev().collect() };
    let lists = vec![
        (List::Thread(post, CommentOrder::Oldest), numbers(&here)),
        (List::Thread(post, CommentOrder::Newest), reversed(&here)),
        (List::Thread(item, CommentOrder::Oldest), numbers(&there)),
        (List::Tree(post), numbers(&here)),
        (List::Tree(item), numbers(&there)),
        (List::By(subject.id(1)), reversed(&here)),
        (List::By(subject.id(2)), reversed(&there)),
        (List::History(edited.id), (1..=12).collect()),
    ];
    (lists, parents)
}

fn comments_with_ids_of_the_other_kind_are_refused<S: CommentPorts>(subject: &Subject<S>) {
    let (graph, foreign, refused) = (&subject.graph, subject.foreign_id(), ErrorCode::InvalidId);
    let own = subject.post_thread(50);
    let before = subject.newest_frontier();
    for kind in ParentKind::ALL {
        let parent = Parent { kind, id: foreign };
        assert_code(block_on(graph.comment(subject.remark(parent, 1, "text"))), refused);
        assert_code(block_on(graph.lock_comment_thread(parent, true)), refused);
        assert_code(block_on(graph.thread_state(parent, None)), refused);
        for list in [List::Thread(parent, CommentOrder::Oldest), List::Tree(parent)] {
            assert_code(list.read(graph, page(5, None), None), refused);
        }
    }
    let request = NewComment { author: foreign, ..subject.remark(own, 1, "text") };
    assert_code(block_on(graph.comment(request)), refused);
    let by = Some(Moderator::User(foreign));
    assert_code(block_on(graph.remove_comment(NOBODY, "rude".into(), by.clone())), refused);
    assert_code(block_on(graph.purge_comment(NOBODY, by)), refused);
    assert_code(List::By(foreign).read(graph, page(5, None), None), refused);
    assert_eq!(subject.newest_frontier(), before);
}

/// The longest reason of a moderator.
const REASON_CHARS_MAX: usize = 1_000;

/// A text is refused as a body of a new comment, of an edit and as a reason; nothing changes.
fn assert_refused<S: CommentPorts>(subject: &Subject<S>, comment: &Comment, text: &str) {
    assert_body_refused(subject, comment, text);
    assert_reason_refused(subject, comment, text);
}

fn assert_body_refused<S: CommentPorts>(subject: &Subject<S>, comment: &Comment, text: &str) {
    let graph = &subject.graph;
    let before = subject.newest_frontier();
    assert_code(block_on(graph.comment(subject.remark(comment.parent, 1, text))), ErrorCode::InvalidBody);
    let edit = CommentEdit { id: comment.id, version: comment.version, body: text.into() };
    assert_code(block_on(graph.edit_comment(None, edit)), ErrorCode::InvalidBody);
    assert_eq!(subject.newest_frontier(), before, "{text:?}");
}

fn assert_reason_refused<S: CommentPorts>(subject: &Subject<S>, comment: &Comment, text: &str) {
    let before = subject.newest_frontier();
    assert_code(
        block_on(subject.graph.remove_comment(comment.id, text.into(), None)),
        ErrorCode::InvalidBody,
    );
    assert_eq!(subject.newest_frontier(), before, "{text:?}");
}

/// A text is taken everywhere as it is.
fn assert_taken<S: CommentPorts>(subject: &Subject<S>, parent: Parent, text: &str) {
    let graph = &subject.graph;
    let comment = block_on(graph.comment(subject.remark(parent, 1, text))).expect(text).comment;
    assert_eq!(comment.body.as_deref(), Some(text));
    let edit = CommentEdit { id: comment.id, version: 1, body: text.into() };
    let edited = block_on(graph.edit_comment(None, edit)).expect(text).comment;
    assert_eq!((edited.body.as_deref(), edited.version), (Some(text), 2));
    assert!(block_on(graph.remove_comment(comment.id, text.into(), None)).expect(text).1);
    assert_eq!(subject.comment(comment.id).reason.as_deref(), Some(text));
}

fn texts_are_not_blank<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let comment = subject.say(&subject.remark(parent, 1, "text"));
    let invisible = [
        "\u{7f}",
        "\u{85}\u{9b}",
        "\u{ad}",
        "\u{34f}",
        "\u{3164}",
        "\u{fe0f}",
        "\u{2066}\u{2069}",
        "\u{e0041}",
    ];
    let blank =
        ["", " ", "\n", "\r\n", "\t \r", "\u{3000}\u{2003}", "\u{a0}", "\u{200d}", "\u{2800}\u{feff}"];
    for text in blank.into_iter().chain(invisible) {
        assert_refused(subject, &comment, text);
    }
    for text in ["x", " x", "\n.\n", "\u{200d}x", "\u{feff}x\u{7f}"] {
        assert_taken(subject, parent, text);
    }
}

fn texts_have_a_longest<S: CommentPorts>(subject: &Subject<S>) {
    let max = COMMENTS.body_chars_max;
    let parent = subject.post_thread(50);
    let comment = subject.say(&subject.remark(parent, 1, "text"));
    // Characters count, not bytes.
    for letter in ["x", "\u{e4}", "\u{4e2d}", "\u{1f600}"] {
        assert_body_refused(subject, &comment, &letter.repeat(max + 1));
        assert_body_refused(subject, &comment, &letter.repeat(max * 40));
        assert_taken(subject, parent, &letter.repeat(max));
        assert_reason_refused(subject, &comment, &letter.repeat(REASON_CHARS_MAX + 1));
    }
    assert_body_refused(subject, &comment, &format!("{}x", " ".repeat(max)));
    let longest = "x".repeat(REASON_CHARS_MAX);
    assert!(block_on(subject.graph.remove_comment(comment.id, longest.into(), None)).unwrap().1);
}

fn texts_have_no_control_characters_but_later_ones<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let comment = subject.say(&subject.remark(parent, 1, "text"));
    for letter in (0..0x20).chain(0x7f..0xa0).filter_map(char::from_u32) {
        let text = format!("a{letter}b");
        match letter {
            // Line ends have a case of their own.
            '\r' => {}
            '\n' | '\t' | '\u{7f}'.. => assert_taken(subject, parent, &text),
            _ => assert_refused(subject, &comment, &text),
        }
    }
}

fn line_ends_of_texts_become_plain<S: CommentPorts>(subject: &Subject<S>) {
    let (graph, parent) = (&subject.graph, subject.post_thread(50));
    for (input, kept) in [("a\r\nb", "a\nb"), ("a\rb", "a\nb"), ("\r\r\na\n\r", "\n\na\n\n")] {
        let written = block_on(graph.comment(subject.remark(parent, 1, input))).expect(input).comment;
        assert_eq!(written.body.as_deref(), Some(kept), "{input:?}");
        let edit = CommentEdit { id: written.id, version: 1, body: input.into() };
        let edited = block_on(graph.edit_comment(None, edit)).expect(input).comment;
        assert_eq!((edited.body.as_deref(), edited.version), (Some(kept), 2), "{input:?}");
        assert!(block_on(graph.remove_comment(written.id, input.into(), None)).expect(input).1);
        assert_eq!(subject.comment(written.id).reason.as_deref(), Some(kept), "{input:?}");
    }
    // The length counts afterwards.
    let max = COMMENTS.body_chars_max;
    let longest = format!("x{}", "\r\n".repeat(max - 1));
    let written = block_on(graph.comment(subject.remark(parent, 1, &longest))).expect("it fits").comment;
    assert_eq!(written.body.as_deref().map(str::len), Some(max));
    assert_body_refused(subject, &written, &format!("x{}", "\r".repeat(max)));
}

fn a_repetition_with_other_line_ends_is_the_same_comment<S: CommentPorts>(subject: &Subject<S>) {
    let (graph, parent) = (&subject.graph, subject.post_thread(50));
    let new = |body| NewComment { idempotency_key: key("k"), ..subject.remark(parent, 1, body) };
    let first = block_on(graph.comment(new("one\r\ntwo\r"))).unwrap();
    assert!(first.is_new);
    for body in ["one\r\ntwo\r", "one\ntwo\n", "one\rtwo\r\n"] {
        let again = block_on(graph.comment(new(body))).unwrap();
        assert_eq!((again.is_new, &again.comment), (false, &first.comment), "{body:?}");
    }
    assert_code(block_on(graph.comment(new("one\n\ntwo\n"))), ErrorCode::IdempotencyConflict);
}

fn keys_of_comments_have_a_longest<S: CommentPorts>(subject: &Subject<S>) {
    let (graph, max) = (&subject.graph, FEED.key_bytes_max);
    let parent = subject.post_thread(50);
    let request = |text: &str| NewComment { idempotency_key: key(text), ..subject.remark(parent, 1, "text") };
    for text in ["", &"k".repeat(max + 1), &"\u{e4}".repeat(max / 2 + 1)] {
        assert_code(block_on(graph.comment(request(text))), ErrorCode::InvalidRequest);
    }
    let longest = request(&"k".repeat(max));
    let written = block_on(graph.comment(longest.clone())).unwrap();
    let again = block_on(graph.comment(longest)).unwrap();
    assert_eq!((written.is_new, again.is_new), (true, false));
    assert_eq!((again.comment, again.token), (written.comment, written.token));
}

fn the_graph_sets_how_deep_replies_go<S: CommentPorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    let parent = subject.post_thread(50);
    let mut last = block_on(graph.comment(subject.remark(parent, 1, "top"))).unwrap().comment;
    for input in [0, 1, 255, 3] {
        let request = NewComment { depth_max: input, ..subject.answer(&last, 1, "reply") };
        last = block_on(graph.comment(request)).unwrap().comment;
    }
    assert_eq!(last.depth, COMMENTS.depth_max);
    let request = NewComment { depth_max: 255, ..subject.answer(&last, 1, "too deep") };
    assert_code(block_on(graph.comment(request)), ErrorCode::InvalidReply);
}

fn only_its_author_edits_and_deletes_a_comment<S: CommentPorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    let parent = subject.post_thread(50);
    let comment = subject.say(&subject.remark(parent, 1, "text"));
    let edit = |id, version| CommentEdit { id, version, body: "edited".into() };
    let (author, other, post_author) = (Some(subject.id(1)), Some(subject.id(2)), Some(subject.id(9)));
    for actor in [other, post_author] {
        assert_code(block_on(graph.edit_comment(actor, edit(comment.id, 1))), ErrorCode::Forbidden);
        assert_code(block_on(graph.delete_comment(actor, comment.id)), ErrorCode::Forbidden);
    }
    assert_eq!(subject.comment(comment.id), comment);
    for actor in [None, author] {
        assert_code(block_on(graph.edit_comment(actor, edit(NOBODY, 1))), ErrorCode::NotFound);
        assert_code(block_on(graph.delete_comment(actor, NOBODY)), ErrorCode::NotFound);
    }
    assert_eq!(block_on(graph.edit_comment(author, edit(comment.id, 1))).unwrap().comment.version, 2);
    assert_code(block_on(graph.edit_comment(author, edit(comment.id, 1))), ErrorCode::VersionConflict);
    let third = block_on(graph.edit_comment(None, edit(comment.id, 2))).unwrap();
    assert_eq!((third.comment.version, third.is_new), (3, true), "the caller has made sure");
    let (token, changed) = block_on(graph.delete_comment(author, comment.id)).unwrap();
    assert!(changed);
    assert_eq!(block_on(graph.delete_comment(author, comment.id)).unwrap(), (token, false));
    assert_code(block_on(graph.delete_comment(other, comment.id)), ErrorCode::Forbidden);
    assert_code(block_on(graph.edit_comment(author, edit(comment.id, 3))), ErrorCode::CommentDeleted);
    let second = subject.say(&subject.remark(parent, 1, "second"));
    assert!(block_on(graph.delete_comment(None, second.id)).unwrap().1, "the caller has made sure");
}

fn moderators_remove_and_purge<S: CommentPorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    let parent = subject.post_thread(50);
    let comment = subject.say(&subject.remark(parent, 1, "text"));
    let read = |viewer, fresh: &str| block_on(graph.read_comment(comment.id, viewer, Some(fresh))).unwrap();
    let by = Some(Moderator::User(subject.id(2)));
    let (token, changed) = block_on(graph.remove_comment(comment.id, "rude".into(), by.clone())).unwrap();
    assert!(changed);
    let removed = read(MODERATOR, &token);
    assert_eq!((removed.status, removed.reason.as_deref()), (CommentStatus::Removed, Some("rude")));
    assert_eq!((removed.removed_by, read(ANYBODY, &token).removed_by), (by, None));
    assert_eq!(
        block_on(graph.remove_comment(comment.id, "again".into(), None)).unwrap(),
        (token.clone(), false)
    );
    assert_eq!(block_on(graph.delete_comment(None, comment.id)).unwrap(), (token, false));
    let (token, changed) = block_on(graph.purge_comment(comment.id, None)).unwrap();
    assert!(changed);
    let purged = read(MODERATOR, &token);
    assert_eq!((purged.status, purged.body), (CommentStatus::Purged, None));
    assert_eq!(block_on(graph.purge_comment(comment.id, None)).unwrap(), (token, false));
    assert!(block_on(graph.store().erase_purged()).unwrap() <= 1);
    assert_code(block_on(graph.remove_comment(NOBODY, "rude".into(), None)), ErrorCode::NotFound);
    assert_code(block_on(graph.purge_comment(NOBODY, None)), ErrorCode::NotFound);
    let (token, changed) = block_on(graph.lock_comment_thread(parent, true)).unwrap();
    assert!(changed);
    let state = block_on(graph.thread_state(parent, Some(&token))).unwrap();
    assert_eq!(state, CommentThreadState { count: 0, locked: true });
    assert_eq!(block_on(graph.lock_comment_thread(parent, true)).unwrap(), (token, false));
    assert_code(block_on(graph.comment(subject.remark(parent, 1, "late"))), ErrorCode::ThreadLocked);
}

/// A comment as every way to read it shows it to a viewer.
fn shown<S: CommentPorts>(subject: &Subject<S>, comment: &Comment, viewer: Viewer) -> Vec<Comment> {
    let (graph, parent) = (&subject.graph, comment.parent);
    let mut found = vec![block_on(graph.read_comment(comment.id, viewer, None)).unwrap()];
    for order in super::helpers::ORDERS {
        found.extend(
            block_on(graph.comment_thread(parent, order, page(20, None), (viewer, None))).unwrap().items,
        );
    }
    let shape = TreeShape { depth: 2, replies: 3 };
    let tree = block_on(graph.comment_tree(parent, shape, page(12, None), (viewer, None))).unwrap();
    let mut nodes = tree.items;
    while let Some(node) = nodes.pop() {
        found.push(node.comment);
        nodes.extend(node.replies);
    }
    found.retain(|found| found.id == comment.id);
    found
}

fn withdrawn_texts_are_for_moderators<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let author = user(subject, 1);
    let both = Viewer { is_moderator: true, ..author };
    for withdrawal in withdrawals() {
        let top = subject.say(&subject.remark(parent, 2, "top"));
        let comment = subject.say(&subject.answer(&top, 1, "text"));
        let comment = subject.edit(&comment, "second text");
        for viewer in [ANYBODY, author, user(subject, 2), MODERATOR] {
            assert_eq!(shown(subject, &comment, viewer), vec![comment.clone(); 4], "{viewer:?}");
        }
        let by = (withdrawal != Withdrawal::Delete).then(|| Moderator::Service("key".into()));
        assert!(subject.withdraw_by(comment.id, withdrawal.clone(), by.clone()).changed);
        let whole = subject.comment(comment.id);
        assert_eq!(whole.removed_by, by);
        let without = Comment { body: None, reason: None, removed_by: None, ..whole.clone() };
        for viewer in [ANYBODY, author, user(subject, 2)] {
            let found = shown(subject, &comment, viewer);
            assert_eq!(found, vec![without.clone(); 4], "{viewer:?} after {withdrawal:?}");
        }
        for viewer in [MODERATOR, both] {
            let found = shown(subject, &comment, viewer);
            assert_eq!(found, vec![whole.clone(); 4], "{viewer:?} after {withdrawal:?}");
        }
        assert_eq!(whole.body.is_some(), withdrawal != Withdrawal::Purge);
    }
}

fn a_history_is_for_its_author_and_moderators<S: CommentPorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    let parent = subject.post_thread(50);
    let history = |id, viewer| block_on(graph.comment_history(id, page(10, None), (viewer, None)));
    let author = user(subject, 1);
    for withdrawal in withdrawals() {
        let comment = subject.say(&subject.remark(parent, 1, "one"));
        subject.edit(&comment, "two");
        let expected = subject.versions(comment.id, 10);
        assert_eq!(expected.len(), 2);
        for viewer in [author, MODERATOR] {
            let found = history(comment.id, viewer).unwrap();
            assert_eq!((found.items, found.next), (expected.clone(), None));
        }
        for viewer in [ANYBODY, user(subject, 2), user(subject, 9)] {
            assert_code(history(comment.id, viewer), ErrorCode::Forbidden);
        }
        subject.bury(comment.id, withdrawal.clone());
        if withdrawal == Withdrawal::Purge {
            for viewer in [author, MODERATOR, ANYBODY] {
                assert_code(history(comment.id, viewer), ErrorCode::CommentDeleted);
            }
            continue;
        }
        assert_eq!(history(comment.id, MODERATOR).unwrap().items, expected);
        for viewer in [author, ANYBODY] {
            assert_code(history(comment.id, viewer), ErrorCode::Forbidden);
        }
    }
    assert_code(history(NOBODY, MODERATOR), ErrorCode::NotFound);
}

fn the_thread_of_a_deleted_post_is_gone<S: CommentPorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    let [post, item, _] = subject.threads_of_all_kinds();
    let comment = subject.say(&subject.remark(post, 1, "text"));
    subject.say(&subject.remark(item, 2, "text"));
    let gone = |parent| {
        for list in [List::Thread(parent, CommentOrder::Newest), List::Tree(parent)] {
            assert_code(list.read(graph, page(5, None), None), ErrorCode::NotFound);
        }
    };
    gone(Parent::post(subject.id(51)));
    let (token, _) = block_on(graph.delete_post(None, post.id)).unwrap();
    gone(post);
    assert_eq!(block_on(graph.read_comment(comment.id, ANYBODY, Some(&token))).unwrap(), comment);
    let own = block_on(graph.comments_by(subject.id(1), page(5, None), (ANYBODY, None))).unwrap();
    assert_eq!(own.items, std::slice::from_ref(&comment));
    assert_eq!(List::Tree(item).read(graph, page(5, None), None).unwrap().0.len(), 1);
    assert!(block_on(graph.remove_comment(comment.id, "rude".into(), None)).unwrap().1);
}

fn pages_of_comments_have_a_longest<S: CommentPorts>(subject: &Subject<S>) {
    let (lists, _) = twelve_of_each(subject);
    for (list, _) in lists {
        for limit in [0, PAGE_LIMIT_MAX + 1, usize::MAX] {
            let found = list.read(&subject.graph, page(limit, None), None);
            assert_code(found, ErrorCode::LimitOutOfRange);
        }
    }
}

fn pages_of_comments_end_without_a_next<S: CommentPorts>(subject: &Subject<S>) {
    let (lists, _) = twelve_of_each(subject);
    for (list, expected) in lists {
        for limit in [1, 2, 3, 4, 5, 6, 11, 12, 13, 20] {
            let mut walked: Vec<u128> = Vec::new();
            let mut cursor: Option<String> = None;
            loop {
                let (items, next) = list.read(&subject.graph, page(limit, cursor.as_deref()), None).unwrap();
                walked.extend(&items);
                let is_last = walked.len() >= expected.len();
                assert_eq!(next.is_none(), is_last, "{list:?} by {limit} after {}", walked.len());
                // A tree has a most of comments of its own, which is 12 here.
                assert!(is_last || items.len() == limit, "a page before the end is full");
                cursor = next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(walked, expected, "{list:?} by {limit}");
        }
    }
}

fn a_cursor_of_comments_is_good_for_its_list_only<S: CommentPorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    let (lists, [post, _, conversation]) = twelve_of_each(subject);
    let before = subject.log_length();
    let cursor_of = |list: List| list.read(graph, page(2, None), None).unwrap().1.expect("there are twelve");
    let cursors: Vec<String> = lists.iter().map(|(list, _)| cursor_of(*list)).collect();
    assert_eq!(subject.posts_by(9, 5).len(), 1);
    let forged = ["", "x", &cursors[0][1..], &graph.token(subject.newest_frontier())];
    for (at, (list, expected)) in lists.iter().enumerate() {
        for (other_at, cursor) in cursors.iter().enumerate() {
            let found = list.read(graph, page(20, Some(cursor)), None);
            if at == other_at {
                assert_eq!(found.unwrap(), (expected[2..].to_vec(), None), "{list:?}");
            } else {
                assert_code(found, ErrorCode::InvalidCursor);
            }
        }
        for cursor in forged {
            assert_code(list.read(graph, page(20, Some(cursor)), None), ErrorCode::InvalidCursor);
        }
    }
    let unedited = subject.say(&subject.remark(post, 1, "unedited"));
    let others = [
        List::Thread(conversation, CommentOrder::Oldest),
        List::Tree(conversation),
        List::By(subject.id(3)),
        List::History(unedited.id),
    ];
    for other in others {
        for cursor in &cursors {
            assert_code(other.read(graph, page(5, Some(cursor)), None), ErrorCode::InvalidCursor);
        }
    }
    assert_eq!(subject.log_length(), before + 1);
}

fn a_token_makes_comments_fresh<S: CommentPorts>(subject: &Subject<S>) {
    let graph = &subject.graph;
    let parent = subject.post_thread(50);
    let by = List::By(subject.id(1));
    let mut written = Vec::new();
    for number in 1..=4 {
        let answer = block_on(graph.comment(subject.remark(parent, 1, "text"))).unwrap();
        let ours = Token::decode(&answer.token, &keys()).unwrap();
        assert_eq!(ours.epoch, subject.store().epoch());
        subject.assert_newest(&ours.frontier);
        let fresh = Some(answer.token.as_str());
        let id = answer.comment.id;
        assert_eq!(block_on(graph.read_comment(id, ANYBODY, fresh)).unwrap(), answer.comment);
        for list in [List::Thread(parent, CommentOrder::Newest), List::Tree(parent), by] {
            let (items, _) = list.read(graph, page(12, None), fresh).unwrap();
            assert!(items.len() == number && items.contains(&id.0), "{list:?} after {number}");
        }
        let state = block_on(graph.thread_state(parent, fresh)).unwrap();
        assert_eq!(state.count, number as u64);
        let edit = CommentEdit { id, version: 1, body: "edited".into() };
        let edited = block_on(graph.edit_comment(None, edit)).unwrap();
        let (items, _) = List::History(id).read(graph, page(5, None), Some(&edited.token)).unwrap();
        assert_eq!(items, [1, 2]);
        written.push(answer.comment);
    }
    let (token, _) = block_on(graph.delete_comment(None, written[0].id)).unwrap();
    assert_eq!(by.read(graph, page(5, None), Some(&token)).unwrap().0.len(), 3);
    for forged in ["", "x", &token[1..]] {
        let refused = ErrorCode::InvalidToken;
        assert_code(block_on(graph.read_comment(written[0].id, ANYBODY, Some(forged))), refused);
        assert_code(block_on(graph.thread_state(parent, Some(forged))), refused);
        for list in
            [List::Thread(parent, CommentOrder::Oldest), List::Tree(parent), by, List::History(written[1].id)]
        {
            assert_code(list.read(graph, page(5, None), Some(forged)), refused);
        }
    }
    assert_eq!(ids(&subject.whole_thread(parent)), ids(&written));
}

fn a_token_of_the_future_waits_for_comments<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let CommentWritten { comment, position, .. } =
        subject.try_say(&subject.remark(parent, 1, "text")).unwrap();
    let graph = &subject.graph;
    let token: Arc<str> = graph.token(Sequence(1_000_000).on(position.shard)).into();
    let lists = [
        List::Thread(parent, CommentOrder::Oldest),
        List::Tree(parent),
        List::By(subject.id(1)),
        List::History(comment.id),
    ];
    // At once, since a store may wait a second for each.
    let outcomes: Vec<std::result::Result<(), Error>> = at_once(6, |thread| match thread {
        0 => block_on(graph.read_comment(comment.id, ANYBODY, Some(&token))).map(drop),
        1 => block_on(graph.thread_state(parent, Some(&token))).map(drop),
        other => lists[other - 2].read(graph, page(5, None), Some(&token)).map(drop),
    });
    for outcome in outcomes {
        assert_code(outcome, ErrorCode::NotYetVisible);
    }
}
