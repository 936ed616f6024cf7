//! People you may know: suggestions to one user, and dismissing them. Computing them for everyone is administration.

use axum::response::IntoResponse;
use kinfolk_core::suggestions::Suggestion;
use kinfolk_core::{Error, ErrorCode, Id, Timestamp};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::Store;
use super::endpoint::Endpoint;
use super::extract::{Actor, Call, Fresh, Ids, NoBody};
use super::json::{Json, Moment, UserId, as_optional_text, as_text};
use super::problem::{Answered, Failure};
use super::query::{NoQuery, Query};
use super::routes::Routes;
use super::writes::{Done, done};
use crate::metrics::Operation;
use crate::service::Capability;

const SUGGESTIONS: Capability = Capability::Suggestions;
const LIMIT_DEFAULT: usize = 20;
const LIMIT_MAX: usize = 100;

pub fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let refuses = &[ErrorCode::LimitOutOfRange, ErrorCode::Overloaded];
    routes
        .add(
            Endpoint::read_oneself(Operation::Suggestions)
                .abandonable()
                .refusing(refuses)
                .needing(SUGGESTIONS),
            routes!(suggestions),
        )
        .add(Endpoint::write(Operation::Dismiss).needing(SUGGESTIONS), routes!(dismiss))
}

/// Whom a user may know.
#[derive(Serialize, ToSchema)]
pub struct SuggestedUsers {
    /// The suggestions, the best first.
    items: Vec<SuggestedUser>,
    /// When they were computed; missing where they were found just now.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    #[schema(value_type = Moment, required = false)]
    computed_at: Option<Timestamp>,
}

/// Somebody whom a user may know.
#[derive(Serialize, ToSchema)]
struct SuggestedUser {
    /// Who.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = UserId)]
    id: Id,
    /// How many of those whom the user follows follow them.
    mutual_count: u32,
    /// The Adamic-Adar score: those of these who have few edges add more.
    score: f64,
    /// What share these are of all whom the user follows or who follow the suggested one.
    jaccard: f64,
    /// Up to three of these.
    #[serde(serialize_with = "as_texts")]
    #[schema(value_type = Vec<UserId>, max_items = 3)]
    via: Vec<Id>,
}

impl From<Suggestion> for SuggestedUser {
    fn from(Suggestion { id, mutual_count, score, jaccard, via }: Suggestion) -> Self {
        Self { id, mutual_count, score: score.value(), jaccard, via }
    }
}

fn as_texts<S: Serializer>(ids: &[Id], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ids.iter().map(Id::to_string))
}

/// Whom a user may know: those whom many of its followees follow, and whom it neither follows nor has dismissed.
///
/// What was computed for everyone is served while it is fresh; `computed_at` says so. Otherwise the 500 most recent
/// followees, and the 500 most recent ones of each of them, are looked at.
#[utoipa::path(get, path = "/v1/users/{id}/suggestions", tag = "suggestions",
    params(
        ("id" = UserId, Path, description = "To whom. An end user asks only for itself"),
        ("limit" = inline(Option<u32>), Query, description = "How many", minimum = 1, maximum = 100)),
    responses((status = 200, description = "The suggestions, the best first", body = SuggestedUsers)))]
async fn suggestions<S: Store>(call: Call<S>, Ids([of]): Ids<1>, mut query: Query, fresh: Fresh) -> Answered {
    let limit = query.number("limit")?.unwrap_or(LIMIT_DEFAULT);
    query.end()?;
    call.caller.require_viewer(of)?;
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Failure(Error::LimitOutOfRange { limit, max: LIMIT_MAX }));
    }
    let found = call.service.suggest(of, limit, &fresh.0).await?;
    let items = found.items.into_iter().map(SuggestedUser::from).collect();
    Ok(Json(SuggestedUsers { items, computed_at: found.computed_at }).into_response())
}

/// The actor does not want a user to be suggested to it again.
///
/// Dismissing somebody again is a success that changes nothing.
#[utoipa::path(delete, path = "/v1/users/{id}/suggestions/{target}", tag = "suggestions",
    params(
        ("id" = UserId, Path, description = "The actor"),
        ("target" = UserId, Path, description = "Whom to dismiss")),
    responses(Done))]
async fn dismiss<S: Store>(
    call: Call<S>,
    Ids([of, target]): Ids<2>,
    Actor(actor): Actor,
    fresh: Fresh,
    _: NoQuery,
    _: NoBody,
) -> Answered {
    if actor != of {
        let detail = "a user dismisses only its own suggestions".to_owned();
        return Err(Failure(Error::Forbidden { detail }));
    }
    call.service.limits.take_change(actor)?;
    let written = call.service.suggestions()?.dismiss(actor, target).await?;
    Ok(done(&call, &fresh, &written))
}
