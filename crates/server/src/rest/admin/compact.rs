//! Compaction through a running server. What it does to files is up to [`crate::Administration`] and the store.

use axum::extract::State;
use kinfolk_api::CompactOutcome;
use kinfolk_core::bulk::Progress;

use super::super::extract::{Call, NoBody};
use super::super::problem::Answered;
use super::super::query::NoQuery;
use super::super::{Shared, Store};
use super::{job_slot, progress};
use crate::metrics::Operation;

/// Erases the texts of purged comments from everything that the store keeps, and merges all files.
///
/// The answer is lines of JSON: progress, and at last a result or an error.
#[utoipa::path(post, path = "/v1/admin/compact", tag = "admin",
    responses((status = 200, description = "Lines of JSON", content_type = "application/x-ndjson", body = inline(String))))]
pub async fn compact<S: Store>(
    State(shared): State<Shared<S>>,
    call: Call<S>,
    _: NoQuery,
    _: NoBody,
) -> Answered {
    let slot = job_slot(&shared)?;
    let asked = call.clone();
    let lines = progress::Lines { call, operation: Operation::Compact, slot };
    Ok(lines.answer(move |reporter, last| {
        reporter.report(Progress { stage: "merging", done: 0, total: None });
        last(asked.administration().compact().map(|erased| CompactOutcome { erased }));
    }))
}
