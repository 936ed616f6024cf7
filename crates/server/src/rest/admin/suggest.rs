//! Computes suggestions for all users. The store ranks them.

use kinfolk_api::SuggestOutcome;
use kinfolk_api::schema::lines::{JSON_LINES, SuggestLines};
use kinfolk_core::bulk::Progress;
use kinfolk_core::suggestions::{Ranking, SuggestionRunRequest, SuggestionStore, WalkBounds};

use super::super::prelude::*;
use super::progress;

/// The maximum number of suggestions stored for a user.
const KEEP_MAX: usize = WalkBounds::RESULTS_MAX;
const PER_NODE_MAX: usize = 1_000_000;
const THREADS_MAX: usize = 256;

/// Computes suggestions for all users, and stores them.
///
/// The response is lines of JSON: progress, and finally a result or an error. The job stops when the client disconnects; the
/// next call with the same parameters resumes it, unless it starts afresh. The server's settings decide missing parameters.
#[utoipa::path(post, path = "/v1/admin/suggest", tag = "admin",
    params(
        ("ranking" = inline(Option<String>), Query, description = "Which suggestions to store, and their order: count, jaccard or adamic-adar", pattern = "^(count|jaccard|adamic-adar)$"),
        ("per_node" = inline(Option<u32>), Query, description = "Maximum number of followees of a user to consider, the most recent ones; 0 for all", minimum = 0, maximum = 1000000),
        ("keep" = inline(Option<u32>), Query, description = "Number of suggestions to store for each user", minimum = 1, maximum = 1000),
        ("threads" = inline(Option<u32>), Query, description = "Number of threads", minimum = 1, maximum = 256),
        ("afresh" = inline(Option<bool>), Query, description = "Start over instead of resuming a stopped run")),
    responses((status = 200, description = "Lines of JSON", content_type = JSON_LINES, body = inline(SuggestLines))))]
pub(crate) async fn suggest<S: Store>(
    State(shared): State<Shared<S>>,
    call: Call<S>,
    mut query: Query,
    _: NoBody,
) -> RestResult {
    let request = request(&mut query, call.administration().everyone())?;
    query.end()?;
    progress::respond(&shared, call, Operation::Suggest, move |call, reporter, last| {
        let watch = |done, total| {
            reporter.report(Progress { stage: "suggesting", done, total: Some(total) });
            !reporter.is_alone()
        };
        let suggestions = call.suggestions();
        let computed =
            suggestions.and_then(|suggestions| suggestions.store().compute_suggestions(request, &watch));
        last(computed.map(SuggestOutcome::from));
    })
}

/// The parameters of a query, and the server's settings for missing ones.
fn request(query: &mut Query, settings: SuggestionRunRequest) -> Result<SuggestionRunRequest> {
    let SuggestionRunRequest { bounds, threads, .. } = settings;
    let names = format!("one of: {}", Ranking::ALL.map(Ranking::name).join(", "));
    let ranking = query.named("ranking", Ranking::from_name, &names)?.unwrap_or(bounds.ranking);
    let per_node = query.number_in("per_node", 0..=PER_NODE_MAX)?;
    let bounds = WalkBounds {
        per_node: per_node.map_or(bounds.per_node, |count| (count > 0).then_some(count)),
        results: query.number_in("keep", 1..=KEEP_MAX)?.unwrap_or(bounds.results),
        ranking,
    };
    let threads = query.number_in("threads", 1..=THREADS_MAX)?.unwrap_or(threads);
    Ok(SuggestionRunRequest { bounds, threads, afresh: query.flag("afresh")? })
}
