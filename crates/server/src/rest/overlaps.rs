//! Who is in all of some sets: whom users follow in common, and which of a viewer's followees follow a user.

use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use kinfolk_core::graph::OverlapPage;
use kinfolk_core::{ErrorCode, Id, Result};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::Store;
use super::endpoint::Endpoint;
use super::extract::{Call, Fresh, Ids, NamedActor};
use super::json::{Json, UserId, as_text};
use super::problem::Answered;
use super::query::{Page, PageParameters, Query};
use super::routes::Routes;
use crate::metrics::Operation;

pub fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let refuses =
        &[ErrorCode::InvalidId, ErrorCode::LimitOutOfRange, ErrorCode::InvalidCursor, ErrorCode::TooMany];
    let known_followers = Endpoint::read_oneself(Operation::KnownFollowers).abandonable();
    let common_followees = Endpoint::read(Operation::Common).abandonable();
    routes
        .add(common_followees.refusing(refuses), routes!(common))
        .add(common_followees.refusing(refuses), routes!(common_of_many))
        .add(known_followers.refusing(refuses), routes!(known_followers_of))
}

/// A page of those who are in all of some sets.
#[derive(Serialize, ToSchema)]
pub struct CountedPage {
    /// How many there are in all.
    count: u64,
    /// Some of them, by id.
    items: Vec<Member>,
    /// The cursor of the next page; missing where this is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// A user.
#[derive(Serialize, ToSchema)]
struct Member {
    /// Who.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = UserId)]
    id: Id,
}

/// Whom two users both follow, by id.
#[utoipa::path(get, path = "/v1/users/{id}/common/{other}", tag = "graph",
    params(
        ("id" = UserId, Path, description = "Who follows"),
        ("other" = UserId, Path, description = "Who else follows"),
        PageParameters),
    responses((status = 200, description = "How many, and a page of them", body = CountedPage, headers(
        ("Link" = String, description = "The next page, as rel=\"next\"")))))]
async fn common<S: Store>(call: Call<S>, Ids(of): Ids<2>, page: Page, fresh: Fresh, uri: Uri) -> Answered {
    let found = common_page(&call, &of, &page, &fresh).await?;
    Ok(answer(found, &page, &uri, &[]))
}

/// Whom all of some users follow, by id. Of one user, simply whom it follows.
#[utoipa::path(get, path = "/v1/common", tag = "graph",
    params(
        ("id" = Vec<UserId>, Query, description = "Who follows", min_items = 1, max_items = 10),
        PageParameters),
    responses((status = 200, description = "How many, and a page of them", body = CountedPage, headers(
        ("Link" = String, description = "The next page, as rel=\"next\"")))))]
async fn common_of_many<S: Store>(call: Call<S>, mut query: Query, fresh: Fresh, uri: Uri) -> Answered {
    let of = query.ids(call.id_kind())?;
    let page = Page::take(&mut query)?;
    query.end()?;
    let found = common_page(&call, &of, &page, &fresh).await?;
    let of: Vec<(&str, String)> = of.into_iter().map(|id| ("id", id.to_string())).collect();
    Ok(answer(found, &page, &uri, &of))
}

/// Which of those whom the viewer follows also follow a user, by id.
#[utoipa::path(get, path = "/v1/users/{id}/known-followers", tag = "graph",
    params(
        ("id" = UserId, Path, description = "Who is followed"),
        ("viewer" = inline(Option<UserId>), Query, description = "Who views. An end user views as itself; without the parameter, the header Kinfolk-Actor names who"),
        ("Kinfolk-Actor" = inline(Option<UserId>), Header, description = "Who views, where no parameter says so"),
        PageParameters),
    responses((status = 200, description = "How many, and a page of them", body = CountedPage, headers(
        ("Link" = String, description = "The next page, as rel=\"next\"")))))]
async fn known_followers_of<S: Store>(
    call: Call<S>,
    Ids([of]): Ids<1>,
    NamedActor(actor): NamedActor,
    mut query: Query,
    fresh: Fresh,
    uri: Uri,
) -> Answered {
    let named = query.id("viewer", call.id_kind())?;
    let page = Page::take(&mut query)?;
    query.end()?;
    if let Some(actor) = actor {
        call.caller.viewer(Some(actor))?;
    }
    let viewer = call.caller.viewer(named.or(actor))?;
    let found = call.service.known_followers(call.reading(&fresh), viewer, of, page.request()).await?;
    Ok(answer(found, &page, &uri, &[("viewer", viewer.id().to_string())]))
}

async fn common_page<S: Store>(call: &Call<S>, of: &[Id], page: &Page, fresh: &Fresh) -> Result<OverlapPage> {
    call.service.common(call.reading(fresh), of, page.request()).await
}

fn answer(found: OverlapPage, page: &Page, uri: &Uri, of: &[(&str, String)]) -> Response {
    let link = page.link(uri, of, found.next.as_deref());
    let items = found.items.into_iter().map(|id| Member { id }).collect();
    let mut response = Json(CountedPage { count: found.count, items, next: found.next }).into_response();
    response.headers_mut().extend(link);
    response
}
