//! Overlaps: the common followees of users, and the followers of a user among a viewer's followees.

use kinfolk_api::CountedPage;

use super::prelude::*;

pub(crate) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let refuses =
        &[ErrorCode::InvalidId, ErrorCode::LimitOutOfRange, ErrorCode::InvalidCursor, ErrorCode::TooMany];
    let common_followees = Endpoint::read(Operation::Common).costing(Cost::Rows).abandonable();
    let known_followers = Endpoint::read(Operation::KnownFollowers).costing(Cost::Rows).abandonable();
    routes
        .add(common_followees.refusing(refuses), routes!(common))
        .add(common_followees.refusing(refuses), routes!(common_of_many))
        .add(known_followers.by(ActorRule::Viewer).refusing(refuses), routes!(known_followers_of))
}

/// The common followees of two users, by id.
#[utoipa::path(get, path = "/v1/users/{id}/common/{other}", tag = "graph",
    params(
        ("id" = api::Id, Path, description = "A follower"),
        ("other" = api::Id, Path, description = "Another follower"),
        PageParameters),
    responses((status = 200, description = "The count, and a page of the users", body = CountedPage)))]
async fn common<S: Store>(call: Call<S>, Ids(of): Ids<2>, page: Page) -> RestResult {
    let found = call.service.common(call.reading(), &of, page.request()).await?;
    Ok(page.respond_counted(&[], found))
}

/// The common followees of several users, by id.
#[utoipa::path(get, path = "/v1/common", tag = "graph",
    params(
        ("id" = Vec<api::Id>, Query, description = "The followers", min_items = 1, max_items = 10),
        PageParameters),
    responses((status = 200, description = "The count, and a page of the users", body = CountedPage)))]
async fn common_of_many<S: Store>(call: Call<S>, mut query: Query) -> RestResult {
    let of = query.ids(call.id_kind())?;
    let page = Page::take(&mut query)?;
    query.end()?;
    let found = call.service.common(call.reading(), &of, page.request()).await?;
    let of: Vec<(&str, String)> = of.into_iter().map(|id| ("id", id.to_string())).collect();
    Ok(page.respond_counted(&of, found))
}

/// The followers of a user among the viewer's followees, by id.
#[utoipa::path(get, path = "/v1/users/{id}/known-followers", tag = "graph",
    params(
        ("id" = api::Id, Path, description = "The user"),
        ("viewer" = Option<api::Id>, Query, description = "The viewer. An end user views as itself; without the parameter, the header Kinfolk-Actor names the viewer"),
        ("Kinfolk-Actor" = Option<api::Id>, Header, description = "The viewer, unless the parameter names one"),
        PageParameters),
    responses((status = 200, description = "The count, and a page of the users", body = CountedPage)))]
async fn known_followers_of<S: Store>(call: Call<S>, Ids([of]): Ids<1>, mut query: Query) -> RestResult {
    // The guard has read it.
    query.one("viewer")?;
    let page = Page::take(&mut query)?;
    query.end()?;
    let viewer = call.viewer()?;
    let found = call.service.known_followers(call.reading(), viewer, of, page.request()).await?;
    Ok(page.respond_counted(&[("viewer", viewer.id().to_string())], found))
}
