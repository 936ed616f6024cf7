//! How many users somebody follows and is followed by: for one user, and for many.

use axum::response::IntoResponse;
use kinfolk_core::graph::Counts;
use kinfolk_core::{EdgeKind, ErrorCode, Id};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::Store;
use super::endpoint::Endpoint;
use super::extract::{Call, Fresh, Ids};
use super::json::{Json, UserId, as_text};
use super::problem::Answered;
use super::query::{NoQuery, Query};
use super::routes::Routes;
use crate::metrics::Operation;

pub fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let many_refuse = &[ErrorCode::InvalidId, ErrorCode::TooMany];
    routes
        .add(Endpoint::read(Operation::Counts), routes!(counts))
        .add(Endpoint::read(Operation::Counts).refusing(many_refuse), routes!(counts_of_many))
}

/// A user's counts.
#[derive(Serialize, ToSchema)]
pub struct Counted {
    /// Whose.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = UserId)]
    id: Id,
    /// How many the user follows.
    following: u64,
    /// How many follow the user.
    followers: u64,
}

impl From<(Id, Counts)> for Counted {
    fn from((id, Counts { following, followers }): (Id, Counts)) -> Self {
        Self { id, following, followers }
    }
}

/// The counts of users.
#[derive(Serialize, ToSchema)]
pub struct CountedUsers {
    /// One for each user, in the order asked.
    items: Vec<Counted>,
}

/// The counts of a user.
#[utoipa::path(get, path = "/v1/users/{id}/counts", tag = "graph",
    params(("id" = UserId, Path, description = "Whose")),
    responses((status = 200, description = "The counts", body = Counted)))]
async fn counts<S: Store>(call: Call<S>, Ids([of]): Ids<1>, fresh: Fresh, _: NoQuery) -> Answered {
    let found = call.graph().counts(EdgeKind::Follow, &[of], &fresh.0).await?;
    let counts = found.into_iter().next().unwrap_or_default();
    Ok(Json(Counted::from((of, counts))).into_response())
}

/// The counts of many users.
#[utoipa::path(get, path = "/v1/counts", tag = "graph",
    params(("id" = Vec<UserId>, Query, description = "Whose", min_items = 1, max_items = 100)),
    responses((status = 200, description = "One for each user, in the order asked", body = CountedUsers)))]
async fn counts_of_many<S: Store>(call: Call<S>, fresh: Fresh, mut query: Query) -> Answered {
    let of = query.ids(call.id_kind())?;
    query.end()?;
    let found = call.graph().counts(EdgeKind::Follow, &of, &fresh.0).await?;
    let items = of.into_iter().zip(found).map(Counted::from).collect();
    Ok(Json(CountedUsers { items }).into_response())
}
