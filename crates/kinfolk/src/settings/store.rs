//! Hidden options that tune a store in a folder, for tests. `profile/embedded/settings.rs` applies them.

use std::path::PathBuf;

use clap::Args;

/// Store sizes whose defaults suit everybody. Tests shrink them so that flushes and snapshots happen often.
#[derive(Debug, Args)]
pub(crate) struct TuningArguments {
    /// Close a segment of the change log at this size
    #[arg(long, global = true, value_name = "BYTES", env = "KINFOLK_TEST_SEGMENT_BYTES", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1_024..=1 << 32))]
    pub(crate) segment_bytes: Option<u64>,

    /// Flush the memtable at this number of rows
    #[arg(long, global = true, value_name = "ROWS", env = "KINFOLK_TEST_FLUSH_ROWS", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) flush_rows: Option<u64>,

    /// Flush posts in memory at this size
    #[arg(long, global = true, value_name = "BYTES", env = "KINFOLK_TEST_FLUSH_POST_BYTES", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) flush_post_bytes: Option<u64>,

    /// Write an index snapshot after this number of events
    #[arg(long, global = true, value_name = "EVENTS", env = "KINFOLK_TEST_SNAPSHOT_EVENTS", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) snapshot_events: Option<u64>,

    /// Keep at most this much of the change log
    #[arg(long, global = true, value_name = "BYTES", env = "KINFOLK_TEST_LOG_KEEP_BYTES", hide = true)]
    pub(crate) log_keep_bytes: Option<u64>,

    /// Offset the clock by the milliseconds in this file
    #[arg(long, global = true, value_name = "FILE", env = "KINFOLK_TEST_CLOCK_FILE", hide = true)]
    pub(crate) clock_file: Option<PathBuf>,
}
