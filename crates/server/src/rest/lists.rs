//! Lists, newest first, in pages: following, followers, friends.

use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use kinfolk_core::graph::{ListEntry, ListPage};
use kinfolk_core::{EdgeKind, ErrorCode, Id, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::Store;
use super::endpoint::Endpoint;
use super::extract::{Call, Fresh, Ids};
use super::json::{Json, Moment, UserId, as_text};
use super::problem::Answered;
use super::query::{Page, PageParameters};
use super::routes::Routes;
use crate::metrics::Operation;

pub fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let refuses = &[ErrorCode::LimitOutOfRange, ErrorCode::InvalidCursor];
    routes
        .add(Endpoint::read(Operation::Following).refusing(refuses), routes!(following))
        .add(Endpoint::read(Operation::Followers).refusing(refuses), routes!(followers))
        .add(Endpoint::read(Operation::Friends).abandonable().refusing(refuses), routes!(friends))
}

/// A page of a list.
#[derive(Serialize, ToSchema)]
pub struct Users {
    /// The entries, newest first.
    items: Vec<Entry>,
    /// The cursor of the next page; missing where the list ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// A user in a list.
#[derive(Serialize, ToSchema)]
struct Entry {
    /// Who.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = UserId)]
    id: Id,
    /// Since when.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = Moment)]
    since: Timestamp,
}

impl From<ListEntry> for Entry {
    fn from(ListEntry { since, id }: ListEntry) -> Self {
        Self { id, since }
    }
}

/// Whom a user follows.
#[utoipa::path(get, path = "/v1/users/{id}/following", tag = "graph",
    params(("id" = UserId, Path, description = "Whose list"), PageParameters),
    responses((status = 200, description = "A page of the list", body = Users, headers(
        ("Link" = String, description = "The next page, as rel=\"next\"")))))]
async fn following<S: Store>(
    call: Call<S>,
    Ids([of]): Ids<1>,
    page: Page,
    fresh: Fresh,
    uri: Uri,
) -> Answered {
    let graph = call.graph();
    let found = graph.following(EdgeKind::Follow, of, page.request(), &fresh.0).await?;
    Ok(answer(found, &page, &uri))
}

/// Who follows a user.
#[utoipa::path(get, path = "/v1/users/{id}/followers", tag = "graph",
    params(("id" = UserId, Path, description = "Whose list"), PageParameters),
    responses((status = 200, description = "A page of the list", body = Users, headers(
        ("Link" = String, description = "The next page, as rel=\"next\"")))))]
async fn followers<S: Store>(
    call: Call<S>,
    Ids([of]): Ids<1>,
    page: Page,
    fresh: Fresh,
    uri: Uri,
) -> Answered {
    let graph = call.graph();
    let found = graph.followers(EdgeKind::Follow, of, page.request(), &fresh.0).await?;
    Ok(answer(found, &page, &uri))
}

/// Who follows a user and is followed back, by when they followed the user.
#[utoipa::path(get, path = "/v1/users/{id}/friends", tag = "graph",
    params(("id" = UserId, Path, description = "Whose list"), PageParameters),
    responses((status = 200, description = "A page of the list", body = Users, headers(
        ("Link" = String, description = "The next page, as rel=\"next\"")))))]
async fn friends<S: Store>(call: Call<S>, Ids([of]): Ids<1>, page: Page, fresh: Fresh, uri: Uri) -> Answered {
    let found = call.service.friends(call.reading(&fresh), of, page.request()).await?;
    Ok(answer(found, &page, &uri))
}

fn answer(found: ListPage, page: &Page, uri: &Uri) -> Response {
    let link = page.link(uri, &[], found.next.as_deref());
    let items = found.items.into_iter().map(Entry::from).collect();
    let mut response = Json(Users { items, next: found.next }).into_response();
    response.headers_mut().extend(link);
    response
}
