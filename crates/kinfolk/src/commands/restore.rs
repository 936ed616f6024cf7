//! `restore`: creates a graph from a backup.

use std::path::PathBuf;

use kinfolk_api::BackupOutcome;

use super::prelude::*;

/// Create a graph from a backup
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk restore graph.backup --data ./restored\n\n\
    The folder must be missing, empty, or left behind by an interrupted restore. The restored graph refuses tokens that\n\
    were issued before.")]
pub(crate) struct Restore {
    /// The backup
    file: PathBuf,
    /// Replace times in the future by the current time, for a store whose clock was ahead
    #[arg(long)]
    clamp_times: bool,
}

impl Restore {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let report = context.folder_only()?.restore(&self.file, self.clamp_times, &|progress| {
            context.reporter.report(progress);
        })?;
        context.reporter.finish();
        context.print(&BackupOutcome::from(report))
    }
}
