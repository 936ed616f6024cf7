//! The events of the change log, as consumers see them.

use crate::comments::CommentChange;
use crate::feeds::{Delivery, Post};
use crate::graph::Edge;
use crate::{EdgeKind, Id, Position, Timestamp};

/// An event of the change log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its position in the log.
    pub position: Position,
    /// When the store accepted it. It never decreases within a shard.
    pub at: Timestamp,
    /// What happened.
    pub body: ChangeBody,
}

/// The content of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeBody {
    /// An edge was created. Its `since` is the event's `at`.
    Followed {
        /// The kind of edge.
        kind: EdgeKind,
        /// The edge.
        edge: Edge,
    },
    /// An edge was removed.
    Unfollowed {
        /// The kind of edge.
        kind: EdgeKind,
        /// The edge.
        edge: Edge,
        /// When the edge had been created.
        since: Timestamp,
    },
    /// An import added many edges: consumers must read the graph again.
    Imported {
        /// The kind of edge.
        kind: EdgeKind,
        /// How many edges were added.
        edges: u64,
    },
    /// A post was registered.
    Posted {
        /// The post; without its payload if it was deleted since.
        post: Post,
        /// How it reaches the author's followers.
        delivery: Delivery,
    },
    /// A post was deleted.
    PostDeleted {
        /// Its id.
        id: Id,
        /// Its author.
        author: Id,
        /// Its creation time.
        created_at: Timestamp,
    },
    /// A comment thread changed.
    Comment(CommentChange),
}
