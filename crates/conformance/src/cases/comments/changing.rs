//! Cases of editing comments and of taking them back, short of erasing them.

use kinfolk_core::changes::ChangeBody;
use kinfolk_core::comments::{
    Comment, CommentChange, CommentEdit, CommentStatus, CommentThreadState, CommentVersion, Moderator,
    Parent, ParentKind, Withdrawal,
};
use kinfolk_core::{Clock, Error, ErrorCode};

use super::helpers::{NOBODY, by_parent, ids, withdrawals};
use crate::cases::subject::Subject;
use crate::cases::subject::assert_code;
use crate::ports::CommentPorts;
use crate::threads::block_on;

super::list_cases![cases: CommentPorts;
    an_edit_makes_a_new_version_in_the_same_place,
    edits_can_follow_each_other,
    an_edit_of_another_version_conflicts,
    an_edit_of_what_was_withdrawn_is_refused,
    an_edited_comment_can_be_withdrawn,
    a_status_only_gets_worse,
    what_was_never_written_cannot_be_changed,
    a_tombstone_keeps_its_place_replies_and_texts,
    who_removed_or_purged_a_comment_is_recorded,
    every_change_of_a_thread_is_one_event,
    the_log_tells_only_current_texts,
    counts_of_comments_are_exact,
    comments_outlive_their_post,
];

fn an_edit_makes_a_new_version_in_the_same_place<S: CommentPorts>(subject: &Subject<S>) {
    for parent in subject.threads_of_all_kinds() {
        let before = subject.say(&subject.remark(parent, 2, "before"));
        let comment = subject.say(&subject.remark(parent, 1, "first"));
        let after = subject.say(&subject.remark(parent, 2, "after"));
        let reply = subject.say(&subject.answer(&comment, 2, "reply"));
        subject.clock.advance(1_234);
        let before_edit = subject.newest_frontier();
        let edited = subject.try_edit(comment.id, 1, "second\n\u{1f600}").unwrap();
        assert!(edited.is_new);
        subject.assert_one_change(&before_edit, edited.position);
        let now = subject.clock.now();
        let expected = Comment {
            version: 2,
            edited_at: Some(now),
            body: Some("second\n\u{1f600}".into()),
            reply_count: 1,
            ..comment.clone()
        };
        assert_eq!(edited.comment, expected);
        assert_eq!(subject.comment(comment.id), expected);
        assert_eq!(subject.whole_thread(parent), [before, expected.clone(), after, reply]);
        assert_eq!(subject.comments_by(1, 10)[0], expected, "an edit hides nothing");
        assert_eq!(subject.thread_state(parent), CommentThreadState { count: 4, locked: false });
        let version = |version, at, body: &str| CommentVersion { version, at, body: body.into() };
        let history = [version(1, comment.created_at, "first"), version(2, now, "second\n\u{1f600}")];
        assert_eq!(subject.versions(comment.id, 10), history);
        let reported = CommentChange::Edited {
            id: comment.id,
            parent,
            author: subject.id(1),
            version: 2,
            body: Some("second\n\u{1f600}".into()),
        };
        assert_eq!(subject.change_at(edited.position).body, ChangeBody::Comment(reported));
    }
}

fn edits_can_follow_each_other<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let mut comment = subject.say(&subject.remark(parent, 1, "text 1"));
    let mut history = vec![CommentVersion { version: 1, at: comment.created_at, body: "text 1".into() }];
    for version in 2..=12 {
        subject.clock.advance(u64::from(version) % 3);
        // The same text again is a version too.
        let body = if version == 7 { "text 6".to_owned() } else { format!("text {version}") };
        comment = subject.edit(&comment, &body);
        assert_eq!((comment.version, comment.status), (version, CommentStatus::Active));
        assert_eq!(subject.comment(comment.id), comment);
        history.push(CommentVersion { version, at: subject.clock.now(), body: body.into() });
        for limit in [1, 3, 5, 100] {
            assert_eq!(subject.versions(comment.id, limit), history, "in pages of {limit}");
        }
    }
    let from = |after, limit| block_on(subject.store().comment_versions(comment.id, after, limit)).unwrap();
    assert_eq!(from(4, 3), history[4..7]);
    assert_eq!(from(11, 3), history[11..]);
    assert_eq!((from(12, 3), from(u32::MAX, 3)), (vec![], vec![]));
    assert_eq!(subject.count(parent), 1);
}

fn assert_conflict<S: CommentPorts>(subject: &Subject<S>, comment: &Comment, version: u32, current: u32) {
    match subject.try_edit(comment.id, version, "stale") {
        Err(Error::VersionConflict { current: reported }) => assert_eq!(reported, current),
        other => panic!("an edit of version {version} when there is {current}: {other:?}"),
    }
}

fn an_edit_of_another_version_conflicts<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let first = subject.say(&subject.remark(parent, 1, "first"));
    [0, 2, u32::MAX].into_iter().for_each(|version| assert_conflict(subject, &first, version, 1));
    let second = subject.edit(&first, "second");
    let third = subject.edit(&second, "third");
    let before = subject.all_of(&[parent]);
    [0, 1, 2, 4, 5].into_iter().for_each(|version| assert_conflict(subject, &first, version, 3));
    assert_eq!(subject.all_of(&[parent]), before);
    assert_eq!(subject.edit(&third, "fourth").version, 4);
}

fn an_edit_of_what_was_withdrawn_is_refused<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    for withdrawal in withdrawals() {
        let comment = subject.say(&subject.remark(parent, 1, "text"));
        let comment = subject.edit(&comment, "second");
        let tombstone = subject.bury(comment.id, withdrawal);
        let before = subject.all_of(&[parent]);
        for version in [1, 2, 3] {
            match subject.try_edit(comment.id, version, "late") {
                Err(Error::CommentDeleted { id }) => assert_eq!(id, comment.id.to_string()),
                other => panic!("an edit of {tombstone:?}: {other:?}"),
            }
        }
        assert_eq!(subject.all_of(&[parent]), before);
    }
}

fn an_edited_comment_can_be_withdrawn<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    for withdrawal in withdrawals() {
        let comment = subject.say(&subject.remark(parent, 1, "text"));
        let edited = subject.edit(&comment, "second");
        let tombstone = subject.bury(edited.id, withdrawal.clone());
        let expected = Comment {
            status: withdrawal.status(),
            body: tombstone.body.clone(),
            reason: tombstone.reason.clone(),
            ..edited
        };
        assert_eq!(tombstone, expected);
        assert_eq!(subject.count(parent), 0);
    }
}

fn a_status_only_gets_worse<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let second = [Withdrawal::Delete, Withdrawal::Remove("again".into()), Withdrawal::Purge];
    for first in withdrawals() {
        for second in second.clone() {
            let comment = subject.say(&subject.remark(parent, 1, "text"));
            let buried = subject.withdraw(comment.id, first.clone());
            assert!(buried.changed, "{} was there", comment.id);
            let (before, tombstone) = (subject.newest_frontier(), subject.comment(comment.id));
            let worse = second.status() > first.status();
            let removed = subject.withdraw(comment.id, second.clone());
            assert_eq!(removed.changed, worse, "{first:?}, then {second:?}");
            if worse {
                subject.assert_one_change(&before, removed.position);
            } else {
                subject.assert_repeated(&before, removed.position, buried.position);
            }
            let found = subject.comment(comment.id);
            assert_eq!(found.status, first.status().max(second.status()), "{first:?}, then {second:?}");
            if !worse {
                assert_eq!(found, tombstone, "{first:?}, then {second:?}");
            }
            match (&first, &second) {
                (Withdrawal::Delete, Withdrawal::Remove(reason))
                | (Withdrawal::Remove(reason), Withdrawal::Delete | Withdrawal::Remove(_)) => {
                    assert_eq!(found.reason.as_ref(), Some(reason), "{first:?}, then {second:?}");
                }
                (Withdrawal::Delete, Withdrawal::Delete) => assert_eq!(found.reason, None),
                _ => {}
            }
        }
    }
    assert_eq!(subject.count(parent), 0);
}

fn what_was_never_written_cannot_be_changed<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    subject.say(&subject.remark(parent, 1, "text"));
    let before = subject.all_of(&[parent]);
    for withdrawal in withdrawals() {
        assert_code(
            block_on(subject.store().withdraw_comment(NOBODY, withdrawal, None)),
            ErrorCode::NotFound,
        );
    }
    let edit = CommentEdit { id: NOBODY, version: 1, body: "text".into() };
    assert_code(block_on(subject.store().edit_comment(edit)), ErrorCode::NotFound);
    assert_eq!((subject.find(NOBODY), subject.versions(NOBODY, 5)), (None, vec![]));
    assert_eq!(subject.all_of(&[parent]), before);
}

fn a_tombstone_keeps_its_place_replies_and_texts<S: CommentPorts>(subject: &Subject<S>) {
    for parent in subject.threads_of_all_kinds() {
        for withdrawal in withdrawals().into_iter().take(2) {
            let top = subject.say(&subject.remark(parent, 1, "top"));
            let comment = subject.say(&subject.answer(&top, 1, "first"));
            let comment = subject.edit(&comment, "second");
            let replies = ["a", "b", "c"].map(|body| subject.say(&subject.answer(&comment, 2, body)));
            let (thread, count) = (ids(&subject.whole_thread(parent)), subject.count(parent));
            let tombstone = subject.bury(comment.id, withdrawal.clone());
            let reason = match &withdrawal {
                Withdrawal::Remove(reason) => Some(reason.clone()),
                _ => None,
            };
            let expected = Comment { status: withdrawal.status(), reason, reply_count: 3, ..comment.clone() };
            assert_eq!(tombstone, expected, "a store shows what it has");
            assert_eq!(ids(&subject.whole_thread(parent)), thread);
            assert_eq!(subject.replies_to(&top), [expected]);
            assert_eq!(subject.replies_to(&comment), replies);
            let texts = subject.versions(comment.id, 10);
            let texts: Vec<&str> = texts.iter().map(|version| &*version.body).collect();
            assert_eq!(texts, ["first", "second"]);
            assert_eq!(subject.count(parent), count - 1);
            assert!(!ids(&subject.comments_by(1, 10)).contains(&comment.id));
            // A reply that goes keeps its place too.
            let gone = subject.bury(replies[1].id, withdrawal);
            assert_eq!(subject.replies_to(&comment), [&replies[0], &gone, &replies[2]].map(Comment::clone));
            assert_eq!(subject.comment(comment.id).reply_count, 3, "tombstones count among replies");
        }
    }
}

fn who_removed_or_purged_a_comment_is_recorded<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let [user, other] = [2, 1].map(|number| Some(Moderator::User(subject.id(number))));
    let key = Some(Moderator::Service("feed-service".into()));
    // The longest name that a key can have.
    let long = Some(Moderator::Service("k".repeat(64).into()));
    for (remover, purger) in
        [(&user, &key), (&key, &long), (&long, &None), (&user, &None), (&None, &other), (&None, &None)]
    {
        let comment = subject.say(&subject.remark(parent, 1, "text"));
        let withdraw = |withdrawal: Withdrawal, by: &Option<Moderator>| {
            let withdrawn = subject.withdraw_by(comment.id, withdrawal, by.clone());
            assert!(withdrawn.changed);
            match subject.change_at(withdrawn.position).body {
                ChangeBody::Comment(CommentChange::Withdrawn { by: reported, .. }) => {
                    assert_eq!(&reported, by, "in the log");
                }
                reported => panic!("its event is {reported:?}"),
            }
            subject.comment(comment.id).removed_by
        };
        assert_eq!(withdraw(Withdrawal::Delete, &None), None, "by its author");
        assert_eq!(&withdraw(Withdrawal::Remove("rude".into()), remover), remover);
        let again = subject.withdraw_by(comment.id, Withdrawal::Remove("again".into()), other.clone());
        assert!(!again.changed);
        assert_eq!(&subject.comment(comment.id).removed_by, remover, "the first stays");
        let expected = if purger.is_some() { purger } else { remover };
        assert_eq!(&withdraw(Withdrawal::Purge, purger), expected, "the last that is known");
        assert_eq!(subject.whole_thread(parent).pop(), Some(subject.comment(comment.id)));
    }
}

fn every_change_of_a_thread_is_one_event<S: CommentPorts>(subject: &Subject<S>) {
    let parents = subject.threads_of_all_kinds();
    let author = subject.id(1);
    let mut expected = Vec::new();
    for parent in parents {
        let id = subject.say(&subject.remark(parent, 1, "first")).id;
        let reply = subject.say(&subject.answer(&subject.comment(id), 1, "reply"));
        subject.edit(&subject.comment(id), "second");
        subject.bury(id, Withdrawal::Delete);
        subject.bury(id, Withdrawal::Remove("rude".into()));
        subject.bury(id, Withdrawal::Purge);
        subject.lock(parent, true);
        let withdrawn = |status| CommentChange::Withdrawn { id, parent, author, status, by: None };
        expected.extend([
            CommentChange::Written { id, parent, author, reply_to: None, depth: 0, body: None },
            CommentChange::Written {
                id: reply.id,
                parent,
                author,
                reply_to: Some(id),
                depth: 1,
                body: Some("reply".into()),
            },
            CommentChange::Edited { id, parent, author, version: 2, body: None },
            withdrawn(CommentStatus::Deleted),
            withdrawn(CommentStatus::Removed),
            withdrawn(CommentStatus::Purged),
            CommentChange::Locked { parent, locked: true },
        ]);
    }
    assert_eq!(by_parent(subject.thread_log()), by_parent(expected));
    assert_eq!(subject.log_length(), 22);
}

/// The bodies of a thread in the log, in its order.
fn reported<S: CommentPorts>(subject: &Subject<S>, of: Parent) -> Vec<Option<String>> {
    let reported = subject.thread_log().into_iter().filter_map(|reported| match reported {
        CommentChange::Written { parent, body, .. } | CommentChange::Edited { parent, body, .. } => {
            (parent == of).then(|| body.map(|body| body.to_string()))
        }
        _ => None,
    });
    reported.collect()
}

fn the_log_tells_only_current_texts<S: CommentPorts>(subject: &Subject<S>) {
    let text = |text: &str| Some(text.to_owned());
    let parents = subject.threads_of_all_kinds();
    for parent in parents {
        let added = |expected: &[Option<String>]| assert_eq!(reported(subject, parent), expected);
        let one = subject.say(&subject.remark(parent, 1, "one"));
        added(&[text("one")]);
        let one = subject.edit(&one, "two");
        added(&[None, text("two")]);
        // The same text as before is the newest version's only.
        subject.edit(&one, "one");
        added(&[None, None, text("one")]);
        let other = subject.say(&subject.remark(parent, 2, "other"));
        added(&[None, None, text("one"), text("other")]);
        subject.bury(other.id, Withdrawal::Remove("rude".into()));
        added(&[None, None, text("one"), None]);
        subject.bury(one.id, Withdrawal::Delete);
        added(&[None, None, None, None]);
        let dump = format!("{:?}", subject.changes());
        assert!(!dump.contains("rude"), "reasons are for moderators: {dump}");
    }
    for parent in parents {
        assert_eq!(reported(subject, parent), [None, None, None, None], "later threads change nothing");
    }
}

fn counts_of_comments_are_exact<S: CommentPorts>(subject: &Subject<S>) {
    let parents = subject.threads_of_all_kinds();
    let mut expected = [0; 3];
    let mut tops: Vec<Comment> = Vec::new();
    for step in 0..18 {
        let at = step % 3;
        let parent = parents[at];
        let top = subject.say(&subject.remark(parent, 1, "top"));
        let replies = step / 3;
        for _ in 0..replies {
            subject.say(&subject.answer(&top, 2, "reply"));
        }
        expected[at] += 1 + replies as u64;
        if step % 2 == 0 {
            subject.edit(&subject.comment(top.id), "edited");
            subject.bury(top.id, withdrawals()[step % 3].clone());
            expected[at] -= 1;
        }
        let replied = subject.replies_to(&top);
        if let Some(first) = replied.first() {
            subject.bury(first.id, Withdrawal::Delete);
            subject.withdraw(first.id, Withdrawal::Delete);
            subject.bury(first.id, Withdrawal::Remove("rude".into()));
            expected[at] -= 1;
        }
        tops.push(top);
        for (parent, expected) in parents.into_iter().zip(expected) {
            assert_eq!(subject.count(parent), expected);
        }
    }
    for (top, step) in tops.iter().zip(0..) {
        assert_eq!(subject.comment(top.id).reply_count, step / 3, "tombstones among them");
    }
}

fn comments_outlive_their_post<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let other = Parent { kind: ParentKind::Item, ..parent };
    let beside = subject.say(&subject.remark(other, 1, "beside"));
    let comments = subject.say_many(parent, 1, 4);
    subject.delete(parent.id);
    assert_eq!(subject.refreshed(&comments), comments);
    assert_eq!(subject.whole_thread(parent), comments, "a store shows what it has");
    let own: Vec<_> = comments.iter().rev().chain([&beside]).cloned().collect();
    assert_eq!(subject.comments_by(1, 2), own);
    assert_eq!(subject.thread_state(parent), CommentThreadState { count: 4, locked: false });
    for (comment, withdrawal) in comments.iter().zip(withdrawals()) {
        let tombstone = subject.bury(comment.id, withdrawal.clone());
        assert_eq!(tombstone.status, withdrawal.status());
    }
    assert_eq!(subject.count(parent), 1);
    assert_eq!(subject.comments_by(1, 2), [comments[3].clone(), beside]);
}
