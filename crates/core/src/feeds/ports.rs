//! The ports of posts and feeds. Their documentation is the contract; `kinfolk-conformance` tests every sentence of it.

use std::future::Future;

use super::{Inbox, NewPost, Post, PostKey, PostState, PostWritten, WriteOutcome};
use crate::{Deployment, Frontier, Id, Result};

/// Keeps posts.
///
/// [`super::Feeds`] refuses ids of the wrong kind and payloads that are too long; they do not reach a store.
///
/// # Contract
/// - **Durable, ordered, visible**: registering and deleting are writes like those of [`crate::graph::EdgeStore`]: each change
///   is one event in the same change log, ordered within its shard; a write that changes nothing has no event. The event's
///   `at` follows the same rules. It is not the post's `created_at`, which may be older.
/// - **Registered once**: a retry, by id or by the author's idempotency key, succeeds, returns the first post and changes
///   nothing. A request is a retry if author and payload are equal, and the time if the later request has one; otherwise
///   [`crate::Error::PostConflict`]. The id or key of a deleted post: [`crate::Error::PostDeleted`]. Keys are kept for at
///   least 7 days and are scoped to their author. Of concurrent equal requests one is first, and the others are retries.
/// - **Time**: without a `created_at`, a post gets its event's `at`. A time more than 5 minutes ahead of the store's clock is
///   refused with [`crate::Error::PostInFuture`]. Any earlier time is accepted.
/// - **Generated ids** increase with every post of an author, also across restarts.
/// - **Delivery** is decided when a post is registered and never changes: `Pull` if the author's follower count at that
///   moment is at least the threshold, otherwise `Push`.
/// - **Deleting** an id that was never registered is [`crate::Error::NotFound`]; deleting again changes nothing. After a
///   deletion no read returns the payload, and neither does the change log: the registering event has none from then on.
pub trait PostStore: Deployment {
    /// Registers a post.
    fn register(&self, post: NewPost) -> impl Future<Output = Result<PostWritten>> + Send;

    /// Deletes a post.
    fn delete_post(&self, id: Id) -> impl Future<Output = Result<WriteOutcome>> + Send;

    /// For each id, its state if it was used.
    fn posts(
        &self,
        ids: &[Id],
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Option<PostState>>>> + Send;

    /// Up to `limit` posts of an author in the order of [`PostKey`], strictly after `after`, without deleted ones. Fewer than
    /// `limit` mean that the list ends there. Paging returns every post that exists during the whole walk exactly once.
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
/// - **Complete**: a feed contains all posts of all followees of a user (edges of the kind [`crate::EdgeKind::Follow`]), in
///   the order of [`PostKey`]. Paging by the last key of each page returns every post exactly once that exists, and whose
///   author is followed, during the whole walk: regardless of concurrent posts, deletions, follows and unfollows, of how
///   posts are delivered, of authors crossing the threshold, and of the progress of deliveries.
/// - **Nothing else**: no deleted post, and no post of an author who is not followed.
/// - **Immediate**: every later page reflects everything visible: posts, deletions, follows and unfollows. The progress of
///   deliveries affects how long a page takes, not its content.
/// - **Deliveries** run in the background and may be repeated after a crash, without an effect on any page.
pub trait FeedStore: PostStore {
    /// Up to `limit` posts of a user's feed, strictly after `after`. Fewer than `limit` mean that the feed ends there.
    fn feed(
        &self,
        of: Id,
        after: Option<PostKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Post>>> + Send;
}

/// Keeps inboxes, which make the pages of [`FeedStore`] fast. The content of a page does not depend on them.
///
/// # Contract
/// - **Always complete from its key on**: a post is an entry if it exists, is delivered by [`super::Delivery::Push`], was
///   registered at `as_of` or earlier, is as new as `complete_from` or newer, and its author has been followed since `as_of`
///   or earlier. This holds after a follow has backfilled posts, after trimming, after the author has crossed the threshold,
///   and after a restart. Later writes may or may not be reflected, also a moment before they are visible.
/// - **Catching up**: `as_of` eventually reaches every visible position, without reads.
/// - **Nothing else**: an entry is a pushed post of a current or former followee of the user. Entries are unique,
///   sorted from newest to oldest, and not older than `complete_from`. A post that was deleted, or whose author is no longer
///   followed, may stay an entry until the inbox is rebuilt: pages check every post and skip it.
/// - **Bounded**: an inbox never has more entries than the setting allows. Only the excess is trimmed, oldest first, and
///   `complete_from` is then the oldest entry left.
/// - **Built by reading**: reading a feed page builds the inbox of a user with followees, from as many of the newest pushed
///   posts as it may hold (or fewer, if very many pulled posts lie in between). A user who has never read a page has no
///   inbox; [`InboxStore::inbox`] does not count as reading.
/// - **Dispensable**: an inbox may disappear at any time. Pages are identical with or without it, and the next page rebuilds
///   it. A dropped inbox is gone immediately; after a restart it may be back, and then satisfies this contract.
pub trait InboxStore: FeedStore {
    /// A user's inbox, if it exists.
    fn inbox(&self, of: Id, at_least: &Frontier) -> impl Future<Output = Result<Option<Inbox>>> + Send;

    /// Drops a user's inbox, if it exists.
    fn drop_inbox(&self, of: Id) -> impl Future<Output = Result<()>> + Send;
}
