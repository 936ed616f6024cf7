//! The words of comment threads.

use std::fmt;
use std::sync::Arc;

use crate::{Error, Id, IdKind, Position, Result, Timestamp};

/// What comments can be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ParentKind {
    /// A post. It must be there when a comment is written.
    Post,
    /// Something of the application's that is reviewed. Kinfolk does not know which there are.
    Item,
    /// A conversation of the application's, whose messages are comments. Kinfolk does not know which there are.
    Conversation,
}

impl ParentKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Post, Self::Item, Self::Conversation];

    /// The number on disk; it never changes.
    pub fn number(self) -> u8 {
        match self {
            Self::Post => 1,
            Self::Item => 2,
            Self::Conversation => 3,
        }
    }

    /// The kind of that number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Post => "post",
            Self::Item => "item",
            Self::Conversation => "conversation",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What a thread belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parent {
    /// What it is.
    pub kind: ParentKind,
    /// Which one, of the deployment's kind of ids.
    pub id: Id,
}

impl Parent {
    /// The thread of a post.
    pub fn post(id: Id) -> Self {
        Self { kind: ParentKind::Post, id }
    }
}

/// The id of a comment: a UUID of version 7, whatever ids users have. Later comments of a store have higher ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommentId(pub u128);

impl CommentId {
    /// Reads an id.
    pub fn parse(text: &str) -> Result<Self> {
        match IdKind::Uuid.parse(text) {
            Ok(Id::Uuid(value)) => Ok(Self(value)),
            Ok(Id::Integer(value)) => Ok(Self(value.into())),
            // Whatever ids users have in this deployment.
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

/// What has become of a comment. It only ever gets worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommentStatus {
    /// It is there, edited or not.
    Active,
    /// Its author deleted it.
    Deleted,
    /// A moderator removed it.
    Removed,
    /// Its text was erased for good.
    Purged,
}

impl CommentStatus {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Active, Self::Deleted, Self::Removed, Self::Purged];

    /// The name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Deleted => "deleted",
            Self::Removed => "removed",
            Self::Purged => "purged",
        }
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// A comment, or the tombstone that keeps its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Its id.
    pub id: CommentId,
    /// What it was written to.
    pub parent: Parent,
    /// Who wrote it.
    pub author: Id,
    /// The comment that it answers, if any.
    pub reply_to: Option<CommentId>,
    /// How many comments are above it; 0 at the top.
    pub depth: u8,
    /// When it was written.
    pub created_at: Timestamp,
    /// 1, and one more for each edit.
    pub version: u32,
    /// When it was edited last.
    pub edited_at: Option<Timestamp>,
    /// What has become of it.
    pub status: CommentStatus,
    /// What it says; missing where it was purged, and where the reader may not see it.
    pub body: Option<Arc<str>>,
    /// Why a moderator removed it.
    pub reason: Option<Arc<str>>,
    /// Who removed it, or purged it later; the last one that is known.
    pub removed_by: Option<Moderator>,
    /// How many comments answer it directly, tombstones among them.
    pub reply_count: u64,
}

impl Comment {
    /// Whether it is active.
    pub fn is_active(&self) -> bool {
        self.status == CommentStatus::Active
    }

    /// The tombstone that a withdrawal leaves. What is known of an earlier one stays where the later one says nothing.
    #[must_use]
    pub fn withdrawn(self, status: CommentStatus, reason: Option<&Arc<str>>, by: Option<&Moderator>) -> Self {
        let body = self.body.filter(|_| status != CommentStatus::Purged);
        let (reason, removed_by) = (reason.cloned().or(self.reason), by.cloned().or(self.removed_by));
        Self { status, body, reason, removed_by, ..self }
    }
}

/// A wish to write a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewComment {
    /// What it is written to.
    pub parent: Parent,
    /// Who writes it.
    pub author: Id,
    /// What it says.
    pub body: Arc<str>,
    /// The comment that it answers.
    pub reply_to: Option<CommentId>,
    /// Names the wish, so that it can be repeated. Belongs to the author.
    pub idempotency_key: Option<Arc<str>>,
    /// How many comments may be above it.
    pub depth_max: u8,
}

/// A wish to edit a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentEdit {
    /// Which comment.
    pub id: CommentId,
    /// The version that the editor has seen.
    pub version: u32,
    /// What it says from now on.
    pub body: Arc<str>,
}

/// How a comment is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// By its author.
    Delete,
    /// By a moderator, who says why.
    Remove(Arc<str>),
    /// For good: its texts are erased.
    Purge,
}

impl Withdrawal {
    /// What the comment is afterwards.
    pub fn status(&self) -> CommentStatus {
        match self {
            Self::Delete => CommentStatus::Deleted,
            Self::Remove(_) => CommentStatus::Removed,
            Self::Purge => CommentStatus::Purged,
        }
    }
}

/// Who removes or purges a comment.
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

/// What writing or editing a comment did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentWritten {
    /// A read at this position sees it.
    pub position: Position,
    /// The comment, as it was stored then.
    pub comment: Comment,
    /// Whether it is new, and not a repetition.
    pub is_new: bool,
}

/// A text that a comment has or had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentVersion {
    /// Which version.
    pub version: u32,
    /// Since when.
    pub at: Timestamp,
    /// What it says.
    pub body: Arc<str>,
}

/// In which order a thread is read. Ids rise with time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CommentOrder {
    /// From the first comment on.
    #[default]
    Oldest,
    /// From the last one back.
    Newest,
}

impl CommentOrder {
    /// The name in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Oldest => "oldest",
            Self::Newest => "newest",
        }
    }

    /// The order of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Oldest, Self::Newest].into_iter().find(|order| order.name() == name)
    }
}

/// A place among the direct replies to a comment, or among those at the top of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Branch {
    /// Which thread.
    pub parent: Parent,
    /// The comment that they answer; none for those at the top.
    pub reply_to: Option<CommentId>,
    /// Only replies after this one.
    pub after: Option<CommentId>,
}

/// What is known of a thread as a whole. A thread that nobody has written to has no comments and is not locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommentThreadState {
    /// How many active comments there are.
    pub count: u64,
    /// Whether no more may be written.
    pub locked: bool,
}

/// What an event of the change log says about a thread. A text is told only while it is what an active comment says: what
/// was edited since, deleted, removed or purged is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommentChange {
    /// A comment was written, at the event's `at`.
    Written {
        /// Which.
        id: CommentId,
        /// To what.
        parent: Parent,
        /// By whom.
        author: Id,
        /// The comment that it answers.
        reply_to: Option<CommentId>,
        /// How many comments are above it.
        depth: u8,
        /// What it says.
        body: Option<Arc<str>>,
    },
    /// A comment was edited.
    Edited {
        /// Which.
        id: CommentId,
        /// To what it was written.
        parent: Parent,
        /// Who wrote it.
        author: Id,
        /// Its version since then.
        version: u32,
        /// What it says.
        body: Option<Arc<str>>,
    },
    /// A comment was deleted, removed or purged.
    Withdrawn {
        /// Which.
        id: CommentId,
        /// To what it was written.
        parent: Parent,
        /// Who wrote it.
        author: Id,
        /// What it is since then; never active.
        status: CommentStatus,
        /// Who removed or purged it, where that is known; nobody if its author deleted it.
        by: Option<Moderator>,
    },
    /// A thread was locked, or unlocked.
    Locked {
        /// Whose thread.
        parent: Parent,
        /// Whether it is locked since then.
        locked: bool,
    },
}
