//! Moderation: removing and purging comments, locking comment threads. Who removed or purged a comment is recorded.

use kinfolk_core::comments::Parent;

use super::super::prelude::*;
use super::super::writes::{self, DONE};
use super::body;

/// Removes a comment, with a reason.
///
/// Only moderators see its body from then on; a tombstone and the replies stay. Removing it again is a success that
/// changes nothing: the first reason stays. The moderator is recorded, for moderators and in the change log.
#[utoipa::path(post, path = "/v1/comments/{comment}/remove", tag = "comments",
    params(
        ("comment" = api::CommentId, Path, description = "The comment"),
        ("Kinfolk-Actor" = Option<api::Id>, Header, description =
            "The moderator to record; without it, the service itself. An end user is itself")),
    request_body = api::CommentRemoval,
    responses((status = 204, description = DONE)))]
pub(crate) async fn remove_comment<S: Store>(
    call: Call<S>,
    NamedComment(id): NamedComment,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> RestResult {
    let reason = body::text(&body, &["reason"])?;
    let removed = call.comments()?.remove_comment(id, reason.into(), call.moderator()?).await?;
    Ok(writes::outcome(&call, removed))
}

/// Erases the body of a comment for good, earlier versions included.
///
/// No read shows it from then on, and neither does the change log. It is erased from the disk within a day (a setting), or at once
/// with `POST /v1/admin/compact`; earlier backups keep it. The reason of a removal, a tombstone and the replies stay. The moderator is
/// recorded, for moderators and in the change log.
#[utoipa::path(post, path = "/v1/comments/{comment}/purge", tag = "comments",
    params(
        ("comment" = api::CommentId, Path, description = "The comment"),
        ("Kinfolk-Actor" = Option<api::Id>, Header, description =
            "The moderator to record; without it, the service itself. An end user is itself")),
    responses((status = 204, description = DONE)))]
pub(crate) async fn purge_comment<S: Store>(
    call: Call<S>,
    NamedComment(id): NamedComment,
    _: NoInput,
) -> RestResult {
    let purged = call.comments()?.purge_comment(id, call.moderator()?).await?;
    Ok(writes::outcome(&call, purged))
}

/// Locks the comments of a post: new comments are refused. Existing ones can still be edited and deleted.
#[utoipa::path(put, path = "/v1/posts/{id}/comments/lock", tag = "comments",
    params(("id" = api::Id, Path, description = "The post")),
    responses((status = 204, description = DONE)))]
pub(crate) async fn lock_comments<S: Store>(call: Call<S>, Ids([id]): Ids<1>, _: NoInput) -> RestResult {
    let locked = call.comments()?.lock_comment_thread(Parent::post(id), true).await?;
    Ok(writes::outcome(&call, locked))
}

/// Unlocks the comments of a post.
#[utoipa::path(delete, path = "/v1/posts/{id}/comments/lock", tag = "comments",
    params(("id" = api::Id, Path, description = "The post")),
    responses((status = 204, description = DONE)))]
pub(crate) async fn unlock_comments<S: Store>(call: Call<S>, Ids([id]): Ids<1>, _: NoInput) -> RestResult {
    let unlocked = call.comments()?.lock_comment_thread(Parent::post(id), false).await?;
    Ok(writes::outcome(&call, unlocked))
}
