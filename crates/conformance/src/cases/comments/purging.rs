//! Cases of purging comments: no read shows their bodies any more, and tombstones stay.

use kinfolk_core::ErrorCode;
use kinfolk_core::comments::{Comment, CommentStatus, NewComment, Parent, Withdrawal};

use super::helpers::{key, withdrawals};
use crate::cases::subject::Subject;
use crate::cases::subject::assert_code;
use crate::ports::CommentPorts;
use crate::threads::block_on;

super::list_cases![cases: CommentPorts;
    a_purge_takes_every_text_out_of_every_read,
    a_purge_leaves_the_others_alone,
    a_retry_after_a_purge_gets_the_tombstone,
    erasing_what_was_purged_changes_no_answer,
];

/// Occurs in every text that is purged here, and nowhere else.
const MARK: &str = "secret";

/// A comment with several texts, under a key, with replies.
fn several_texts<S: CommentPorts>(
    subject: &Subject<S>,
    parent: Parent,
    keyed: &str,
) -> (NewComment, Comment) {
    let request =
        NewComment { idempotency_key: key(keyed), ..subject.remark(parent, 1, &format!("{MARK} one")) };
    let comment = subject.say(&request);
    let comment = subject.edit(&comment, &format!("{MARK} two"));
    let comment = subject.edit(&comment, &format!("three {MARK}"));
    ["a", "b"].into_iter().for_each(|body| _ = subject.say(&subject.answer(&comment, 2, body)));
    (request, subject.comment(comment.id))
}

fn a_purge_takes_every_text_out_of_every_read<S: CommentPorts>(subject: &Subject<S>) {
    let parents = subject.threads_of_all_kinds();
    for (parent, number) in parents.into_iter().zip(0..) {
        for (before, then) in
            [None, Some(Withdrawal::Delete), Some(Withdrawal::Remove("why".into()))].into_iter().zip(0..)
        {
            let (request, comment) = several_texts(subject, parent, &format!("{number} {then}"));
            before.into_iter().for_each(|before| _ = subject.bury(comment.id, before));
            let count = subject.count(parent);
            let was_active = subject.comment(comment.id).status == CommentStatus::Active;
            let tombstone = subject.bury(comment.id, Withdrawal::Purge);
            let expected = Comment {
                status: CommentStatus::Purged,
                body: None,
                reason: tombstone.reason.clone(),
                ..comment.clone()
            };
            assert_eq!(tombstone, expected);
            let seen = format!("{:?} {:?}", subject.all_of(&parents), subject.retry(&request));
            assert!(!seen.contains(MARK), "{seen}");
            assert_eq!(subject.versions(comment.id, 10), []);
            assert_eq!(subject.replies_to(&comment).len(), 2);
            assert_eq!(subject.count(parent), count - u64::from(was_active));
        }
    }
}

fn a_purge_leaves_the_others_alone<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let (_, above) = several_texts(subject, parent, "above");
    let (_, gone) = several_texts(subject, parent, "gone");
    let (_, below) = several_texts(subject, parent, "below");
    let removed = subject.bury(below.id, Withdrawal::Remove("rude".into()));
    subject.bury(gone.id, Withdrawal::Purge);
    assert_eq!(subject.refreshed(&[above.clone(), below.clone()]), [above.clone(), removed]);
    assert_eq!(subject.versions(above.id, 10).len(), 3);
    assert_eq!(subject.versions(below.id, 10).len(), 3, "until it is purged, its texts stay");
    let reported = format!("{:?}", subject.thread_log());
    assert!(reported.contains(&format!("three {MARK}")), "what is active is told: {reported}");
}

fn a_retry_after_a_purge_gets_the_tombstone<S: CommentPorts>(subject: &Subject<S>) {
    let parents = subject.threads_of_all_kinds();
    for (parent, number) in parents.into_iter().zip(0..) {
        let (request, comment) = several_texts(subject, parent, &format!("{number}"));
        let tombstone = subject.bury(comment.id, Withdrawal::Purge);
        let retried = subject.retry(&request);
        assert_eq!((&retried, &retried.body), (&tombstone, &None), "as it is by now");
        for body in ["three secret", "whatever"] {
            let other = NewComment { body: body.into(), ..request.clone() };
            assert_code(subject.try_say(&other), ErrorCode::IdempotencyConflict);
        }
        let elsewhere = NewComment { parent: parents[(number + 1) % 3], ..request.clone() };
        assert_code(subject.try_say(&elsewhere), ErrorCode::IdempotencyConflict);
        let above = subject.say(&subject.remark(parent, 2, "above"));
        let reply = NewComment { reply_to: Some(above.id), ..request };
        assert_code(subject.try_say(&reply), ErrorCode::IdempotencyConflict);
    }
}

fn erasing_what_was_purged_changes_no_answer<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let comments: Vec<_> =
        (0..4).map(|number| several_texts(subject, parent, &format!("{number}"))).collect();
    for ((_, comment), withdrawal) in comments.iter().zip(withdrawals()) {
        subject.bury(comment.id, withdrawal);
    }
    let before = subject.all_of(&[parent]);
    let erased = block_on(subject.store().erase_purged()).unwrap();
    assert!(erased <= 1, "one was purged, not {erased}");
    assert_eq!(subject.all_of(&[parent]), before);
    assert!(block_on(subject.store().erase_purged()).unwrap() <= 1, "once more does no harm");
    assert_eq!(subject.all_of(&[parent]), before);
    for (request, comment) in &comments {
        let retried = subject.retry(request);
        let is_purged = subject.comment(comment.id).status == CommentStatus::Purged;
        assert_eq!((retried.id, retried.body.is_none()), (comment.id, is_purged));
    }
    let kept = subject.edit(&subject.comment(comments[3].1.id), "goes on");
    subject.bury(kept.id, Withdrawal::Purge);
    assert!(block_on(subject.store().erase_purged()).unwrap() <= 1);
    assert_eq!(subject.comment(kept.id).body, None);
}
