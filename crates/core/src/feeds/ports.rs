//! The ports of posts and feeds. Their documentation is the contract; `kinfolk-conformance` tests every sentence.

use std::future::Future;

use super::{Inbox, NewPost, Post, PostKey, PostState, PostWritten, WriteOutcome};
use crate::{Deployment, Frontier, Id, Result};

/// Keeps posts.
///
/// Ids of the wrong kind and payloads that are too long do not reach a store: [`super::Feeds`] refuses them.
///
/// # Contract
/// - **Durable, ordered, visible**: registering and deleting are writes like those of [`crate::graph::EdgeStore`]: an event each in the
///   same change log, ordered within each shard; nothing that changed nothing is in it. A change's `at` follows
///   the same rules; it is not the post's `created_at`, which may be older.
/// - **Registered once**: the same wish again, by id or by the author's idempotency key, is a success that answers with
///   the first post and changes nothing. It is the same if author and payload are, and the time where the later wish names one. With
///   another content: [`crate::Error::PostConflict`]. With the id of a deleted post, or the key of one:
///   [`crate::Error::PostDeleted`]. Keys are remembered for 7 days at least, and belong to their author. Of concurrent
///   wishes one is first, and the others repeat it.
/// - **Time**: without one, a post is made at its event's `at`. One that is over 5 minutes ahead of the store's clock is
///   refused with [`crate::Error::PostInFuture`]. Any older time is accepted.
/// - **Ids that the store makes** rise with every post of an author that gets one, also across restarts.
/// - **Delivery** is decided when a post is registered: `Pull` if its author has at least the threshold's followers by
///   the count that the store has at that moment, otherwise `Push`; it never changes.
/// - **Deleting** an id that was never registered is [`crate::Error::NotFound`]; deleting again changes nothing. From then on
///   no read has the payload, and neither has the change log: the event that registered the post has none.
pub trait PostStore: Deployment {
    /// Registers a post.
    fn register(&self, post: NewPost) -> impl Future<Output = Result<PostWritten>> + Send;

    /// Deletes a post.
    fn delete_post(&self, id: Id) -> impl Future<Output = Result<WriteOutcome>> + Send;

    /// For each id, what is known of it.
    fn posts(
        &self,
        ids: &[Id],
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Option<PostState>>>> + Send;

    /// Up to `limit` posts of an author in the order of [`PostKey`], strictly after `after`, without deleted ones. Fewer
    /// mean that the list ends there. A walk meets every post that is there all the time exactly once.
    fn posts_by(
        &self,
        author: Id,
        after: Option<PostKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Post>>> + Send;
}

/// Builds home feeds.
///
/// # Contract
/// - **Whole**: a feed is all posts of all whom a user follows (edges of the kind [`crate::EdgeKind::Follow`]), in the
///   order of [`PostKey`]. A walk that passes the last key of a page to the next call meets every post exactly once that
///   is there, of an author who is followed, during the whole walk: whatever is posted, deleted, followed or unfollowed
///   meanwhile, however posts are delivered, whether or not the author crosses the threshold, and however far
///   deliveries have come.
/// - **Nothing else**: no deleted post, nobody who is not followed.
/// - **At once**: what is visible counts in every page that is read later: posts, deletions, follows and unfollows. How far
///   deliveries have come shows in how long a page takes, not in what it says.
/// - **Deliveries** are done in the background, and may be done again after a crash: that changes no page.
pub trait FeedStore: PostStore {
    /// Up to `limit` posts of a user's feed, strictly after `after`. Fewer mean that the feed ends there.
    fn feed(
        &self,
        of: Id,
        after: Option<PostKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Post>>> + Send;
}

/// Keeps inboxes, which make the pages of [`FeedStore`] quick. What a page says does not depend on them.
///
/// # Contract
/// - **Complete from its key on, always**: a post is an entry if it is there, is delivered by [`super::Delivery::Push`], was
///   registered at `as_of` or before, is as new as `complete_from` or newer, and its author has been followed since `as_of` or
///   longer. Also when a follow has just brought posts in, when entries were trimmed, when the author has crossed the
///   threshold, and after a restart. What was written later may have changed it or not, also a moment before it
///   is visible.
/// - **Catching up**: `as_of` comes to every position that is visible, without anybody reading.
/// - **Nothing else**: an entry is a post that is delivered by push, of one whom the user follows or has followed. It is there
///   once, from new to old, and not older than `complete_from`. A post that was deleted, or whose author is not followed
///   any more, may stay an entry until the inbox is made again: pages look at every post, and leave it out.
/// - **Bounded**: there are never more entries than the setting allows. What is too much goes from the old end, no more of it than
///   that, and `complete_from` is then the oldest that is left.
/// - **Made by reading**: a page makes the inbox of one who follows somebody, of the newest posts that are pushed, as many as it
///   may hold (or fewer, where very many that are pulled lie in between). Who has never read has none; looking at it is not reading.
/// - **Dispensable**: an inbox can be gone at any time. No page is another without it, and the next one makes it again. What was
///   forgotten is gone at once; after a restart it may be back, and is then as right as any.
pub trait InboxStore: FeedStore {
    /// A user's inbox, if there is one.
    fn inbox(&self, of: Id, at_least: &Frontier) -> impl Future<Output = Result<Option<Inbox>>> + Send;

    /// Drops a user's inbox, if there is one.
    fn drop_inbox(&self, of: Id) -> impl Future<Output = Result<()>> + Send;
}
