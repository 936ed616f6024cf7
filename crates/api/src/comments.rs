//! Comments. Which of them a reader may see, and how much, is decided by the graph.

use std::sync::Arc;

use kinfolk_core::comments::{self, CommentStatus, Moderator, Parent, ParentKind};
use serde::{Deserialize, Serialize};

use crate::{CommentId, Id, Page, Time};

/// A comment to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CommentDraft))]
pub struct NewComment {
    /// What it says: 1 to 10,000 characters by default (`comments.body_chars_max`), at least one of them visible. Line ends become `\n` (from `\r\n` and `\r`); other
    /// control characters below U+0020 are refused, except tabs. Everything else is stored unchanged.
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    pub body: String,
    /// The comment that it replies to; without one it is at the top.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reply_to: Option<CommentId>,
}

/// A new body for a comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CommentEdit {
    /// What it says from now on, with the same rules as the body of a new comment.
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    pub body: String,
}

/// Why a moderator removes a comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CommentRemoval {
    /// Why, for other moderators: 1 to 1,000 characters, with the same rules as the body of a comment.
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    pub reason: String,
}

/// A comment, or the tombstone that keeps its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Comment {
    /// Its id.
    pub id: CommentId,
    /// The post that it comments on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub post: Option<Id>,
    /// The item that it reviews.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub item: Option<Id>,
    /// The conversation that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub conversation: Option<Id>,
    /// Its author.
    pub author: Id,
    /// What it says. Of comments that are not active only moderators see it, and of purged ones nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = false))]
    pub body: Option<Arc<str>>,
    /// 1, and one more for each edit.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub version: u32,
    /// When it was written.
    pub created_at: Time,
    /// When it was last edited, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub edited_at: Option<Time>,
    /// `active`, edited or not; `deleted` by its author, `removed` by a moderator, or `purged`: erased for good.
    #[serde(with = "status")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^(active|deleted|removed|purged)$"))]
    pub status: CommentStatus,
    /// How many comments are above it; 0 at the top.
    pub depth: u8,
    /// The comment that it replies to, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reply_to: Option<CommentId>,
    /// How many direct replies it has, tombstones included.
    pub reply_count: u64,
    /// Why a moderator removed it, for moderators.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = false))]
    pub reason: Option<Arc<str>>,
    /// The moderator who removed or purged it, for moderators: `user:` and an id, or `key:` and the name of a service's key.
    /// Missing if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_moderator")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^(user|key):.+$", required = false))]
    pub removed_by: Option<Moderator>,
}

impl Comment {
    /// What the comment belongs to; nothing if this version does not know it.
    pub fn parent(&self) -> Option<Parent> {
        ParentFields { post: self.post, item: self.item, conversation: self.conversation }.parent()
    }
}

impl From<comments::Comment> for Comment {
    fn from(comment: comments::Comment) -> Self {
        let ParentFields { post, item, conversation } = comment.parent.into();
        Self {
            id: comment.id.into(),
            post,
            item,
            conversation,
            author: comment.author.into(),
            body: comment.body,
            version: comment.version,
            created_at: comment.created_at.into(),
            edited_at: comment.edited_at.map(Time),
            status: comment.status,
            depth: comment.depth,
            reply_to: comment.reply_to.map(CommentId),
            reply_count: comment.reply_count,
            reason: comment.reason,
            removed_by: comment.removed_by,
        }
    }
}

/// A page of comments.
pub type Comments = Page<Comment>;

/// What comments belong to: one of three fields, by its kind.
#[derive(Clone, Copy, Default)]
pub(crate) struct ParentFields {
    pub post: Option<Id>,
    pub item: Option<Id>,
    pub conversation: Option<Id>,
}

impl ParentFields {
    pub(crate) fn parent(self) -> Option<Parent> {
        let Self { post, item, conversation } = self;
        let fields =
            [(ParentKind::Post, post), (ParentKind::Item, item), (ParentKind::Conversation, conversation)];
        fields.into_iter().find_map(|(kind, id)| Some(Parent { kind, id: id?.0 }))
    }
}

impl From<Parent> for ParentFields {
    fn from(Parent { kind, id }: Parent) -> Self {
        let id = Some(Id(id));
        match kind {
            ParentKind::Post => Self { post: id, ..Self::default() },
            ParentKind::Item => Self { item: id, ..Self::default() },
            ParentKind::Conversation => Self { conversation: id, ..Self::default() },
        }
    }
}

/// A comment within a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentNode {
    /// The comment.
    #[serde(flatten)]
    pub comment: Comment,
    /// The first replies to it, oldest first.
    pub replies: Vec<CommentNode>,
    /// The cursor for the replies after these; missing if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl From<comments::CommentNode> for CommentNode {
    fn from(comments::CommentNode { comment, replies, next }: comments::CommentNode) -> Self {
        Self { comment: comment.into(), replies: replies.into_iter().map(Self::from).collect(), next }
    }
}

/// Some comments on a post as a tree.
pub type CommentTree = Page<CommentNode>;

/// A version of a comment's body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CommentVersion {
    /// Its number, from 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub version: u32,
    /// Since when.
    pub at: Time,
    /// The body.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub body: Arc<str>,
}

impl From<comments::CommentVersion> for CommentVersion {
    fn from(comments::CommentVersion { version, at, body }: comments::CommentVersion) -> Self {
        Self { version, at: at.into(), body }
    }
}

/// A page of the versions of a comment.
pub type CommentHistory = Page<CommentVersion>;

/// A status by its name.
mod status {
    use std::borrow::Cow;

    use kinfolk_core::comments::CommentStatus;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(status: &CommentStatus, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(status.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<CommentStatus, D::Error> {
        let name = Cow::<str>::deserialize(from)?;
        let unknown = || D::Error::custom(format!("unknown status of a comment: {name}"));
        CommentStatus::from_name(&name).ok_or_else(unknown)
    }
}

/// A moderator: `user:` and an id, or `key:` and the name of a service's key. Other kinds are read as unknown.
pub(crate) mod optional_moderator {
    use std::borrow::Cow;

    use kinfolk_core::comments::Moderator;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::Id;

    pub(crate) fn serialize<S: Serializer>(by: &Option<Moderator>, serializer: S) -> Result<S::Ok, S::Error> {
        match by {
            Some(by) => serializer.collect_str(by),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Moderator>, D::Error> {
        Ok(Option::<Cow<str>>::deserialize(from)?.as_deref().and_then(parse))
    }

    fn parse(text: &str) -> Option<Moderator> {
        match text.split_once(':')? {
            ("user", id) => id.parse().ok().map(|id: Id| Moderator::User(id.0)),
            ("key", name) => Some(Moderator::Service(name.into())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_read_as_it_is_written() {
        let node = |id: u8, replies: &str| {
            format!(
                r#"{{"id":"00000000-0000-0000-0000-00000000000{id}","post":"70","author":"1","body":"a\n","version":2,"created_at":"1970-01-01T00:00:00.005Z","edited_at":"1970-01-01T00:00:00.007Z","status":"active","depth":0,"reply_count":0,"replies":[{replies}],"next":"abc"}}"#
            )
        };
        let json = format!(r#"{{"items":[{}]}}"#, node(1, &node(2, "")));
        let tree: CommentTree = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&tree).unwrap(), json);
        assert_eq!(
            tree.items[0].replies[0].comment.parent(),
            Some(Parent::post(kinfolk_core::Id::Integer(70)))
        );
    }

    #[test]
    fn a_tombstone_has_no_body() {
        let json = r#"{"id":"00000000-0000-0000-0000-000000000001","item":"7","author":"1","version":1,"created_at":"1970-01-01T00:00:00.005Z","status":"removed","depth":1,"reply_to":"00000000-0000-0000-0000-000000000009","reply_count":3,"reason":"spam","removed_by":"key:feed"}"#;
        let comment: Comment = serde_json::from_str(json).unwrap();
        assert_eq!((comment.status, &comment.body), (CommentStatus::Removed, &None));
        assert_eq!(serde_json::to_string(&comment).unwrap(), json);
        assert!(serde_json::from_str::<Comment>(&json.replace("removed\"", "gone\"")).is_err());
    }
}
