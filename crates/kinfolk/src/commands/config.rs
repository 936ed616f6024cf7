//! `config`: the effective configuration, or the reference of all settings.

use std::io::Write;

use anyhow::Result;
use clap::Args;

use crate::answer::Outcome;
use crate::context::Context;
use crate::settings::{self, ServerFlags};

/// What `config` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk config --config /etc/kinfolk.toml --http 127.0.0.1:8080\n\n\
    What is printed can be read again as a configuration file. Secrets are never part of it.")]
pub struct Arguments {
    /// Print all settings with what they are for, as Markdown
    #[arg(long)]
    reference: bool,
    #[command(flatten)]
    pub flags: ServerFlags,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let text = if self.reference { settings::reference() } else { settings::effective(&context.texts) };
        let mut out = context.stdout();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(Outcome::Done)
    }
}
