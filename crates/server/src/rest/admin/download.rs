//! Downloads that are generated while they are sent: exports and backups.

use std::io::Write;
use std::time::Instant;

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::super::prelude::*;
use super::channel::{self, Writer};
use super::count;
use crate::administration::Administration;

/// A file to send.
pub(crate) struct Download<S: Store> {
    /// The request.
    pub call: Call<S>,
    /// The metric that counts it.
    pub operation: Operation,
    /// Its slot among the running jobs.
    pub slot: OwnedSemaphorePermit,
    /// The media type of the file.
    pub media_type: &'static str,
    /// The name of the file…
    pub name: &'static str,
    /// …and its extension.
    pub ending: &'static str,
}

impl<S: Store> Download<S> {
    /// Generates the file on a thread of its own. A failure before its first bytes is a problem document; a later one
    /// breaks off the transfer. When the client disconnects, writing fails and the work ends.
    pub(crate) async fn respond(
        self,
        work: impl FnOnce(&dyn Administration, &mut (dyn Write + Send)) -> Result<()> + Send + 'static,
    ) -> RestResult {
        let Self { call, operation, slot, media_type, name, ending } = self;
        let (sender, mut receiver) = channel::channel();
        let (failed, failure) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let started = Instant::now();
            let mut file = Writer::new(sender.clone());
            let result = work(call.administration(), &mut file);
            let flushed = result
                .and_then(|()| file.flush().map_err(|error| Error::Storage { detail: error.to_string() }));
            count(&call, operation, started, flushed.as_ref().err());
            match flushed {
                Ok(()) => sender.end(),
                Err(error) => {
                    tracing::warn!(%error, request_id = %call.request_id, "a download ended early");
                    let _ = failed.send(error);
                }
            }
            drop(slot);
        });
        let Some(first) = receiver.first().await else {
            let silent = Error::Storage { detail: "a download ended without a result".to_owned() };
            return Err(Failure(failure.await.unwrap_or(silent)));
        };
        let mut response = Response::new(receiver.into_body(first));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let disposition = format!("attachment; filename=\"{name}.{ending}\"");
        headers.extend(HeaderValue::try_from(disposition).map(|value| (CONTENT_DISPOSITION, value)));
        Ok(response)
    }
}
