//! Work that tells how far it is: lines of JSON, the last of which says how it ended.

use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::Bytes;
use kinfolk_core::Result;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use super::super::Store;
use super::super::extract::Call;
use super::super::problem::Problem;
use super::channel::{self, Sender};
use super::count;
use crate::administration::Progress;
use crate::metrics::Operation;

/// Progress is told at most so often, unless a new stage begins.
const INTERVAL: Duration = Duration::from_millis(200);

/// Work to report on.
pub struct Lines<S: Store> {
    /// Who asked.
    pub call: Call<S>,
    /// What it is counted as.
    pub operation: Operation,
    /// The right to do it.
    pub permit: OwnedSemaphorePermit,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Line<'a, T> {
    Progress {
        stage: &'static str,
        done: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<u64>,
    },
    Result(T),
    Error(Problem<'a>),
}

impl<T: Serialize> Line<'_, T> {
    fn text(&self) -> Bytes {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text.into()
    }
}

impl<S: Store> Lines<S> {
    /// Does the work on a thread of its own; it is given whom to tell its progress and what takes its result.
    pub fn answer<T: Serialize + 'static>(
        self,
        work: impl FnOnce(&Teller, &mut dyn FnMut(Result<T>)) + Send + 'static,
    ) -> Response {
        let Self { call, operation, permit } = self;
        let (sender, receiver) = channel::channel();
        tokio::task::spawn_blocking(move || {
            let started = Instant::now();
            let teller = Teller::new(sender.clone());
            let mut last = |result: Result<T>| {
                count(&call, operation, started, &result.as_ref().map(|_| ()).map_err(Clone::clone));
                let line = match result {
                    Ok(result) => Line::Result(result).text(),
                    Err(error) => Line::Error::<T>(Problem::new(&error, &call.request_id)).text(),
                };
                // Nobody is left to tell if this fails.
                let _ = sender.send(line);
            };
            work(&teller, &mut last);
            sender.end();
            drop(permit);
        });
        let mut response = Response::new(receiver.into_body(Bytes::new()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
        response
    }
}

/// Tells progress, not too often, and never waits for a client that does not listen.
pub struct Teller {
    sender: Sender,
    told: Mutex<Option<(&'static str, Instant)>>,
}

impl Teller {
    fn new(sender: Sender) -> Self {
        Self { sender, told: Mutex::new(None) }
    }

    /// Whether the client is gone: work that can be stopped need not go on.
    pub fn is_alone(&self) -> bool {
        self.sender.is_alone()
    }

    /// Tells how far the work is.
    pub fn tell(&self, Progress { stage, done, total }: Progress) {
        let mut told = self.told.lock();
        if told.is_some_and(|(last, at)| last == stage && at.elapsed() < INTERVAL) {
            return;
        }
        *told = Some((stage, Instant::now()));
        let line: Line<'_, ()> = Line::Progress { stage, done, total };
        self.sender.offer(line.text());
    }
}
