//! The top of the command line: the global options, and the context that they and the configuration give to a command.
//! The commands themselves are in `commands`.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser};

use crate::commands::Command;
use crate::context::Context;
use crate::print::Outcome;
use crate::settings::{CommonFlags, Configuration, Flags, Texts, TuningArguments};

const EXAMPLES: &str = "\
Examples:
  kinfolk serve                          serve ./kinfolk-data on 127.0.0.1:7400 (REST) and :7401 (Redis)
  kinfolk follow 1 2                     make user 1 follow user 2
  kinfolk check 1 2                      print yes or no; exit with status 0 or 1
  kinfolk followers 2 --limit 10         list the followers of user 2, newest first
  kinfolk suggestions 1                  suggest users for user 1 to follow
  kinfolk post 2                         register a post by user 2
  kinfolk feed 1                         list the posts of user 1's followees, newest first
  kinfolk comments 70 --tree             show the comments on post 70 as a tree
  kinfolk import follows.csv.zst         add the edges of a file
  kinfolk export - | head                print all edges as CSV
  kinfolk counts 1 2 3 --json            print the result as one JSON document

A command uses the server at --url, unless --data names a folder, which no server may have open.
Exit status: 0 success, 1 the result is no or the command failed, 2 wrong usage.";

/// A social graph service: who follows whom.
#[derive(Debug, Parser)]
#[command(name = "kinfolk", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    global: GlobalArguments,
    #[command(subcommand)]
    command: Command,
}

/// The options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct GlobalArguments {
    /// The configuration file [default: ./kinfolk.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE", env = "KINFOLK_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,
    #[command(flatten)]
    flags: CommonFlags,
    /// Show at least the writes that this token covers; tokens that are printed cover it too
    // One token in 64 starts with a hyphen.
    #[arg(long, global = true, value_name = "TOKEN", allow_hyphen_values = true)]
    token: Option<String>,
    #[command(flatten)]
    tuning: TuningArguments,
}

impl Arguments {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<Outcome> {
        let context = self.global.into_context(self.command.server_flags())?;
        self.command.run(&context)
    }
}

impl GlobalArguments {
    fn into_context(self, server_flags: Flags) -> Result<Context> {
        let flags = self.flags.0.and(server_flags);
        let texts = Texts::read(&flags, self.config.as_deref(), |name| std::env::var_os(name))?;
        let configuration = Configuration::from_texts(&texts)?;
        let context = Context::new(configuration, texts, &self.tuning)?;
        Ok(Context { token: self.token, ..context })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_fit_together() {
        Arguments::command().debug_assert();
    }
}
