//! The words of posts and feeds.

use std::sync::Arc;

use crate::graph::ListKey;
use crate::{Frontier, Id, Position, Timestamp};

/// The place of a post in a list of posts: `since` is when it was made. Lists run from new to old.
pub type PostKey = ListKey;

/// A post. What it says is the application's business; a small payload may come with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Its id, of the deployment's kind.
    pub id: Id,
    /// Who made it.
    pub author: Id,
    /// When, as the author's application says; otherwise when it was registered.
    pub created_at: Timestamp,
    /// A small JSON text of the application's.
    pub payload: Option<Arc<str>>,
}

impl Post {
    /// Its place in lists.
    pub fn key(&self) -> PostKey {
        PostKey { since: self.created_at, id: self.id }
    }
}

/// How a post reaches those who follow its author. Decided once, when it is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// It is put into the inboxes of followers.
    Push,
    /// Followers look for it when they read.
    Pull,
}

impl Delivery {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Push, Self::Pull];

    /// The name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pull => "pull",
        }
    }

    /// The delivery of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|delivery| delivery.name() == name)
    }
}

/// What is known of a post's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostState {
    /// There is such a post.
    Present(Post, Delivery),
    /// There was one; its id is not used again.
    Deleted {
        /// Who had made it.
        author: Id,
    },
}

/// A wish to register a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPost {
    /// Its id; made in time order by the store without one.
    pub id: Option<Id>,
    /// Who made it.
    pub author: Id,
    /// When; now without it.
    pub created_at: Option<Timestamp>,
    /// A small JSON text.
    pub payload: Option<Arc<str>>,
    /// Names the wish, so that it can be repeated without an id. Belongs to the author.
    pub idempotency_key: Option<Arc<str>>,
}

/// What registering a post did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostWritten {
    /// A read at this position sees the post.
    pub position: Position,
    /// The post, as it is stored.
    pub post: Post,
    /// Whether it is new, and not a repetition.
    pub is_new: bool,
}

/// What deleting a post did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOutcome {
    /// A read at this position does not see the post.
    pub position: Position,
    /// Whether it was there.
    pub changed: bool,
}

/// What is kept ready of a user's feed: the newest posts that were pushed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inbox {
    /// The posts, from new to old.
    pub entries: Vec<PostKey>,
    /// Nothing is missing that is as new as this key or newer; without one, nothing at all.
    pub complete_from: Option<PostKey>,
    /// What was written up to here is delivered.
    pub as_of: Frontier,
}
