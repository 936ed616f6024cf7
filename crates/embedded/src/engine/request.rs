//! Write requests on their way through the writer: each plans its part of a batch, and gets its result when the batch is durable and
//! visible.

use kinfolk_core::{Error, Result};
use tokio::sync::oneshot;

use super::batch::Batch;

/// So many bytes of a payload count as a command.
const COMMAND_BYTES: usize = 32;

/// How much a request with so many bytes of payload adds to a batch, in commands.
pub(crate) fn weight(payload_bytes: usize) -> usize {
    1 + payload_bytes / COMMAND_BYTES
}

/// A request that waits for the writer, or for its batch.
pub(crate) trait Request: Send {
    /// Plans its part of a batch.
    fn plan(&mut self, batch: &mut Batch<'_>);

    /// Sends the planned result, or the error that the batch failed with. The caller may have disconnected; dropping the reply is
    /// fine.
    fn reply(self: Box<Self>, failure: Option<&Error>);
}

/// A planned result, which its batch may still fail.
pub(crate) trait Outcome: Send + 'static {
    /// The result after the batch has failed: a request that was refused before keeps its own error.
    fn failed(self, error: &Error) -> Self;
}

impl<T: Send + 'static> Outcome for Result<T> {
    fn failed(self, error: &Error) -> Self {
        self.and(Err(error.clone()))
    }
}

impl<T: Send + 'static> Outcome for Vec<Result<T>> {
    fn failed(self, error: &Error) -> Self {
        self.into_iter().map(|result| result.failed(error)).collect()
    }
}

/// A request, by the function that plans it.
pub(crate) struct PlannedBy<P, R> {
    pub plan: Option<P>,
    pub planned: Option<R>,
    pub reply: oneshot::Sender<Result<R>>,
}

impl<P: FnOnce(&mut Batch<'_>) -> R + Send, R: Outcome> Request for PlannedBy<P, R> {
    fn plan(&mut self, batch: &mut Batch<'_>) {
        self.planned = self.plan.take().map(|plan| plan(batch));
    }

    fn reply(self: Box<Self>, failure: Option<&Error>) {
        let result = match (self.planned, failure) {
            (Some(planned), None) => Ok(planned),
            (Some(planned), Some(error)) => Ok(planned.failed(error)),
            (None, failure) => Err(failure.cloned().unwrap_or(Error::Closed)),
        };
        let _ = self.reply.send(result);
    }
}
