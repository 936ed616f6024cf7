//! Cases of walks through a feed while it changes: what is there all the time, of one who is followed all the time, is
//! met exactly once.

use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::Clock;
use kinfolk_core::feeds::Post;

use crate::cases::posts::authored::assert_saw_once;
use crate::cases::posts::helpers::newest_first;
use crate::cases::subject::{Subject, follow, unfollow};
use crate::ports::FeedPorts;
use crate::threads::{at_once, meanwhile};

crate::cases::list_cases![cases: FeedPorts;
    new_posts_do_not_disturb_a_walk,
    a_walk_meets_what_comes_into_its_way,
    a_walk_with_everything_between_pages,
    a_walk_while_authors_cross_the_threshold,
    a_walk_with_posts_at_the_same_time,
    a_walk_with_follows_at_the_same_time,
    several_readers_and_authors_at_once,
    every_author_sees_its_own_posts_and_deletions,
];

const READER: u64 = 0;
const PAGE_LIMITS: [usize; 5] = [1, 2, 3, 5, 8];

/// The reader follows 3, 4 and 5, the last of whom has more followers; they have made posts, which are returned newest
/// first.
fn a_feed_to_walk<S: FeedPorts>(subject: &Subject<S>, count: u64) -> Vec<Post> {
    subject.write_follows(&[
        follow(READER, 3),
        follow(READER, 4),
        follow(READER, 5),
        follow(1, 5),
        follow(2, 5),
    ]);
    subject.feed_page(READER, None, 1);
    let post = |step| {
        subject.clock.advance(1);
        subject.post(3 + step * step % 7 % 3)
    };
    newest_first(&(0..count).map(post).collect::<Vec<_>>())
}

/// Walks the reader's feed, with a step in between the pages.
fn walk_with<S: FeedPorts>(subject: &Subject<S>, page_limit: usize, mut step: impl FnMut(u64)) -> Vec<Post> {
    let mut walked: Vec<Post> = Vec::new();
    for round in 0.. {
        let page = subject.feed_page(READER, walked.last().map(Post::key), page_limit);
        let is_last = page.len() < page_limit;
        walked.extend(page);
        if is_last {
            break;
        }
        assert!(walked.len() < 1_000, "the walk does not end");
        step(round);
    }
    walked
}

fn new_posts_do_not_disturb_a_walk<S: FeedPorts>(subject: &Subject<S>) {
    let mut posts = a_feed_to_walk(subject, 18);
    for page_limit in PAGE_LIMITS {
        let mut new = Vec::new();
        let walked = walk_with(subject, page_limit, |round| {
            subject.clock.advance(round % 2);
            // The inbox moves on under the walk.
            new.extend([3, 5].map(|author| subject.post(author)));
        });
        assert_eq!(walked, posts, "in pages of {page_limit}");
        posts = newest_first(&[posts, new].concat());
        // Not for ever longer.
        for post in posts.split_off(18) {
            subject.delete(post.id);
        }
    }
}

fn a_walk_meets_what_comes_into_its_way<S: FeedPorts>(subject: &Subject<S>) {
    let posts = a_feed_to_walk(subject, 12);
    let before = subject.posts(6, 8);
    let oldest = posts.last().expect("there are posts").created_at;
    let first = subject.feed_page(READER, None, 4);
    let after = first.last().map(Post::key);
    assert_eq!(first, posts[..4]);
    let ago = subject.clock.now().millis() - oldest.millis();
    // A post from the past, ahead of the walk and behind it; and a follow: all count in the next page.
    let ahead = subject.post_ago(4, ago);
    let behind = subject.post_ago(4, 0);
    subject.subscribe(READER, 6);
    let rest = newest_first(&[&posts[4..], &[ahead], &before[..]].concat());
    let rest: Vec<Post> =
        rest.into_iter().filter(|post| after.is_some_and(|after| post.key() > after)).collect();
    assert_eq!(subject.feed_page(READER, after, 100), rest);
    assert!(!rest.contains(&behind));
    // An unfollow and a deletion as well.
    subject.unsubscribe(READER, 3);
    subject.delete(posts[6].id);
    let gone = |post: &Post| post.author == subject.id(3) || *post == posts[6];
    let rest: Vec<Post> = rest.into_iter().filter(|post| !gone(post)).collect();
    assert_eq!(subject.feed_page(READER, after, 100), rest);
}

fn a_walk_with_everything_between_pages<S: FeedPorts>(subject: &Subject<S>) {
    let mut posts = a_feed_to_walk(subject, 16);
    // 6 and 7 come and go; so do some posts of those who stay.
    subject.posts(6, 6);
    subject.posts(7, 6);
    for page_limit in PAGE_LIMITS {
        let (stay, mut go): (Vec<Post>, Vec<Post>) =
            posts.iter().cloned().partition(|post| post.created_at.millis() % 4 != 1 || posts.len() < 8);
        let walked = walk_with(subject, page_limit, |round| {
            let (comes, goes) = if round.is_multiple_of(2) { (6, 7) } else { (7, 6) };
            subject.write_follows(&[follow(READER, comes), unfollow(READER, goes)]);
            subject.clock.advance(1);
            subject.post(3 + round % 5);
            subject.post_ago(3 + round % 4, round % 12);
            go.pop().into_iter().for_each(|post| _ = subject.delete(post.id));
        });
        assert_saw_once(&walked, &stay);
        subject.assert_feeds([READER]);
        posts = stay;
    }
}

fn a_walk_while_authors_cross_the_threshold<S: FeedPorts>(subject: &Subject<S>) {
    let mut posts = a_feed_to_walk(subject, 15);
    for page_limit in PAGE_LIMITS {
        let walked = walk_with(subject, page_limit, |round| {
            let author = 3 + round % 3;
            let fans = match round % 2 {
                0 => [follow(8, author), follow(9, author)],
                _ => [unfollow(8, author), unfollow(9, author)],
            };
            subject.write_follows(&fans);
            subject.clock.advance(1);
            posts.push(subject.post(author));
        });
        assert_saw_once(&walked, &newest_first(&posts)[posts.len() - 15..]);
        subject.assert_feed(READER, &posts);
        posts = newest_first(&posts);
        for post in posts.split_off(15) {
            subject.delete(post.id);
        }
    }
}

fn a_walk_with_posts_at_the_same_time<S: FeedPorts>(subject: &Subject<S>) {
    let stayed = a_feed_to_walk(subject, 20);
    let round = AtomicU64::new(0);
    let change = || {
        let round = round.fetch_add(1, Ordering::Relaxed);
        subject.clock.advance(round % 2);
        let posts = [subject.post(3 + round % 3), subject.post_ago(4 + round % 2, round % 20)];
        subject.delete(posts[(round % 2) as usize].id);
        subject.delete(posts[1 - (round % 2) as usize].id);
    };
    meanwhile(change, || {
        for page_limit in [1, 2, 5, 13, 40, 1, 3] {
            assert_saw_once(&subject.feed(READER, page_limit), &stayed);
        }
    });
    subject.assert_feed(READER, &stayed);
}

fn a_walk_with_follows_at_the_same_time<S: FeedPorts>(subject: &Subject<S>) {
    let stayed = a_feed_to_walk(subject, 15);
    subject.posts(6, 5);
    subject.posts(7, 9);
    let round = AtomicU64::new(0);
    let change = || {
        let round = round.fetch_add(1, Ordering::Relaxed);
        let (comes, goes) = if round.is_multiple_of(2) { (6, 7) } else { (7, 6) };
        // 3 crosses the threshold and back, too.
        let fan = |number| if round.is_multiple_of(2) { follow(number, 3) } else { unfollow(number, 3) };
        subject.write_follows(&[follow(READER, comes), unfollow(READER, goes), fan(8), fan(9)]);
        let post = subject.post(3);
        subject.delete(post.id);
    };
    meanwhile(change, || {
        for page_limit in [1, 2, 5, 13, 40, 1, 3] {
            assert_saw_once(&subject.feed(READER, page_limit), &stayed);
        }
    });
    subject.assert_feeds([READER]);
}

fn several_readers_and_authors_at_once<S: FeedPorts>(subject: &Subject<S>) {
    // 0 to 2 follow 3 and 4 all the time; 2 follows 5 for moments.
    let commands: Vec<_> = (0..3).flat_map(|reader| [3, 4].map(|author| follow(reader, author))).collect();
    subject.write_follows(&commands);
    let stayed = newest_first(&[subject.posts(3, 6), subject.posts(4, 6)].concat());
    at_once(5, |thread| {
        let thread = thread as u64;
        for round in 0..6 {
            match thread {
                3 => _ = subject.post(3 + round % 2),
                4 => {
                    subject.subscribe(2, 5);
                    subject.post_ago(5, round);
                    subject.unsubscribe(2, 5);
                }
                reader => assert_saw_once(&subject.feed(reader, 1 + round as usize % 4), &stayed),
            }
        }
    });
    subject.assert_feeds(0..6);
}

fn every_author_sees_its_own_posts_and_deletions<S: FeedPorts>(subject: &Subject<S>) {
    // Each thread has a reader and an author of its own, and the others keep the store busy.
    subject.write_follows(&(0..4).map(|thread| follow(10 + thread, 20 + thread)).collect::<Vec<_>>());
    at_once(4, |thread| {
        let (reader, author) = (10 + thread as u64, 20 + thread as u64);
        let mut posts: Vec<Post> = Vec::new();
        for round in 0..8 {
            posts.push(subject.post(author));
            assert_eq!(subject.feed_page(reader, None, 20), newest_first(&posts), "after a post");
            if round % 3 == 2 {
                let gone = posts.remove(round / 2);
                subject.delete(gone.id);
                assert_eq!(subject.feed_page(reader, None, 20), newest_first(&posts), "after a deletion");
            }
        }
        subject.unsubscribe(reader, author);
        assert_eq!(subject.feed_page(reader, None, 20), [], "after an unfollow");
        subject.subscribe(reader, author);
        assert_eq!(subject.feed(reader, 3), newest_first(&posts), "after a follow");
    });
}
