//! Administration through a running server: import, export, verification, backup, compaction, and suggestions for all users.
//! Scope admin. [`crate::Administration`] and the store do the work, on threads that may block.

mod channel;
pub(crate) mod compact;
mod download;
mod progress;
pub(crate) mod suggest;

use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody};
use axum::http::HeaderMap;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use kinfolk_api::schema::FileBytes;
use kinfolk_api::schema::lines::{ImportLines, JSON_LINES, VerifyLines};
use kinfolk_api::{ExportContent, FileFormat, Import, ImportOutcome, VerifyOutcome};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::Rest;
use super::extract::require_plain;
use super::prelude::*;
use crate::administration::ExportRequest;
use crate::metrics::Protocol;

/// When to retry if too many jobs run.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// How long the rest of a refused import is read: a client that sends without reading would miss the reason otherwise.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(10);

pub(crate) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let (busy, of_files) =
        (&[ErrorCode::Overloaded], &[ErrorCode::Overloaded, ErrorCode::UnsupportedMediaType]);
    let job = |operation, capability| Endpoint::admin(operation).needing(capability).refusing(busy);
    let import = job(Operation::Import, Capability::Imports).joining_token().refusing(of_files);
    let everyone = job(Operation::Suggest, Capability::SuggestionRuns).abandonable();
    routes
        .add(import, routes!(import_edges))
        .add(job(Operation::Export, Capability::Exports), routes!(export_file))
        .add(job(Operation::Verify, Capability::Verification), routes!(verify))
        .add(job(Operation::Backup, Capability::Backups), routes!(backup))
        .add(job(Operation::Compact, Capability::Compaction), routes!(compact::compact))
        .add(everyone, routes!(suggest::suggest))
}

/// Adds the edges of a file, all or nothing.
///
/// The response is lines of JSON: progress, and finally a result or an error.
#[utoipa::path(post, path = "/v1/admin/import", tag = "admin",
    params(
        ("format" = inline(Option<String>), Query, description = "csv, csv.gz, csv.zst or parquet", pattern = "^(csv|csv\\.gz|csv\\.zst|parquet)$"),
        ("skip_invalid" = inline(Option<bool>), Query, description = "Count and skip malformed lines"),
        ("no_limit" = inline(Option<bool>), Query, description = "Keep edges over the following limit")),
    request_body(content = inline(FileBytes), content_type = "application/octet-stream", description = "The file, which may be compressed as its format says. `Content-Encoding` is refused"),
    responses((status = 200, description = "Lines of JSON", content_type = JSON_LINES, body = inline(ImportLines))))]
pub(crate) async fn import_edges<S: Store>(
    State(shared): State<Shared<S>>,
    call: Call<S>,
    headers: HeaderMap,
    mut query: Query,
    body: Body,
) -> RestResult {
    require_plain(&headers)?;
    let options = Import {
        format: format(&mut query)?,
        skip_invalid: query.flag("skip_invalid")?,
        no_limit: query.flag("no_limit")?,
        length: body.size_hint().exact(),
    };
    query.end()?;
    let bytes = StreamReader::new(Box::pin(parts(body, shared.settings.read_timeout)));
    let mut file = SyncIoBridge::new(bytes);
    progress::respond(&shared, call, Operation::Import, move |call, reporter, last| {
        let imported =
            call.administration().import(&mut file, &options, &|progress| reporter.report(progress));
        last(imported.map(|done| {
            let mut seen = call.seen.clone();
            seen.join(&done.report.frontier);
            ImportOutcome::new(&done.report, done.invalid, call.service.token(seen))
        }));
        discard(&mut file);
    })
}

/// The body as it arrives. A client that sends nothing for too long must not block other imports.
fn parts(body: Body, patience: Duration) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::unfold(Some(body.into_data_stream()), move |parts| async move {
        let mut parts = parts?;
        match timeout(patience, parts.next()).await {
            Ok(part) => Some((part?.map_err(io::Error::other), Some(parts))),
            Err(_) => {
                let silent =
                    io::Error::new(io::ErrorKind::TimedOut, "the client has sent nothing for too long");
                Some((Err(silent), None))
            }
        }
    })
}

/// Reads the rest that the client sends, for a limited time.
fn discard(file: &mut impl Read) {
    let started = Instant::now();
    let mut bytes = vec![0; 64 * 1024];
    while started.elapsed() < DISCARD_TIME_MAX && file.read(&mut bytes).is_ok_and(|count| count > 0) {}
}

/// Downloads all edges or all comments, as of now.
///
/// A failure breaks off the transfer: a file that arrives to its end is complete.
#[utoipa::path(get, path = "/v1/admin/export", tag = "admin",
    params(
        ("content" = inline(Option<String>), Query, description = "edges (the default) or comments, with tombstones and with the bodies of all but purged comments; 501 if the deployment has no comments", pattern = "^(edges|comments)$"),
        ("format" = inline(Option<String>), Query, description = "csv, csv.gz, csv.zst or parquet", pattern = "^(csv|csv\\.gz|csv\\.zst|parquet)$")),
    responses((status = 200, description = "The file", content(
        (inline(FileBytes) = "text/csv"), (inline(FileBytes) = "application/gzip"), (inline(FileBytes) = "application/zstd"),
        (inline(FileBytes) = "application/vnd.apache.parquet")))))]
pub(crate) async fn export_file<S: Store>(
    State(shared): State<Shared<S>>,
    call: Call<S>,
    mut query: Query,
) -> RestResult {
    let content = query.named("content", ExportContent::from_name, "edges or comments")?.unwrap_or_default();
    let format = format(&mut query)?;
    query.end()?;
    if content == ExportContent::Comments {
        call.service.require(Capability::Comments)?;
    }
    let slot = job_slot(&shared)?;
    let file = download::Download {
        call,
        operation: Operation::Export,
        slot,
        media_type: format.media_type(),
        name: match content {
            ExportContent::Edges => "kinfolk-edges",
            ExportContent::Comments => "kinfolk-comments",
        },
        ending: format.name(),
    };
    let request = ExportRequest { content, format };
    file.respond(move |administration, file| administration.export(file, request).map(|_| ())).await
}

/// Compares all derived data with the edges, posts and comments; optionally repairs differences.
///
/// The response is lines of JSON: progress, and finally a result or an error.
#[utoipa::path(post, path = "/v1/admin/verify", tag = "admin",
    params(("repair" = inline(Option<bool>), Query, description = "Repair differences")),
    responses((status = 200, description = "Lines of JSON", content_type = JSON_LINES, body = inline(VerifyLines))))]
pub(crate) async fn verify<S: Store>(
    State(shared): State<Shared<S>>,
    call: Call<S>,
    mut query: Query,
    _: NoBody,
) -> RestResult {
    let repair = query.flag("repair")?;
    query.end()?;
    progress::respond(&shared, call, Operation::Verify, move |call, reporter, last| {
        let verified = call.administration().verify(repair, &|progress| reporter.report(progress));
        if let Ok(report) = &verified {
            let left = if report.repaired { 0 } else { report.difference_count };
            call.service.metrics.leave_differences(left);
        }
        last(verified.map(VerifyOutcome::from));
    })
}

/// Downloads a backup of the whole store, as of now.
///
/// A failure breaks off the transfer: a file that arrives to its end is complete.
#[utoipa::path(get, path = "/v1/admin/backup", tag = "admin",
    responses((status = 200, description = "The file", content_type = "application/octet-stream", body = inline(FileBytes))))]
pub(crate) async fn backup<S: Store>(
    State(shared): State<Shared<S>>,
    call: Call<S>,
    _: NoQuery,
) -> RestResult {
    let slot = job_slot(&shared)?;
    let file = download::Download {
        call,
        operation: Operation::Backup,
        slot,
        media_type: "application/octet-stream",
        name: "kinfolk",
        ending: "backup",
    };
    file.respond(|administration, file| administration.backup(file, &|_| {}).map(|_| ())).await
}

/// A slot for one job, unless too many run.
fn job_slot<S: Store>(shared: &Rest<S>) -> Result<OwnedSemaphorePermit> {
    let busy = |_| Error::Overloaded { retry_after: RETRY_AFTER };
    Arc::clone(&shared.jobs).try_acquire_owned().map_err(busy)
}

/// Counts a job that has ended.
fn count<S: Store>(call: &Call<S>, operation: Operation, started: Instant, error: Option<&Error>) {
    let metrics = &call.service.metrics;
    if let Some(error) = error {
        metrics.failed(Protocol::Rest, operation, error.code());
    }
    metrics.observe(Protocol::Rest, operation, 1, started.elapsed());
    metrics.job_ended(operation, error.is_none());
}

fn format(query: &mut Query) -> Result<FileFormat> {
    let format = query.named("format", FileFormat::from_name, "csv, csv.gz, csv.zst or parquet")?;
    Ok(format.unwrap_or_default())
}
