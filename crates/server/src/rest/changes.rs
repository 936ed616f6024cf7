//! The change log: polled page by page. Streaming it has a file of its own.

use std::borrow::Cow;
use std::sync::Arc;

use axum::response::IntoResponse;
use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::comments::{CommentChange, CommentId, CommentStatus, Moderator, Parent};
use kinfolk_core::feeds::Post;
use kinfolk_core::{ErrorCode, Frontier, Id, Position, Result, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::comments::ParentId;
use super::endpoint::Endpoint;
use super::extract::Call;
use super::json::{CommentName, Json, Moment, UserId, as_optional_text, as_text};
use super::problem::Answered;
use super::query::Query;
use super::routes::Routes;
use super::{Store, stream};
use crate::metrics::Operation;
use crate::payload::as_json;

/// What a position that a client asks to go on from may be refused with.
pub const POSITION_REFUSALS: &[ErrorCode] = &[
    ErrorCode::LimitOutOfRange,
    ErrorCode::InvalidToken,
    ErrorCode::PositionExpired,
    ErrorCode::NotYetVisible,
];

pub fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let poll = Endpoint::services(Operation::Changes).refusing(POSITION_REFUSALS);
    stream::routes(routes.add(poll, routes!(changes)))
}

/// A page of the change log.
#[derive(Serialize, ToSchema)]
pub struct Changes {
    /// The changes, oldest first within each shard.
    items: Vec<Item>,
    /// The token to ask with for what comes after them.
    next: String,
}

/// A change.
#[derive(Serialize, ToSchema)]
pub struct Item {
    /// Its place in the log: the shard, and the sequence within that shard. Sequences of one shard have no gaps; those of two
    /// say nothing about each other. The embedded profile has one shard, 0.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, pattern = "^[0-9]+-[0-9]+$", example = "0-17")]
    position: Position,
    /// What happened: `follow`, `unfollow`, `dismiss`, `post`, `post_deleted`, `comment`, `comment_edited`,
    /// `comment_deleted`, `comment_removed`, `comment_purged`, `comments_locked`, `comments_unlocked`, `imported`; more may
    /// come.
    #[schema(value_type = String)]
    pub r#type: Cow<'static, str>,
    /// When.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = Moment)]
    at: Timestamp,
    #[serde(flatten)]
    #[schema(inline)]
    fields: Fields,
}

/// What belongs to the type of a change.
#[derive(Default, Serialize, ToSchema)]
struct Fields {
    /// Who follows, or followed; of a dismissal, to whom somebody is not to be suggested again.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = UserId, required = false)]
    follower: Option<Id>,
    /// Whom.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = UserId, required = false)]
    followee: Option<Id>,
    /// Since when an edge that was removed had existed.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = Moment, required = false)]
    since: Option<Timestamp>,
    /// How many edges an import has added.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64, required = false)]
    edges: Option<u64>,
    /// Which comment.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = CommentName, required = false)]
    comment: Option<CommentId>,
    /// Which post, or what a comment was written to.
    #[serde(flatten)]
    #[schema(inline)]
    parent: ParentId,
    /// Who made the post, or wrote the comment.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = UserId, required = false)]
    author: Option<Id>,
    /// When the post was made, which may be long before it was registered.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = Moment, required = false)]
    created_at: Option<Timestamp>,
    /// How the post reaches those who follow its author: `push` or `pull`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    delivery: Option<&'static str>,
    /// What came with the post, if anything did; missing once the post was deleted.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_json")]
    #[schema(value_type = Value, required = false)]
    payload: Option<Arc<str>>,
    /// The comment that a comment answers.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = CommentName, required = false)]
    reply_to: Option<CommentId>,
    /// How many comments are above a comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u8, required = false)]
    depth: Option<u8>,
    /// The version that an edit has made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32, required = false)]
    version: Option<u32>,
    /// What the comment says; missing once it was edited again, deleted, removed or purged.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = String, required = false)]
    body: Option<Arc<str>>,
    /// Who removed or purged the comment: `user:` and an id, or `key:` and the name of a service's key. Missing where that is not
    /// known.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = String, pattern = "^(user|key):.+$", required = false)]
    removed_by: Option<Moderator>,
}

impl Fields {
    fn of_post(id: Id, author: Id, created_at: Timestamp) -> Self {
        let parent = Parent::post(id).into();
        Self { parent, author: Some(author), created_at: Some(created_at), ..Self::default() }
    }

    fn of_comment(id: CommentId, parent: Parent, author: Id) -> Self {
        Self { comment: Some(id), parent: parent.into(), author: Some(author), ..Self::default() }
    }
}

/// Where a client goes on: from the oldest kept without a token.
pub fn frontier<S: Store>(call: &Call<S>, after: Option<&str>) -> Result<Frontier> {
    after.map_or_else(|| Ok(Frontier::default()), |token| call.service.frontier(token))
}

/// What happened to a thread.
fn of_thread(change: CommentChange) -> (&'static str, Fields) {
    match change {
        CommentChange::Written { id, parent, author, reply_to, depth, body } => {
            let fields = Fields::of_comment(id, parent, author);
            ("comment", Fields { reply_to, depth: Some(depth), body, ..fields })
        }
        CommentChange::Edited { id, parent, author, version, body } => {
            let fields = Fields::of_comment(id, parent, author);
            ("comment_edited", Fields { version: Some(version), body, ..fields })
        }
        CommentChange::Withdrawn { id, parent, author, status, by } => {
            let name = match status {
                CommentStatus::Removed => "comment_removed",
                CommentStatus::Purged => "comment_purged",
                // No comment is withdrawn and stays active.
                CommentStatus::Deleted | CommentStatus::Active => "comment_deleted",
            };
            (name, Fields { removed_by: by, ..Fields::of_comment(id, parent, author) })
        }
        CommentChange::Locked { parent, locked } => {
            let name = if locked { "comments_locked" } else { "comments_unlocked" };
            (name, Fields { parent: parent.into(), ..Fields::default() })
        }
    }
}

impl From<Change> for Item {
    fn from(change: Change) -> Self {
        let (r#type, fields) = match change.body {
            ChangeBody::Followed { kind, edge } => {
                let (follower, followee) = (Some(edge.follower), Some(edge.followee));
                (kind.name().into(), Fields { follower, followee, ..Fields::default() })
            }
            ChangeBody::Unfollowed { kind, edge, since } => {
                let (follower, followee) = (Some(edge.follower), Some(edge.followee));
                (
                    format!("un{}", kind.name()).into(),
                    Fields { follower, followee, since: Some(since), ..Fields::default() },
                )
            }
            ChangeBody::Imported { edges, .. } => {
                ("imported".into(), Fields { edges: Some(edges), ..Fields::default() })
            }
            ChangeBody::Posted { post, delivery } => {
                let Post { id, author, created_at, payload } = post;
                let fields = Fields::of_post(id, author, created_at);
                ("post".into(), Fields { delivery: Some(delivery.name()), payload, ..fields })
            }
            ChangeBody::PostDeleted { id, author, created_at } => {
                ("post_deleted".into(), Fields::of_post(id, author, created_at))
            }
            ChangeBody::Comment(change) => {
                let (name, fields) = of_thread(change);
                (name.into(), fields)
            }
        };
        Self { position: change.position, r#type, at: change.at, fields }
    }
}

/// A page of the change log, oldest first within each shard.
///
/// Ask again with `next` for what comes after it; an empty page means that nothing has come yet.
#[utoipa::path(get, path = "/v1/changes", tag = "changes",
    params(
        ("after" = inline(Option<String>), Query, description = "The token to go on from; without it, from the oldest kept"),
        ("limit" = inline(Option<u32>), Query, description = "How many changes", minimum = 1, maximum = 1000)),
    responses((status = 200, description = "A page of the log", body = Changes)))]
async fn changes<S: Store>(call: Call<S>, mut query: Query) -> Answered {
    let (after, limit) = (query.one("after")?, query.limit()?);
    query.end()?;
    let after = frontier(&call, after.as_deref())?;
    let page = call.service.changes.read(&after, limit).await?;
    let items = page.items.into_iter().map(Item::from).collect();
    Ok(Json(Changes { items, next: call.service.token(page.next) }).into_response())
}
