//! Cases of inboxes: what is in them and what is not, when they are made, and that nothing depends on them. Whether one is
//! right is asked of the log at every look.
//!
//! User 0 reads, and so has an inbox; user 1 follows the same and never reads. Both count as followers, so one more makes an
//! author's posts pulled.

use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::feeds::{Inbox, Post, PostKey};
use kinfolk_core::{EdgeKind, ErrorCode, Sequence};

use crate::cases::posts::helpers::newest_first;
use crate::cases::subject::assert_code;
use crate::cases::subject::{NO_LIMIT, Subject, follow, unfollow};
use crate::model::Model;
use crate::model::inboxes::{settled_inbox, sound_inbox};
use crate::ports::InboxPorts;
use crate::seen::Seen;
use crate::threads::{block_on, meanwhile};
use crate::{BACKFILL_POSTS, INBOX_ENTRIES};

crate::cases::list_cases![cases: InboxPorts;
    who_has_not_read_has_no_inbox,
    an_inbox_has_what_is_pushed,
    an_inbox_is_made_of_the_newest,
    an_inbox_is_trimmed_from_the_old_end,
    an_inbox_of_posts_from_the_past,
    a_follow_brings_posts_into_an_inbox,
    a_follow_again_makes_no_hole_in_an_inbox,
    an_inbox_has_nothing_that_is_pulled,
    what_is_gone_is_gone_from_an_inbox_that_is_made_again,
    an_inbox_knows_only_follows,
    an_inbox_can_be_forgotten_at_any_time,
    an_inbox_keeps_its_promises_meanwhile,
    an_inbox_waits_for_a_position,
];

/// Reads.
const READER: u64 = 0;
/// Does not.
const OTHER: u64 = 1;
/// Gives authors enough followers to be pulled.
const FAN: u64 = 2;

const FULL: u64 = INBOX_ENTRIES as u64;
const MINUTE_MS: u64 = 60_000;
/// An inbox is not dropped so often.
const PAGES_MAX: usize = 100;

impl<S: InboxPorts> Subject<S> {
    /// A user's inbox, if there is one.
    #[track_caller]
    fn inbox(&self, of: u64) -> Option<Inbox> {
        sound_inbox(&*self.store(), self.id(of)).unwrap_or_else(|wrong| panic!("user {of}: {wrong}"))
    }

    /// A user's inbox, which is there, with all that is visible.
    #[track_caller]
    fn settled(&self, of: u64) -> Inbox {
        let inbox = settled_inbox(&*self.store(), self.id(of));
        inbox.unwrap_or_else(|wrong| panic!("user {of}: {wrong}")).expect("who has read has an inbox")
    }

    /// A user's inbox after a page, with all that is visible. Whatever takes posts out of an inbox may drop it as well.
    #[track_caller]
    fn settled_by_reading(&self, of: u64) -> Inbox {
        let settled = (0..PAGES_MAX).find_map(|_| {
            self.feed_page(of, None, 1);
            settled_inbox(&*self.store(), self.id(of)).unwrap_or_else(|wrong| panic!("user {of}: {wrong}"))
        });
        settled.expect("one of many pages makes an inbox that stays")
    }

    fn forget(&self, of: u64) {
        block_on(self.store().drop_inbox(self.id(of))).expect("an inbox can be forgotten");
    }

    /// Both follow some, and the reader has an inbox from now on.
    fn with_inbox(&self, authors: impl IntoIterator<Item = u64>) {
        let both = |author| [follow(READER, author), follow(OTHER, author)];
        self.write_follows(&authors.into_iter().flat_map(both).collect::<Vec<_>>());
        self.feed_page(READER, None, 1);
    }
}

fn keys(posts: &[Post]) -> Vec<PostKey> {
    newest_first(posts).iter().map(Post::key).collect()
}

/// The newest of some posts, as many as an inbox holds, and the key from which these are all.
fn newest(posts: &[Post]) -> (Vec<PostKey>, Option<PostKey>) {
    let mut keys = keys(posts);
    let is_whole = keys.len() <= INBOX_ENTRIES;
    keys.truncate(INBOX_ENTRIES);
    let complete_from = keys.last().copied().filter(|_| !is_whole);
    (keys, complete_from)
}

fn parts(inbox: Inbox) -> (Vec<PostKey>, Option<PostKey>) {
    (inbox.entries, inbox.complete_from)
}

fn who_has_not_read_has_no_inbox<S: InboxPorts>(subject: &Subject<S>) {
    assert_eq!(subject.inbox(99), None, "of an unknown user");
    subject.write_follows(&[follow(READER, 3), follow(OTHER, 3)]);
    let posts = subject.posts(3, 2);
    for _ in 0..2 {
        assert_eq!(subject.inbox(READER), None, "looking is not reading");
    }
    subject.feed_page(READER, None, 1);
    assert_eq!(parts(subject.settled(READER)), newest(&posts));
    subject.posts(3, 2);
    for of in [OTHER, 3, 99] {
        assert_eq!(subject.inbox(of), None, "user {of} has not read");
    }
    // Any page makes one, wherever it begins.
    subject.feed_page(OTHER, Some(posts[0].key()), 1);
    assert_eq!(subject.settled(OTHER).entries.len(), 4);
}

fn an_inbox_has_what_is_pushed<S: InboxPorts>(subject: &Subject<S>) {
    subject.with_inbox([3, 4]);
    assert_eq!(parts(subject.settled(READER)), (vec![], None));
    let mut posts = Vec::new();
    for author in [3, 4, 3, 3] {
        subject.clock.advance(1);
        posts.push(subject.post(author));
        // Of one whom the reader does not follow, and of the reader.
        subject.post(7);
        subject.post(READER);
        subject.inbox(READER);
        // It comes in without anybody reading.
        assert_eq!(parts(subject.settled(READER)), newest(&posts));
    }
    let before = subject.newest_frontier();
    subject.assert_newest(&subject.settled(READER).as_of);
    assert_eq!(subject.newest_frontier(), before, "and nothing else happens");
}

fn an_inbox_is_made_of_the_newest<S: InboxPorts>(subject: &Subject<S>) {
    for author in [3, 4, 5] {
        subject.posts(author, 4);
    }
    subject.write_follows(&[follow(READER, 3), follow(READER, 4), follow(READER, 5)]);
    let mut posts = Model::replay(subject.changes()).feed(subject.id(READER), None, usize::MAX);
    posts.extend([5, 3, 4, 3].map(|author| subject.post_ago(author, MINUTE_MS)));
    subject.feed_page(READER, None, 1);
    assert_eq!(parts(subject.settled(READER)), newest(&posts));
    subject.unsubscribe(READER, 5);
    subject.forget(READER);
    subject.feed_page(READER, None, 1);
    posts.retain(|post| post.author != subject.id(5));
    assert_eq!(parts(subject.settled(READER)), newest(&posts));
    // Exactly as many as it holds.
    subject.unsubscribe(READER, 3);
    subject.forget(READER);
    posts.retain(|post| post.author != subject.id(3));
    assert_eq!(posts.len(), INBOX_ENTRIES);
    subject.feed_page(READER, None, 1);
    assert_eq!(parts(subject.settled(READER)), (keys(&posts), None), "nothing is left out");
}

fn an_inbox_is_trimmed_from_the_old_end<S: InboxPorts>(subject: &Subject<S>) {
    subject.with_inbox([3, 4]);
    let mut posts = Vec::new();
    for step in 0..3 * FULL {
        subject.clock.advance(step % 2);
        posts.push(subject.post(3 + step % 2));
        subject.inbox(READER);
        if step % 3 != 1 {
            assert_eq!(parts(subject.settled(READER)), newest(&posts), "after {} posts", step + 1);
        }
    }
}

fn an_inbox_of_posts_from_the_past<S: InboxPorts>(subject: &Subject<S>) {
    subject.with_inbox([3, 4]);
    let mut posts = Vec::new();
    // Before all, after all, in between, and in one millisecond.
    for ago in [50, 60, 40, 55, 45, 65, 45, 70, 45, 10, 90, 45, 12, 11, 11, 100, 11, 11, 5] {
        posts.push(subject.post_ago(3 + ago % 2, ago));
        let inbox = subject.settled(READER);
        let from = inbox.complete_from;
        assert_eq!(inbox.entries, newest(&posts).0);
        assert_eq!(from.is_none(), posts.len() <= INBOX_ENTRIES, "{from:?} of {} posts", posts.len());
    }
}

fn a_follow_brings_posts_into_an_inbox<S: InboxPorts>(subject: &Subject<S>) {
    subject.with_inbox([3]);
    let mut posts = subject.posts(3, INBOX_ENTRIES - BACKFILL_POSTS);
    let brought_in = subject.posts(4, BACKFILL_POSTS);
    subject.subscribe(READER, 4);
    subject.inbox(READER);
    posts.extend(brought_in);
    assert_eq!(parts(subject.settled(READER)), (keys(&posts), None), "all of them");

    // Of each of these there are more than a follow brings in.
    let older: Vec<Post> = (0..FULL).map(|step| subject.post_ago(5, (step + 1) * MINUTE_MS)).collect();
    subject.posts(6, 2 * INBOX_ENTRIES);
    for author in [5, 6] {
        subject.subscribe(READER, author);
        subject.inbox(READER);
        let inbox = subject.settled(READER);
        assert!(inbox.complete_from.is_some(), "something is left out of {inbox:?}");
    }
    let inbox = subject.settled(READER);
    for post in subject.posts_by(6, 10).iter().take(BACKFILL_POSTS) {
        assert!(inbox.entries.contains(&post.key()), "{post:?} was brought in");
    }
    assert!(older.iter().all(|post| !inbox.entries.contains(&post.key())));
    // What is pushed later goes on from there.
    for author in [5, 4, 6, 3] {
        subject.posts(author, 1);
        subject.inbox(READER);
    }
    subject.settled(READER);
}

fn a_follow_again_makes_no_hole_in_an_inbox<S: InboxPorts>(subject: &Subject<S>) {
    subject.with_inbox([3, 4]);
    subject.posts(3, 2);
    for round in 0..4 {
        subject.posts(4, 1 + round);
        subject.unsubscribe(READER, 4);
        subject.inbox(READER);
        // Pushed while the reader does not listen, between what it has.
        subject.posts(4, 2 + round);
        subject.posts(3, 1);
        subject.post_ago(4, round as u64);
        subject.subscribe(READER, 4);
        subject.inbox(READER);
        subject.settled_by_reading(READER);
        // In one request, so that nobody sees it.
        subject.write_follows(&[unfollow(READER, 4), follow(READER, 4)]);
        subject.inbox(READER);
        subject.settled_by_reading(READER);
    }
}

fn an_inbox_has_nothing_that_is_pulled<S: InboxPorts>(subject: &Subject<S>) {
    subject.with_inbox([3, 4]);
    let mut pushed = Vec::new();
    for round in 0..3 {
        pushed.extend(subject.posts(3, 1 + round));
        assert_eq!(parts(subject.settled(READER)), newest(&pushed));
        subject.subscribe(FAN, 3);
        // In the middle of a fan-out, perhaps.
        pushed.extend(subject.posts(4, 1));
        subject.posts(3, 2);
        assert_eq!(parts(subject.settled(READER)), newest(&pushed), "what is pulled is not in it");
        subject.unsubscribe(FAN, 3);
    }
    // Nor is it in one that is made, or brought in.
    subject.forget(READER);
    subject.feed_page(READER, None, 1);
    assert_eq!(subject.settled(READER).entries, newest(&pushed).0);
    subject.write_follows(&[follow(FAN, 5), follow(OTHER, 5), follow(9, 5)]);
    subject.posts(5, 4);
    subject.subscribe(READER, 5);
    let inbox = subject.settled(READER);
    assert!(inbox.entries.iter().all(|entry| pushed.iter().any(|post| post.key() == *entry)), "{inbox:?}");
}

fn what_is_gone_is_gone_from_an_inbox_that_is_made_again<S: InboxPorts>(subject: &Subject<S>) {
    subject.with_inbox([3, 4, 5]);
    let mut posts = Vec::new();
    for step in 0..2 * FULL {
        posts.extend(subject.posts(3 + step % 3, 1));
    }
    // What is on its way would come into the one that is made, and take a place.
    subject.settled(READER);
    let again = |posts: &[Post]| {
        subject.forget(READER);
        subject.feed_page(READER, None, 1);
        assert_eq!(parts(subject.settled(READER)), newest(posts));
    };
    for place in [9, 7, 0] {
        subject.delete(posts.remove(place).id);
        subject.inbox(READER);
        again(&posts);
    }
    subject.unsubscribe(READER, 4);
    subject.inbox(READER);
    posts.retain(|post| post.author != subject.id(4));
    again(&posts);
    for post in std::mem::take(&mut posts) {
        subject.delete(post.id);
        subject.inbox(READER);
    }
    again(&posts);
}

fn an_inbox_knows_only_follows<S: InboxPorts>(subject: &Subject<S>) {
    subject.with_inbox([3]);
    let posts = subject.posts(3, 2);
    subject.posts(4, 2);
    for kind in EdgeKind::ALL.into_iter().filter(|&kind| kind != EdgeKind::Follow) {
        for command in [follow(READER, 4), unfollow(READER, 3)] {
            let commands = subject.commands(&[command]);
            subject.try_write(kind, &commands, NO_LIMIT).expect("an edge of another kind");
        }
        subject.posts(4, 1);
        assert_eq!(parts(subject.settled(READER)), newest(&posts), "{kind:?}");
    }
}

fn an_inbox_can_be_forgotten_at_any_time<S: InboxPorts>(subject: &Subject<S>) {
    subject.with_inbox([3, 4, 5]);
    subject.subscribe(FAN, 5);
    for step in 0..2 * FULL {
        // Before it gets something, and after that.
        if step % 3 == 0 {
            subject.forget(READER);
            subject.posts(3 + step % 3, 1);
        } else {
            subject.posts(3 + step % 3, 1);
            subject.settled(READER);
        }
        let before = subject.newest_frontier();
        for _ in 0..2 {
            subject.forget(READER);
            assert_eq!(subject.inbox(READER), None, "it is gone at once");
        }
        assert_eq!(subject.newest_frontier(), before, "no event tells of it");
        subject.assert_feeds([READER]);
        let generated = subject.settled(READER);
        assert!(!generated.entries.is_empty(), "the next page makes it again");
        // In the middle of a walk.
        let first = subject.feed_page(READER, None, 2);
        subject.forget(READER);
        let rest = subject.feed_page(READER, first.last().map(Post::key), 1_000);
        let model = Model::replay(subject.changes());
        assert_eq!([first, rest].concat(), model.feed(subject.id(READER), None, usize::MAX));
    }
    for nobody in [OTHER, 99] {
        subject.forget(nobody);
        assert_eq!(subject.inbox(nobody), None);
    }
}

fn an_inbox_keeps_its_promises_meanwhile<S: InboxPorts>(subject: &Subject<S>) {
    subject.with_inbox([3, 4]);
    let round = AtomicU64::new(0);
    let change = || {
        let round = round.fetch_add(1, Ordering::Relaxed);
        subject.clock.advance(round % 2);
        let post = subject.post(3 + round % 3);
        let edge = if round.is_multiple_of(2) { follow(READER, 5) } else { unfollow(READER, 5) };
        let fan = if round % 5 < 3 { follow(FAN, 3) } else { unfollow(FAN, 3) };
        subject.write_follows(&[edge, fan]);
        subject.post_ago(3 + round % 2, round % 7);
        if round % 3 == 2 {
            subject.delete(post.id);
        }
    };
    meanwhile(change, || {
        let mut steps = 0..;
        // So long that the other thread comes to something, too.
        while let Some(step) = steps.next().filter(|&step| step < 24 || round.load(Ordering::Relaxed) < 12) {
            subject.inbox(READER);
            if step % 4 == 0 {
                subject.feed_page(READER, None, 1 + step % 3);
            }
            if step % 10 == 9 {
                subject.forget(READER);
            }
        }
    });
    subject.settled_by_reading(READER);
    subject.assert_feeds([READER]);
}

/// It is shown to one who has seen a position once that is visible, and not before.
fn an_inbox_waits_for_a_position<S: InboxPorts>(subject: &Subject<S>) {
    subject.with_inbox([3]);
    let posted = subject.register(subject.post_request(3));
    subject.settled(READER);
    let inbox = |position| {
        let store = Seen::new(subject.graph.store(), position);
        block_on(store.inbox(subject.id(READER)))
    };
    assert!(inbox(posted.position).expect("it is visible").is_some());
    assert_code(inbox(Sequence(1_000_000).on(posted.position.shard)), ErrorCode::NotYetVisible);
}
