//! The port of the change log. Its documentation is the contract; `kinfolk-conformance` tests every sentence.

use std::future::Future;

use super::Change;
use crate::{Deployment, Epoch, Frontier, Result};

/// The part of the log that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSpan {
    /// The current epoch.
    pub epoch: Epoch,
    /// For every shard, the last sequence that was trimmed.
    pub trimmed: Frontier,
    /// For every shard, the last visible sequence.
    pub newest: Frontier,
}

/// A page of the log, as the port returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The changes, oldest first within each shard.
    pub changes: Vec<Change>,
    /// The requested frontier advanced by these changes. It names every shard.
    pub next: Frontier,
}

/// Keeps the change log, ordered within each shard.
///
/// # Contract
/// - Every accepted change is in it exactly once. Within a shard, sequences have no gaps and follow the order in which
///   changes take effect, and `at` never decreases.
/// - A change is in the log no later than its write is visible.
/// - It survives restarts. Retention trims only the oldest part of a shard's log.
/// - A restore begins a new epoch. The log of each shard is then a prefix of what it was, and all other data agrees with it:
///   no change of the old epoch appears later.
pub trait ChangeLog: Deployment {
    /// The part of the log that is kept now.
    fn span(&self) -> impl Future<Output = Result<LogSpan>> + Send;

    /// Up to `limit` changes after `after`. A shard that `after` does not name starts at the oldest change kept;
    /// [`crate::Error::PositionExpired`] if the next change of a shard that it names was trimmed. As in every read, `after`
    /// must be visible first.
    fn changes(&self, after: &Frontier, limit: usize) -> impl Future<Output = Result<LogPage>> + Send;

    /// Returns `true` as soon as there is a change after `after`, or `false` if none arrives within about a second.
    fn wait_for_changes(&self, after: &Frontier) -> impl Future<Output = Result<bool>> + Send;
}
