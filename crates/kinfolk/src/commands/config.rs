//! `config`: prints the effective configuration, or the reference of all settings.

use super::prelude::*;
use crate::settings::{self, ServerFlags};

/// Print the effective configuration, or the reference of all settings
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk config --config /etc/kinfolk.toml --http 127.0.0.1:8080\n\n\
    The output is a valid configuration file. It never contains secrets.")]
pub(crate) struct Config {
    /// Print the reference of all settings as Markdown
    #[arg(long)]
    reference: bool,
    #[command(flatten)]
    pub(crate) flags: ServerFlags,
}

impl Config {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let text = if self.reference { settings::reference() } else { settings::effective(&context.texts) };
        let mut out = context.stdout();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(Outcome::Done)
    }
}
