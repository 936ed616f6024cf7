//! Cases of feeds at rest: whose posts are in them and whose are not, in which order, however they were delivered.
//!
//! User 0 reads its feed after every step, so that it has an inbox all the time; user 1 follows the same and reads only
//! in the end. Both count as followers, so one more makes an author's posts pulled.

use kinfolk_core::feeds::{Delivery, NewPost, Post, PostKey, PostState};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand};
use kinfolk_core::{EdgeKind, Id, Timestamp};

use crate::INBOX_ENTRIES;
use crate::cases::posts::helpers::newest_first;
use crate::cases::subject::{NO_LIMIT, Subject, follow, unfollow};
use crate::ports::FeedPorts;
use crate::threads::block_on;

crate::cases::list_cases![cases: FeedPorts;
    a_feed_of_nobody_is_empty,
    a_feed_has_the_posts_of_one_who_is_followed,
    a_feed_merges_many_authors,
    a_feed_of_one_millisecond,
    any_key_is_a_place_in_a_feed,
    a_feed_of_posts_from_the_past,
    a_post_from_the_past_finds_its_place,
    a_feed_goes_on_where_an_inbox_ends,
    pushed_and_pulled_posts_are_merged,
    an_author_may_cross_the_threshold,
    an_author_may_cross_the_threshold_among_others,
    a_follow_brings_older_posts_in,
    a_follow_brings_more_in_than_an_inbox_holds,
    a_follow_of_one_who_is_pulled_brings_posts_in,
    an_unfollow_takes_posts_out,
    a_follow_again_brings_posts_back,
    a_deleted_post_leaves_every_feed,
    deletions_do_not_end_a_feed,
    who_comes_back_finds_everything,
    a_feed_knows_only_follows,
    a_feed_of_extreme_ids,
    a_feed_of_one_who_follows_many,
    reading_a_feed_writes_nothing,
];

/// Reads all the time.
const EAGER: u64 = 0;
/// Reads in the end.
const LAZY: u64 = 1;
/// Gives authors enough followers to be pulled.
const FAN: u64 = 2;

const MINUTE_MS: u64 = 60_000;

/// Both readers follow some, and the first reads from now on.
fn readers_follow<S: FeedPorts>(subject: &Subject<S>, authors: impl IntoIterator<Item = u64>) {
    let commands: Vec<_> =
        authors.into_iter().flat_map(|author| [follow(EAGER, author), follow(LAZY, author)]).collect();
    subject.write_follows(&commands);
    subject.assert_feeds([EAGER]);
}

fn readers_unfollow<S: FeedPorts>(subject: &Subject<S>, author: u64) {
    subject.write_follows(&[unfollow(EAGER, author), unfollow(LAZY, author)]);
    subject.assert_feeds([EAGER]);
}

/// A post by each of some, and a look at it.
fn each_posts<S: FeedPorts>(subject: &Subject<S>, authors: impl IntoIterator<Item = u64>) -> Vec<Post> {
    let one = |author| {
        subject.clock.advance(1);
        let post = subject.post(author);
        subject.feed_page(EAGER, None, 2);
        post
    };
    authors.into_iter().map(one).collect()
}

fn delivery_of<S: FeedPorts>(subject: &Subject<S>, post: &Post) -> Delivery {
    match subject.state(post.id) {
        Some(PostState::Present(_, delivery)) => delivery,
        state => panic!("{post:?} is {state:?}"),
    }
}

fn a_feed_of_nobody_is_empty<S: FeedPorts>(subject: &Subject<S>) {
    assert_eq!(subject.feed_page(EAGER, None, 5), [], "of an unknown user");
    subject.post(3);
    subject.post(EAGER);
    assert_eq!(subject.feed_page(EAGER, None, 5), [], "one's own posts are not in it");
    subject.subscribe(3, EAGER);
    subject.subscribe(EAGER, 4);
    assert_eq!(subject.feed_page(EAGER, None, 5), [], "nor are those of a follower");
    let post = subject.post(4);
    assert_eq!(subject.feed_page(EAGER, None, 5), [post]);
    assert_eq!(subject.feed_page(4, None, 5), []);
}

fn a_feed_has_the_posts_of_one_who_is_followed<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, [3]);
    let mut posts = Vec::new();
    for _ in 0..4 {
        subject.clock.advance(1);
        posts.insert(0, subject.post(3));
        assert_eq!(subject.feed_page(EAGER, None, 10), posts, "at once, the newest first");
    }
    assert_eq!(subject.feed_page(EAGER, None, 2), posts[..2]);
    assert_eq!(subject.feed_page(EAGER, Some(posts[1].key()), 1), posts[2..3]);
    assert_eq!(subject.feed_page(EAGER, Some(posts[3].key()), 1), []);
    subject.assert_feed(LAZY, &posts);
}

fn a_feed_merges_many_authors<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, 3..8);
    let posts = each_posts(subject, [3, 5, 3, 4, 7, 6, 3, 5, 4, 3, 7]);
    // No posts of authors whom the readers do not follow.
    each_posts(subject, [EAGER, LAZY, 9]);
    for reader in [EAGER, LAZY] {
        subject.assert_feed(reader, &posts);
    }
    assert_eq!(subject.feed_page(EAGER, None, 20), newest_first(&posts));
}

fn a_feed_of_one_millisecond<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, 3..6);
    subject.subscribe(FAN, 5);
    let created_at = Some(subject.ago(0));
    let mut posts = Vec::new();
    for id in [57, 51, 60, 52, 55, 59, 53, 56, 58, 54, 61, 50] {
        let request = NewPost { created_at, ..subject.named(3 + id % 3, id) };
        posts.push(subject.register(request).post);
        subject.assert_feed(EAGER, &posts);
    }
    let ids: Vec<Id> = subject.feed_page(EAGER, None, 20).iter().map(|post| post.id).collect();
    assert_eq!(ids, subject.ids((50..=61).rev()));
    subject.assert_feed(LAZY, &posts);
}

fn any_key_is_a_place_in_a_feed<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, 3..6);
    subject.subscribe(FAN, 5);
    let posts = newest_first(&each_posts(subject, [3, 4, 5, 5, 3, 4, 5, 3, 4, 5, 3]));
    let places = posts.iter().map(Post::key).flat_map(|key| {
        let earlier = Timestamp::from_millis(key.since.millis() - 1);
        [key.since, earlier].map(|since| [subject.id(0), key.id].map(|id| PostKey { since, id }))
    });
    let ends = [Timestamp::MIN, Timestamp::MAX].map(|since| PostKey { since, id: subject.id(0) });
    for after in places.flatten().chain(ends) {
        let expected: Vec<Post> = posts.iter().filter(|post| post.key() > after).cloned().collect();
        assert_eq!(subject.feed_page(EAGER, Some(after), 100), expected, "after {after:?}");
    }
    // A place stays one when its post is deleted or its author is not followed any more.
    subject.delete(posts[2].id);
    assert_eq!(subject.feed_page(EAGER, Some(posts[2].key()), 100), posts[3..]);
    subject.unsubscribe(EAGER, 3);
    let left: Vec<Post> = posts[1..].iter().filter(|post| post.author != subject.id(3)).cloned().collect();
    assert_eq!(posts[0].author, subject.id(3));
    let after = Some(posts[0].key());
    assert_eq!(
        subject.feed_page(EAGER, after, 100),
        left.into_iter().filter(|post| *post != posts[2]).collect::<Vec<_>>()
    );
}

fn a_feed_of_posts_from_the_past<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, 3..5);
    // The oldest comes last: each is below all that the inbox has.
    let mut posts = Vec::new();
    for step in 1..=12 {
        posts.push(subject.post_ago(3 + step % 2, step * MINUTE_MS));
        subject.assert_feed(EAGER, &posts);
    }
    subject.assert_feed(LAZY, &posts);
}

fn a_post_from_the_past_finds_its_place<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, 3..6);
    subject.subscribe(FAN, 5);
    let mut posts = Vec::new();
    for ago in (1..=12).rev() {
        posts.push(subject.post_ago(3 + ago % 2, 10 * ago * MINUTE_MS));
        subject.feed_page(EAGER, None, 2);
    }
    // Between what an inbox has, at its end, below it, in the middle of the rest and at the very end.
    for (ago, author) in
        [15, 45, 51, 49, 50, 61, 95, 130, 59, 5, 200, 50].into_iter().zip([3, 4, 5].into_iter().cycle())
    {
        posts.push(subject.post_ago(author, ago * MINUTE_MS));
        subject.assert_feed(EAGER, &posts);
    }
    let oldest = NewPost { created_at: Some(Timestamp::MIN), ..subject.post_request(3) };
    posts.push(subject.register(oldest).post);
    for reader in [EAGER, LAZY] {
        subject.assert_feed(reader, &posts);
    }
}

fn a_feed_goes_on_where_an_inbox_ends<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, 3..6);
    let count = 5 * INBOX_ENTRIES as u64;
    let posts = newest_first(&each_posts(subject, (0..count).map(|step| 3 + step * step % 3)));
    for page_limit in 1..=posts.len() + 2 {
        for reader in [EAGER, LAZY] {
            assert_eq!(subject.feed(reader, page_limit), posts, "user {reader} in pages of {page_limit}");
        }
    }
    // From every place on.
    for (place, post) in posts.iter().enumerate() {
        assert_eq!(
            subject.feed_page(EAGER, Some(post.key()), 4),
            posts[place + 1..(place + 5).min(posts.len())]
        );
    }
}

fn pushed_and_pulled_posts_are_merged<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, 3..7);
    subject.write_follows(&[follow(FAN, 5), follow(FAN, 6)]);
    let posts = each_posts(subject, (0..24).map(|step| 3 + step * 5 % 7 % 4));
    for post in &posts {
        let pulled = post.author >= subject.id(5);
        assert_eq!(delivery_of(subject, post), if pulled { Delivery::Pull } else { Delivery::Push });
    }
    for reader in [EAGER, LAZY] {
        subject.assert_feed(reader, &posts);
    }
    let pulled: Vec<Post> = posts.iter().filter(|post| post.author >= subject.id(5)).cloned().collect();
    subject.assert_feed(FAN, &pulled);
}

fn an_author_may_cross_the_threshold<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, [3]);
    let mut posts = Vec::new();
    for round in 0..6 {
        posts.extend(each_posts(subject, [3, 3]));
        subject.assert_feed(EAGER, &posts);
        // Up and down, and the posts before stay as they were delivered.
        if round % 2 == 0 {
            subject.subscribe(FAN, 3)
        } else {
            subject.unsubscribe(FAN, 3)
        };
        subject.assert_feed(EAGER, &posts);
    }
    let modes: Vec<Delivery> = posts.iter().map(|post| delivery_of(subject, post)).collect();
    let (push, pull) = ([Delivery::Push; 2], [Delivery::Pull; 2]);
    assert_eq!(modes, [push, pull, push, pull, push, pull].concat());
    subject.assert_feed(LAZY, &posts);
}

fn an_author_may_cross_the_threshold_among_others<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, 3..6);
    let mut posts = Vec::new();
    for round in 0..5 {
        posts.extend(each_posts(subject, [3, 4, 5, 4]));
        let (up, down) = (3 + round % 3, 3 + (round + 2) % 3);
        subject.write_follows(&[follow(FAN, up), unfollow(FAN, down)]);
        subject.assert_feed(EAGER, &posts);
    }
    // From below as well: now they have one follower less than before.
    subject.write_follows(&[unfollow(LAZY, 3), unfollow(LAZY, 4)]);
    posts.extend(each_posts(subject, [4, 3, 5, 4, 3]));
    subject.assert_feed(EAGER, &posts);
    subject.assert_feeds([LAZY, FAN]);
}

fn a_follow_brings_older_posts_in<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, [3]);
    // Those of 4 are older, in between and newer.
    let mut posts = each_posts(subject, [4, 3, 4, 3]);
    subject.assert_feeds([EAGER]);
    readers_follow(subject, [4]);
    subject.assert_feed(EAGER, &posts);
    // More than a backfill brings, and than an inbox has room for, of one who posts in between.
    let others = each_posts(subject, [5, 3, 5, 5, 3, 5, 5, 4, 5]);
    subject.assert_feeds([EAGER]);
    readers_follow(subject, [5]);
    posts.extend(others);
    subject.assert_feed(EAGER, &posts);
    posts.extend(each_posts(subject, [5, 3, 4]));
    for reader in [EAGER, LAZY] {
        subject.assert_feed(reader, &posts);
    }
}

fn a_follow_brings_more_in_than_an_inbox_holds<S: FeedPorts>(subject: &Subject<S>) {
    let mut posts = each_posts(subject, [4; 3 * INBOX_ENTRIES]);
    // Into an inbox that is empty.
    readers_follow(subject, [4]);
    subject.assert_feed(EAGER, &posts);
    // Into one that is full, all of it older, all of it newer.
    let before = |step: u64| (100 - step) * MINUTE_MS;
    let older: Vec<Post> = (0..8).map(|step| subject.post_ago(5, before(step))).collect();
    let newer = each_posts(subject, [6; 2 * INBOX_ENTRIES]);
    posts.extend(older);
    readers_follow(subject, [5]);
    subject.assert_feed(EAGER, &posts);
    posts.extend(newer);
    readers_follow(subject, [6]);
    subject.assert_feed(EAGER, &posts);
    // Deleting what is newest lets what is below it rise.
    for post in newest_first(&posts).into_iter().step_by(2).take(INBOX_ENTRIES) {
        subject.delete(post.id);
        posts.retain(|other| *other != post);
        subject.assert_feed(EAGER, &posts);
    }
    subject.assert_feed(LAZY, &posts);
}

fn a_follow_of_one_who_is_pulled_brings_posts_in<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, [3]);
    subject.write_follows(&[follow(FAN, 4), follow(10, 4), follow(11, 4)]);
    let mut posts = each_posts(subject, [4, 3, 4, 4, 3, 4, 4, 4, 3, 4]);
    subject.assert_feeds([EAGER]);
    readers_follow(subject, [4]);
    subject.assert_feed(EAGER, &posts);
    // Two leave: what comes now is pushed.
    subject.write_follows(&[unfollow(FAN, 4), unfollow(10, 4), unfollow(11, 4)]);
    posts.extend(each_posts(subject, [4, 3, 4]));
    for reader in [EAGER, LAZY] {
        subject.assert_feed(reader, &posts);
    }
}

fn an_unfollow_takes_posts_out<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, 3..6);
    subject.subscribe(FAN, 5);
    let posts = each_posts(subject, [3, 4, 5, 4, 4, 3, 5, 4, 4, 3, 4, 5]);
    let mut left = posts;
    for author in [4, 5, 3] {
        readers_unfollow(subject, author);
        left.retain(|post| post.author != subject.id(author));
        // Nor does what the author posts now.
        each_posts(subject, [author]);
        subject.assert_feed(EAGER, &left);
    }
    assert_eq!(subject.feed_page(LAZY, None, 5), []);
}

fn a_follow_again_brings_posts_back<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, 3..5);
    let mut posts = each_posts(subject, [4, 3, 4, 4, 3, 4, 4, 3, 4]);
    for round in 0..3 {
        readers_unfollow(subject, 4);
        // Posted while nobody listened, some of it deleted meanwhile.
        posts.extend(each_posts(subject, [4, 3, 4]));
        let of_four = |post: &Post| post.author == subject.id(4);
        let gone = posts.iter().rev().filter(|post| of_four(post)).nth(round).cloned().expect("4 has posted");
        subject.delete(gone.id);
        posts.retain(|post| *post != gone);
        readers_follow(subject, [4]);
        subject.assert_feed(EAGER, &posts);
    }
    // In one request, so that nobody sees it.
    subject.write_follows(&[unfollow(EAGER, 4), follow(EAGER, 4), unfollow(LAZY, 4), follow(LAZY, 4)]);
    for reader in [EAGER, LAZY] {
        subject.assert_feed(reader, &posts);
    }
}

fn a_deleted_post_leaves_every_feed<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, 3..6);
    subject.subscribe(FAN, 5);
    let mut posts = newest_first(&each_posts(subject, (0..20).map(|step| 3 + step % 3)));
    // The newest, the last of an inbox, below it, and the oldest.
    for place in [0, INBOX_ENTRIES - 1, INBOX_ENTRIES, 10, 0, 14, 1] {
        let post = posts.remove(place);
        assert!(subject.delete(post.id).changed);
        subject.assert_feed(EAGER, &posts);
    }
    // Deleted as soon as it was posted, and deleted again.
    for author in [3, 5] {
        let post = subject.post(author);
        subject.delete(post.id);
        subject.delete(post.id);
        subject.assert_feed(EAGER, &posts);
    }
    subject.assert_feed(LAZY, &posts);
}

fn deletions_do_not_end_a_feed<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, [3, 4]);
    let posts = newest_first(&each_posts(subject, [3, 4, 3, 4, 3, 4, 3, 4, 3, 4, 3, 4]));
    // All that an inbox has is deleted, and more.
    for (gone, post) in posts.iter().enumerate() {
        subject.delete(post.id);
        let left = &posts[gone + 1..];
        assert_eq!(subject.feed_page(EAGER, None, 3), left[..left.len().min(3)]);
        subject.assert_feed(EAGER, left);
    }
    let newest = each_posts(subject, [4]);
    for reader in [EAGER, LAZY] {
        subject.assert_feed(reader, &newest);
    }
}

fn who_comes_back_finds_everything<S: FeedPorts>(subject: &Subject<S>) {
    const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
    readers_follow(subject, 3..6);
    subject.subscribe(FAN, 5);
    let mut posts = each_posts(subject, [3, 4, 5, 3, 4, 3]);
    for away_days in [1, 29, 31, 400, 31] {
        // Nobody reads meanwhile.
        for author in [3, 4, 5, 3, 4, 5, 3] {
            subject.clock.advance(away_days * DAY_MS / 7);
            posts.push(subject.post(author));
        }
        subject.assert_feed(EAGER, &posts);
    }
    subject.assert_feed(LAZY, &posts);
}

fn a_feed_knows_only_follows<S: FeedPorts>(subject: &Subject<S>) {
    let others = || EdgeKind::ALL.into_iter().filter(|&kind| kind != EdgeKind::Follow);
    each_posts(subject, [3]);
    for kind in others() {
        let commands = subject.commands(&[follow(EAGER, 3), follow(EAGER, 4)]);
        subject.try_write(kind, &commands, NO_LIMIT).expect("an edge of another kind");
        each_posts(subject, [3]);
        assert_eq!(subject.feed_page(EAGER, None, 5), [], "{kind:?}");
    }
    let posts = each_posts(subject, [4]);
    subject.write_follows(&[follow(EAGER, 4)]);
    assert_eq!(subject.feed_page(EAGER, None, 5), posts);
    for kind in others() {
        let commands = subject.commands(&[unfollow(EAGER, 4)]);
        subject.try_write(kind, &commands, NO_LIMIT).expect("an edge of another kind");
        assert_eq!(subject.feed_page(EAGER, None, 5), posts, "{kind:?}");
    }
}

fn a_feed_of_extreme_ids<S: FeedPorts>(subject: &Subject<S>) {
    const READER: u64 = 77;
    let ids = subject.extreme_ids();
    let commands = ids.iter().map(|&followee| {
        let edge = Edge { follower: subject.id(READER), followee };
        EdgeCommand { action: EdgeAction::Follow, edge }
    });
    subject.try_write(EdgeKind::Follow, &commands.collect::<Vec<_>>(), NO_LIMIT).expect("the write succeeds");
    let mut posts = Vec::new();
    for (index, &author) in ids.iter().enumerate() {
        subject.feed_page(READER, None, 2);
        // All in one millisecond: only the id makes the order.
        let id = Some(ids[(index * 3 + 1) % ids.len()]);
        posts.push(subject.register(NewPost { id, author, ..subject.post_request(0) }).post);
    }
    subject.assert_feed(READER, &posts);
    let mut expected = ids;
    expected.reverse();
    let found: Vec<Id> = subject.feed_page(READER, None, 20).iter().map(|post| post.id).collect();
    assert_eq!(found, expected);
    // Those whose first look at a feed comes now follow nobody.
    for of in found {
        assert_eq!(block_on(subject.store().feed(of, None, 5)).unwrap(), []);
    }
}

fn a_feed_of_one_who_follows_many<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, 10..70);
    subject.write_follows(&(10..70).step_by(4).map(|author| follow(FAN, author)).collect::<Vec<_>>());
    let posts = each_posts(subject, (0..80).map(|step| 10 + step * 37 % 60));
    let expected = newest_first(&posts);
    for page_limit in [1, 7, 50, 80, 81] {
        for reader in [EAGER, LAZY] {
            assert_eq!(subject.feed(reader, page_limit), expected, "user {reader} in pages of {page_limit}");
        }
    }
}

fn reading_a_feed_writes_nothing<S: FeedPorts>(subject: &Subject<S>) {
    readers_follow(subject, 3..5);
    each_posts(subject, [3, 4, 3, 4, 3, 4, 3]);
    let before = subject.snapshot();
    for reader in [EAGER, LAZY, 3, 99] {
        subject.feed(reader, 2);
        subject.posts_by(reader, 2);
    }
    assert_eq!(subject.snapshot(), before);
}
