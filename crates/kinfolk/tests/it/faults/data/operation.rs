//! Writes of every kind of data: how each is requested, what it touches, and which change of the log is its own.

use serde_json::{Value, json};

use super::super::client::Ask;
use super::super::workload::Pair;

/// What has become of a comment; it only ever gets worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    Active,
    Deleted,
    Removed,
    Purged,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Deleted => "deleted",
            Self::Removed => "removed",
            Self::Purged => "purged",
        }
    }
}

/// A post as it is sent: with an id, or with a key and an id of the store's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPost {
    pub id: Option<u64>,
    pub key: Option<String>,
    pub author: u64,
    pub created_at: String,
    pub payload: String,
}

/// A comment as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewComment {
    pub post: u64,
    pub author: u64,
    pub key: String,
    pub body: String,
    pub reply_to: Option<String>,
}

/// A write. It is there as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Follow(Pair),
    Unfollow(Pair),
    /// A command of its own, not a request.
    Import {
        pairs: Vec<Pair>,
        since: String,
    },
    Post(NewPost),
    DeletePost {
        post: u64,
        author: u64,
    },
    Comment(NewComment),
    /// Of the version that its author has seen.
    Edit {
        comment: String,
        author: u64,
        version: usize,
        body: String,
    },
    Withdraw {
        comment: String,
        author: u64,
        status: Status,
        reason: Option<String>,
    },
    Lock {
        post: u64,
        locked: bool,
    },
}

/// What an operation changes, or relies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Pair(Pair),
    Post(u64),
    Comment(String),
}

/// Who removes, purges and locks.
pub const MODERATOR: u64 = 999;

impl Operation {
    pub fn ask(&self) -> Ask<'static> {
        let plain = |method, path: String, actor: u64| Ask {
            method,
            path,
            actor: Some(actor),
            header: None,
            body: None,
        };
        match self {
            Self::Follow(Pair { follower, followee }) => {
                plain("POST", format!("/v1/users/{followee}/follow"), *follower)
            }
            Self::Unfollow(Pair { follower, followee }) => {
                plain("DELETE", format!("/v1/users/{followee}/follow"), *follower)
            }
            Self::Import { .. } => panic!("an import is a command of its own"),
            Self::Post(new) => new.ask(),
            Self::DeletePost { post, author } => plain("DELETE", format!("/v1/posts/{post}"), *author),
            Self::Comment(new) => new.ask(),
            Self::Edit { comment, author, version, body } => Ask {
                header: Some(("If-Match", format!("\"{version}\""))),
                body: Some(json!({ "body": body })),
                ..plain("PATCH", format!("/v1/comments/{comment}"), *author)
            },
            Self::Withdraw { comment, author, status, reason } => {
                let (method, path, actor) = match status {
                    Status::Removed => ("POST", "/remove", MODERATOR),
                    Status::Purged => ("POST", "/purge", MODERATOR),
                    Status::Active | Status::Deleted => ("DELETE", "", *author),
                };
                let body = reason.as_ref().map(|reason| json!({ "reason": reason }));
                Ask { body, ..plain(method, format!("/v1/comments/{comment}{path}"), actor) }
            }
            Self::Lock { post, locked } => {
                let method = if *locked { "PUT" } else { "DELETE" };
                plain(method, format!("/v1/posts/{post}/comments/lock"), MODERATOR)
            }
        }
    }

    /// The status of success.
    pub fn status(&self) -> u16 {
        match self {
            Self::Post(_) | Self::Comment(_) => 201,
            Self::Edit { .. } => 200,
            _ => 204,
        }
    }

    /// The type that the log gives to it.
    fn kind(&self) -> &'static str {
        match self {
            Self::Follow(_) => "follow",
            Self::Unfollow(_) => "unfollow",
            Self::Import { .. } => "imported",
            Self::Post(_) => "post",
            Self::DeletePost { .. } => "post_deleted",
            Self::Comment(_) => "comment",
            Self::Edit { .. } => "comment_edited",
            Self::Withdraw { status: Status::Removed, .. } => "comment_removed",
            Self::Withdraw { status: Status::Purged, .. } => "comment_purged",
            Self::Withdraw { .. } => "comment_deleted",
            Self::Lock { locked: true, .. } => "comments_locked",
            Self::Lock { locked: false, .. } => "comments_unlocked",
        }
    }

    /// Whether a change of the log may be this operation. What the log shows only for a time is compared apart: the
    /// text of a comment while it is the current one, and the payload of a post until the post is deleted.
    pub fn is(&self, change: &Value) -> bool {
        let text = |field: &str| change[field].as_str();
        let number = |field: &str| text(field).and_then(|text| text.parse::<u64>().ok());
        let is_pair = |pair: &Pair| {
            number("follower") == Some(pair.follower) && number("followee") == Some(pair.followee)
        };
        change["type"] == self.kind()
            && match self {
                Self::Follow(pair) | Self::Unfollow(pair) => is_pair(pair),
                Self::Import { .. } => true,
                Self::Post(new) => {
                    new.id.is_none_or(|id| number("post") == Some(id))
                        && number("author") == Some(new.author)
                        && text("created_at") == Some(&new.created_at)
                        && text("payload").is_none_or(|payload| payload == new.payload)
                }
                Self::DeletePost { post, author } => {
                    number("post") == Some(*post) && number("author") == Some(*author)
                }
                Self::Comment(new) => {
                    number("post") == Some(new.post)
                        && number("author") == Some(new.author)
                        && text("reply_to") == new.reply_to.as_deref()
                }
                Self::Edit { comment, version, .. } => {
                    text("comment") == Some(comment) && change["version"] == version + 1
                }
                Self::Withdraw { comment, .. } => text("comment") == Some(comment),
                Self::Lock { post, .. } => number("post") == Some(*post),
            }
    }

    /// The text that it gives to a comment.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Comment(NewComment { body, .. }) | Self::Edit { body, .. } => Some(body),
            _ => None,
        }
    }

    /// Whether two operations at once have outcomes that depend on which is first.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let disturbs = |one: &Self, other: &Self| {
            let changed = one.changes();
            changed.is_some() && (changed == other.changes() || other.needs().contains(&changed))
        };
        disturbs(self, other) || disturbs(other, self)
    }

    fn changes(&self) -> Option<Subject> {
        match self {
            Self::Follow(pair) | Self::Unfollow(pair) => Some(Subject::Pair(*pair)),
            Self::DeletePost { post, .. } | Self::Lock { post, .. } => Some(Subject::Post(*post)),
            Self::Edit { comment, .. } | Self::Withdraw { comment, .. } => {
                Some(Subject::Comment(comment.clone()))
            }
            Self::Import { .. } | Self::Post(_) | Self::Comment(_) => None,
        }
    }

    fn needs(&self) -> [Option<Subject>; 2] {
        match self {
            Self::Comment(new) => [Some(Subject::Post(new.post)), new.reply_to.clone().map(Subject::Comment)],
            _ => [None, None],
        }
    }
}

impl NewPost {
    pub fn ask(&self) -> Ask<'static> {
        let mut body = json!({ "created_at": self.created_at, "payload": self.payload });
        if let Some(id) = self.id {
            body["id"] = id.to_string().into();
        }
        Ask {
            method: "POST",
            path: "/v1/posts".to_owned(),
            actor: Some(self.author),
            header: self.key.clone().map(|key| ("Idempotency-Key", key)),
            body: Some(body),
        }
    }
}

impl NewComment {
    pub fn ask(&self) -> Ask<'static> {
        let mut body = json!({ "body": self.body });
        if let Some(reply_to) = &self.reply_to {
            body["reply_to"] = reply_to.as_str().into();
        }
        Ask {
            method: "POST",
            path: format!("/v1/posts/{}/comments", self.post),
            actor: Some(self.author),
            header: Some(("Idempotency-Key", self.key.clone())),
            body: Some(body),
        }
    }
}
