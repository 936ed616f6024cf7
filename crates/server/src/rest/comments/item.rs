//! Comments as answers show them. Which of them a reader may see, and how much, is decided by the graph.

use std::sync::Arc;

use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use kinfolk_core::comments::{
    Comment, CommentId, CommentNode, CommentPage, CommentTree, CommentVersion, HistoryPage, Moderator,
    Parent, ParentKind,
};
use kinfolk_core::{Id, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::AnyOfBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};

use super::super::json::{CommentName, Json, Moment, UserId, as_optional_text, as_text};
use super::super::query::Page;

/// What a thread belongs to, under the name of what that is.
#[derive(Default, Serialize, ToSchema)]
pub struct ParentId {
    /// Which post.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = UserId, required = false)]
    post: Option<Id>,
    /// Which item, of those that are reviewed.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = UserId, required = false)]
    item: Option<Id>,
    /// Which conversation.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = UserId, required = false)]
    conversation: Option<Id>,
}

impl From<Parent> for ParentId {
    fn from(Parent { kind, id }: Parent) -> Self {
        let of_kind = |wanted| (kind == wanted).then_some(id);
        Self {
            post: of_kind(ParentKind::Post),
            item: of_kind(ParentKind::Item),
            conversation: of_kind(ParentKind::Conversation),
        }
    }
}

/// A comment, or the tombstone that keeps its place.
#[derive(Serialize, ToSchema)]
#[schema(as = Comment)]
pub struct CommentItem {
    /// Its id.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = CommentName)]
    id: CommentId,
    #[serde(flatten)]
    #[schema(inline)]
    parent: ParentId,
    /// Who wrote it.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = UserId)]
    author: Id,
    /// What it says. Only moderators see it of what is not active, and nobody of what was purged.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = String, required = false)]
    body: Option<Arc<str>>,
    /// 1, and one more for each edit.
    #[schema(minimum = 1)]
    version: u32,
    /// When it was written.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = Moment)]
    created_at: Timestamp,
    /// When it was edited last, if it was.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = Moment, required = false)]
    edited_at: Option<Timestamp>,
    /// `active`, edited or not; `deleted` by its author, `removed` by a moderator, or `purged`: erased for good.
    #[schema(value_type = String, pattern = "^(active|deleted|removed|purged)$")]
    status: &'static str,
    /// How many comments are above it; 0 at the top.
    depth: u8,
    /// The comment that it answers, if any.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = CommentName, required = false)]
    reply_to: Option<CommentId>,
    /// How many comments answer it directly, tombstones among them.
    reply_count: u64,
    /// Why a moderator removed it, for moderators.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = String, required = false)]
    reason: Option<Arc<str>>,
    /// Who removed it, or purged it later, for moderators: `user:` and an id, or `key:` and the name of a service's key. Missing
    /// where that is not known.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = String, pattern = "^(user|key):.+$", required = false)]
    removed_by: Option<Moderator>,
}

impl From<Comment> for CommentItem {
    fn from(comment: Comment) -> Self {
        Self {
            id: comment.id,
            parent: comment.parent.into(),
            author: comment.author,
            body: comment.body,
            version: comment.version,
            created_at: comment.created_at,
            edited_at: comment.edited_at,
            status: comment.status.name(),
            depth: comment.depth,
            reply_to: comment.reply_to,
            reply_count: comment.reply_count,
            reason: comment.reason,
            removed_by: comment.removed_by,
        }
    }
}

/// A comment within a tree.
#[derive(Serialize, ToSchema)]
#[schema(as = CommentNode)]
pub struct Node {
    #[serde(flatten)]
    #[schema(inline)]
    comment: CommentItem,
    /// The first replies to it, oldest first.
    #[schema(no_recursion)]
    replies: Vec<Node>,
    /// The cursor for the replies after these; missing where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

impl From<CommentNode> for Node {
    fn from(CommentNode { comment, replies, next }: CommentNode) -> Self {
        Self { comment: comment.into(), replies: replies.into_iter().map(Self::from).collect(), next }
    }
}

/// A text that a comment has or had.
#[derive(Serialize, ToSchema)]
#[schema(as = CommentVersion)]
pub struct Version {
    /// Which version.
    #[schema(minimum = 1)]
    version: u32,
    /// Since when.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = Moment)]
    at: Timestamp,
    /// What it says.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String)]
    body: Arc<str>,
}

impl From<CommentVersion> for Version {
    fn from(CommentVersion { version, at, body }: CommentVersion) -> Self {
        Self { version, at, body }
    }
}

/// A page of comments.
#[derive(Serialize, ToSchema)]
pub struct Comments {
    /// The comments, tombstones among them.
    items: Vec<CommentItem>,
    /// The cursor of the next page; missing where the list ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// A part of a thread as a tree.
#[derive(Serialize, ToSchema)]
pub struct Tree {
    /// Comments of one branch, oldest first.
    items: Vec<Node>,
    /// The cursor for those after them; missing where the branch ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// How a thread is documented: in order or as a tree. Where there are no comments the two look the same.
pub struct ThreadPart;

impl utoipa::PartialSchema for ThreadPart {
    fn schema() -> RefOr<Schema> {
        let either = [Comments::name(), Tree::name()].map(Ref::from_schema_name);
        either.into_iter().fold(AnyOfBuilder::new(), AnyOfBuilder::item).into()
    }
}

impl ToSchema for ThreadPart {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Comments::name().into(), <Comments as utoipa::PartialSchema>::schema()));
        schemas.push((Tree::name().into(), <Tree as utoipa::PartialSchema>::schema()));
        Comments::schemas(schemas);
        Tree::schemas(schemas);
    }
}

/// A page of the texts of a comment.
#[derive(Serialize, ToSchema)]
#[schema(as = CommentHistory)]
pub struct History {
    /// The texts, oldest first.
    items: Vec<Version>,
    /// The cursor of the next page; missing where the list ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// Where an answer with a page is: what leads from it to the next one.
pub struct At<'a> {
    /// Which page it is.
    pub page: &'a Page,
    /// Its address.
    pub uri: &'a Uri,
    /// The parameters that the next page has too.
    pub how: &'a [(&'static str, String)],
}

impl At<'_> {
    /// The answer with some comments.
    pub fn comments(&self, CommentPage { items, next }: CommentPage) -> Response {
        let link = self.link(next.as_deref());
        (link, Json(Comments { items: items.into_iter().map(CommentItem::from).collect(), next }))
            .into_response()
    }

    /// The answer with a tree.
    pub fn tree(&self, CommentTree { items, next }: CommentTree) -> Response {
        let link = self.link(next.as_deref());
        (link, Json(Tree { items: items.into_iter().map(Node::from).collect(), next })).into_response()
    }

    /// The answer with some texts.
    pub fn history(&self, HistoryPage { items, next }: HistoryPage) -> Response {
        let link = self.link(next.as_deref());
        (link, Json(History { items: items.into_iter().map(Version::from).collect(), next })).into_response()
    }

    fn link(&self, next: Option<&str>) -> axum::http::HeaderMap {
        self.page.link(self.uri, self.how, next).into_iter().collect()
    }
}
