//! What moderators do: remove and purge comments, lock threads. They act in their own right, not as a user; who removed or purged a
//! comment is recorded.

use kinfolk_api as api;
use kinfolk_core::comments::Parent;

use super::super::Store;
use super::super::extract::{Call, Fresh, Ids, JsonBody, Moderating, NamedComment, NoBody};
use super::super::problem::Answered;
use super::super::query::NoQuery;
use super::super::writes::{self, Done};
use super::body;

/// Removes a comment, and says why.
///
/// Its text is for moderators only from now on; its place and the replies to it stay. Removing it again is a success that
/// changes nothing: the first reason stays. Who removed it is recorded, for moderators and in the change log.
#[utoipa::path(post, path = "/v1/comments/{comment}/remove", tag = "comments",
    params(
        ("comment" = api::CommentId, Path, description = "Which comment"),
        ("Kinfolk-Actor" = inline(Option<api::Id>), Header, description =
            "Which user moderates, for the record; without it, the service itself. An end user is itself")),
    request_body = api::CommentRemoval,
    responses(Done))]
pub async fn remove_comment<S: Store>(
    call: Call<S>,
    NamedComment(id): NamedComment,
    Moderating(by): Moderating,
    fresh: Fresh,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> Answered {
    let reason = body::text(&body, &["reason"])?;
    let removed = call.comments()?.remove_comment(id, reason.into(), by).await?;
    Ok(writes::removed(&call, &fresh, removed))
}

/// Erases the texts of a comment for good, those of its history too.
///
/// No read shows them from now on, and neither does the change log. From the disk they go within a day (a setting), and at once
/// with `POST /v1/admin/compact`; from backups they do not. The reason of a removal stays. The place of the comment and the replies to it stay.
/// Who purged it is recorded, for moderators and in the change log.
#[utoipa::path(post, path = "/v1/comments/{comment}/purge", tag = "comments",
    params(
        ("comment" = api::CommentId, Path, description = "Which comment"),
        ("Kinfolk-Actor" = inline(Option<api::Id>), Header, description =
            "Which user moderates, for the record; without it, the service itself. An end user is itself")),
    responses(Done))]
pub async fn purge_comment<S: Store>(
    call: Call<S>,
    NamedComment(id): NamedComment,
    Moderating(by): Moderating,
    fresh: Fresh,
    _: NoQuery,
    _: NoBody,
) -> Answered {
    let removed = call.comments()?.purge_comment(id, by).await?;
    Ok(writes::removed(&call, &fresh, removed))
}

/// Locks the thread of a post: no new comments are accepted. Those that are there can still be edited and deleted.
#[utoipa::path(put, path = "/v1/posts/{id}/comments/lock", tag = "comments",
    params(("id" = api::Id, Path, description = "Which post")),
    responses(Done))]
pub async fn lock_comments<S: Store>(
    call: Call<S>,
    Ids([id]): Ids<1>,
    fresh: Fresh,
    _: NoQuery,
    _: NoBody,
) -> Answered {
    let removed = call.comments()?.lock_comment_thread(Parent::post(id), true).await?;
    Ok(writes::removed(&call, &fresh, removed))
}

/// Unlocks the thread of a post.
#[utoipa::path(delete, path = "/v1/posts/{id}/comments/lock", tag = "comments",
    params(("id" = api::Id, Path, description = "Which post")),
    responses(Done))]
pub async fn unlock_comments<S: Store>(
    call: Call<S>,
    Ids([id]): Ids<1>,
    fresh: Fresh,
    _: NoQuery,
    _: NoBody,
) -> Answered {
    let removed = call.comments()?.lock_comment_thread(Parent::post(id), false).await?;
    Ok(writes::removed(&call, &fresh, removed))
}
