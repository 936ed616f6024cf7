//! Compaction through a running server. The work is done by [`crate::Administration`] and the store.

use kinfolk_api::CompactOutcome;
use kinfolk_api::schema::lines::{CompactLines, JSON_LINES};
use kinfolk_core::bulk::Progress;

use super::super::prelude::*;
use super::progress;

/// Erases the bodies of purged comments from the disk, and compacts all files.
///
/// The response is lines of JSON: progress, and finally a result or an error.
#[utoipa::path(post, path = "/v1/admin/compact", tag = "admin",
    responses((status = 200, description = "Lines of JSON", content_type = JSON_LINES, body = inline(CompactLines))))]
pub(crate) async fn compact<S: Store>(
    State(shared): State<Shared<S>>,
    call: Call<S>,
    _: NoInput,
) -> RestResult {
    progress::respond(&shared, call, Operation::Compact, |call, reporter, last| {
        reporter.report(Progress { stage: "compacting", done: 0, total: None });
        last(call.administration().compact().map(|erased| CompactOutcome { erased }));
    })
}
