//! What was asked, how often, how it ended and how long it took. Rendered for Prometheus; kept in plain atomics,
//! because a check takes less time than a look-up of a metric by its name would.

use std::time::Duration;

use kinfolk_core::ErrorCode;

use crate::administration::Figure;

/// How a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP.
    Rest,
    /// The Redis protocol.
    Resp,
}

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the operation of that name")]
pub enum Operation {
    Check,
    CheckMany,
    Relationships,
    Follow,
    Unfollow,
    RemoveFollower,
    Following,
    Followers,
    Friends,
    Counts,
    Changes,
    ChangesStream,
    Import,
    Export,
    Verify,
    Backup,
    /// Anything about the connection or the server itself.
    Other,
}

/// Counters and histograms of all requests.
#[derive(Debug, Default)]
pub struct Metrics {}

impl Metrics {
    /// Counts `count` requests that took the same time, as those of one pipeline do.
    pub fn observe(&self, _protocol: Protocol, _operation: Operation, _count: u64, _took: Duration) {}

    /// Counts a refused or failed request.
    pub fn failed(&self, _protocol: Protocol, _operation: Operation, _code: ErrorCode) {}

    /// A connection was opened.
    pub fn connected(&self, _protocol: Protocol) {}

    /// A connection has ended.
    pub fn disconnected(&self, _protocol: Protocol) {}

    /// Everything, in the text format of Prometheus.
    pub fn render(&self, _figures: &[Figure]) -> String {
        String::new()
    }
}
