//! The types of comments and comment threads.

use std::fmt;
use std::sync::Arc;

use crate::names::names;
use crate::{Error, Id, IdKind, Position, Result, Timestamp};

/// The kinds of parents of a comment thread. The numbers are part of keys on disk and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ParentKind {
    /// A post. It must exist when a comment is written.
    Post = 1,
    /// An item of the application, whose reviews are comments. Kinfolk does not check that it exists.
    Item = 2,
    /// A conversation of the application, whose messages are comments. Kinfolk does not check that it exists.
    Conversation = 3,
}

names! { ParentKind { Post => "post", Item => "item", Conversation => "conversation" } }

impl ParentKind {
    /// The number on disk; it never changes.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The kind with that number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// The parent of a comment thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parent {
    /// Its kind.
    pub kind: ParentKind,
    /// Its id, of the deployment's id kind.
    pub id: Id,
}

impl Parent {
    /// Appends the number of the kind, and the id.
    pub fn push_to(self, bytes: &mut Vec<u8>) {
        bytes.push(self.kind.number());
        self.id.push_to(bytes);
    }

    /// A post as a parent.
    pub fn post(id: Id) -> Self {
        Self { kind: ParentKind::Post, id }
    }
}

/// The id of a comment: a UUID of version 7, regardless of the deployment's id kind. Later comments have higher ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommentId(pub u128);

impl CommentId {
    /// Parses an id.
    pub fn parse(text: &str) -> Result<Self> {
        match IdKind::Uuid.parse(text) {
            Ok(Id::Uuid(value)) => Ok(Self(value)),
            Ok(Id::Integer(value)) => Ok(Self(value.into())),
            // The deployment's id kind does not matter here.
            Err(Error::InvalidId { input, .. }) => {
                let reason = "the id of a comment is a UUID such as 0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
                Err(Error::InvalidId { input, reason })
            }
            Err(other) => Err(other),
        }
    }
}

impl fmt::Display for CommentId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Id::Uuid(self.0).fmt(out)
    }
}

impl fmt::Debug for CommentId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The status of a comment. It only ever advances in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommentStatus {
    /// It is readable, edited or not.
    Active = 0,
    /// Its author deleted it.
    Deleted = 1,
    /// A moderator removed it.
    Removed = 2,
    /// Its bodies were erased permanently.
    Purged = 3,
}

names! {
    CommentStatus {
        Active => "active",
        Deleted => "deleted",
        Removed => "removed",
        Purged => "purged",
    }
}

/// A comment, or its tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Its id.
    pub id: CommentId,
    /// The parent of its thread.
    pub parent: Parent,
    /// Its author.
    pub author: Id,
    /// The comment that it replies to, if any.
    pub reply_to: Option<CommentId>,
    /// The number of comments above it; 0 for a top-level comment.
    pub depth: u8,
    /// When it was written.
    pub created_at: Timestamp,
    /// 1, plus 1 for each edit.
    pub version: u32,
    /// When it was last edited.
    pub edited_at: Option<Timestamp>,
    /// Its status.
    pub status: CommentStatus,
    /// Its body; `None` if it was purged or the reader may not see it.
    pub body: Option<Arc<str>>,
    /// The moderator's reason for its removal.
    pub reason: Option<Arc<str>>,
    /// The last known moderator who removed or purged it.
    pub removed_by: Option<Moderator>,
    /// The number of direct replies, including tombstones.
    pub reply_count: u64,
}

impl Comment {
    /// Whether it is active.
    pub fn is_active(&self) -> bool {
        self.status == CommentStatus::Active
    }

    /// The tombstone after a withdrawal. It keeps the reason and moderator of an earlier withdrawal unless this one has its own.
    #[must_use]
    pub fn withdrawn(self, status: CommentStatus, reason: Option<&Arc<str>>, by: Option<&Moderator>) -> Self {
        let body = self.body.filter(|_| status != CommentStatus::Purged);
        let (reason, removed_by) = (reason.cloned().or(self.reason), by.cloned().or(self.removed_by));
        Self { status, body, reason, removed_by, ..self }
    }
}

/// A request to write a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewComment {
    /// The parent of the thread.
    pub parent: Parent,
    /// The author.
    pub author: Id,
    /// The body.
    pub body: Arc<str>,
    /// The comment to reply to.
    pub reply_to: Option<CommentId>,
    /// Identifies the request, so that it can be retried. Scoped to the author.
    pub idempotency_key: Option<Arc<str>>,
    /// The maximum number of comments above it.
    pub depth_max: u8,
}

/// A request to edit a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentEdit {
    /// The comment.
    pub id: CommentId,
    /// The version that the edit is based on.
    pub version: u32,
    /// The new body.
    pub body: Arc<str>,
}

/// The ways to withdraw a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// By its author.
    Delete,
    /// By a moderator, with a reason.
    Remove(Arc<str>),
    /// Permanently: its bodies are erased.
    Purge,
}

impl Withdrawal {
    /// The status afterwards.
    pub fn status(&self) -> CommentStatus {
        match self {
            Self::Delete => CommentStatus::Deleted,
            Self::Remove(_) => CommentStatus::Removed,
            Self::Purge => CommentStatus::Purged,
        }
    }
}

/// The moderator who removes or purges a comment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Moderator {
    /// A user.
    User(Id),
    /// A service, by the name of its key.
    Service(Arc<str>),
}

impl fmt::Display for Moderator {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => write!(out, "user:{id}"),
            Self::Service(key) => write!(out, "key:{key}"),
        }
    }
}

/// The result of writing or editing a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentWritten {
    /// A read at this position sees the comment.
    pub position: Position,
    /// The comment as stored by this write.
    pub comment: Comment,
    /// Whether the write is new; `false` for a retry.
    pub is_new: bool,
}

/// A version of a comment's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentVersion {
    /// The version.
    pub version: u32,
    /// When it was written.
    pub at: Timestamp,
    /// The body.
    pub body: Arc<str>,
}

/// The order in which a thread is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CommentOrder {
    /// Oldest first.
    #[default]
    Oldest,
    /// Newest first.
    Newest,
}

names! { CommentOrder { Oldest => "oldest", Newest => "newest" } }

/// Selects direct replies to a comment, or top-level comments of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Branch {
    /// The parent of the thread.
    pub parent: Parent,
    /// The comment that they reply to; `None` for top-level comments.
    pub reply_to: Option<CommentId>,
    /// Only replies after this one; `None` for all.
    pub after: Option<CommentId>,
}

/// The state of a comment thread. A thread without comments that was never locked has the default state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommentThreadState {
    /// The number of active comments.
    pub count: u64,
    /// Whether new comments are refused.
    pub locked: bool,
}

/// A change of a comment thread in the change log. An event has a body only while it is the current body of an active
/// comment; bodies that were edited, deleted, removed or purged since are omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommentChange {
    /// A comment was written, at the event's `at`.
    Written {
        /// The comment.
        id: CommentId,
        /// The parent of its thread.
        parent: Parent,
        /// Its author.
        author: Id,
        /// The comment that it replies to.
        reply_to: Option<CommentId>,
        /// The number of comments above it.
        depth: u8,
        /// Its body.
        body: Option<Arc<str>>,
    },
    /// A comment was edited.
    Edited {
        /// The comment.
        id: CommentId,
        /// The parent of its thread.
        parent: Parent,
        /// Its author.
        author: Id,
        /// The new version.
        version: u32,
        /// The new body.
        body: Option<Arc<str>>,
    },
    /// A comment was deleted, removed or purged.
    Withdrawn {
        /// The comment.
        id: CommentId,
        /// The parent of its thread.
        parent: Parent,
        /// Its author.
        author: Id,
        /// The new status; never active.
        status: CommentStatus,
        /// The moderator who removed or purged it, if known; `None` for a deletion by its author.
        by: Option<Moderator>,
    },
    /// A thread was locked or unlocked.
    Locked {
        /// The parent of the thread.
        parent: Parent,
        /// Whether it is locked now.
        locked: bool,
    },
}
