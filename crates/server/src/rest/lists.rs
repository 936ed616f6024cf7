//! Lists, newest first, in pages: following, followers, friends.

use axum::http::Uri;
use kinfolk_api::{self as api, ListEntry};
use kinfolk_core::{EdgeKind, ErrorCode};
use utoipa_axum::routes;

use super::Store;
use super::endpoint::{Cost, Endpoint};
use super::extract::{Call, Fresh, Ids};
use super::problem::RestResult;
use super::query::{Page, PageParameters};
use super::routes::Routes;
use crate::metrics::Operation;

pub fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
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
    responses((status = 200, description = "A page of the list", body = api::Users, headers(
        ("Link" = String, description = "The next page, as rel=\"next\"")))))]
async fn following<S: Store>(
    call: Call<S>,
    Ids([of]): Ids<1>,
    page: Page,
    fresh: Fresh,
    uri: Uri,
) -> RestResult {
    let graph = call.graph();
    let found = graph.following(EdgeKind::Follow, of, page.request(), &fresh.0).await?;
    Ok(page.respond::<ListEntry>(&uri, &[], found))
}

/// The followers of a user, newest first.
#[utoipa::path(get, path = "/v1/users/{id}/followers", tag = "graph",
    params(("id" = api::Id, Path, description = "The user"), PageParameters),
    responses((status = 200, description = "A page of the list", body = api::Users, headers(
        ("Link" = String, description = "The next page, as rel=\"next\"")))))]
async fn followers<S: Store>(
    call: Call<S>,
    Ids([of]): Ids<1>,
    page: Page,
    fresh: Fresh,
    uri: Uri,
) -> RestResult {
    let graph = call.graph();
    let found = graph.followers(EdgeKind::Follow, of, page.request(), &fresh.0).await?;
    Ok(page.respond::<ListEntry>(&uri, &[], found))
}

/// The users who follow a user and are followed back, newest followers first.
#[utoipa::path(get, path = "/v1/users/{id}/friends", tag = "graph",
    params(("id" = api::Id, Path, description = "The user"), PageParameters),
    responses((status = 200, description = "A page of the list", body = api::Users, headers(
        ("Link" = String, description = "The next page, as rel=\"next\"")))))]
async fn friends<S: Store>(
    call: Call<S>,
    Ids([of]): Ids<1>,
    page: Page,
    fresh: Fresh,
    uri: Uri,
) -> RestResult {
    let found = call.service.friends(call.reading(&fresh), of, page.request()).await?;
    Ok(page.respond::<ListEntry>(&uri, &[], found))
}
