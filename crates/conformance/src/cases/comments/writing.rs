//! Cases of writing comments: what is kept, which requests repeat another, and which are refused.

use kinfolk_core::changes::ChangeBody;
use kinfolk_core::comments::{
    Comment, CommentChange, CommentStatus, NewComment, Parent, ParentKind, Withdrawal,
};
use kinfolk_core::{Clock, Error, ErrorCode};

use super::helpers::{NOBODY, by_parent, key, withdrawals};
use crate::cases::subject::assert_code;
use crate::cases::subject::{COMMENTS, Subject};
use crate::ports::CommentPorts;
use crate::threads::block_on;

super::list_cases![cases: CommentPorts;
    a_comment_is_kept_as_it_was_given,
    ids_of_comments_are_of_version_7_and_rise,
    a_comment_is_made_at_its_event,
    the_same_comment_again_changes_nothing,
    a_retry_gets_the_first_result_whatever_happened,
    the_same_key_for_another_comment_conflicts,
    a_key_conflicts_with_the_text_of_an_edit,
    a_key_of_comments_belongs_to_its_author,
    wishes_without_a_key_are_all_new,
    a_refused_comment_leaves_its_key_free,
    keys_of_comments_are_remembered_for_a_week,
    keys_of_comments_are_compared_byte_for_byte,
    a_post_must_be_there_for_a_comment,
    a_locked_thread_takes_no_comments,
    locking_changes_one_thread_once,
    a_reply_answers_an_active_comment_of_its_thread,
    replies_have_a_greatest_depth,
];

fn a_comment_is_kept_as_it_was_given<S: CommentPorts>(subject: &Subject<S>) {
    let bodies =
        ["plain", " \tspaces\n\n and\tends ", "e\u{301} is not \u{e9}: \u{1f600}\u{4e2d}", "{\"a\":\"\\n\"}"];
    for parent in subject.threads_of_all_kinds() {
        let mut above: Option<Comment> = None;
        for (body, depth) in bodies.into_iter().zip(0..) {
            subject.clock.advance(7);
            let before = subject.newest_frontier();
            let reply_to = above.as_ref().map(|above| above.id);
            let request = NewComment { reply_to, ..subject.remark(parent, 1, body) };
            let commented = subject.try_say(&request).unwrap();
            assert!(commented.is_new);
            subject.assert_one_change(&before, commented.position);
            let comment = commented.comment;
            let expected = Comment {
                id: comment.id,
                parent,
                author: subject.id(1),
                reply_to,
                depth,
                created_at: subject.clock.now(),
                version: 1,
                edited_at: None,
                status: CommentStatus::Active,
                body: Some(body.into()),
                reason: None,
                removed_by: None,
                reply_count: 0,
            };
            assert_eq!(comment, expected);
            assert_eq!(subject.comment(comment.id), expected);
            let reported = CommentChange::Written {
                id: comment.id,
                parent,
                author: subject.id(1),
                reply_to,
                depth,
                body: Some(body.into()),
            };
            assert_eq!(subject.change_at(commented.position).body, ChangeBody::Comment(reported));
            above = Some(comment);
        }
        assert_eq!(subject.count(parent), 4);
    }
}

fn ids_of_comments_are_of_version_7_and_rise<S: CommentPorts>(subject: &Subject<S>) {
    let parents = subject.threads_of_all_kinds();
    let mut newest = [None; 3];
    for step in 0..24 {
        match step % 4 {
            0 => subject.clock.advance(10),
            1 => subject.clock.turn_back(1_000),
            _ => {}
        }
        let id = subject.say(&subject.remark(parents[step % 3], step as u64 % 2, "up")).id;
        let (version, variant) = (id.0 >> 76 & 0xf, id.0 >> 62 & 3);
        assert_eq!((version, variant), (7, 2), "{id} is a UUID of version 7");
        let before = newest[step % 3].replace(id);
        assert!(Some(id) > before, "{id} after {before:?}");
    }
}

fn a_comment_is_made_at_its_event<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let started = subject.clock.now();
    subject.clock.turn_back(5_000);
    let early = subject.say(&subject.remark(parent, 1, "early"));
    assert_eq!(early.created_at, started, "time does not go back");
    let edited = subject.edit(&early, "edited");
    assert_eq!((edited.created_at, edited.edited_at), (started, Some(started)));
    subject.clock.advance(6_000);
    let late = subject.edit(&edited, "late");
    assert_eq!((late.created_at, late.edited_at), (started, Some(subject.clock.now())));
    let times: Vec<_> = subject.changes().iter().skip(1).map(|change| change.at).collect();
    assert_eq!(times, [started, started, subject.clock.now()]);
}

fn the_same_comment_again_changes_nothing<S: CommentPorts>(subject: &Subject<S>) {
    let parents = subject.threads_of_all_kinds();
    for (parent, number) in parents.into_iter().zip(0..) {
        let request = NewComment {
            idempotency_key: key(&format!("top {number}")),
            ..subject.remark(parent, 1, "the same")
        };
        let first = subject.say(&request);
        let reply = NewComment {
            idempotency_key: key(&format!("reply {number}")),
            ..subject.answer(&first, 1, "the same")
        };
        let second = subject.say(&reply);
        let before = subject.all_of(&parents);
        subject.clock.advance(1_000);
        for _ in 0..3 {
            assert_eq!(subject.retry(&request), first);
            assert_eq!(subject.retry(&reply), second);
            // How deep a comment may be is no part of what it is.
            assert_eq!(subject.retry(&NewComment { depth_max: 0, ..reply.clone() }), second);
        }
        assert_eq!(subject.all_of(&parents), before);
        assert_eq!(subject.count(parent), 2);
    }
}

fn a_retry_gets_the_first_result_whatever_happened<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let mut requests = Vec::new();
    for (withdrawal, number) in withdrawals().into_iter().zip(0..).take(2) {
        let request = NewComment {
            idempotency_key: key(&format!("key {number}")),
            ..subject.remark(parent, 1, "as it was first")
        };
        let first = subject.say(&request);
        subject.say(&subject.answer(&first, 2, "a reply"));
        assert_eq!(subject.retry(&request), first, "after a reply");
        subject.clock.advance(10);
        let edited = subject.edit(&first, "edited");
        assert_eq!(subject.retry(&request), first, "after an edit");
        subject.edit(&edited, "as it was first");
        assert_eq!(subject.retry(&request), first, "after an edit back");
        subject.bury(first.id, withdrawal.clone());
        assert_eq!(subject.retry(&request), first, "after {withdrawal:?}");
        requests.push((request, first));
    }
    subject.lock(parent, true);
    requests
        .iter()
        .for_each(|(request, first)| assert_eq!(subject.retry(request), *first, "in a locked thread"));
    subject.delete(parent.id);
    requests
        .iter()
        .for_each(|(request, first)| assert_eq!(subject.retry(request), *first, "to a deleted post"));
}

fn the_same_key_for_another_comment_conflicts<S: CommentPorts>(subject: &Subject<S>) {
    let parents = subject.threads_of_all_kinds();
    let other_post = subject.post_thread(51);
    let above = subject.say(&subject.remark(parents[0], 2, "above"));
    let beside = subject.say(&subject.remark(parents[0], 2, "beside"));
    let top = NewComment { idempotency_key: key("top"), ..subject.remark(parents[0], 1, "body") };
    let reply = NewComment { idempotency_key: key("reply"), ..subject.answer(&above, 1, "body") };
    let (first, second) = (subject.say(&top), subject.say(&reply));
    let others = [
        NewComment { body: "Body".into(), ..top.clone() },
        NewComment { body: "body ".into(), ..top.clone() },
        NewComment { parent: other_post, ..top.clone() },
        NewComment { parent: parents[1], ..top.clone() },
        NewComment { parent: parents[2], ..top.clone() },
        NewComment { reply_to: Some(above.id), ..top.clone() },
        NewComment { reply_to: None, ..reply.clone() },
        NewComment { reply_to: Some(beside.id), ..reply.clone() },
        NewComment { body: "another".into(), ..reply.clone() },
    ];
    let check = |state: &str| {
        let before = subject.newest_frontier();
        for other in &others {
            assert_code(subject.try_say(other), ErrorCode::IdempotencyConflict);
        }
        assert_eq!(subject.newest_frontier(), before, "{state}");
        assert_eq!((subject.retry(&top), subject.retry(&reply)), (first.clone(), second.clone()), "{state}");
    };
    check("at first");
    subject.bury(first.id, Withdrawal::Delete);
    check("after a deletion");
    subject.lock(parents[0], true);
    check("in a locked thread");
    subject.delete(parents[0].id);
    check("to a deleted post");
}

fn a_key_conflicts_with_the_text_of_an_edit<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let request = NewComment { idempotency_key: key("key"), ..subject.remark(parent, 1, "first") };
    let first = subject.say(&request);
    subject.edit(&first, "second");
    let edited = NewComment { body: "second".into(), ..request.clone() };
    assert_code(subject.try_say(&edited), ErrorCode::IdempotencyConflict);
    assert_eq!(subject.retry(&request), first);
}

fn a_key_of_comments_belongs_to_its_author<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    // The key of a post of the same author is another one.
    let post = subject.register(subject.keyed(1, "key")).post;
    let request =
        |author, body| NewComment { idempotency_key: key("key"), ..subject.remark(parent, author, body) };
    let mine = subject.say(&request(1, "mine"));
    let same = subject.say(&request(2, "mine"));
    let other = subject.say(&request(3, "other"));
    assert_eq!((same.author, other.author), (subject.id(2), subject.id(3)));
    assert_eq!(subject.retry(&request(1, "mine")), mine);
    assert_eq!(subject.retry(&request(2, "mine")), same);
    assert_code(subject.try_say(&request(3, "mine")), ErrorCode::IdempotencyConflict);
    assert_eq!(subject.register(subject.keyed(1, "key")).post, post);
    assert_eq!(subject.count(parent), 3);
}

fn wishes_without_a_key_are_all_new<S: CommentPorts>(subject: &Subject<S>) {
    for parent in subject.threads_of_all_kinds() {
        let request = subject.remark(parent, 1, "again");
        let generated: Vec<_> = (0..3).map(|_| subject.say(&request)).collect();
        assert_eq!(subject.whole_thread(parent), generated);
        assert_eq!(subject.count(parent), 3);
    }
}

fn a_refused_comment_leaves_its_key_free<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let request = NewComment { idempotency_key: key("key"), ..subject.remark(parent, 1, "body") };
    let nowhere = NewComment { parent: Parent::post(subject.id(51)), ..request.clone() };
    let to_nobody = NewComment { reply_to: Some(NOBODY), ..request.clone() };
    subject.lock(parent, true);
    assert_code(subject.try_say(&nowhere), ErrorCode::NotFound);
    assert_code(subject.try_say(&request), ErrorCode::ThreadLocked);
    subject.lock(parent, false);
    assert_code(subject.try_say(&to_nobody), ErrorCode::InvalidReply);
    let comment = subject.say(&NewComment { body: "another".into(), ..request });
    assert_eq!(subject.whole_thread(parent), [comment]);
}

fn keys_of_comments_are_remembered_for_a_week<S: CommentPorts>(subject: &Subject<S>) {
    const HOUR_MS: u64 = 60 * 60 * 1_000;
    let parent = subject.post_thread(50);
    let request = NewComment { idempotency_key: key("key"), ..subject.remark(parent, 1, "body") };
    let first = subject.say(&request);
    for _ in 0..7 {
        subject.clock.advance(24 * HOUR_MS - HOUR_MS / 7);
        assert_eq!(subject.retry(&request), first);
        let beside = NewComment { idempotency_key: key("beside"), ..subject.remark(parent, 2, "body") };
        subject.try_say(&beside).expect("another key does not matter");
    }
}

fn keys_of_comments_are_compared_byte_for_byte<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let keys = ["k", "K", "k ", " k", "kk", "\u{e9}", "e\u{301}", "k\0", "0", "00"];
    let request = |text| NewComment { idempotency_key: key(text), ..subject.remark(parent, 1, "body") };
    let generated = keys.map(|text| subject.say(&request(text)));
    for (text, generated) in keys.into_iter().zip(generated) {
        assert_eq!(subject.retry(&request(text)), generated, "{text:?}");
    }
}

fn a_post_must_be_there_for_a_comment<S: CommentPorts>(subject: &Subject<S>) {
    let requests = ParentKind::ALL.map(|kind| subject.remark(Parent { kind, id: subject.id(50) }, 1, "body"));
    assert_code(subject.try_say(&requests[0]), ErrorCode::NotFound);
    assert_eq!(subject.log_length(), 0);
    // Others are not looked for.
    let others = [subject.say(&requests[1]), subject.say(&requests[2])];
    let parent = subject.post_thread(50);
    let comment = subject.say(&requests[0]);
    subject.delete(parent.id);
    let before = subject.newest_frontier();
    assert_code(subject.try_say(&requests[0]), ErrorCode::NotFound);
    assert_code(subject.try_say(&subject.answer(&comment, 2, "late")), ErrorCode::NotFound);
    assert_eq!(subject.newest_frontier(), before);
    subject.say(&subject.answer(&others[0], 2, "fine"));
    assert_eq!(subject.whole_thread(parent), [comment]);
}

fn a_locked_thread_takes_no_comments<S: CommentPorts>(subject: &Subject<S>) {
    let parents = subject.threads_of_all_kinds();
    for locked in parents {
        let above = subject.say(&subject.remark(locked, 1, "above"));
        assert!(subject.lock(locked, true).changed);
        let before = subject.newest_frontier();
        for request in [subject.remark(locked, 2, "late"), subject.answer(&above, 2, "late")] {
            assert_code(subject.try_say(&request), ErrorCode::ThreadLocked);
            let keyed = NewComment { idempotency_key: key("late"), ..request };
            assert_code(subject.try_say(&keyed), ErrorCode::ThreadLocked);
        }
        assert_eq!(subject.newest_frontier(), before);
        // What was said may still be edited and taken back.
        let edited = subject.edit(&above, "edited");
        assert_eq!((edited.version, edited.status), (2, CommentStatus::Active));
        for other in parents.into_iter().filter(|other| *other != locked) {
            subject.say(&subject.remark(other, 2, "not here"));
        }
        subject.bury(above.id, Withdrawal::Delete);
        assert!(subject.lock(locked, false).changed);
        subject.say(&subject.remark(locked, 2, "open again"));
    }
}

fn locking_changes_one_thread_once<S: CommentPorts>(subject: &Subject<S>) {
    let parents = subject.threads_of_all_kinds();
    let state = |parent| subject.thread_state(parent).locked;
    for (parent, kind) in parents.into_iter().zip(0..) {
        assert!(!subject.lock(parent, false).changed, "it was not locked");
        let before = subject.newest_frontier();
        let locked = subject.lock(parent, true);
        assert!(locked.changed);
        subject.assert_one_change(&before, locked.position);
        let before = subject.newest_frontier();
        let again = subject.lock(parent, true);
        assert!(!again.changed);
        subject.assert_repeated(&before, again.position, locked.position);
        let expected: Vec<bool> = (0..3).map(|other| other <= kind).collect();
        assert_eq!(parents.map(state).to_vec(), expected);
    }
    assert!(subject.lock(parents[1], false).changed);
    assert!(!subject.lock(parents[1], false).changed);
    let reported = |parent: Parent, locked| CommentChange::Locked { parent, locked };
    let [post, item, conversation] = parents;
    let expected =
        [reported(post, true), reported(item, true), reported(item, false), reported(conversation, true)];
    assert_eq!(by_parent(subject.thread_log()), expected);

    let unknown = Parent::post(subject.id(51));
    subject.delete(post.id);
    let before = subject.newest_frontier();
    for parent in [unknown, post] {
        for locked in [true, false] {
            assert_code(block_on(subject.store().lock_comment_thread(parent, locked)), ErrorCode::NotFound);
        }
    }
    assert_eq!(subject.newest_frontier(), before);
}

fn a_reply_answers_an_active_comment_of_its_thread<S: CommentPorts>(subject: &Subject<S>) {
    let parents = subject.threads_of_all_kinds();
    let tops = parents.map(|parent| subject.say(&subject.remark(parent, 1, "top")));
    let before = subject.newest_frontier();
    for parent in parents {
        let unknown = NewComment { reply_to: Some(NOBODY), ..subject.remark(parent, 2, "to nobody") };
        assert_code(subject.try_say(&unknown), ErrorCode::InvalidReply);
        for elsewhere in tops.iter().filter(|top| top.parent != parent) {
            let across = NewComment { parent, ..subject.answer(elsewhere, 2, "across") };
            assert_code(subject.try_say(&across), ErrorCode::InvalidReply);
        }
    }
    assert_eq!(subject.newest_frontier(), before);
    for (top, withdrawal) in tops.iter().zip(withdrawals()) {
        let edited = subject.edit(top, "edited");
        let reply = subject.say(&subject.answer(&edited, 2, "a reply"));
        assert_eq!((reply.reply_to, reply.depth), (Some(top.id), 1));
        subject.bury(top.id, withdrawal.clone());
        match subject.try_say(&subject.answer(top, 2, "late")) {
            Err(Error::InvalidReply { id, .. }) => assert_eq!(id, top.id.to_string()),
            other => panic!("a reply after {withdrawal:?}: {other:?}"),
        }
        // Those who answered in time may be answered.
        assert_eq!(subject.say(&subject.answer(&reply, 3, "goes on")).depth, 2);
    }
}

fn replies_have_a_greatest_depth<S: CommentPorts>(subject: &Subject<S>) {
    for parent in subject.threads_of_all_kinds() {
        let mut last = subject.say(&subject.remark(parent, 1, "top"));
        let alone = NewComment { depth_max: 0, ..subject.answer(&last, 1, "too deep") };
        assert_code(subject.try_say(&alone), ErrorCode::InvalidReply);
        for depth in 1..=COMMENTS.depth_max {
            last = subject.say(&subject.answer(&last, 1, "deeper"));
            assert_eq!(last.depth, depth);
        }
        assert_code(subject.try_say(&subject.answer(&last, 1, "too deep")), ErrorCode::InvalidReply);
        for depth in last.depth + 1..=50 {
            last = subject.say(&NewComment { depth_max: 50, ..subject.answer(&last, 1, "deeper") });
            assert_eq!(last.depth, depth);
        }
        let deepest = NewComment { depth_max: 50, ..subject.answer(&last, 1, "too deep") };
        assert_code(subject.try_say(&deepest), ErrorCode::InvalidReply);
        assert_eq!(subject.count(parent), 51);
        let top = NewComment { depth_max: 0, ..subject.remark(parent, 1, "top") };
        assert_eq!(subject.say(&top).depth, 0);
    }
}
