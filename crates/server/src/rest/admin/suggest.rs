//! Suggestions for everyone, computed through a running server. Which are the best is the store's business.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use axum::extract::State;
use kinfolk_core::Result;
use kinfolk_core::suggest::{EveryoneReport, EveryoneRequest, Ranking, WalkBounds};
use serde::Serialize;

use super::super::extract::{Call, NoBody};
use super::super::problem::Answered;
use super::super::query::{Query, invalid};
use super::super::{Shared, Store};
use super::{permit, progress};
use crate::administration::Progress;
use crate::metrics::Operation;

/// How many suggestions of each user are stored.
const KEEP_MAX: usize = 100;
const PER_NODE_MAX: usize = 1_000_000;
const THREADS_MAX: usize = 256;

#[derive(Serialize)]
struct Computed {
    users: u64,
    suggested: u64,
    resumed: u64,
    complete: bool,
}

impl From<EveryoneReport> for Computed {
    fn from(EveryoneReport { users, suggested, resumed, complete }: EveryoneReport) -> Self {
        Self { users, suggested, resumed, complete }
    }
}

/// Computes suggestions for everyone, and stores them.
///
/// The answer is lines of JSON: progress, and at last a result or an error. The work stops when the client leaves; the
/// next call with the same parameters goes on with it, unless it is to start afresh.
#[utoipa::path(post, path = "/v1/admin/suggest", tag = "admin",
    params(
        ("ranking" = inline(Option<String>), Query, description = "What makes the best: count, jaccard or adamic-adar", pattern = "^(count|jaccard|adamic-adar)$"),
        ("per_node" = inline(Option<u32>), Query, description = "Look only at so many of those whom a user follows, the most recent ones; at all of them without it", minimum = 1, maximum = 1000000),
        ("keep" = inline(Option<u32>), Query, description = "How many to store for each user", minimum = 1, maximum = 100),
        ("threads" = inline(Option<u32>), Query, description = "How many threads work at it; as many as there are processors without it", minimum = 1, maximum = 256),
        ("afresh" = inline(Option<bool>), Query, description = "Start over, even if there is something to go on with")),
    responses((status = 200, description = "Lines of JSON", content_type = "application/x-ndjson", body = inline(String))))]
pub async fn suggest<S: Store>(
    State(shared): State<Shared<S>>,
    call: Call<S>,
    mut query: Query,
    _: NoBody,
) -> Answered {
    let request = request(&mut query)?;
    query.end()?;
    let permit = permit(&shared)?;
    let service = Arc::clone(&call.service);
    let lines = progress::Lines { call, operation: Operation::Suggest, permit };
    Ok(lines.answer(move |teller, last| {
        let watch = |done, total| {
            teller.tell(Progress { stage: "suggesting", done, total: Some(total) });
            !teller.is_alone()
        };
        last(service.graph.store().suggest_for_everyone(request, &watch).map(Computed::from));
    }))
}

fn request(query: &mut Query) -> Result<EveryoneRequest> {
    let ranking = match query.one("ranking")? {
        None => Ranking::default(),
        Some(name) => Ranking::from_name(&name).ok_or_else(|| {
            let names = Ranking::ALL.map(Ranking::name).join(", ");
            invalid(format!("the parameter ranking must be one of: {names}"))
        })?,
    };
    let bounds = WalkBounds {
        per_node: query.number_in("per_node", 1..=PER_NODE_MAX)?,
        results: query.number_in("keep", 1..=KEEP_MAX)?.unwrap_or(KEEP_MAX),
        ranking,
    };
    let threads = query.number_in("threads", 1..=THREADS_MAX)?;
    let threads = threads.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get));
    Ok(EveryoneRequest { bounds, threads, afresh: query.flag("afresh")? })
}
