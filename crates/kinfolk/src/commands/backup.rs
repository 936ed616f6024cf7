//! `backup`: the whole graph in one file.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use kinfolk_core::bulk::BackupReport;
use serde::Serialize;

use crate::answer::{Answer, Outcome, grouped, write_figures};
use crate::context::Context;
use crate::interrupt;

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
        interrupt::end_at_once()?;
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
    posts: u64,
    comments: u64,
    position: String,
    bytes: u64,
}

impl From<BackupReport> for BackupFigures {
    fn from(report: BackupReport) -> Self {
        let BackupReport { edges, posts, comments, position, bytes } = report;
        Self { edges, posts, comments, position: position.to_string(), bytes }
    }
}

impl Answer for BackupFigures {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        write_figures(
            out,
            &[
                ("edges", grouped(self.edges)),
                ("posts", grouped(self.posts)),
                ("comments", grouped(self.comments)),
                ("position", self.position.clone()),
                ("bytes", grouped(self.bytes)),
            ],
        )
    }
}
