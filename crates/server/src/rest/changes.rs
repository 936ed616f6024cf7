//! The change log, page by page. `stream` has it as server-sent events.

use kinfolk_api::{Change, Changes};
use kinfolk_core::Frontier;

use super::prelude::*;
use super::stream;

/// The errors of a position to continue from.
pub(crate) const POSITION_REFUSALS: &[ErrorCode] = &[
    ErrorCode::LimitOutOfRange,
    ErrorCode::InvalidToken,
    ErrorCode::PositionExpired,
    ErrorCode::NotYetVisible,
];

pub(crate) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let poll = Endpoint::services(Operation::Changes).refusing(POSITION_REFUSALS);
    stream::routes(routes.add(poll, routes!(changes)))
}

/// The frontier to continue from: without a token, the oldest kept change.
pub(crate) fn frontier<S: Store>(call: &Call<S>, after: Option<&str>) -> Result<Frontier> {
    after.map_or_else(|| Ok(Frontier::default()), |token| call.service.frontier(token))
}

/// The documented size of a page of the change log.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents what changes reads")]
struct ChangeParameters {
    /// Maximum number of changes.
    #[param(minimum = 1, maximum = 1000, default = 50, required = false)]
    limit: u32,
}

/// A page of the change log, oldest first within each shard.
///
/// Continue with `next`; an empty page means that there is no later change yet.
#[utoipa::path(get, path = "/v1/changes", tag = "changes",
    params(
        ("after" = inline(Option<String>), Query, description = "The token to continue from [default: the oldest kept change]"),
        ChangeParameters),
    responses((status = 200, description = "A page of the log", body = Changes)))]
async fn changes<S: Store>(call: Call<S>, mut query: Query) -> RestResult {
    let (after, limit) = (query.one("after")?, query.limit()?);
    query.end()?;
    let after = frontier(&call, after.as_deref())?;
    let page = call.changes().read(&after, limit).await?;
    let items = page.changes.into_iter().map(Change::from).collect();
    Ok(Json(Changes { items, next: call.service.token(page.next) }).into_response())
}
