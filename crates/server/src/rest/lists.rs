//! Lists, newest first, in pages: following, followers, friends.

use kinfolk_api::ListEntry;

use super::prelude::*;

pub(crate) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let refuses = &[ErrorCode::LimitOutOfRange, ErrorCode::InvalidCursor];
    routes
        .add(Endpoint::read(Operation::Following).refusing(refuses), routes!(following))
        .add(Endpoint::read(Operation::Followers).refusing(refuses), routes!(followers))
        .add(
            Endpoint::read(Operation::Friends).costing(Cost::Rows).abandonable().refusing(refuses),
            routes!(friends),
        )
}

/// The followees of a user, newest first.
#[utoipa::path(get, path = "/v1/users/{id}/following", tag = "graph",
    params(("id" = api::Id, Path, description = "The user"), PageParameters),
    responses((status = 200, description = "A page of the list", body = api::Users)))]
async fn following<S: Store>(call: Call<S>, Ids([of]): Ids<1>, page: Page) -> RestResult {
    let found = call.graph().following(EdgeKind::Follow, of, page.request(), &call.seen).await?;
    Ok(page.respond::<ListEntry>(&[], found))
}

/// The followers of a user, newest first.
#[utoipa::path(get, path = "/v1/users/{id}/followers", tag = "graph",
    params(("id" = api::Id, Path, description = "The user"), PageParameters),
    responses((status = 200, description = "A page of the list", body = api::Users)))]
async fn followers<S: Store>(call: Call<S>, Ids([of]): Ids<1>, page: Page) -> RestResult {
    let found = call.graph().followers(EdgeKind::Follow, of, page.request(), &call.seen).await?;
    Ok(page.respond::<ListEntry>(&[], found))
}

/// The users who follow a user and are followed back, newest followers first.
#[utoipa::path(get, path = "/v1/users/{id}/friends", tag = "graph",
    params(("id" = api::Id, Path, description = "The user"), PageParameters),
    responses((status = 200, description = "A page of the list", body = api::Users)))]
async fn friends<S: Store>(call: Call<S>, Ids([of]): Ids<1>, page: Page) -> RestResult {
    let found = call.service.friends(call.reading(), of, page.request()).await?;
    Ok(page.respond::<ListEntry>(&[], found))
}
