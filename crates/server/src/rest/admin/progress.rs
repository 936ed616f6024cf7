//! Jobs that report progress: lines of JSON, the last of which has the outcome.

use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use kinfolk_api::JobLine;
use kinfolk_api::schema::lines::JSON_LINES;
use kinfolk_core::bulk::Progress;
use parking_lot::Mutex;
use serde::Serialize;

use super::super::Rest;
use super::super::prelude::*;
use super::super::problem::problem;
use super::channel::{self, Sender};
use super::{count, job_slot};

/// The minimum interval between reports of one stage.
const INTERVAL: Duration = Duration::from_millis(200);

fn text<T: Serialize>(line: &JobLine<T>) -> Bytes {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text.into()
}

/// Runs a job on a thread of its own, unless too many run. The job gets a reporter and a function that takes its result.
pub(crate) fn respond<S: Store, T: Serialize + 'static>(
    shared: &Rest<S>,
    call: Call<S>,
    operation: Operation,
    work: impl FnOnce(&Call<S>, &Reporter, &mut dyn FnMut(Result<T>)) + Send + 'static,
) -> RestResult {
    let slot = job_slot(shared)?;
    let (sender, receiver) = channel::channel();
    tokio::task::spawn_blocking(move || {
        let started = Instant::now();
        let reporter = Reporter::new(sender.clone());
        let mut last = |result: Result<T>| {
            count(&call, operation, started, result.as_ref().err());
            let line = match result {
                Ok(result) => text(&JobLine::Result(result)),
                Err(error) => text(&JobLine::<T>::Error(problem(&error, &call.request_id))),
            };
            // The client may have disconnected; dropping the line is fine.
            let _ = sender.send(line);
        };
        work(&call, &reporter, &mut last);
        sender.end();
        drop(slot);
    });
    let mut response = Response::new(receiver.into_body(Bytes::new()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON_LINES));
    Ok(response)
}

/// Reports progress, at most every [`INTERVAL`], and never waits for a client that does not read.
pub(crate) struct Reporter {
    sender: Sender,
    reported: Mutex<Option<(&'static str, Instant)>>,
}

impl Reporter {
    fn new(sender: Sender) -> Self {
        Self { sender, reported: Mutex::new(None) }
    }

    /// Whether the client has disconnected: work that can be stopped should stop.
    pub(crate) fn is_alone(&self) -> bool {
        self.sender.is_alone()
    }

    /// Reports progress.
    pub(crate) fn report(&self, progress: Progress) {
        let stage = progress.stage;
        let mut reported = self.reported.lock();
        if reported.is_some_and(|(last, at)| last == stage && at.elapsed() < INTERVAL) {
            return;
        }
        *reported = Some((stage, Instant::now()));
        self.sender.offer(text(&JobLine::<()>::Progress(progress.into())));
    }
}
