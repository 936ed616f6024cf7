//! `export`: all edges into a file, by follower and followee.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::answer::{Answer, Outcome, grouped, write_figures};
use crate::context::Context;

/// What `export` is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk export follows.csv.zst\n  \
    kinfolk export follows.parquet\n  \
    kinfolk export - | head\n\n\
    The ending says the format: .parquet, .gz or .zst for compressed CSV, anything else for CSV.\n\
    Edges are sorted by follower, then followee. The file appears when it is complete.")]
pub struct Arguments {
    /// The file to write; '-' is standard output
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let begin = Instant::now();
        let target = context.place.open()?;
        let edges = target.export(&self.file, &context.reporter)?;
        context.reporter.finish();
        target.close()?;
        if self.file != Path::new("-") {
            context.print(&Exported { edges, seconds: begin.elapsed().as_secs_f64() })?;
        }
        Ok(Outcome::Done)
    }
}

#[derive(Serialize)]
struct Exported {
    edges: u64,
    seconds: f64,
}

impl Answer for Exported {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        let seconds = format!("{:.2}", self.seconds);
        write_figures(out, &[("edges", grouped(self.edges)), ("seconds", seconds)])
    }
}
