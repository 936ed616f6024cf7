//! Writes of authors: new comments, edits and deletions.

use std::sync::Arc;

use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use kinfolk_api::Comment;
use kinfolk_core::comments::{CommentEdit, CommentId, CommentWritten, NewComment, Parent};

use super::super::guard::IsNewComment;
use super::super::json;
use super::super::prelude::*;
use super::super::writes::{self, DONE};
use super::body;
use super::version::Seen;

/// How often an edit of any version is tried while others edit the same comment.
const EDIT_ATTEMPTS_MAX: usize = 16;

/// Writes a comment on a post.
///
/// The same comment again under the same key is a success that changes nothing: the response is the first one's, byte for byte,
/// with status 200, even if the comment was edited or deleted since; of a purged comment it is the tombstone. The same key with
/// another body, post or reply is a conflict, also after the comment was purged. Keys belong to their author, and are kept for 7 days
/// at least.
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
            ("ETag" = String, description = "Names its version and this representation of it"))),
        (status = 200, description = "The comment, as it was stored before: this call repeats an earlier one", body = Comment, headers(
            ("Location" = String, description = "Where the comment is"),
            ("ETag" = String, description = "Names its version and this representation of it")))))]
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
    let is_new = written.is_new;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let location = HeaderValue::from_str(&format!("/v1/comments/{}", written.comment.id));
    let location = location.expect("an id is plain text");
    let mut response = (status, [(LOCATION, location)], respond(&call, written)).into_response();
    if is_new {
        response.extensions_mut().insert(IsNewComment);
    }
    Ok(response)
}

/// Edits a comment of the actor.
///
/// The comment keeps its position. The earlier body stays in its history.
///
/// `If-Match` names the version that the edit is based on: the `ETag` of the comment, of which only the version counts, or the
/// version in quotes, such as `"3"`. New replies change the tag of a comment, but not its version, so they do not get in the way of
/// an edit. Weak tags (`W/"3"`), what proxies append when they compress (`"3-gzip"`) and lists are accepted; `*` edits whatever version is current.
#[utoipa::path(patch, path = "/v1/comments/{comment}", tag = "comments",
    params(
        ("comment" = api::CommentId, Path, description = "The comment; the actor must be its author"),
        ("If-Match" = inline(Option<String>), Header, description =
            "The `ETag` of the comment, or its version in quotes, such as \"3\". An edit without it is refused")),
    request_body = api::CommentEdit,
    responses((status = 200, description = "The comment, as it is now", body = Comment, headers(
        ("ETag" = String, description = "Names its version and this representation of it")))))]
pub(crate) async fn edit_comment<S: Store>(
    call: Call<S>,
    NamedComment(id): NamedComment,
    seen: Seen,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> RestResult {
    let body: Arc<str> = body::text(&body, &["body"])?.into();
    let written = edit(&call, CommentEdit { id, version: seen.first(), body }, &seen).await?;
    Ok(respond(&call, written))
}

/// Edits the current version if the client allows it: a refusal says which version that is.
async fn edit<S: Store>(call: &Call<S>, mut edit: CommentEdit, seen: &Seen) -> Result<CommentWritten> {
    let (threads, actor) = (call.comments()?, Some(call.actor()?));
    for _ in 1..EDIT_ATTEMPTS_MAX {
        match threads.edit_comment(actor, edit.clone(), &call.seen).await {
            Err(Error::VersionConflict { current }) if seen.has(current) => edit.version = current,
            edited => return edited,
        }
    }
    threads.edit_comment(actor, edit, &call.seen).await
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

/// The response with a comment, its entity tag, and the headers of every write.
fn respond<S: Store>(
    call: &Call<S>,
    CommentWritten { position, comment, is_new }: CommentWritten,
) -> Response {
    let headers = writes::headers(call, position, is_new);
    let comment = Comment::from(comment);
    let text = json::text(&comment);
    let tag = EntityTag::of_version(comment.version, &text);
    ([tag.header()], headers, json::written(text)).into_response()
}
