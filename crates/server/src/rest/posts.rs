//! Posts and feeds. Comments on posts are in `comments`.

use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use kinfolk_api::PostWithComments;
use kinfolk_core::comments::Parent;
use kinfolk_core::feeds::NewPost;

use super::entity_tag::{IF_NONE_MATCH_DESCRIPTION, NOT_MODIFIED};
use super::prelude::*;
use super::writes::{self, DONE};
use super::{json, new_post};

pub(crate) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let register_refuses = &[
        ErrorCode::InvalidId,
        ErrorCode::PostConflict,
        ErrorCode::PostDeleted,
        ErrorCode::PostInFuture,
        ErrorCode::PayloadTooLarge,
        ErrorCode::UnsupportedMediaType,
    ];
    let not_found = &[ErrorCode::NotFound];
    let delete_refuses = &[ErrorCode::NotFound, ErrorCode::NotYetVisible];
    let lists_refuse = &[ErrorCode::LimitOutOfRange, ErrorCode::InvalidCursor];
    let write = |operation| Endpoint::write(operation).needing(Capability::Feeds);
    let read = |operation| Endpoint::read(operation).needing(Capability::Feeds);
    let feeds = Endpoint::read(Operation::Feed).by(ActorRule::ViewerInPath).needing(Capability::Feeds);
    routes
        .add(write(Operation::Post).by(ActorRule::Author).refusing(register_refuses), routes!(register_post))
        .add(read(Operation::Posts).refusing(not_found), routes!(read_post))
        .add(write(Operation::DeletePost).refusing(delete_refuses), routes!(delete_post))
        .add(read(Operation::Posts).abandonable().refusing(lists_refuse), routes!(posts))
        .add(feeds.abandonable().refusing(lists_refuse), routes!(feed))
}

/// Registers a post.
///
/// The author is the actor, unless a service names another in the body. Without an id the server generates one; such ids
/// rise with time. Without a time the post is created now.
///
/// The same post again, by its id or by the author's idempotency key, is a success that changes nothing: the response is
/// the first one's, with status 200. A repeated request may leave out the time; a time that it has must be the first one's.
#[utoipa::path(post, path = "/v1/posts", tag = "feeds",
    params(("Idempotency-Key" = inline(Option<String>), Header, min_length = 1, max_length = 255, description =
        "Identifies the post for its author, so that it can be repeated without an id: for 7 days at least")),
    request_body = api::NewPost,
    responses(
        (status = 201, description = "The post, as it is stored", body = api::Post, headers(
            ("Location" = String, description = "Where the post is"))),
        (status = 200, description = "The post, as it was stored before: this call repeats an earlier one", body = api::Post, headers(
            ("Location" = String, description = "Where the post is")))))]
async fn register_post<S: Store>(
    call: Call<S>,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    _: NoQuery,
    JsonBody(body): JsonBody,
) -> RestResult {
    let feeds = call.feeds()?;
    let body = new_post::parse(&body, call.id_kind(), feeds.payload_bytes_max())?;
    let author = call.author(body.author)?.id();
    let new_post::PostBody { id, created_at, payload, .. } = body;
    let post = NewPost { id, author, created_at, payload, idempotency_key };
    let written = feeds.register_post(post).await?;
    let status = if written.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let location = HeaderValue::from_str(&format!("/v1/posts/{}", written.post.id));
    let location = location.expect("an id is plain text");
    let headers = writes::headers(&call, written.position, written.is_new);
    Ok((status, [(LOCATION, location)], headers, Json(api::Post::from(written.post))).into_response())
}

/// A post.
///
/// The header `ETag` changes with everything that the response has, such as the number of comments.
#[utoipa::path(get, path = "/v1/posts/{id}", tag = "feeds",
    params(
        ("id" = api::Id, Path, description = "The post"),
        ("If-None-Match" = inline(Option<String>), Header, description = IF_NONE_MATCH_DESCRIPTION)),
    responses(
        (status = 200, description = "The post", body = PostWithComments, headers(
            ("ETag" = String, description = "Names this representation"))),
        (status = 304, description = NOT_MODIFIED)))]
async fn read_post<S: Store>(call: Call<S>, Ids([id]): Ids<1>, cached: Cached, _: NoQuery) -> RestResult {
    let post = call.feeds()?.post(id, &call.seen).await?;
    let comments = call.comments()?.thread_state(Parent::post(id), &call.seen).await?;
    let text = json::text(&PostWithComments::new(post, comments));
    Ok(cached.respond(&EntityTag::of(&text), text))
}

/// Deletes a post of the actor.
///
/// It disappears from all feeds at once, and its id is not used again. Deleting it again is a success that changes nothing.
#[utoipa::path(delete, path = "/v1/posts/{id}", tag = "feeds",
    params(("id" = api::Id, Path, description = "The post; the actor must be its author")),
    responses((status = 204, description = DONE)))]
async fn delete_post<S: Store>(call: Call<S>, Ids([id]): Ids<1>, _: NoInput) -> RestResult {
    let deleted = call.feeds()?.delete_post(Some(call.actor()?), id, &call.seen).await?;
    Ok(writes::outcome(&call, deleted))
}

/// A user's own posts.
#[utoipa::path(get, path = "/v1/users/{id}/posts", tag = "feeds",
    params(("id" = api::Id, Path, description = "The author"), PageParameters),
    responses((status = 200, description = "A page of the posts", body = api::Posts)))]
async fn posts<S: Store>(call: Call<S>, Ids([of]): Ids<1>, page: Page) -> RestResult {
    let found = call.feeds()?.posts_by(of, page.request(), &call.seen).await?;
    Ok(page.respond::<api::Post>(&[], found))
}

/// A user's home feed: the posts of its followees, newest first.
#[utoipa::path(get, path = "/v1/users/{id}/feed", tag = "feeds",
    params(("id" = api::Id, Path, description = "The user. An end user reads only its own feed"), PageParameters),
    responses((status = 200, description = "A page of the feed", body = api::Posts)))]
async fn feed<S: Store>(call: Call<S>, page: Page) -> RestResult {
    let found = call.feeds()?.feed(call.viewer()?.id(), page.request(), &call.seen).await?;
    Ok(page.respond::<api::Post>(&[], found))
}
