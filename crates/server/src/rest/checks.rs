//! Checks: one pair, many pairs, and the relationships of one user to others.

use bytes::BytesMut;
use kinfolk_api::{CheckRequest, CheckResults, Follows, Relationship, Relationships};
use kinfolk_core::graph::Edge;

use super::json;
use super::pairs;
use super::prelude::*;

pub(crate) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let check_refuses =
        &[ErrorCode::InvalidId, ErrorCode::TooMany, ErrorCode::TooLarge, ErrorCode::UnsupportedMediaType];
    let many_refuse = &[ErrorCode::TooMany];
    routes
        .add(Endpoint::read(Operation::Check), routes!(follows))
        .add(Endpoint::read(Operation::CheckMany).refusing(check_refuses), routes!(check))
        .add(
            Endpoint::read(Operation::Relationships).by(ActorRule::ViewerInPath).refusing(many_refuse),
            routes!(relationships),
        )
}

/// Whether a user follows another.
#[utoipa::path(get, path = "/v1/users/{id}/following/{target}", tag = "graph",
    params(
        ("id" = api::Id, Path, description = "The follower"),
        ("target" = api::Id, Path, description = "The followee")),
    responses((status = 200, description = "Whether the edge exists, and since when", body = Follows)))]
async fn follows<S: Store>(call: Call<S>, Ids([follower, followee]): Ids<2>, _: NoQuery) -> RestResult {
    let since = call.graph().since(EdgeKind::Follow, Edge { follower, followee }, &call.seen).await?;
    Ok(Json(Follows::from(since)).into_response())
}

/// For each pair, whether the first follows the second.
#[utoipa::path(post, path = "/v1/check", tag = "graph",
    request_body = CheckRequest,
    responses((status = 200, description = "The results, in the order of the request", body = CheckResults)))]
async fn check<S: Store>(call: Call<S>, _: NoQuery, JsonBody(body): JsonBody) -> RestResult {
    let edges = pairs::parse(&body, call.id_kind())?;
    let results = call.graph().check(EdgeKind::Follow, &edges, &call.seen).await?;
    Ok(json::written(checked(&results).freeze()))
}

/// The JSON of [`CheckResults`], written by hand: this is the hottest route.
fn checked(results: &[bool]) -> BytesMut {
    let mut text = BytesMut::with_capacity(16 + 6 * results.len());
    text.extend_from_slice(b"{\"results\":[");
    for (at, &result) in results.iter().enumerate() {
        if at > 0 {
            text.extend_from_slice(b",");
        }
        text.extend_from_slice(if result { b"true" } else { b"false" });
    }
    text.extend_from_slice(b"]}");
    text
}

/// The relationships of a user to others. End users may ask only for themselves.
#[utoipa::path(get, path = "/v1/users/{id}/relationships", tag = "graph",
    params(
        ("id" = api::Id, Path, description = "The user"),
        ("id" = Vec<api::Id>, Query, description = "The other users", min_items = 1, max_items = 100)),
    responses((status = 200, description = "One for each user, in the order of the request", body = Relationships)))]
async fn relationships<S: Store>(call: Call<S>, mut query: Query) -> RestResult {
    let others = query.ids(call.id_kind())?;
    query.end()?;
    let (graph, viewer) = (call.graph(), call.viewer()?.id());
    let found = graph.relationships(EdgeKind::Follow, viewer, &others, &call.seen).await?;
    Ok(Json(Relationships { items: found.into_iter().map(Relationship::from).collect() }).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_response_is_json() {
        for results in [&[][..], &[true], &[false, true, true]] {
            let text = checked(results);
            assert_eq!(text, serde_json::to_vec(&CheckResults { results: results.to_vec() }).unwrap());
        }
    }
}
