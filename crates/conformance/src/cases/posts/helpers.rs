//! Helpers to write posts and read feeds, and the expected feed. A failure is a panic.

use std::sync::Arc;

use kinfolk_core::feeds::{NewPost, Post, PostKey, PostState, PostWritten, WriteOutcome};
use kinfolk_core::graph::Receipt;
use kinfolk_core::{Clock, Id, Result, Timestamp};

use crate::cases::subject::{Subject, follow, unfollow};
use crate::model::Model;
use crate::ports::{FeedPorts, PostPorts};
use crate::random::compare::walk_posts;
use crate::threads::block_on;

/// Small pages, those around what a follow brings in and what an inbox holds, and the whole feed.
const PAGE_LIMITS: [usize; 8] = [1, 2, 3, 4, 5, 6, 7, 1_000];

impl<S: PostPorts> Subject<S> {
    /// The request for a post of which nothing is said but who made it.
    pub(in crate::cases) fn post_request(&self, author: u64) -> NewPost {
        let author = self.id(author);
        NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None }
    }

    /// The request for a post with an id.
    pub(in crate::cases) fn named(&self, author: u64, id: u64) -> NewPost {
        NewPost { id: Some(self.id(id)), ..self.post_request(author) }
    }

    /// The request for a post under an idempotency key.
    pub(in crate::cases) fn keyed(&self, author: u64, key: &str) -> NewPost {
        NewPost { idempotency_key: Some(key.into()), ..self.post_request(author) }
    }

    /// Registers a post, and waits until it is visible if it succeeds.
    pub(in crate::cases) fn try_register(&self, request: NewPost) -> Result<PostWritten> {
        let posted = block_on(self.store().register(request))?;
        self.saw(posted.position);
        Ok(posted)
    }

    pub(in crate::cases) fn register(&self, request: NewPost) -> PostWritten {
        self.try_register(request).expect("the post is registered")
    }

    /// A new post of now, with an id that the store makes.
    pub(in crate::cases) fn post(&self, author: u64) -> Post {
        self.new_post(self.post_request(author))
    }

    /// A new post that was made some time ago.
    pub(in crate::cases) fn post_ago(&self, author: u64, millis: u64) -> Post {
        self.new_post(NewPost { created_at: Some(self.ago(millis)), ..self.post_request(author) })
    }

    fn new_post(&self, request: NewPost) -> Post {
        let posted = self.register(request);
        assert!(posted.is_new, "{posted:?} is new");
        posted.post
    }

    /// So many new posts, each a millisecond after the one before.
    pub(in crate::cases) fn posts(&self, author: u64, count: usize) -> Vec<Post> {
        let one = |_| {
            self.clock.advance(1);
            self.post(author)
        };
        (0..count).map(one).collect()
    }

    pub(in crate::cases) fn ago(&self, millis: u64) -> Timestamp {
        Timestamp::from_millis(self.clock.now().millis() - millis)
    }

    /// Deletes a post, and waits until that is visible.
    pub(in crate::cases) fn delete(&self, id: Id) -> WriteOutcome {
        let removed = block_on(self.store().delete_post(id)).expect("the post is deleted");
        self.saw(removed.position);
        removed
    }

    /// A user follows another with an edge that feeds are made of, whatever kind the case is run for.
    pub(in crate::cases) fn subscribe(&self, from: u64, to: u64) -> Receipt {
        self.write_follows(&[follow(from, to)])
    }

    pub(in crate::cases) fn unsubscribe(&self, from: u64, to: u64) -> Receipt {
        self.write_follows(&[unfollow(from, to)])
    }

    pub(in crate::cases) fn state(&self, id: Id) -> Option<PostState> {
        let states = block_on(self.store().posts(&[id])).unwrap();
        let [state] = <[_; 1]>::try_from(states).expect("an answer for each id");
        state
    }

    /// All posts of an author, walked in pages.
    pub(in crate::cases) fn posts_by(&self, author: u64, page_limit: usize) -> Vec<Post> {
        let id = self.id(author);
        let read = |after| Ok(block_on(self.store().posts_by(id, after, page_limit)).unwrap());
        walk_posts(page_limit, read).unwrap_or_else(|wrong| panic!("posts of user {author}: {wrong}"))
    }
}

impl<S: FeedPorts> Subject<S> {
    pub(in crate::cases) fn feed_page(&self, of: u64, after: Option<PostKey>, limit: usize) -> Vec<Post> {
        block_on(self.store().feed(self.id(of), after, limit)).unwrap()
    }

    /// A whole feed, walked in pages.
    pub(in crate::cases) fn feed(&self, of: u64, page_limit: usize) -> Vec<Post> {
        let walked = walk_posts(page_limit, |after| Ok(self.feed_page(of, after, page_limit)));
        walked.unwrap_or_else(|wrong| panic!("the feed of user {of}: {wrong}"))
    }

    /// A feed has exactly these posts, however long its pages are.
    #[track_caller]
    pub(in crate::cases) fn assert_feed(&self, of: u64, posts: &[Post]) {
        let expected = newest_first(posts);
        for page_limit in PAGE_LIMITS {
            let found = self.feed(of, page_limit);
            assert_eq!(found, expected, "the feed of user {of} in pages of {page_limit}");
        }
    }

    /// The feeds of these users are what the log says.
    #[track_caller]
    pub(in crate::cases) fn assert_feeds(&self, users: impl IntoIterator<Item = u64>) {
        let model = Model::replay(self.changes());
        for of in users {
            self.assert_feed(of, &model.feed(self.id(of), None, usize::MAX));
        }
    }
}

/// Posts in the order of lists.
pub(in crate::cases) fn newest_first(posts: &[Post]) -> Vec<Post> {
    let mut sorted = posts.to_vec();
    sorted.sort_by_key(Post::key);
    sorted
}

/// A payload.
pub(in crate::cases) fn payload(text: &str) -> Option<Arc<str>> {
    Some(text.into())
}
