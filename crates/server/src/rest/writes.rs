//! Changes of the graph: follow, unfollow, remove a follower.

use std::collections::BTreeMap;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use kinfolk_api as api;
use kinfolk_core::feeds::WriteOutcome;
use kinfolk_core::graph::Receipt;
use kinfolk_core::{EdgeKind, ErrorCode};
use utoipa::IntoResponses;
use utoipa::openapi::{HeaderBuilder, RefOr, ResponseBuilder};
use utoipa_axum::routes;

use super::Store;
use super::endpoint::{ActorRule, Endpoint};
use super::extract::{Acting, CHANGED, Call, Fresh, Ids, NoBody, TOKEN};
use super::problem::RestResult;
use super::query::NoQuery;
use super::routes::Routes;
use crate::metrics::Operation;

pub fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
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
    responses(Done))]
async fn follow<S: Store>(
    call: Call<S>,
    Ids([target]): Ids<1>,
    Acting(actor): Acting,
    fresh: Fresh,
    _: NoQuery,
    _: NoBody,
) -> RestResult {
    let written = call.graph().follow(EdgeKind::Follow, actor.id(), target).await?;
    Ok(done(&call, &fresh, &written))
}

/// Unfollows a user.
///
/// Unfollowing again is a success that changes nothing.
#[utoipa::path(delete, path = "/v1/users/{id}/follow", tag = "graph",
    params(("id" = api::Id, Path, description = "The user to unfollow")),
    responses(Done))]
async fn unfollow<S: Store>(
    call: Call<S>,
    Ids([target]): Ids<1>,
    Acting(actor): Acting,
    fresh: Fresh,
    _: NoQuery,
    _: NoBody,
) -> RestResult {
    let written = call.graph().unfollow(EdgeKind::Follow, actor.id(), target).await?;
    Ok(done(&call, &fresh, &written))
}

/// Removes a follower of the actor.
#[utoipa::path(delete, path = "/v1/users/{id}/followers/{follower}", tag = "graph",
    params(
        ("id" = api::Id, Path, description = "The actor"),
        ("follower" = api::Id, Path, description = "The follower to remove")),
    responses(Done))]
async fn remove_follower<S: Store>(
    call: Call<S>,
    Ids([_, follower]): Ids<2>,
    Acting(actor): Acting,
    fresh: Fresh,
    _: NoQuery,
    _: NoBody,
) -> RestResult {
    let written = call.graph().remove_follower(EdgeKind::Follow, actor.id(), follower).await?;
    Ok(done(&call, &fresh, &written))
}

/// The response to a write.
pub fn done<S: Store>(call: &Call<S>, fresh: &Fresh, written: &Receipt) -> Response {
    changed(&call.token_after(fresh, written.position), written.changed.contains(&true))
}

/// The response to a deletion or a lock.
pub fn removed<S: Store>(call: &Call<S>, fresh: &Fresh, removed: WriteOutcome) -> Response {
    changed(&call.token_after(fresh, removed.position), removed.changed)
}

/// The response to a write without a body.
fn changed(token: &str, changed: bool) -> Response {
    (StatusCode::NO_CONTENT, headers(token, changed)).into_response()
}

/// The headers of every write.
pub fn headers(token: &str, changed: bool) -> [(HeaderName, HeaderValue); 2] {
    let token = HeaderValue::from_str(token).expect("a token is plain text");
    [(TOKEN, token), (CHANGED, HeaderValue::from_static(if changed { "true" } else { "false" }))]
}

/// The documented response to a write without a body.
pub struct Done;

impl IntoResponses for Done {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        let response = documented("Done, whether or not this call changed anything").build();
        BTreeMap::from([(StatusCode::NO_CONTENT.as_str().to_owned(), response.into())])
    }
}

/// A documented response with the headers of every write.
pub fn documented(description: &str) -> ResponseBuilder {
    let token = HeaderBuilder::new().description(Some(
        "A read with this token sees the write, and everything that the token of the request covers",
    ));
    let changed = HeaderBuilder::new().description(Some("Whether the write changed anything: true or false"));
    ResponseBuilder::new()
        .description(description)
        .header("Kinfolk-Token", token.build())
        .header("Kinfolk-Changed", changed.build())
}
