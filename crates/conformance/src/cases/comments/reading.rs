//! Cases of reading comments: threads in both orders, branches, an author's list, many at once.

use kinfolk_core::comments::{
    Branch, Comment, CommentId, CommentOrder, CommentStatus, CommentThreadState, NewComment, Parent,
    ParentKind, Withdrawal,
};
use kinfolk_core::feeds::NewPost;

use super::helpers::{NOBODY, ORDERS, ids, withdrawals};
use crate::cases::subject::Subject;
use crate::ports::CommentPorts;
use crate::threads::block_on;

super::list_cases![cases: CommentPorts;
    a_thread_is_read_in_both_orders,
    any_id_is_a_place_in_a_thread,
    a_walk_of_a_thread_with_changes_between_pages,
    threads_do_not_see_each_other,
    a_long_thread_is_whole,
    branches_are_answered_in_the_order_asked,
    a_branch_goes_on_after_any_reply,
    an_author_reads_active_comments_newest_first,
    an_authors_list_is_paged_without_gaps,
    many_comments_are_answered_in_the_order_asked,
    many_threads_are_counted_in_the_order_asked,
    nothing_is_known_of_what_was_never_written,
];

/// Comments of two users in two threads, some of them replies, some edited, some taken back; those of the first thread,
/// as they are now.
fn a_mixed_thread<S: CommentPorts>(subject: &Subject<S>, parent: Parent, beside: Parent) -> Vec<Comment> {
    let mut comments: Vec<Comment> = Vec::new();
    for step in 0..9_u64 {
        subject.clock.advance(step % 2);
        subject.say(&subject.remark(beside, step % 2, "beside"));
        let request = match step % 3 {
            0 => subject.remark(parent, step % 2, "top"),
            _ => subject.answer(&comments[step as usize - 1], step % 2, "reply"),
        };
        comments.push(subject.say(&request));
    }
    subject.edit(&comments[3], "edited");
    for (at, withdrawal) in [1, 4, 8].into_iter().zip(withdrawals()) {
        subject.bury(comments[at].id, withdrawal);
    }
    subject.refreshed(&comments)
}

fn a_thread_is_read_in_both_orders<S: CommentPorts>(subject: &Subject<S>) {
    let [post, item, conversation] = subject.threads_of_all_kinds();
    for (parent, beside) in [(post, item), (item, conversation)] {
        // The second round adds to what the first has left there.
        let before = subject.whole_thread(parent);
        let mut expected = [before, a_mixed_thread(subject, parent, beside)].concat();
        for order in ORDERS {
            for limit in [1, 2, 3, 4, 5, 8, 9, 10, 17, 18, 19, 1_000] {
                let found = subject.comment_thread(parent, order, limit);
                assert_eq!(found, expected, "{order:?} in pages of {limit}");
            }
            expected.reverse();
        }
        let statuses = expected.iter().filter(|comment| comment.status != CommentStatus::Active).count();
        assert_eq!(statuses, 3);
    }
}

fn any_id_is_a_place_in_a_thread<S: CommentPorts>(subject: &Subject<S>) {
    let [post, item, _] = subject.threads_of_all_kinds();
    let comments = a_mixed_thread(subject, post, item);
    let elsewhere = ids(&subject.whole_thread(item));
    let mut places: Vec<u128> = [0, 1, u128::MAX].into();
    for id in ids(&comments).into_iter().chain(elsewhere) {
        places.extend([id.0 - 1, id.0, id.0 + 1]);
    }
    for place in places.into_iter().map(CommentId) {
        let later: Vec<_> = comments.iter().filter(|comment| comment.id > place).cloned().collect();
        let mut earlier: Vec<_> = comments.iter().filter(|comment| comment.id < place).cloned().collect();
        earlier.reverse();
        for limit in [1, 2, 100] {
            let page = |order| subject.thread_page(post, order, Some(place), limit);
            assert_eq!(page(CommentOrder::Oldest), later[..limit.min(later.len())], "{limit} after {place}");
            assert_eq!(
                page(CommentOrder::Newest),
                earlier[..limit.min(earlier.len())],
                "{limit} before {place}"
            );
        }
    }
}

fn a_walk_of_a_thread_with_changes_between_pages<S: CommentPorts>(subject: &Subject<S>) {
    for order in ORDERS {
        let parent = subject.post_thread(if order == CommentOrder::Oldest { 50 } else { 51 });
        let comments = subject.say_many(parent, 1, 12);
        let mut walked: Vec<Comment> = Vec::new();
        let mut late = Vec::new();
        for step in 0.. {
            let page = subject.thread_page(parent, order, walked.last().map(|last| last.id), 2);
            let is_last = page.len() < 2;
            walked.extend(page);
            if is_last {
                break;
            }
            if step < 4 {
                late.push(subject.say(&subject.answer(&comments[4], 2, "late")));
                subject.edit(&subject.comment(comments[4].id), "edited meanwhile");
                // What the walk stands on, what is before it and what is after it.
                let last = walked.last().map(|last| last.id).expect("a full page");
                [last, comments[0].id, comments[11].id].into_iter().for_each(|id| {
                    subject.withdraw(id, withdrawals()[step % 3].clone());
                });
            }
        }
        let mut expected = ids(&comments);
        match order {
            CommentOrder::Oldest => expected.extend(ids(&late)),
            CommentOrder::Newest => expected.reverse(),
        }
        assert_eq!(ids(&walked), expected, "{order:?}: tombstones keep their places");
    }
}

fn threads_do_not_see_each_other<S: CommentPorts>(subject: &Subject<S>) {
    let mut parents: Vec<Parent> = Vec::new();
    for id in subject.extreme_ids() {
        subject.register(NewPost { id: Some(id), ..subject.post_request(9) });
        parents.extend(ParentKind::ALL.map(|kind| Parent { kind, id }));
    }
    let authors = subject.extreme_ids();
    let mut expected: Vec<Vec<Comment>> = vec![Vec::new(); parents.len()];
    for round in 0..2 {
        for (at, &parent) in parents.iter().enumerate() {
            let author = authors[(at + round) % authors.len()];
            let request = NewComment { author, ..subject.remark(parent, 0, "here") };
            expected[at].push(subject.say(&request));
        }
    }
    subject.lock(parents[4], true);
    for (at, &parent) in parents.iter().enumerate() {
        assert_eq!(subject.comment_thread(parent, CommentOrder::Oldest, 2), expected[at], "{parent:?}");
        assert_eq!(
            subject.thread_state(parent),
            CommentThreadState { count: 2, locked: at == 4 },
            "{parent:?}"
        );
    }
    for &author in &authors {
        let mut own: Vec<_> = expected.iter().flatten().filter(|one| one.author == author).cloned().collect();
        own.sort_by_key(|comment| std::cmp::Reverse(comment.id));
        assert_eq!(block_on(subject.store().comments_by(author, None, 100)).unwrap(), own, "by {author}");
    }
}

fn a_long_thread_is_whole<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let mut comments = subject.say_many(parent, 1, 100);
    let top = subject.say(&subject.remark(parent, 1, "top"));
    comments.push(top.clone());
    comments.extend((0..60).map(|_| subject.say(&subject.answer(&top, 2, "reply"))));
    comments[100].reply_count = 60;
    for limit in [7, 60, 100, 1_000] {
        assert_eq!(
            subject.comment_thread(parent, CommentOrder::Oldest, limit),
            comments,
            "in pages of {limit}"
        );
    }
    assert_eq!(subject.replies_to(&top), comments[101..]);
    assert_eq!(subject.count(parent), 161);
    comments.reverse();
    for limit in [7, 60, 100, 1_000] {
        assert_eq!(
            subject.comment_thread(parent, CommentOrder::Newest, limit),
            comments,
            "in pages of {limit}"
        );
    }
    assert_eq!(subject.comments_by(1, 9), comments[60..]);
}

fn branches_are_answered_in_the_order_asked<S: CommentPorts>(subject: &Subject<S>) {
    let [post, item, _] = subject.threads_of_all_kinds();
    let comments = a_mixed_thread(subject, post, item);
    let branch = |reply_to: Option<&Comment>| Branch {
        parent: post,
        reply_to: reply_to.map(|comment| comment.id),
        after: None,
    };
    // Chains of three: each answers the one before it.
    let of = |reply_to: Option<CommentId>| -> Vec<Comment> {
        comments.iter().filter(|comment| comment.reply_to == reply_to).cloned().collect()
    };
    let asked = [
        branch(Some(&comments[7])),
        branch(None),
        branch(Some(&comments[2])),
        branch(Some(&comments[0])),
        branch(None),
        Branch { reply_to: Some(NOBODY), ..branch(None) },
        Branch { parent: item, ..branch(None) },
    ];
    for limit in [1, 2, 100] {
        let found = block_on(subject.store().replies(&asked, limit)).unwrap();
        let mut expected: Vec<Vec<Comment>> = asked[..6].iter().map(|branch| of(branch.reply_to)).collect();
        expected.push(subject.whole_thread(item));
        expected.iter_mut().for_each(|replies| replies.truncate(limit));
        assert_eq!(found, expected, "up to {limit}");
    }
    assert_eq!(of(None).len(), 3);
    assert!(block_on(subject.store().replies(&[], 5)).unwrap().is_empty());
}

fn a_branch_goes_on_after_any_reply<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let top = subject.say(&subject.remark(parent, 1, "top"));
    let mut replies = Vec::new();
    for number in 0..7 {
        let reply = subject.say(&subject.answer(&top, 2, "reply"));
        // Between them and below them, so that a branch is not a run of ids.
        subject.say(&subject.answer(&reply, 3, "below"));
        subject.say(&subject.remark(parent, 3, "beside"));
        if number % 3 == 1 {
            subject.bury(reply.id, Withdrawal::Delete);
        }
        replies.push(reply);
    }
    let replies = subject.refreshed(&replies);
    assert!(replies.iter().all(|reply| reply.reply_count == 1));
    assert_eq!(subject.comment(top.id).reply_count, 7, "those who answer it directly");
    for limit in 1..=8 {
        let mut walked: Vec<Comment> = Vec::new();
        loop {
            let after = walked.last().map(|last| last.id);
            let branch = Branch { parent, reply_to: Some(top.id), after };
            let page = block_on(subject.store().replies(&[branch], limit)).unwrap().remove(0);
            walked.extend(page.iter().cloned());
            if page.len() < limit {
                break;
            }
        }
        assert_eq!(walked, replies, "in pages of {limit}");
    }
    for place in [0, top.id.0, replies[2].id.0 + 1, u128::MAX].map(CommentId) {
        let branch = Branch { parent, reply_to: Some(top.id), after: Some(place) };
        let found = block_on(subject.store().replies(&[branch], 100)).unwrap().remove(0);
        let expected: Vec<_> = replies.iter().filter(|reply| reply.id > place).cloned().collect();
        assert_eq!(found, expected, "after {place}");
    }
}

fn an_author_reads_active_comments_newest_first<S: CommentPorts>(subject: &Subject<S>) {
    let parents = subject.threads_of_all_kinds();
    let mut own: Vec<Comment> = Vec::new();
    for step in 0..12 {
        let parent = parents[step % 3];
        subject.say(&subject.remark(parent, 2, "of another"));
        own.push(subject.say(&subject.remark(parent, 1, "mine")));
    }
    subject.edit(&own[4], "edited");
    subject.lock(parents[1], true);
    own = subject.refreshed(&own);
    for withdrawal in withdrawals() {
        let gone = own.remove(3);
        subject.bury(gone.id, withdrawal);
        let newest_first: Vec<_> = own.iter().rev().cloned().collect();
        for limit in [1, 2, 3, 8, 9, 100] {
            assert_eq!(subject.comments_by(1, limit), newest_first, "in pages of {limit}");
        }
        let after_gone = block_on(subject.store().comments_by(subject.id(1), Some(gone.id), 100)).unwrap();
        let expected: Vec<_> = newest_first.into_iter().filter(|comment| comment.id < gone.id).collect();
        assert_eq!(after_gone, expected, "what is gone is still a place");
    }
    assert_eq!(subject.comments_by(2, 5).len(), 12);
}

fn an_authors_list_is_paged_without_gaps<S: CommentPorts>(subject: &Subject<S>) {
    let parent = subject.post_thread(50);
    let comments = subject.say_many(parent, 1, 20);
    for comment in &comments[4..16] {
        subject.bury(comment.id, Withdrawal::Delete);
    }
    let mut expected = [&comments[..4], &comments[16..]].concat();
    expected.reverse();
    for limit in 1..=9 {
        assert_eq!(subject.comments_by(1, limit), expected, "in pages of {limit}");
    }
}

fn many_comments_are_answered_in_the_order_asked<S: CommentPorts>(subject: &Subject<S>) {
    let [post, item, _] = subject.threads_of_all_kinds();
    let comments = a_mixed_thread(subject, post, item);
    let mut asked = ids(&comments);
    asked.reverse();
    asked.insert(3, NOBODY);
    asked.extend([comments[2].id, CommentId(u128::MAX), comments[2].id]);
    let expected: Vec<Option<Comment>> =
        asked.iter().map(|id| comments.iter().find(|comment| comment.id == *id).cloned()).collect();
    assert_eq!(block_on(subject.store().comments(&asked)).unwrap(), expected);
    assert_eq!(block_on(subject.store().comments(&[])).unwrap(), []);
}

fn many_threads_are_counted_in_the_order_asked<S: CommentPorts>(subject: &Subject<S>) {
    let [post, item, conversation] = subject.threads_of_all_kinds();
    subject.say_many(post, 1, 3);
    subject.say_many(item, 1, 2);
    subject.lock(conversation, true);
    subject.lock(item, true);
    let unknown = Parent::post(subject.id(51));
    let asked = [conversation, post, unknown, item, post];
    let states = [(0, true), (3, false), (0, false), (2, true), (3, false)];
    let expected = states.map(|(count, locked)| CommentThreadState { count, locked });
    assert_eq!(block_on(subject.store().comment_threads(&asked)).unwrap(), expected);
    assert_eq!(block_on(subject.store().comment_threads(&[])).unwrap(), []);
}

fn nothing_is_known_of_what_was_never_written<S: CommentPorts>(subject: &Subject<S>) {
    for kind in ParentKind::ALL {
        let parent = Parent { kind, id: subject.id(50) };
        for order in ORDERS {
            assert_eq!(subject.comment_thread(parent, order, 5), []);
            assert_eq!(subject.thread_page(parent, order, Some(NOBODY), 5), []);
        }
        let branches = [None, Some(NOBODY)].map(|reply_to| Branch { parent, reply_to, after: None });
        assert_eq!(block_on(subject.store().replies(&branches, 5)).unwrap(), [vec![], vec![]]);
        assert_eq!(subject.thread_state(parent), CommentThreadState::default());
    }
    assert_eq!(subject.comments_by(1, 5), []);
    assert_eq!(block_on(subject.store().erase_purged()).unwrap(), 0);
    assert_eq!(subject.changes(), []);
}
