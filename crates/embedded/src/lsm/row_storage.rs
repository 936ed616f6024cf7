//! What the engine and background work do with the rows of a projection, whatever trees they are in.

use kinfolk_core::{Result, Sequence};

use crate::settings::Settings;

/// What waits for background work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backlog {
    /// Sealed memtables that wait for flushing.
    pub sealed: usize,
    /// Runs that are not compacted, of the tree that has most.
    pub runs: usize,
}

/// The rows of a projection: new ones are in memory, are sealed between two batches, flushed to files, and compacted there.
pub(crate) trait RowStorage: Send + Sync {
    /// Up to where the files have the log.
    fn applied(&self) -> Result<Sequence>;

    /// Whether there is so much in memory that it should be flushed.
    fn is_large(&self, settings: &Settings) -> bool;

    /// Hands the rows in memory over for flushing, with the position that they bring the files to. Only the writer calls it,
    /// between two batches.
    fn seal(&self, position: Sequence);

    /// Writes sealed rows to files, durably.
    fn flush(&self) -> Result<()>;

    /// What waits to be flushed and compacted.
    fn backlog(&self) -> Backlog;

    /// Bytes of its files.
    fn disk_bytes(&self) -> u64;

    /// Compacts files if there are at least so many runs, until it should stop.
    fn compact(&self, runs: u8, should_stop: &dyn Fn() -> bool) -> Result<()>;

    /// Compacts all files into one sorted run.
    fn compact_fully(&self) -> Result<()>;
}
