//! The change log as its readers see it: what an event says.

use crate::comments::CommentChange;
use crate::feeds::{Delivery, Post};
use crate::graph::Edge;
use crate::{EdgeKind, Id, Position, Timestamp};

/// An event of the change log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its place in the log.
    pub position: Position,
    /// When the store accepted it. Never earlier than that of an older change of its shard.
    pub at: Timestamp,
    /// What happened.
    pub body: ChangeBody,
}

/// What an event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeBody {
    /// An edge was made. Its `since` is the event's `at`.
    Followed {
        /// Of which kind.
        kind: EdgeKind,
        /// Which edge.
        edge: Edge,
    },
    /// An edge was removed.
    Unfollowed {
        /// Of which kind.
        kind: EdgeKind,
        /// Which edge.
        edge: Edge,
        /// Since when it had existed.
        since: Timestamp,
    },
    /// Many edges were added at once: read the graph afresh.
    Imported {
        /// Of which kind.
        kind: EdgeKind,
        /// How many edges were added.
        edges: u64,
    },
    /// A post was registered.
    Posted {
        /// The post, without its payload once it was deleted.
        post: Post,
        /// How it reaches those who follow its author.
        delivery: Delivery,
    },
    /// A post was deleted.
    PostDeleted {
        /// Its id.
        id: Id,
        /// Who had made it.
        author: Id,
        /// When it had been made.
        created_at: Timestamp,
    },
    /// Something happened in a comment thread.
    Comment(CommentChange),
}
