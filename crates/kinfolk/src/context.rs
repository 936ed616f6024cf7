//! What every command is given: where to work and how to answer. Made once from the arguments.

use std::io::{self, BufWriter, StdoutLock, Write};

use anyhow::Result;

use crate::answer::Answer;
use crate::progress::Reporter;
use crate::target::Target;

/// The settings that hold for every command.
#[derive(Debug)]
pub struct Context {
    /// Where the graph is.
    pub target: Target,
    /// Whether answers are JSON.
    pub json: bool,
    /// Whether stderr stays empty unless something fails.
    pub quiet: bool,
    /// How long work tells how far it has come.
    pub reporter: Reporter,
}

impl Context {
    /// Prints an answer in the form that was asked for.
    pub fn print(&self, answer: &impl Answer) -> Result<()> {
        let mut out = self.stdout();
        if self.json {
            serde_json::to_writer(&mut out, answer).map_err(io::Error::from)?;
            writeln!(out)?;
        } else {
            answer.write_plain(&mut out)?;
        }
        Ok(out.flush()?)
    }

    /// Buffered standard output.
    pub fn stdout(&self) -> BufWriter<StdoutLock<'static>> {
        BufWriter::with_capacity(64 << 10, io::stdout().lock())
    }
}
