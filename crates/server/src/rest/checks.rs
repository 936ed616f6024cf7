//! Who follows whom: one pair, many pairs, and how one user stands to others.

use axum::response::IntoResponse;
use bytes::BytesMut;
use kinfolk_core::graph::Relationship;
use kinfolk_core::{EdgeKind, ErrorCode, Id, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::Store;
use super::endpoint::Endpoint;
use super::extract::{Call, Fresh, Ids, JsonBody};
use super::json::{self, Json, Moment, UserId, as_optional_text, as_text};
use super::pairs::{self, Check};
use super::problem::Answered;
use super::query::{NoQuery, Query};
use super::routes::Routes;
use crate::metrics::Operation;

pub fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let check_refuses =
        &[ErrorCode::InvalidId, ErrorCode::TooMany, ErrorCode::TooLarge, ErrorCode::UnsupportedMediaType];
    let many_refuse = &[ErrorCode::TooMany];
    routes
        .add(Endpoint::read(Operation::Check), routes!(follows))
        .add(Endpoint::read(Operation::CheckMany).refusing(check_refuses), routes!(check))
        .add(Endpoint::read_oneself(Operation::Relationships).refusing(many_refuse), routes!(relationships))
}

/// Whether one user follows another.
#[derive(Serialize, ToSchema)]
pub struct Follows {
    /// Whether.
    following: bool,
    /// Since when, if so.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = Moment, required = false)]
    since: Option<Timestamp>,
}

/// Whether a user follows another.
#[utoipa::path(get, path = "/v1/users/{id}/following/{target}", tag = "graph",
    params(
        ("id" = UserId, Path, description = "Who would follow"),
        ("target" = UserId, Path, description = "Whom")),
    responses((status = 200, description = "Whether, and since when", body = Follows)))]
async fn follows<S: Store>(call: Call<S>, Ids([of, target]): Ids<2>, fresh: Fresh, _: NoQuery) -> Answered {
    let graph = call.graph();
    let found = graph.relationships(EdgeKind::Follow, of, &[target], &fresh.0).await?;
    let since = found.first().and_then(|relationship| relationship.since);
    Ok(Json(Follows { following: since.is_some(), since }).into_response())
}

/// The answers to a check.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents what the route writes")]
pub struct Checked {
    /// For each pair, in the order asked, whether the first follows the second.
    results: Vec<bool>,
}

/// For each pair, whether the first follows the second.
#[utoipa::path(post, path = "/v1/check", tag = "graph",
    request_body = Check,
    responses((status = 200, description = "The answers, in the order asked", body = Checked)))]
async fn check<S: Store>(call: Call<S>, fresh: Fresh, _: NoQuery, JsonBody(body): JsonBody) -> Answered {
    let edges = pairs::parse(&body, call.id_kind())?;
    let results = call.graph().check(EdgeKind::Follow, &edges, &fresh.0).await?;
    Ok(json::written(checked(&results).freeze()))
}

/// The answer's JSON: by hand, as it is the hottest of all.
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

/// How a user stands to others.
#[derive(Serialize, ToSchema)]
pub struct Standings {
    /// One for each user, in the order asked.
    items: Vec<Standing>,
}

/// How a user stands to another.
#[derive(Serialize, ToSchema)]
struct Standing {
    /// The other.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = UserId)]
    id: Id,
    /// Whether the user follows the other.
    following: bool,
    /// Whether the other follows the user.
    followed_by: bool,
    /// Whether each follows the other.
    mutual: bool,
    /// Since when the user follows the other, if so.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = Moment, required = false)]
    since: Option<Timestamp>,
}

impl From<Relationship> for Standing {
    fn from(found: Relationship) -> Self {
        let (following, mutual) = (found.following(), found.mutual());
        Self { id: found.id, following, followed_by: found.followed_by, mutual, since: found.since }
    }
}

/// How a user stands to others. End users may ask for themselves only.
#[utoipa::path(get, path = "/v1/users/{id}/relationships", tag = "graph",
    params(
        ("id" = UserId, Path, description = "Who asks"),
        ("id" = Vec<UserId>, Query, description = "The others", min_items = 1, max_items = 100)),
    responses((status = 200, description = "One for each user, in the order asked", body = Standings)))]
async fn relationships<S: Store>(
    call: Call<S>,
    Ids([of]): Ids<1>,
    fresh: Fresh,
    mut query: Query,
) -> Answered {
    call.caller.viewer(Some(of))?;
    let others = query.ids(call.id_kind())?;
    query.end()?;
    let graph = call.graph();
    let found = graph.relationships(EdgeKind::Follow, of, &others, &fresh.0).await?;
    Ok(Json(Standings { items: found.into_iter().map(Standing::from).collect() }).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_answer_is_json() {
        for results in [&[][..], &[true], &[false, true, true]] {
            let text = checked(results);
            let read: serde_json::Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(read, serde_json::json!({ "results": results }));
        }
    }
}
