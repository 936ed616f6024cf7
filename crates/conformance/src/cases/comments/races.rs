//! Cases of comments from several threads at once: each race has one winner, and the others get the error that the contract
//! says.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use kinfolk_core::changes::ChangeBody;
use kinfolk_core::comments::{
    Comment, CommentChange, CommentOrder, CommentStatus, CommentWritten, NewComment, Parent, Withdrawal,
};
use kinfolk_core::{Error, ErrorCode, Result};

use super::helpers::{ORDERS, ids, key, withdrawals};
use crate::cases::subject::Subject;
use crate::ports::CommentPorts;
use crate::threads::{at_once, meanwhile};

super::list_cases![cases: CommentPorts;
    the_same_comment_from_several_threads,
    different_comments_under_one_key_at_once,
    edits_of_one_version_at_once,
    an_edit_and_a_deletion_at_once,
    withdrawals_at_once,
    a_reply_and_a_deletion_at_once,
    a_comment_and_a_lock_at_once,
    a_comment_and_the_deletion_of_its_post_at_once,
    every_thread_sees_its_own_comments,
    a_walk_while_others_write,
];

/// Short races are run so often, as one alone may go well by luck.
const RACES: u64 = 12;
/// More edits than a walk takes.
const EDITS_MAX: u32 = 3_000;

/// How many events of the log tell of a comment.
fn events<S: CommentPorts>(subject: &Subject<S>, comment: &Comment) -> usize {
    let of = |reported: &&CommentChange| match reported {
        CommentChange::Written { id, .. }
        | CommentChange::Edited { id, .. }
        | CommentChange::Withdrawn { id, .. } => *id == comment.id,
        CommentChange::Locked { .. } => false,
    };
    subject.thread_log().iter().filter(of).count()
}

fn the_same_comment_from_several_threads<S: CommentPorts>(subject: &Subject<S>) {
    for parent in subject.threads_of_all_kinds() {
        for race in 0..RACES {
            let keyed = key(&format!("{:?} {race}", parent.kind));
            let request = NewComment { idempotency_key: keyed, ..subject.remark(parent, 1, "the same") };
            let answers = at_once(4, |_| subject.try_say(&request).expect("all succeed"));
            let new = answers.iter().filter(|answer| answer.is_new).count();
            assert_eq!(new, 1, "one is first: {answers:?}");
            assert!(answers.iter().all(|answer| answer.comment == answers[0].comment), "{answers:?}");
            assert_eq!(subject.count(parent), race + 1);
        }
        assert_eq!(subject.whole_thread(parent).len() as u64, RACES);
    }
}

fn different_comments_under_one_key_at_once<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    for race in 0..RACES {
        let request = |thread: usize| NewComment {
            idempotency_key: key(&format!("key {race}")),
            ..subject.remark(parent, 1, &format!("text {}", thread % 2))
        };
        let answers = at_once(4, |thread| subject.try_say(&request(thread)));
        let written: Vec<&CommentWritten> =
            answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
        assert_eq!(written.iter().filter(|answer| answer.is_new).count(), 1, "{answers:?}");
        assert_eq!(written.len(), 2, "those with the same text: {answers:?}");
        assert_eq!(written[0].comment, written[1].comment);
        let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
        assert!(
            refused.into_iter().all(|error| error.code() == ErrorCode::IdempotencyConflict),
            "{answers:?}"
        );
        assert_eq!(subject.count(parent), race + 1);
    }
}

fn edits_of_one_version_at_once<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let mut comment = subject.say(&subject.remark(parent, 1, "text"));
    for race in 0..RACES {
        let (id, version) = (comment.id, comment.version);
        let answers = at_once(4, |thread| subject.try_edit(id, version, &format!("{race} by {thread}")));
        let winners: Vec<&CommentWritten> =
            answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        for error in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            assert!(
                matches!(error, Error::VersionConflict { current } if *current == version + 1),
                "{error}"
            );
        }
        comment = subject.comment(id);
        assert_eq!((&comment, comment.version), (&winners[0].comment, version + 1));
    }
    assert_eq!(subject.versions(comment.id, 5).len() as u64, RACES + 1);
    assert_eq!(events(subject, &comment) as u64, RACES + 1);
}

fn an_edit_and_a_deletion_at_once<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    for race in 0..RACES {
        let comment = subject.say(&subject.remark(parent, 1, "text"));
        let withdrawal = &withdrawals()[race as usize % 3];
        let answers = at_once(2, |thread| match thread {
            0 => subject.try_edit(comment.id, 1, "edited").map(|edited| edited.comment.version),
            _ => Ok(u32::from(subject.withdraw(comment.id, withdrawal.clone()).changed)),
        });
        assert!(matches!(answers[1], Ok(1)), "a withdrawal is not refused: {answers:?}");
        let tombstone = subject.comment(comment.id);
        assert_eq!(tombstone.status, withdrawal.status());
        match &answers[0] {
            Ok(2) => assert_eq!((tombstone.version, events(subject, &comment)), (2, 3)),
            Err(Error::CommentDeleted { .. }) => {
                assert_eq!((tombstone.version, events(subject, &comment)), (1, 2));
            }
            other => panic!("the edit was first, or was refused: {other:?}"),
        }
        assert_eq!(subject.count(parent), 0);
    }
}

fn withdrawals_at_once<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    for race in 0..RACES {
        let comment = subject.say(&subject.remark(parent, 1, "text"));
        let worst = 1 + race as usize % 3;
        let withdrawals = withdrawals();
        let removed = at_once(4, |thread| {
            let withdrawal = withdrawals[thread % worst].clone();
            (withdrawal.status(), subject.withdraw(comment.id, withdrawal))
        });
        let mut changed: Vec<_> = removed.iter().filter(|(_, removed)| removed.changed).collect();
        changed.sort_by_key(|(_, removed)| removed.position.sequence);
        assert!(changed.is_sorted_by(|a, b| a.0 < b.0), "each made it worse: {removed:?}");
        assert_eq!(changed.last().map(|last| last.0), Some(withdrawals[worst - 1].status()));
        assert_eq!(events(subject, &comment), 1 + changed.len());
        assert_eq!(subject.comment(comment.id).status, withdrawals[worst - 1].status());
        assert_eq!(subject.count(parent), 0, "it is taken off once");
    }
}

fn a_reply_and_a_deletion_at_once<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    for race in 0..RACES {
        let comment = subject.say(&subject.remark(parent, 1, "text"));
        let withdrawal = &withdrawals()[race as usize % 3];
        let answers: Vec<Result<Option<Comment>>> = at_once(3, |thread| match thread {
            0 => {
                subject.withdraw(comment.id, withdrawal.clone());
                Ok(None)
            }
            _ => subject.try_say(&subject.answer(&comment, 2, "reply")).map(|said| Some(said.comment)),
        });
        let mut replies = Vec::new();
        for answer in answers {
            match answer {
                Ok(reply) => replies.extend(reply),
                Err(error) => assert_eq!(error.code(), ErrorCode::InvalidReply, "{error}"),
            }
        }
        replies.sort_by_key(|reply| reply.id);
        assert_eq!(subject.replies_to(&comment), replies);
        assert_eq!(subject.comment(comment.id).reply_count, replies.len() as u64);
        // In the log no reply comes after what it could not answer any more.
        let log = subject.thread_log();
        let gone = log.iter().position(
            |reported| matches!(reported, CommentChange::Withdrawn { id, .. } if *id == comment.id),
        );
        let last = log.iter().rposition(
            |reported| matches!(reported, CommentChange::Written { reply_to, .. } if *reply_to == Some(comment.id)),
        );
        assert!(last < gone, "{log:?}");
    }
}

/// Comments of three threads while a fourth does something that ends them.
fn until_it_ends<S: CommentPorts>(
    subject: &Subject<S>,
    parent: Parent,
    end: impl Fn() + Sync,
    refused: ErrorCode,
) {
    let answers = at_once(4, |thread| {
        if thread == 0 {
            end();
            return Vec::new();
        }
        (0..3).map(|_| subject.try_say(&subject.remark(parent, thread as u64, "text"))).collect()
    });
    let mut written = Vec::new();
    for answers in answers {
        let first_refused = answers.iter().position(Result::is_err).unwrap_or(answers.len());
        for (at, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(said) => {
                    assert!(at < first_refused, "it does not go on after the end");
                    written.push(said.comment);
                }
                Err(error) => assert_eq!(error.code(), refused, "{error}"),
            }
        }
    }
    written.sort_by_key(|comment| comment.id);
    assert_eq!(subject.whole_thread(parent), written);
    assert_eq!(subject.count(parent), written.len() as u64);
}

/// Where the log has the last comment to a parent.
fn last_comment<S: CommentPorts>(subject: &Subject<S>, parent: Parent) -> Option<usize> {
    let changes = subject.changes();
    changes.iter().rposition(|change| {
        matches!(&change.body, ChangeBody::Comment(CommentChange::Written { parent: to, .. })
            if *to == parent)
    })
}

fn a_comment_and_a_lock_at_once<S: CommentPorts>(subject: &Subject<S>) {
    for race in 0..RACES {
        let parent = subject.post_thread(50 + race);
        until_it_ends(subject, parent, || _ = subject.lock(parent, true), ErrorCode::ThreadLocked);
        let locked = subject
            .changes()
            .iter()
            .rposition(|change| {
                matches!(&change.body, ChangeBody::Comment(CommentChange::Locked { parent: of, .. }) if *of == parent)
            });
        assert!(last_comment(subject, parent) < locked, "nothing is written to a locked thread");
    }
}

fn a_comment_and_the_deletion_of_its_post_at_once<S: CommentPorts>(subject: &Subject<S>) {
    for race in 0..RACES {
        let parent = subject.post_thread(50 + race);
        until_it_ends(subject, parent, || _ = subject.delete(parent.id), ErrorCode::NotFound);
        let deleted = subject
            .changes()
            .iter()
            .rposition(|change| matches!(change.body, ChangeBody::PostDeleted { id, .. } if id == parent.id));
        assert!(last_comment(subject, parent) < deleted, "nothing is written to a deleted post");
    }
}

fn every_thread_sees_its_own_comments<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let top = subject.say(&subject.remark(parent, 9, "top"));
    at_once(4, |thread| {
        let author = thread as u64;
        let mut own: Vec<Comment> = Vec::new();
        for step in 0..8 {
            let said = subject.say(&subject.answer(&top, author, &format!("{thread} {step}")));
            assert!(own.last().is_none_or(|last| last.id < said.id), "ids rise");
            own.insert(0, said.clone());
            assert_eq!(subject.comment(said.id), said);
            let newest = subject.thread_page(parent, CommentOrder::Newest, None, 100);
            assert!(ids(&newest).contains(&said.id), "the thread has what was written");
            assert!(subject.count(parent) > own.len() as u64);
            if step % 3 == 1 {
                own[0] = subject.edit(&said, "edited");
            }
            if step % 3 == 2 {
                subject.bury(said.id, Withdrawal::Delete);
                own.remove(0);
            }
            assert_eq!(subject.comments_by(author, 3), own);
        }
    });
    let thread = subject.whole_thread(parent);
    let active = thread.iter().filter(|comment| comment.status == CommentStatus::Active).count();
    assert_eq!((thread.len(), active), (33, 25));
    assert_eq!(subject.count(parent), 25);
    assert_eq!(subject.comment(top.id).reply_count, 32);
}

fn a_walk_while_others_write<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let steady = subject.say_many(parent, 1, 12);
    let walks = AtomicUsize::new(0);
    let walk = || {
        for order in ORDERS {
            for limit in [2, 5] {
                let walked = subject.comment_thread(parent, order, limit);
                let met = ids(&walked);
                let rising = match order {
                    CommentOrder::Oldest => met.is_sorted_by(|a, b| a < b),
                    CommentOrder::Newest => met.is_sorted_by(|a, b| a > b),
                };
                assert!(rising, "out of order or twice: {met:?}");
                let met: BTreeSet<_> = met.into_iter().collect();
                assert!(steady.iter().all(|comment| met.contains(&comment.id)), "{met:?} of {steady:?}");
                for comment in walked.iter().filter(|comment| comment.author == subject.id(2)) {
                    // What is shown is one version, not half of two.
                    let text = format!("version {}", comment.version);
                    assert_eq!(comment.body.as_deref(), Some(text.as_str()), "{comment:?}");
                    assert_eq!(comment.edited_at.is_some(), comment.version > 1, "{comment:?}");
                }
            }
        }
        walks.fetch_add(1, Ordering::SeqCst);
    };
    meanwhile(walk, || {
        at_once(2, |thread| {
            for step in 0..12 {
                subject.clock.advance(1);
                let mut said = subject.say(&subject.remark(parent, 2, "version 1"));
                for version in 2..4 {
                    said = subject.edit(&said, &format!("version {version}"));
                }
                if (step + thread) % 2 == 0 {
                    subject.bury(said.id, Withdrawal::Delete);
                }
            }
            // Until whoever walks has come by.
            let mut said = subject.say(&subject.remark(parent, 2, "version 1"));
            for version in 2..EDITS_MAX {
                if walks.load(Ordering::SeqCst) > 1 {
                    break;
                }
                said = subject.edit(&said, &format!("version {version}"));
            }
        })
    });
    assert_eq!(subject.count(parent), 26);
}
