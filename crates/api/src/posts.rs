//! Posts.

use kinfolk_core::comments::CommentThreadState;
use kinfolk_core::feeds;
use serde::{Deserialize, Serialize};

use crate::{Id, Page, Payload, Time};

/// A post to register. Every field may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = PostDraft))]
pub struct NewPost {
    /// Its id; without one the server generates an id that rises with time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub id: Option<Id>,
    /// Its author, if that is not the actor. Only services may name another.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub author: Option<Id>,
    /// When it was created: RFC 3339, of any offset; at most 5 minutes ahead. Without a time, now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "openapi",
        schema(value_type = String, format = DateTime, pattern = "^(19[7-9][0-9]|[2-9][0-9]{3})-", required = false)
    )]
    pub created_at: Option<Time>,
    /// Any JSON, up to 4 KB, not counting white space between tokens; `null` is the same as none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Value, required = false))]
    pub payload: Option<Payload>,
}

/// A post.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Post {
    /// Its id.
    pub id: Id,
    /// Its author.
    pub author: Id,
    /// When it was created.
    pub created_at: Time,
    /// Its payload, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Value, required = false))]
    pub payload: Option<Payload>,
}

impl From<feeds::Post> for Post {
    fn from(feeds::Post { id, author, created_at, payload }: feeds::Post) -> Self {
        let payload = payload.map(Payload);
        Self { id: id.into(), author: author.into(), created_at: created_at.into(), payload }
    }
}

/// A page of posts.
pub type Posts = Page<Post>;

/// A post, and the state of its comments.
// The fields of `Post` are repeated: a flattened struct can't be deserialised with its payload kept as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PostWithComments {
    /// Its id.
    pub id: Id,
    /// Its author.
    pub author: Id,
    /// When it was created.
    pub created_at: Time,
    /// Its payload, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Value, required = false))]
    pub payload: Option<Payload>,
    /// How many comments are active.
    pub comment_count: u64,
    /// Whether new comments are refused.
    pub comments_locked: bool,
}

impl PostWithComments {
    /// A post with the state of its comments.
    pub fn new(post: feeds::Post, CommentThreadState { count, locked }: CommentThreadState) -> Self {
        let Post { id, author, created_at, payload } = post.into();
        Self { id, author, created_at, payload, comment_count: count, comments_locked: locked }
    }
}
