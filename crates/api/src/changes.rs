//! The change log: pages of it, and the events of its stream.

use std::borrow::Cow;
use std::sync::Arc;

use kinfolk_core::changes::{self, ChangeBody};
use kinfolk_core::comments::{self, CommentChange, CommentStatus, Moderator, Parent};
use kinfolk_core::feeds::{Delivery, Post};
use kinfolk_core::graph::Edge;
use kinfolk_core::{Position, Timestamp};
use serde::{Deserialize, Serialize};

use crate::comments::{ParentFields, optional_moderator};
use crate::scalar::position;
use crate::{CommentId, Id, Payload, Time};

/// A page of the change log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Changes {
    /// The changes, oldest first within each shard.
    pub items: Vec<Change>,
    /// The token that continues after them.
    pub next: String,
}

/// A change. Which fields it has depends on its type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Item))]
pub struct Change {
    /// Its position in the log: the shard, and the sequence within that shard. Sequences of one shard have no gaps; those of two
    /// shards are not ordered. The embedded profile has one shard, 0.
    #[serde(with = "position")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[0-9]+-[0-9]+$", example = "0-17"))]
    pub position: Position,
    /// What happened: `follow`, `unfollow`, `dismiss`, `post`, `post_deleted`, `comment`, `comment_edited`,
    /// `comment_deleted`, `comment_removed`, `comment_purged`, `comments_locked`, `comments_unlocked`, `imported`; later versions
    /// may add types.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub r#type: Cow<'static, str>,
    /// When.
    pub at: Time,
    /// The follower; of a dismissal, the user who dismissed a suggestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub follower: Option<Id>,
    /// The followee; of a dismissal, the dismissed user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub followee: Option<Id>,
    /// Since when a removed edge had existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub since: Option<Time>,
    /// How many edges an import added.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub edges: Option<u64>,
    /// The comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub comment: Option<CommentId>,
    /// The post, or the post that a comment belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub post: Option<Id>,
    /// The item that a comment reviews.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub item: Option<Id>,
    /// The conversation that a comment belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub conversation: Option<Id>,
    /// The author of the post or the comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub author: Option<Id>,
    /// When the post was created, which may be long before it was registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub created_at: Option<Time>,
    /// How the post reaches the followers of its author: `push` or `pull`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = false))]
    pub delivery: Option<Cow<'static, str>>,
    /// The payload of the post, if it has one; missing once the post is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Value, required = false))]
    pub payload: Option<Payload>,
    /// The comment that a comment replies to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reply_to: Option<CommentId>,
    /// How many comments are above a comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub depth: Option<u8>,
    /// The version that an edit created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub version: Option<u32>,
    /// The body of the comment; missing once it is edited again, deleted, removed or purged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = false))]
    pub body: Option<Arc<str>>,
    /// The moderator who removed or purged the comment: `user:` and an id, or `key:` and the name of a service's key. Missing if
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_moderator")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^(user|key):.+$", required = false))]
    pub removed_by: Option<Moderator>,
}

impl Change {
    /// What a comment, or a lock, belongs to; of a post itself, the post.
    pub fn parent(&self) -> Option<Parent> {
        ParentFields { post: self.post, item: self.item, conversation: self.conversation }.parent()
    }

    fn with_type(self, name: impl Into<Cow<'static, str>>) -> Self {
        Self { r#type: name.into(), ..self }
    }

    fn with_edge(self, Edge { follower, followee }: Edge) -> Self {
        Self { follower: Some(follower.into()), followee: Some(followee.into()), ..self }
    }

    fn with_post(self, id: kinfolk_core::Id, author: kinfolk_core::Id, created_at: Timestamp) -> Self {
        let created_at = Some(created_at.into());
        Self { post: Some(id.into()), author: Some(author.into()), created_at, ..self }
    }

    fn with_parent(self, parent: Parent) -> Self {
        let ParentFields { post, item, conversation } = parent.into();
        Self { post, item, conversation, ..self }
    }

    fn with_comment(self, id: comments::CommentId, parent: Parent, author: kinfolk_core::Id) -> Self {
        Self { comment: Some(id.into()), author: Some(author.into()), ..self.with_parent(parent) }
    }

    fn with_comment_change(self, change: CommentChange) -> Self {
        match change {
            CommentChange::Written { id, parent, author, reply_to, depth, body } => {
                let change = self.with_type("comment").with_comment(id, parent, author);
                Self { reply_to: reply_to.map(CommentId), depth: Some(depth), body, ..change }
            }
            CommentChange::Edited { id, parent, author, version, body } => {
                let change = self.with_type("comment_edited").with_comment(id, parent, author);
                Self { version: Some(version), body, ..change }
            }
            CommentChange::Withdrawn { id, parent, author, status, by } => {
                let name = match status {
                    CommentStatus::Removed => "comment_removed",
                    CommentStatus::Purged => "comment_purged",
                    // A withdrawn comment is never active.
                    CommentStatus::Deleted | CommentStatus::Active => "comment_deleted",
                };
                Self { removed_by: by, ..self.with_type(name).with_comment(id, parent, author) }
            }
            CommentChange::Locked { parent, locked } => {
                let name = if locked { "comments_locked" } else { "comments_unlocked" };
                self.with_type(name).with_parent(parent)
            }
        }
    }
}

impl From<changes::Change> for Change {
    fn from(changes::Change { position, at, body }: changes::Change) -> Self {
        let change = Self { position, at: at.into(), ..Self::default() };
        match body {
            ChangeBody::Followed { kind, edge } => change.with_type(kind.name()).with_edge(edge),
            ChangeBody::Unfollowed { kind, edge, since } => {
                let change = change.with_type(format!("un{}", kind.name())).with_edge(edge);
                Self { since: Some(since.into()), ..change }
            }
            ChangeBody::Imported { edges, .. } => Self { edges: Some(edges), ..change.with_type("imported") },
            ChangeBody::Posted { post: Post { id, author, created_at, payload }, delivery } => {
                let change = change.with_type("post").with_post(id, author, created_at);
                let delivery = Some(Delivery::name(delivery).into());
                Self { delivery, payload: payload.map(Payload), ..change }
            }
            ChangeBody::PostDeleted { id, author, created_at } => {
                change.with_type("post_deleted").with_post(id, author, created_at)
            }
            ChangeBody::Comment(comment_change) => change.with_comment_change(comment_change),
        }
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::comments::ParentKind;
    use kinfolk_core::{EdgeKind, Id, Sequence, Shard};

    use super::*;

    fn json(body: ChangeBody) -> String {
        let position = Sequence(7).on(Shard::ONLY);
        let change = Change::from(changes::Change { position, at: Timestamp::from_millis(5), body });
        let json = serde_json::to_string(&change).unwrap();
        assert_eq!(serde_json::from_str::<Change>(&json).unwrap(), change, "{json}");
        json.strip_prefix(r#"{"position":"0-7","type":"#)
            .unwrap()
            .replace(r#","at":"1970-01-01T00:00:00.005Z""#, "")
    }

    #[test]
    fn edges_and_posts() {
        let kind = EdgeKind::Follow;
        let edge = Edge { follower: Id::Integer(1), followee: Id::Integer(2) };
        let (id, author, created_at) = (Id::Integer(8), Id::Integer(1), Timestamp::from_millis(7));
        let post = Post { id, author, created_at, payload: Some(r#"{"b":1.10}"#.into()) };
        let fields = r#""post":"8","author":"1","created_at":"1970-01-01T00:00:00.007Z""#;
        for (body, expected) in [
            (ChangeBody::Followed { kind, edge }, r#""follow","follower":"1","followee":"2"}"#.to_owned()),
            (
                ChangeBody::Unfollowed { kind, edge, since: created_at },
                r#""unfollow","follower":"1","followee":"2","since":"1970-01-01T00:00:00.007Z"}"#.to_owned(),
            ),
            (ChangeBody::Imported { kind, edges: 9 }, r#""imported","edges":9}"#.to_owned()),
            (
                ChangeBody::Posted { post, delivery: Delivery::Pull },
                format!(r#""post",{fields},"delivery":"pull","payload":{{"b":1.10}}}}"#),
            ),
            (ChangeBody::PostDeleted { id, author, created_at }, format!(r#""post_deleted",{fields}}}"#)),
        ] {
            assert_eq!(json(body), expected);
        }
    }

    #[test]
    fn comments_and_locks() {
        let (parent, author) = (Parent::post(Id::Integer(8)), Id::Integer(1));
        let (id, reply_to) = (comments::CommentId(9), Some(comments::CommentId(7)));
        let fields = r#""comment":"00000000-0000-0000-0000-000000000009","post":"8","author":"1""#;
        let reply = r#""reply_to":"00000000-0000-0000-0000-000000000007","depth":1,"body":"a\n""#;
        let withdrawn = |status, by| CommentChange::Withdrawn { id, parent, author, status, by };
        let review = Parent { kind: ParentKind::Item, id: Id::Integer(8) };
        for (change, expected) in [
            (
                CommentChange::Written { id, parent, author, reply_to, depth: 1, body: Some("a\n".into()) },
                format!(r#""comment",{fields},{reply}}}"#),
            ),
            (
                CommentChange::Edited { id, parent, author, version: 2, body: None },
                format!(r#""comment_edited",{fields},"version":2}}"#),
            ),
            (withdrawn(CommentStatus::Deleted, None), format!(r#""comment_deleted",{fields}}}"#)),
            (
                withdrawn(CommentStatus::Removed, Some(Moderator::User(Id::Integer(9)))),
                format!(r#""comment_removed",{fields},"removed_by":"user:9"}}"#),
            ),
            (
                withdrawn(CommentStatus::Purged, Some(Moderator::Service("feed".into()))),
                format!(r#""comment_purged",{fields},"removed_by":"key:feed"}}"#),
            ),
            (CommentChange::Locked { parent, locked: true }, r#""comments_locked","post":"8"}"#.to_owned()),
            (
                CommentChange::Locked { parent: review, locked: false },
                r#""comments_unlocked","item":"8"}"#.to_owned(),
            ),
        ] {
            assert_eq!(json(ChangeBody::Comment(change)), expected);
        }
    }

    #[test]
    fn types_and_fields_of_later_versions_are_read() {
        let change: Change = serde_json::from_str(
            r#"{"position":"3-1","type":"liked","at":"1970-01-01T00:00:00.005Z","weight":1,"removed_by":"x:y"}"#,
        )
        .unwrap();
        assert_eq!((&*change.r#type, change.position.shard, change.removed_by), ("liked", Shard(3), None));
        assert!(
            serde_json::from_str::<Change>(r#"{"position":"3","type":"a","at":"1970-01-01T00:00:00Z"}"#)
                .is_err()
        );
    }
}
