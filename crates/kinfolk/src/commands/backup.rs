//! `backup`: the whole graph in one file.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use kinfolk_embedded::BackupReport;
use serde::Serialize;

use crate::answer::{Answer, Outcome, grouped, write_figures};
use crate::context::Context;

/// What `backup` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk backup graph.backup\n\nA file that exists is never replaced.")]
pub struct Arguments {
    /// The file to make
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let target = context.place.open()?;
        let report = target.backup(&self.file, &context.reporter)?;
        context.reporter.finish();
        target.close()?;
        context.print(&BackupFigures::from(report))?;
        Ok(Outcome::Done)
    }
}

/// What a backup holds.
#[derive(Serialize)]
pub struct BackupFigures {
    edges: u64,
    position: u64,
    bytes: u64,
}

impl From<BackupReport> for BackupFigures {
    fn from(report: BackupReport) -> Self {
        Self { edges: report.edges, position: report.position.0, bytes: report.bytes }
    }
}

impl Answer for BackupFigures {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        write_figures(
            out,
            &[
                ("edges", grouped(self.edges)),
                ("position", grouped(self.position)),
                ("bytes", grouped(self.bytes)),
            ],
        )
    }
}
