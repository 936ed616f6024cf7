//! Compaction through a running server. The work is done by [`crate::Administration`] and the store.

use axum::extract::State;
use kinfolk_api::CompactOutcome;
use kinfolk_core::bulk::Progress;

use super::super::extract::{Call, NoBody};
use super::super::problem::RestResult;
use super::super::query::NoQuery;
use super::super::{Shared, Store};
use super::{job_slot, progress};
use crate::metrics::Operation;

/// Erases the bodies of purged comments from the disk, and compacts all files.
///
/// The response is lines of JSON: progress, and finally a result or an error.
#[utoipa::path(post, path = "/v1/admin/compact", tag = "admin",
    responses((status = 200, description = "Lines of JSON", content_type = "application/x-ndjson", body = inline(String))))]
pub async fn compact<S: Store>(
    State(shared): State<Shared<S>>,
    call: Call<S>,
    _: NoQuery,
    _: NoBody,
) -> RestResult {
    let slot = job_slot(&shared)?;
    let asked = call.clone();
    let lines = progress::Lines { call, operation: Operation::Compact, slot };
    Ok(lines.respond(move |reporter, last| {
        reporter.report(Progress { stage: "merging", done: 0, total: None });
        last(asked.administration().compact().map(|erased| CompactOutcome { erased }));
    }))
}
