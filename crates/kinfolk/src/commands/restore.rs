//! `restore`: a new graph from a backup.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::backup::BackupFigures;
use crate::answer::Outcome;
use crate::context::Context;
use crate::interrupt;

/// What `restore` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk restore graph.backup --data ./restored\n\n\
    The folder must be missing, empty, or left by a restore that was stopped. Tokens from before the backup are refused afterwards.")]
pub struct Arguments {
    /// The file that backup has made
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Let times that are later than now become now: for a store whose clock was ahead
    #[arg(long)]
    clamp_times: bool,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let report = context.folder_only()?.restore(&self.file, self.clamp_times, &|progress| {
            context.reporter.report(progress);
        })?;
        context.reporter.finish();
        context.print(&BackupFigures::from(report))?;
        Ok(Outcome::Done)
    }
}
