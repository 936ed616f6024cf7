//! The types of posts and feeds.

use std::sync::Arc;

use crate::graph::ListKey;
use crate::names::names;
use crate::{Frontier, Id, Position, Timestamp};

/// The sort key of a post: `since` is its creation time. Lists run from newest to oldest.
pub type PostKey = ListKey;

/// A post. Kinfolk does not interpret its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Its id, of the deployment's kind.
    pub id: Id,
    /// Its author.
    pub author: Id,
    /// Its creation time: set by the application, or the time of registration.
    pub created_at: Timestamp,
    /// JSON of the application.
    pub payload: Option<Arc<str>>,
}

impl Post {
    /// Its sort key.
    pub fn key(&self) -> PostKey {
        PostKey { since: self.created_at, id: self.id }
    }
}

/// How a post reaches the author's followers. Decided once, when it is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// It is written to the followers' inboxes.
    Push,
    /// Followers fetch it when they read.
    Pull,
}

names! { Delivery { Push => "push", Pull => "pull" } }

/// The state of a post id that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostState {
    /// The post exists.
    Present(Post, Delivery),
    /// The post was deleted; its id cannot be reused.
    Deleted {
        /// Its author.
        author: Id,
    },
}

/// A request to register a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPost {
    /// Its id; if `None`, the store generates one, in time order.
    pub id: Option<Id>,
    /// Its author.
    pub author: Id,
    /// Its creation time; if `None`, the time of registration.
    pub created_at: Option<Timestamp>,
    /// JSON of the application.
    pub payload: Option<Arc<str>>,
    /// Identifies the request, so that it can be retried without an id. Scoped to the author.
    pub idempotency_key: Option<Arc<str>>,
}

/// The result of registering a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostWritten {
    /// A read at this position sees the post.
    pub position: Position,
    /// The post as stored.
    pub post: Post,
    /// Whether the post is new; `false` for a retry.
    pub is_new: bool,
}

/// The result of a write that either changes one thing or nothing: a deletion, a withdrawal, a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOutcome {
    /// A read at this position sees the change.
    pub position: Position,
    /// Whether the write changed anything.
    pub changed: bool,
}

/// The materialized part of a user's feed: the newest posts that were pushed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inbox {
    /// The keys of the posts, newest first.
    pub entries: Vec<PostKey>,
    /// The inbox is complete from this key on: nothing as new or newer is missing. If `None`, it is complete.
    pub complete_from: Option<PostKey>,
    /// Everything up to this frontier has been delivered.
    pub as_of: Frontier,
}
