//! `compact`: files merged, and what was purged erased from them.

use std::io::{self, Write};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::answer::{Answer, Outcome, grouped, write_figures};
use crate::context::Context;
use crate::interrupt;

/// What `compact` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk compact\n\n\
    Merges all files of rows, posts and comments, and erases the texts of comments that were purged, from the change log too.\n\
    A server does both by itself, in its own time. It needs about as much free space on the disk as the files take.")]
pub struct Arguments {}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let begin = Instant::now();
        let target = context.place.open()?;
        let erased = target.compact(&context.reporter)?;
        context.reporter.finish();
        target.close()?;
        context.print(&Compacted { erased, seconds: begin.elapsed().as_secs_f64() })?;
        Ok(Outcome::Done)
    }
}

#[derive(Serialize)]
struct Compacted {
    /// Comments whose texts were erased.
    erased: u64,
    seconds: f64,
}

impl Answer for Compacted {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        let seconds = format!("{:.2}", self.seconds);
        write_figures(out, &[("comments erased", grouped(self.erased)), ("seconds", seconds)])
    }
}
