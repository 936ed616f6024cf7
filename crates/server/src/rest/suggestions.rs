//! Suggestions for one user, and dismissals. `admin` computes them for all users.

use kinfolk_api::Suggestions;

use super::prelude::*;
use super::writes::{DONE, done};

const SUGGESTIONS: Capability = Capability::Suggestions;
const LIMIT_DEFAULT: usize = 20;
const LIMIT_MAX: usize = 100;

pub(crate) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let refuses = &[ErrorCode::LimitOutOfRange, ErrorCode::Overloaded];
    routes
        .add(
            Endpoint::read(Operation::Suggestions)
                .by(ActorRule::ViewerInPath)
                .abandonable()
                .refusing(refuses)
                .needing(SUGGESTIONS),
            routes!(suggestions),
        )
        .add(
            Endpoint::write(Operation::Dismiss).by(ActorRule::ActorInPath).needing(SUGGESTIONS),
            routes!(dismiss),
        )
}

/// The documented parameters of suggestions.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents what suggestions reads")]
struct SuggestionParameters {
    /// Maximum number of suggestions.
    #[param(minimum = 1, maximum = 100, default = 20, required = false)]
    limit: u32,
}

/// Suggestions to a user: candidates followed by many of its followees, except those that it follows or has dismissed.
///
/// Results of the computation for all users are served while they are fresh; `computed_at` says so. Otherwise the request
/// considers the 500 most recent followees, and the 500 most recent ones of each of them (by default: `suggest.per_node`).
#[utoipa::path(get, path = "/v1/users/{id}/suggestions", tag = "suggestions",
    params(
        ("id" = api::Id, Path, description = "The user. An end user asks only for itself"),
        SuggestionParameters),
    responses((status = 200, description = "The suggestions, best first", body = Suggestions)))]
async fn suggestions<S: Store>(call: Call<S>, mut query: Query) -> RestResult {
    let limit = query.number("limit")?.unwrap_or(LIMIT_DEFAULT);
    query.end()?;
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Failure(Error::LimitOutOfRange { limit, max: LIMIT_MAX }));
    }
    let found = call.suggest(limit).await?;
    Ok(Json(Suggestions::from(found)).into_response())
}

/// Dismisses a suggestion: the candidate is not suggested to the actor again.
///
/// Dismissing it again is a success that changes nothing.
#[utoipa::path(delete, path = "/v1/users/{id}/suggestions/{target}", tag = "suggestions",
    params(
        ("id" = api::Id, Path, description = "The actor"),
        ("target" = api::Id, Path, description = "The candidate")),
    responses((status = 204, description = DONE)))]
async fn dismiss<S: Store>(call: Call<S>, Ids([_, target]): Ids<2>, _: NoInput) -> RestResult {
    let written = call.suggestions()?.dismiss(call.actor()?, target).await?;
    Ok(done(&call, &written))
}
