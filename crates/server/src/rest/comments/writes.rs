//! Writes of authors: new comments, edits and deletions.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use kinfolk_api::{self as api, Comment};
use kinfolk_core::comments::{CommentEdit, CommentId, CommentWritten, NewComment, Parent};
use utoipa::openapi::{ContentBuilder, HeaderBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

use super::super::Store;
use super::super::extract::{Acting, Call, Fresh, IdempotencyKey, Ids, JsonBody, NamedComment, NoBody};
use super::super::json::Json;
use super::super::problem::RestResult;
use super::super::query::{NoQuery, invalid};
use super::super::writes::{self, Done};
use super::body;
use super::version::{Seen, entity_tag};

/// Writes a comment on a post.
///
/// The same comment again under the same key is a success that changes nothing: the response is the first one's, byte for byte,
/// with status 200, even if the comment was edited or deleted since; of a purged comment it is the tombstone. The same key with
/// another body, post or reply is a conflict. Keys belong to their author, and are kept for 7 days at least.
///
/// The comments of an author, and those on a post, are rate limited. A repetition does not count against these limits, but is
/// refused while they are exhausted.
#[utoipa::path(post, path = "/v1/posts/{id}/comments", tag = "comments",
    params(
        ("id" = api::Id, Path, description = "The post"),
        ("Idempotency-Key" = inline(String), Header, min_length = 1, max_length = 255, description =
            "Identifies the comment for its author, so that a repetition does not write it twice")),
    request_body = api::NewComment,
    responses(Written))]
pub async fn write_comment<S: Store>(
    call: Call<S>,
    Ids([post]): Ids<1>,
    Acting(author): Acting,
    IdempotencyKey(key): IdempotencyKey,
    (fresh, _): (Fresh, NoQuery),
    JsonBody(body): JsonBody,
) -> RestResult {
    let idempotency_key = Some(key.ok_or_else(|| {
        invalid(
            "a comment needs the header Idempotency-Key: a name that this comment of its author has alone"
                .to_owned(),
        )
    })?);
    let (body, reply_to) = body::new_comment(&body)?;
    let reply_to = reply_to.as_deref().map(CommentId::parse).transpose()?;
    let parent = Parent::post(post);
    let new = NewComment {
        parent,
        author: author.id(),
        body: body.into(),
        reply_to,
        idempotency_key,
        depth_max: 0,
    };
    let written = call.comments()?.comment(new).await?;
    let status = if written.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let location = HeaderValue::from_str(&format!("/v1/comments/{}", written.comment.id));
    let location = location.expect("an id is plain text");
    Ok((status, [(LOCATION, location)], respond(&call, &fresh, written)).into_response())
}

/// Edits a comment of the actor.
///
/// The comment keeps its position. The earlier body stays in its history.
#[utoipa::path(patch, path = "/v1/comments/{comment}", tag = "comments",
    params(
        ("comment" = api::CommentId, Path, description = "The comment; the actor must be its author"),
        ("If-Match" = inline(Option<String>), Header, pattern = "^\"[1-9][0-9]*\"$", description =
            "The current version, in quotes, as in the header `ETag`. An edit without it is refused")),
    request_body = api::CommentEdit,
    responses(Edited))]
pub async fn edit_comment<S: Store>(
    call: Call<S>,
    NamedComment(id): NamedComment,
    Acting(actor): Acting,
    Seen(version): Seen,
    (fresh, _): (Fresh, NoQuery),
    JsonBody(body): JsonBody,
) -> RestResult {
    let body: Arc<str> = body::text(&body, &["body"])?.into();
    let edit = CommentEdit { id, version, body };
    let written = call.comments()?.edit_comment(Some(actor.id()), edit, &fresh.0).await?;
    Ok(respond(&call, &fresh, written))
}

/// Deletes a comment of the actor.
///
/// A tombstone and the replies stay. Deleting it again is a success that changes nothing.
#[utoipa::path(delete, path = "/v1/comments/{comment}", tag = "comments",
    params(("comment" = api::CommentId, Path, description = "The comment; the actor must be its author")),
    responses(Done))]
pub async fn delete_comment<S: Store>(
    call: Call<S>,
    NamedComment(id): NamedComment,
    Acting(actor): Acting,
    fresh: Fresh,
    _: NoQuery,
    _: NoBody,
) -> RestResult {
    let removed = call.comments()?.delete_comment(Some(actor.id()), id, &fresh.0).await?;
    Ok(writes::removed(&call, &fresh, removed))
}

/// The response with a comment, its version, and the headers of every write.
fn respond<S: Store>(call: &Call<S>, fresh: &Fresh, written: CommentWritten) -> Response {
    let CommentWritten { position, comment, is_new } = written;
    let headers = writes::headers(&call.token_after(fresh, position), is_new);
    ([entity_tag(comment.version)], headers, Json(Comment::from(comment))).into_response()
}

/// The documented responses to a new comment.
struct Written;

impl IntoResponses for Written {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        let documented = |status: StatusCode, description: &str| {
            let location = HeaderBuilder::new().description(Some("Where the comment is")).build();
            let response = with_comment(description).header("Location", location);
            (status.as_str().to_owned(), response.build().into())
        };
        BTreeMap::from([
            documented(StatusCode::CREATED, "The comment, as it is stored"),
            documented(
                StatusCode::OK,
                "The comment, as it was stored before: this call repeats an earlier one",
            ),
        ])
    }
}

/// The documented response to an edit.
struct Edited;

impl IntoResponses for Edited {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        let response = with_comment("The comment, as it is now").build();
        BTreeMap::from([(StatusCode::OK.as_str().to_owned(), response.into())])
    }
}

fn with_comment(description: &str) -> ResponseBuilder {
    let comment = ContentBuilder::new().schema(Some(Ref::from_schema_name(Comment::name()))).build();
    let tag = HeaderBuilder::new().description(Some("Its version, in quotes")).build();
    writes::documented(description).content("application/json", comment).header("ETag", tag)
}
