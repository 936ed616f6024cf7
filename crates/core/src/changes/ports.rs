//! The port of the change log. Its documentation is the contract; `kinfolk-conformance` tests every sentence.

use std::future::Future;

use super::Change;
use crate::{Deployment, Epoch, Frontier, Result};

/// What part of the log is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSpan {
    /// The life of the log.
    pub epoch: Epoch,
    /// For every shard: changes up to and including this sequence are gone.
    pub trimmed: Frontier,
    /// For every shard, the newest change that is visible.
    pub newest: Frontier,
}

/// A part of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The changes, oldest first within each shard.
    pub changes: Vec<Change>,
    /// What was asked after, moved on by these changes. It names every shard.
    pub next: Frontier,
}

/// The change log: ordered within each shard.
///
/// # Contract
/// - Every accepted change is in it exactly once. Within a shard, sequences have no gaps and show the order of taking
///   effect, and no change's `at` is earlier than that of the change before it.
/// - A change is in it no later than the write that made it is visible.
/// - It survives restarts; what retention trims is always the oldest part of a shard's log.
/// - A restore begins a new epoch. The log of each shard is then the beginning of what it was, and everything else agrees with
///   it: nothing of the old epoch arrives later.
pub trait ChangeLog: Deployment {
    /// What part of the log is kept now.
    fn span(&self) -> impl Future<Output = Result<LogSpan>> + Send;

    /// Up to `limit` changes after `after`. A shard that `after` does not name starts at the oldest kept;
    /// [`crate::Error::PositionExpired`] if the next change of a shard that it names was trimmed. `after` is also what
    /// must be visible: see the freshness of reads.
    fn changes(&self, after: &Frontier, limit: usize) -> impl Future<Output = Result<LogPage>> + Send;

    /// Returns `true` as soon as there is a change after `after`, or `false` when none has come for about a second.
    fn wait_for_changes(&self, after: &Frontier) -> impl Future<Output = Result<bool>> + Send;
}
