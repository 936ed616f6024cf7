//! `config`: prints the effective configuration, or the reference of all settings.

use super::prelude::*;
use crate::settings::{Effective, Reference, ServerFlags};

/// Print the effective configuration, or the reference of all settings
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk config --config /etc/kinfolk.toml --http 127.0.0.1:8080\n\n\
    The output is a valid configuration file: every setting with its origin, and the flags of single commands that a\n\
    variable or the file sets. It never contains secrets.")]
pub(crate) struct Config {
    /// Print the reference of all settings as Markdown, or with --json as a list
    #[arg(long)]
    reference: bool,
    #[command(flatten)]
    pub(crate) flags: ServerFlags,
}

impl Config {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        if self.reference {
            return context.print(&Reference::new(&context.command_settings.flags));
        }
        context.print(&Effective::new(&context.texts, &context.command_settings.texts))
    }
}
