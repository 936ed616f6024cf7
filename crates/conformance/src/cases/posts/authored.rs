//! Cases of an author's posts as a list, and of requests and deletions from several threads at once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::changes::ChangeBody;
use kinfolk_core::feeds::{NewPost, Post, PostKey, PostState, PostWritten};
use kinfolk_core::{Clock, Error, Id, Timestamp};

use super::helpers::{newest_first, payload};
use crate::cases::subject::Subject;
use crate::ports::PostPorts;
use crate::threads::{at_once, block_on, meanwhile};

crate::cases::list_cases![cases: PostPorts;
    posts_run_from_new_to_old,
    pages_of_posts_may_end_inside_one_millisecond,
    any_key_is_a_place_among_posts,
    who_never_posted_has_no_posts,
    a_walk_of_posts_with_changes_between_pages,
    a_walk_of_posts_with_changes_at_the_same_time,
    the_same_wish_from_several_threads,
    the_same_key_from_several_threads,
    different_wishes_for_one_id_at_once,
    deletions_from_several_threads,
    posts_of_several_threads_have_ids_of_their_own,
];

/// Posts of user 1 with ids from 100 on, three in each millisecond, in no order of ids or times; each is registered by
/// one of several threads, as a store may put them into one batch.
fn posts_in_no_order<S: PostPorts>(subject: &Subject<S>, count: u64) -> Vec<Post> {
    let posts = at_once(4, |thread| {
        let own = (0..count).filter(|index| index % 4 == thread as u64);
        own.map(|index| {
            let created_at = Some(subject.ago(index * 7 % count / 3));
            subject.register(NewPost { created_at, ..subject.named(1, 100 + index) }).post
        })
        .collect::<Vec<_>>()
    });
    newest_first(&posts.concat())
}

fn posts_run_from_new_to_old<S: PostPorts>(subject: &Subject<S>) {
    let expected = posts_in_no_order(subject, 31);
    // Others post at the same time.
    for id in 1..5 {
        subject.register(NewPost { created_at: Some(subject.ago(id)), ..subject.named(2, id) });
    }
    for page_limit in [1, 2, 3, 4, 10, 15, 30, 31, 32, 1_000] {
        assert_eq!(subject.posts_by(1, page_limit), expected, "in pages of {page_limit}");
    }
    assert_eq!(subject.posts_by(2, 2).len(), 4);
}

fn pages_of_posts_may_end_inside_one_millisecond<S: PostPorts>(subject: &Subject<S>) {
    for id in [5, 3, 9, 1, 7] {
        subject.register(subject.named(1, id));
    }
    let ids = subject.ids([9, 7, 5, 3, 1]);
    for page_limit in 1..=6 {
        let found: Vec<Id> = subject.posts_by(1, page_limit).iter().map(|post| post.id).collect();
        assert_eq!(found, ids, "in pages of {page_limit}");
    }
}

fn any_key_is_a_place_among_posts<S: PostPorts>(subject: &Subject<S>) {
    let posts = posts_in_no_order(subject, 12);
    let page = |after| block_on(subject.store().posts_by(subject.id(1), Some(after), 100)).unwrap();
    for key in posts.iter().map(Post::key) {
        for since in [key.since, key.since.plus_millis(1)] {
            for id in [subject.id(0), subject.id(105), key.id, subject.id(200)] {
                let after = PostKey { since, id };
                let expected: Vec<Post> = posts.iter().filter(|post| post.key() > after).cloned().collect();
                assert_eq!(page(after), expected, "after {after:?}");
            }
        }
    }
    assert_eq!(page(PostKey { since: Timestamp::MAX, id: subject.id(0) }), posts);
    assert_eq!(page(PostKey { since: Timestamp::MIN, id: subject.id(0) }), []);
    // The place of a deleted post stays one.
    subject.delete(posts[4].id);
    assert_eq!(page(posts[4].key()), posts[5..]);
    assert_eq!(page(posts[3].key()), posts[5..]);
    let left = [&posts[..4], &posts[5..]].concat();
    for page_limit in 1..=5 {
        assert_eq!(subject.posts_by(1, page_limit), left, "in pages of {page_limit}");
    }
}

fn who_never_posted_has_no_posts<S: PostPorts>(subject: &Subject<S>) {
    let post = subject.post(1);
    subject.subscribe(2, 1);
    assert_eq!((subject.posts_by(2, 5), subject.posts_by(3, 5)), (vec![], vec![]));
    // A post's id is not a user's.
    assert_eq!(block_on(subject.store().posts_by(post.id, None, 5)).unwrap(), []);
}

/// Whether a walk saw the posts that stayed exactly once and in order, and nothing twice.
#[track_caller]
pub(in crate::cases) fn assert_saw_once(walked: &[Post], stayed: &[Post]) {
    assert!(walked.is_sorted_by(|a, b| a.key() < b.key()), "out of order or twice: {walked:?}");
    let seen: Vec<&Post> = walked.iter().filter(|post| stayed.contains(post)).collect();
    assert_eq!(seen, stayed.iter().collect::<Vec<_>>(), "those that stayed");
}

fn a_walk_of_posts_with_changes_between_pages<S: PostPorts>(subject: &Subject<S>) {
    for page_limit in [1, 3, 5] {
        let author = page_limit as u64;
        let posts = newest_first(&subject.posts(author, 15));
        let stays = |index: usize| index % 3 != 1;
        let mut goes = (0..15).rev().filter(|&index| !stays(index));
        let stayed: Vec<Post> = (0..15).filter(|&index| stays(index)).map(|at| posts[at].clone()).collect();
        let mut walked: Vec<Post> = Vec::new();
        for round in 0.. {
            let after = walked.last().map(Post::key);
            let page = block_on(subject.store().posts_by(subject.id(author), after, page_limit)).unwrap();
            walked.extend(page.iter().cloned());
            if page.len() < page_limit || walked.len() > 100 {
                break;
            }
            subject.post(author);
            subject.post_ago(author, round % 15);
            goes.next().into_iter().for_each(|index| _ = subject.delete(posts[index].id));
        }
        assert_saw_once(&walked, &stayed);
    }
}

fn a_walk_of_posts_with_changes_at_the_same_time<S: PostPorts>(subject: &Subject<S>) {
    let stayed = newest_first(&subject.posts(1, 20));
    let round = AtomicU64::new(0);
    let change = || {
        let ago = round.fetch_add(1, Ordering::Relaxed) % 20;
        let post = subject.post_ago(1, ago);
        subject.delete(post.id);
    };
    meanwhile(change, || {
        for page_limit in [1, 2, 5, 13, 40, 1, 3] {
            assert_saw_once(&subject.posts_by(1, page_limit), &stayed);
        }
    });
}

fn the_same_wish_from_several_threads<S: PostPorts>(subject: &Subject<S>) {
    for id in 50..60 {
        let request = NewPost { payload: payload("1"), ..subject.named(1, id) };
        let posted = at_once(4, |_| subject.register(request.clone()));
        assert_eq!(posted.iter().filter(|one| one.is_new).count(), 1, "one is first: {posted:?}");
        assert!(posted.iter().all(|one| one.post == posted[0].post), "the others repeat it: {posted:?}");
    }
    assert_eq!((subject.log_length(), subject.posts_by(1, 4).len()), (10, 10));
}

fn the_same_key_from_several_threads<S: PostPorts>(subject: &Subject<S>) {
    for round in 0..10 {
        let request = subject.keyed(1, &format!("key {round}"));
        let posted = at_once(4, |_| subject.register(request.clone()));
        assert_eq!(posted.iter().filter(|one| one.is_new).count(), 1, "one is first: {posted:?}");
        assert!(posted.iter().all(|one| one.post == posted[0].post), "the others repeat it: {posted:?}");
    }
    assert_eq!((subject.log_length(), subject.posts_by(1, 4).len()), (10, 10));
}

fn different_wishes_for_one_id_at_once<S: PostPorts>(subject: &Subject<S>) {
    for id in 50..60 {
        let outcomes = at_once(4, |thread| subject.try_register(subject.named(thread as u64, id)));
        let first: Vec<_> = outcomes.iter().flatten().collect();
        assert!(first.len() == 1 && first[0].is_new, "one is first: {outcomes:?}");
        for outcome in &outcomes {
            assert!(matches!(outcome, Ok(_) | Err(Error::PostConflict { .. })), "{outcome:?}");
        }
        let state = subject.state(subject.id(id));
        let kept = matches!(&state, Some(PostState::Present(post, _)) if *post == first[0].post);
        assert!(kept, "{state:?} after {outcomes:?}");
    }
    assert_eq!(subject.log_length(), 10);
}

fn deletions_from_several_threads<S: PostPorts>(subject: &Subject<S>) {
    let posts = subject.posts(1, 8);
    for post in &posts {
        let removed = at_once(4, |thread| match thread {
            0 => {
                // Whether it comes before or after the deletion, it makes no second post.
                let again = subject.try_register(NewPost { id: Some(post.id), ..subject.post_request(1) });
                assert!(
                    matches!(&again, Ok(posted) if !posted.is_new)
                        || matches!(again, Err(Error::PostDeleted { .. }))
                );
                false
            }
            _ => subject.delete(post.id).changed,
        });
        assert_eq!(removed.iter().filter(|&&changed| changed).count(), 1);
        assert_eq!(subject.state(post.id), Some(PostState::Deleted { author: subject.id(1) }));
    }
    let deletions = subject
        .changes()
        .iter()
        .filter(|change| matches!(change.body, ChangeBody::PostDeleted { .. }))
        .count();
    assert_eq!((deletions, subject.log_length()), (8, 16));
    assert_eq!(subject.posts_by(1, 3), []);
}

fn posts_of_several_threads_have_ids_of_their_own<S: PostPorts>(subject: &Subject<S>) {
    let threads = at_once(4, |thread| {
        let one = |_| {
            subject.clock.turn_back(1);
            subject.register(subject.post_request(thread as u64))
        };
        (0..8).map(one).collect::<Vec<_>>()
    });
    let rises = |a: &PostWritten, b: &PostWritten| a.post.id < b.post.id;
    for posted in &threads {
        assert!(posted.is_sorted_by(rises), "ids rise with an author's posts: {posted:?}");
    }
    let posted: Vec<_> = threads.into_iter().flatten().collect();
    let ids: BTreeSet<Id> = posted.iter().map(|one| one.post.id).collect();
    assert_eq!((ids.len(), posted.len() as u64), (posted.len(), subject.log_length()));
    assert!(posted.iter().all(|one| one.post.created_at <= subject.clock.now().plus_millis(32)));
}
