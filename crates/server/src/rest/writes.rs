//! Changes of the graph: follow, unfollow, remove a follower.

use axum::http::{HeaderName, HeaderValue, StatusCode};
use kinfolk_core::Position;
use kinfolk_core::feeds::WriteOutcome;
use kinfolk_core::graph::Receipt;

use super::extract::{CHANGED, TOKEN};
use super::prelude::*;

/// How a write without a body is documented.
pub(crate) const DONE: &str = "Done, whether or not this call changed anything";

pub(crate) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let follow_refuses = &[ErrorCode::SelfFollow, ErrorCode::FollowingLimit];
    routes
        .add(Endpoint::write(Operation::Follow).refusing(follow_refuses), routes!(follow))
        .add(Endpoint::write(Operation::Unfollow), routes!(unfollow))
        .add(Endpoint::write(Operation::RemoveFollower).by(ActorRule::ActorInPath), routes!(remove_follower))
}

/// Follows a user.
///
/// Following again is a success that changes nothing.
#[utoipa::path(post, path = "/v1/users/{id}/follow", tag = "graph",
    params(("id" = api::Id, Path, description = "The user to follow")),
    responses((status = 204, description = DONE)))]
async fn follow<S: Store>(call: Call<S>, Ids([target]): Ids<1>, _: NoInput) -> RestResult {
    let written = call.graph().follow(EdgeKind::Follow, call.actor()?, target).await?;
    Ok(done(&call, &written))
}

/// Unfollows a user.
///
/// Unfollowing again is a success that changes nothing.
#[utoipa::path(delete, path = "/v1/users/{id}/follow", tag = "graph",
    params(("id" = api::Id, Path, description = "The user to unfollow")),
    responses((status = 204, description = DONE)))]
async fn unfollow<S: Store>(call: Call<S>, Ids([target]): Ids<1>, _: NoInput) -> RestResult {
    let written = call.graph().unfollow(EdgeKind::Follow, call.actor()?, target).await?;
    Ok(done(&call, &written))
}

/// Removes a follower of the actor.
#[utoipa::path(delete, path = "/v1/users/{id}/followers/{follower}", tag = "graph",
    params(
        ("id" = api::Id, Path, description = "The actor"),
        ("follower" = api::Id, Path, description = "The follower to remove")),
    responses((status = 204, description = DONE)))]
async fn remove_follower<S: Store>(call: Call<S>, Ids([_, follower]): Ids<2>, _: NoInput) -> RestResult {
    let written = call.graph().remove_follower(EdgeKind::Follow, call.actor()?, follower).await?;
    Ok(done(&call, &written))
}

/// The response to a write of edges.
pub(crate) fn done<S: Store>(call: &Call<S>, written: &Receipt) -> Response {
    let changed = written.changed.contains(&true);
    outcome(call, WriteOutcome { position: written.position, changed })
}

/// The response to a write without a body.
pub(crate) fn outcome<S: Store>(
    call: &Call<S>,
    WriteOutcome { position, changed }: WriteOutcome,
) -> Response {
    (StatusCode::NO_CONTENT, headers(call, position, changed)).into_response()
}

/// The headers of every write.
pub(crate) fn headers<S: Store>(
    call: &Call<S>,
    written: Position,
    changed: bool,
) -> [(HeaderName, HeaderValue); 2] {
    let token = HeaderValue::from_str(&call.token_after(written)).expect("a token is plain text");
    [(TOKEN, token), (CHANGED, HeaderValue::from_static(if changed { "true" } else { "false" }))]
}
