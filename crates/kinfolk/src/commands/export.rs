//! `export`: all edges into a file, by follower and followee; or all comments, thread by thread.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::answer::{Answer, Outcome, grouped, write_figures};
use crate::context::Context;
use crate::interrupt;

/// What `export` is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk export follows.csv.zst\n  \
    kinfolk export follows.parquet\n  \
    kinfolk export - | head\n  \
    kinfolk export --comments comments.parquet\n\n\
    The ending says the format: .parquet, .gz or .zst for compressed CSV, anything else for CSV.\n\
    Edges are sorted by follower, then followee; comments by what they were written to, then by age. Comments that are not\n\
    active are among them, with their texts unless they were purged. The file appears when it is complete.")]
pub struct Arguments {
    /// The file to write; '-' is standard output
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write all comments instead of all edges
    #[arg(long)]
    comments: bool,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let begin = Instant::now();
        let target = context.place.open()?;
        let (edges, comments) = match self.comments {
            false => (Some(target.export(&self.file, &context.reporter)?), None),
            true => (None, Some(target.export_comments(&self.file, &context.reporter)?)),
        };
        context.reporter.finish();
        target.close()?;
        if self.file != Path::new("-") {
            context.print(&Exported { edges, comments, seconds: begin.elapsed().as_secs_f64() })?;
        }
        Ok(Outcome::Done)
    }
}

#[derive(Serialize)]
struct Exported {
    #[serde(skip_serializing_if = "Option::is_none")]
    edges: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comments: Option<u64>,
    seconds: f64,
}

impl Answer for Exported {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        let figure = |name, number: Option<u64>| number.map(|number| (name, grouped(number)));
        let seconds = Some(("seconds", format!("{:.2}", self.seconds)));
        let figures = [figure("edges", self.edges), figure("comments", self.comments), seconds];
        write_figures(out, &figures.into_iter().flatten().collect::<Vec<_>>())
    }
}
