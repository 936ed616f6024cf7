//! Writes of authors: new comments, edits and deletions.

use std::sync::Arc;

use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use kinfolk_api::Comment;
use kinfolk_core::comments::{CommentEdit, CommentId, CommentWritten, NewComment, Parent};

use super::super::prelude::*;
use super::super::writes::{self, DONE};
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
    responses(
        (status = 201, description = "The comment, as it is stored", body = Comment, headers(
            ("Location" = String, description = "Where the comment is"),
            ("ETag" = String, description = "Its version, in quotes"))),
        (status = 200, description = "The comment, as it was stored before: this call repeats an earlier one", body = Comment, headers(
            ("Location" = String, description = "Where the comment is"),
            ("ETag" = String, description = "Its version, in quotes")))))]
pub(crate) async fn write_comment<S: Store>(
    call: Call<S>,
    Ids([post]): Ids<1>,
    IdempotencyKey(key): IdempotencyKey,
    _: NoQuery,
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
    let new = NewComment {
        parent: Parent::post(post),
        author: call.actor()?,
        body: body.into(),
        reply_to,
        idempotency_key,
        depth_max: 0,
    };
    let written = call.comments()?.comment(new).await?;
    let status = if written.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let location = HeaderValue::from_str(&format!("/v1/comments/{}", written.comment.id));
    let location = location.expect("an id is plain text");
    Ok((status, [(LOCATION, location)], respond(&call, written)).into_response())
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
    responses((status = 200, description = "The comment, as it is now", body = Comment, headers(
        ("ETag" = String, description = "Its version, in quotes")))))]
pub(crate) async fn edit_comment<S: Store>(
    call: Call<S>,
    NamedComment(id): NamedComment,
    Seen(version): Seen,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> RestResult {
    let body: Arc<str> = body::text(&body, &["body"])?.into();
    let edit = CommentEdit { id, version, body };
    let written = call.comments()?.edit_comment(Some(call.actor()?), edit, &call.seen).await?;
    Ok(respond(&call, written))
}

/// Deletes a comment of the actor.
///
/// A tombstone and the replies stay. Deleting it again is a success that changes nothing.
#[utoipa::path(delete, path = "/v1/comments/{comment}", tag = "comments",
    params(("comment" = api::CommentId, Path, description = "The comment; the actor must be its author")),
    responses((status = 204, description = DONE)))]
pub(crate) async fn delete_comment<S: Store>(
    call: Call<S>,
    NamedComment(id): NamedComment,
    _: NoInput,
) -> RestResult {
    let deleted = call.comments()?.delete_comment(Some(call.actor()?), id, &call.seen).await?;
    Ok(writes::outcome(&call, deleted))
}

/// The response with a comment, its version, and the headers of every write.
fn respond<S: Store>(
    call: &Call<S>,
    CommentWritten { position, comment, is_new }: CommentWritten,
) -> Response {
    let headers = writes::headers(call, position, is_new);
    ([entity_tag(comment.version)], headers, Json(Comment::from(comment))).into_response()
}
