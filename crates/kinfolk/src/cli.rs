//! The top of the command line: the global options, and the context that they and the configuration give to a command.
//! The commands themselves are in `commands`.

use std::env;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, CommandFactory, FromArgMatches, Parser};

use crate::commands::Command;
use crate::context::{CommandSettings, Context};
use crate::print::Outcome;
use crate::settings::{
    self, CommandFlag, CommandText, CommonFlags, Configuration, ConfigurationFile, Flags, Origin, Texts,
    TuningArguments,
};

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
    #[allow(dead_code, reason = "it is read before the arguments are complete")]
    config: Option<PathBuf>,
    #[command(flatten)]
    flags: CommonFlags,
    #[command(flatten)]
    tuning: TuningArguments,
}

/// Parses the command line and runs the command. Flags of the command that are not typed come from variables and the
/// configuration file, which the command line may name: it is parsed twice.
pub(crate) fn run() -> Result<Outcome> {
    let (program, flags) =
        (settings::complete(Arguments::command()), CommandFlag::all(&Arguments::command()));
    // Missing arguments may be in the file. What is wrong otherwise, the second parse reports.
    let typed = program.clone().ignore_errors(true).try_get_matches()?;
    if typed.subcommand().is_none() {
        program.try_get_matches()?;
        unreachable!("a command is required");
    }
    let named = typed.get_one::<PathBuf>("config");
    let file = ConfigurationFile::read(named.map(PathBuf::as_path), &flags)?;
    let texts = settings::read_command_texts(&flags, &file, |name| env::var_os(name), &typed)?;
    let (program, applied) = settings::apply(program, &typed, &texts)?;
    let Arguments { global, command } = Arguments::from_arg_matches(&program.try_get_matches()?)?;
    announce_found(&texts, &applied);
    let command_settings = CommandSettings { flags, texts, applied };
    let context = global.into_context(&command.server_flags(), &file, command_settings)?;
    command.run(&context)
}

/// Shows what a file that nobody named switches on: it may be another's.
fn announce_found(texts: &[CommandText], applied: &[String]) {
    for CommandText { flag, text, origin } in texts.iter().filter(|text| applied.contains(&text.flag.key())) {
        if let Origin::FoundFile(_) = origin
            && flag.is_switch
        {
            eprintln!("kinfolk: {} = {} comes from {origin}", flag.key(), flag.literal(text));
        }
    }
}

impl GlobalArguments {
    fn into_context(
        self,
        server_flags: &Flags,
        file: &ConfigurationFile,
        command_settings: CommandSettings,
    ) -> Result<Context> {
        let flags = self.flags.0.and(server_flags.clone());
        let texts = Texts::read(&flags, file, |name| env::var_os(name))?;
        let configuration = Configuration::from_texts(&texts)?;
        Context::new(configuration, texts, command_settings, &self.tuning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_fit_together() {
        Arguments::command().debug_assert();
        settings::complete(Arguments::command()).debug_assert();
    }

    #[test]
    fn flags_of_commands_have_keys_and_variables_of_their_own() {
        let flags = CommandFlag::all(&Arguments::command());
        let settings = || settings::SETTINGS.iter();
        for flag in &flags {
            let others =
                flags.iter().filter(|other| other.variable == flag.variable || other.key() == flag.key());
            assert_eq!(others.count(), 1, "{flag:?}");
            let same = settings().any(|setting| setting.key() == flag.key());
            assert_eq!(settings().any(|setting| setting.variable() == flag.variable), same, "{flag:?}");
            assert!(!flag.variable.starts_with("KINFOLK_TEST_"), "{flag:?}");
            assert!(!flag.help.is_empty() && !flag.help.contains('|'), "{flag:?}");
        }
        let variable =
            |key: &str| flags.iter().find(|flag| flag.key() == key).map(|flag| flag.variable.as_str());
        assert_eq!(variable("import.skip_invalid"), Some("KINFOLK_IMPORT_SKIP_INVALID"));
        assert_eq!(variable("keys.add.not_after"), Some("KINFOLK_KEYS_ADD_NOT_AFTER"));
        assert_eq!(variable("following.limit"), Some("KINFOLK_COMMAND_FOLLOWING_LIMIT"));
        assert_eq!(variable("suggest.keep"), Some("KINFOLK_SUGGEST_KEEP"));
    }
}
