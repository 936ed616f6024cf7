//! Administration: long jobs that report progress, and files.

use std::io::{BufRead, BufReader};

use kinfolk_api::{ExportContent, FileFormat, Import, ImportOutcome, JobLine, Progress};
use kinfolk_core::suggestions::Ranking;
use serde::de::DeserializeOwned;
use ureq::Body;
use ureq::http::Method;

use crate::call::Request;
use crate::session::Session;
use crate::transport::Upload;
use crate::{Error, Result};

/// How suggestions for everyone are computed. The server's settings decide what is left open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuggestRun {
    /// What makes the best candidates.
    pub ranking: Option<Ranking>,
    /// How many followees of each user are visited, the most recent ones; 0 for all of them.
    pub per_node: Option<u32>,
    /// How many suggestions are stored for each user.
    pub keep: Option<u16>,
    /// How many threads the server uses.
    pub threads: Option<u16>,
    /// Start over, even if an unfinished run could be resumed.
    pub afresh: bool,
}

pub(crate) fn suggest(run: &SuggestRun) -> Request {
    Request::write(Method::POST, "/v1/admin/suggest")
        .query_optional("ranking", run.ranking.map(Ranking::name))
        .query_optional("per_node", run.per_node)
        .query_optional("keep", run.keep)
        .query_optional("threads", run.threads)
        .query_optional("afresh", run.afresh.then_some(true))
}

pub(crate) fn export(content: ExportContent, format: FileFormat) -> Request {
    Request::get("/v1/admin/export").query("content", content.name()).query("format", format.name())
}

pub(crate) fn backup() -> Request {
    Request::get("/v1/admin/backup")
}

/// Runs a job to its end.
pub(crate) fn run<T: DeserializeOwned>(
    session: &Session,
    job: &Request,
    progress: &mut dyn FnMut(Progress),
) -> Result<T> {
    let body = session.shared.transport.open(job, &session.carried(), None)?;
    last_line(session, body, progress)
}

/// Imports a file. The caller has the turn of a write.
pub(crate) fn import(
    session: &Session,
    options: &Import,
    upload: Upload<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<ImportOutcome> {
    let request = Request::write(Method::POST, "/v1/admin/import")
        .query("format", options.format.name())
        .query("skip_invalid", options.skip_invalid)
        .query("no_limit", options.no_limit);
    let body = session.shared.transport.upload(&request, &session.carried(), upload)?;
    let outcome: ImportOutcome = last_line(session, body, progress)?;
    session.set_token(Some(outcome.token.clone()));
    Ok(outcome)
}

/// Reads the lines of a job to the last one, which has the outcome.
fn last_line<T: DeserializeOwned>(
    session: &Session,
    body: Body,
    progress: &mut dyn FnMut(Progress),
) -> Result<T> {
    let lines = BufReader::new(body.into_with_config().limit(u64::MAX).reader()).lines();
    for line in lines {
        let line = line.map_err(|error| session.shared.transport.connection_failed(&error))?;
        let unexpected = |error: serde_json::Error| Error::UnexpectedResponse(error.to_string());
        match serde_json::from_str(&line).map_err(unexpected)? {
            JobLine::Progress(step) => progress(step),
            JobLine::Result(outcome) => return Ok(outcome),
            JobLine::Error(problem) => return Err(Error::refused(problem, None)),
        }
    }
    Err(Error::UnexpectedResponse("the job ended without an outcome; see the server's log".to_owned()))
}
