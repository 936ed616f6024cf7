//! Counts of followees and followers: of one user, and of many.

use kinfolk_api::{Counts, CountsList};

use super::prelude::*;

pub(crate) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let many_refuse = &[ErrorCode::InvalidId, ErrorCode::TooMany];
    routes
        .add(Endpoint::read(Operation::Counts), routes!(counts))
        .add(Endpoint::read(Operation::Counts).refusing(many_refuse), routes!(counts_of_many))
}

/// The counts of a user.
#[utoipa::path(get, path = "/v1/users/{id}/counts", tag = "graph",
    params(("id" = api::Id, Path, description = "The user")),
    responses((status = 200, description = "The counts", body = Counts)))]
async fn counts<S: Store>(call: Call<S>, Ids([of]): Ids<1>, _: NoQuery) -> RestResult {
    let found = call.graph().counts(EdgeKind::Follow, &[of], &call.seen).await?;
    let counts = found.into_iter().next().unwrap_or_default();
    Ok(Json(Counts::new(of, counts)).into_response())
}

/// The counts of many users.
#[utoipa::path(get, path = "/v1/counts", tag = "graph",
    params(("id" = Vec<api::Id>, Query, description = "The users", min_items = 1, max_items = 100)),
    responses((status = 200, description = "One for each user, in the order of the request", body = CountsList)))]
async fn counts_of_many<S: Store>(call: Call<S>, mut query: Query) -> RestResult {
    let of = query.ids(call.id_kind())?;
    query.end()?;
    let found = call.graph().counts(EdgeKind::Follow, &of, &call.seen).await?;
    let items = of.into_iter().zip(found).map(|(id, counts)| Counts::new(id, counts)).collect();
    Ok(Json(CountsList { items }).into_response())
}
