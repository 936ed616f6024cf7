//! Errors: one enum for every operation.

use std::time::Duration;

use kinfolk_api::Problem;
use kinfolk_core::ErrorCode;

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The client can't be built or the request can't be formed: a URL, a certificate or a header is malformed.
    #[error("{0}")]
    Configuration(String),
    /// No server accepts connections at the URL. Nothing was sent.
    #[error("no server answers at {url}")]
    Unreachable {
        /// The server's URL.
        url: String,
    },
    /// The connection failed, or the response took too long. A write may have been applied or not.
    #[error("the connection to {url} failed: {reason}")]
    Connection {
        /// The server's URL.
        url: String,
        /// What happened.
        reason: String,
    },
    /// The server refused the request or failed, and says why.
    #[error("{}", .0.problem.message())]
    Refused(Box<Refusal>),
    /// The response is not that of a Kinfolk server, or of a version that this client does not understand.
    #[error("unexpected response: {0}")]
    UnexpectedResponse(String),
}

/// A refusal of the server.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The problem document.
    pub problem: Problem,
    /// How long to wait before the next attempt, if the server says so.
    pub retry_after: Option<Duration>,
}

impl Error {
    /// The code of the problem, if the server refused and this version knows the code.
    pub fn code(&self) -> Option<ErrorCode> {
        self.problem().and_then(Problem::code)
    }

    /// The problem document, if the server sent one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(refusal) => Some(&refusal.problem),
            _ => None,
        }
    }

    pub(crate) fn refused(problem: Problem, retry_after: Option<Duration>) -> Self {
        Self::Refused(Box::new(Refusal { problem, retry_after }))
    }
}
