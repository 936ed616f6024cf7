//! The flags of single commands as settings. Their keys, variables and reference derive from clap's definitions, so that
//! a new flag is a setting without further ado. The settings that several commands share are in `table`.
//!
//! A value of the file or a variable becomes the default of its flag. Unlike a flag that was typed, a default does not
//! demand or exclude other flags.

use std::ffi::OsString;

use anyhow::Result;
use clap::builder::ValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::file::{ConfigurationFile, FileText};
use super::value::quoted;
use super::{Origin, SETTINGS, Value, variable_text};
use crate::failure::{UsageError, plain};

/// A flag of one command.
#[derive(Clone, Debug)]
pub(crate) struct CommandFlag {
    /// The names of the command, the outermost first.
    pub(crate) command: Vec<String>,
    /// What clap calls the flag.
    id: String,
    /// The section of the file.
    pub(crate) section: String,
    /// The key in the section.
    pub(crate) name: String,
    /// The flag without dashes.
    pub(crate) flag: String,
    /// The environment variable.
    pub(crate) variable: String,
    /// The default; empty for none.
    pub(crate) default: String,
    /// The description.
    pub(crate) help: String,
    /// Whether it is on or off.
    pub(crate) is_switch: bool,
    parser: ValueParser,
    delimiter: Option<char>,
}

/// The value of a flag that was not typed.
#[derive(Clone, Debug)]
pub(crate) struct CommandText {
    pub(crate) flag: CommandFlag,
    pub(crate) text: String,
    pub(crate) origin: Origin,
}

impl CommandFlag {
    /// The flags of all commands below this one.
    pub(crate) fn all(program: &Command) -> Vec<Self> {
        let mut flags = Vec::new();
        collect(program, &[], &mut flags);
        flags
    }

    fn new(command: &[String], argument: &Arg) -> Option<Self> {
        let flag = argument.get_long().filter(|_| is_own(argument))?.to_owned();
        let section = command.join(".").replace('-', "_");
        let name = flag.replace('-', "_");
        let defaults = argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
        Some(Self {
            id: argument.get_id().to_string(),
            variable: variable(&section, &name),
            default: defaults.collect::<Vec<_>>().join(","),
            help: argument.get_help().map(ToString::to_string).unwrap_or_default(),
            is_switch: is_switch(argument),
            parser: argument.get_value_parser().clone(),
            delimiter: argument.get_value_delimiter(),
            command: command.to_vec(),
            section,
            name,
            flag,
        })
    }

    /// The key with its section.
    pub(crate) fn key(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// Whether the key is that of a setting: then the flag overrides the setting for one run.
    pub(crate) fn is_setting(&self) -> bool {
        SETTINGS.iter().any(|setting| setting.section == self.section && setting.name == self.name)
    }

    /// Validates a text; returns the form that clap takes.
    fn canonical(&self, text: &str) -> Result<String, String> {
        if self.is_switch {
            return bool::parse(text).map(|value| value.text());
        }
        // Clap does not expose the parser of an argument, only parsing.
        let mut argument = Arg::new("value").long("value").require_equals(true);
        argument = argument.value_parser(self.parser.clone());
        if let Some(delimiter) = self.delimiter {
            argument = argument.value_delimiter(delimiter).action(ArgAction::Append);
        }
        let command = Command::new("value").no_binary_name(true).arg(argument);
        let parsed = command.try_get_matches_from([format!("--value={text}")]);
        parsed.map(|_| text.to_owned()).map_err(|error| reason(&error))
    }

    /// A value as a line of a TOML file has it.
    pub(crate) fn literal(&self, text: &str) -> String {
        let is_number = text.parse::<u64>().is_ok_and(|number| number.to_string() == text);
        if self.is_switch || is_number { text.to_owned() } else { quoted(text) }
    }
}

/// The flag of a single command: neither one of the table nor one for tests.
fn is_own(argument: &Arg) -> bool {
    let is_setting = || SETTINGS.iter().any(|setting| argument.get_id() == setting.flag);
    !argument.is_positional() && !argument.is_hide_set() && !is_setting()
}

fn is_switch(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::SetTrue)
}

/// The variable of a key. `KINFOLK_FOLLOWING_LIMIT` has been that of `graph.following_limit`, so that the one of
/// `following --limit` gets another name.
fn variable(section: &str, name: &str) -> String {
    let of =
        |prefix: &str| format!("KINFOLK_{prefix}{section}_{name}").to_ascii_uppercase().replace('.', "_");
    let is_taken = SETTINGS
        .iter()
        .any(|setting| setting.variable() == of("") && (setting.section, setting.name) != (section, name));
    of(if is_taken { "COMMAND_" } else { "" })
}

fn collect(command: &Command, names: &[String], flags: &mut Vec<CommandFlag>) {
    for inner in command.get_subcommands() {
        let names: Vec<String> = names.iter().cloned().chain([inner.get_name().to_owned()]).collect();
        flags.extend(inner.get_arguments().filter_map(|argument| CommandFlag::new(&names, argument)));
        collect(inner, &names, flags);
    }
}

/// Why clap refused a value.
fn reason(error: &clap::Error) -> String {
    let source = std::error::Error::source(error).map(|source| plain(&source.to_string()));
    source.unwrap_or_else(|| {
        let text = error.to_string();
        text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// Completes the definitions: the help of each flag names its variable, and `--switch=false` overrides what a variable
/// or the file has switched on.
pub(crate) fn complete(program: Command) -> Command {
    complete_below(program, &[])
}

fn complete_below(command: Command, names: &[String]) -> Command {
    command.mut_subcommands(|inner| {
        let names: Vec<String> = names.iter().cloned().chain([inner.get_name().to_owned()]).collect();
        let inner = inner.mut_args(|argument| match CommandFlag::new(&names, &argument) {
            Some(flag) => complete_flag(argument, &flag),
            None => argument,
        });
        complete_below(inner, &names)
    })
}

fn complete_flag(argument: Arg, flag: &CommandFlag) -> Arg {
    let argument = argument.help(format!("{} [env: {}]", flag.help, flag.variable));
    if !flag.is_switch {
        return argument;
    }
    argument
        .action(ArgAction::Set)
        .value_parser(bool::parse)
        .value_name("BOOL")
        .num_args(0..=1)
        .require_equals(true)
        .default_value("false")
        .default_missing_value("true")
        .hide_default_value(true)
        .hide_possible_values(true)
}

/// Reads the values that variables and the file give to flags.
pub(crate) fn read(
    flags: &[CommandFlag],
    file: &ConfigurationFile,
    variable: impl Fn(&str) -> Option<OsString>,
    typed: &ArgMatches,
) -> Result<Vec<CommandText>> {
    let typed = names(typed);
    let mut texts = Vec::new();
    for flag in flags {
        // An empty variable is as good as none.
        let of_variable = variable_text(&flag.variable, &variable)?.filter(|text| !text.is_empty());
        let (text, origin) = if let Some(text) = of_variable {
            (text, Origin::Environment(flag.variable.clone()))
        } else if let Some(FileText { text, location }) = file.texts.get(&flag.key()) {
            (text.clone(), file.origin(location))
        } else {
            continue;
        };
        if text.is_empty() {
            continue;
        }
        match (flag.canonical(&text), &origin) {
            (Ok(text), _) => texts.push(CommandText { flag: flag.clone(), text, origin }),
            // The variable of another command concerns nobody here: a server starts although it is wrong.
            (Err(_), Origin::Environment(_)) if !typed.starts_with(&flag.command) => {}
            (Err(reason), Origin::Environment(name)) => {
                return Err(UsageError(format!("{name}: invalid value '{text}': {reason}")).into());
            }
            (Err(reason), location) => {
                let message = format!("{location}: {} is invalid: {reason}", flag.key());
                return Err(UsageError(message).into());
            }
        }
    }
    Ok(texts)
}

/// Makes the values the defaults of the flags of the command that was typed. A flag that was typed counts, and so does
/// what excludes a value: a flag that was typed, or a value of a variable over one of the file. Returns the keys of the
/// values that take effect, too.
pub(crate) fn apply(
    mut program: Command,
    typed: &ArgMatches,
    texts: &[CommandText],
) -> Result<(Command, Vec<String>)> {
    let (mut names, mut matches, mut keys) = (Vec::new(), typed, Vec::new());
    while let Some((name, inner)) = matches.subcommand() {
        names.push(name.to_owned());
        matches = inner;
        let Some(command) = find(&program, &names) else { break };
        // A setting has its default elsewhere, for folders only: a server has its own.
        let is_own = |text: &&CommandText| text.flag.command == names && !text.flag.is_setting();
        let texts: Vec<&CommandText> = texts.iter().filter(is_own).collect();
        let values = effective(command, matches, &texts)?;
        keys.extend(values.iter().map(|value| value.flag.key()));
        program = change(program, &names, &values);
    }
    Ok((program, keys))
}

/// The names of the command that was typed, the outermost first.
fn names(mut typed: &ArgMatches) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((name, inner)) = typed.subcommand() {
        names.push(name.to_owned());
        typed = inner;
    }
    names
}

fn find<'a>(program: &'a Command, names: &[String]) -> Option<&'a Command> {
    names.iter().try_fold(program, |command, name| command.find_subcommand(name))
}

fn change(command: Command, names: &[String], values: &[&CommandText]) -> Command {
    match names.split_first() {
        Some((name, rest)) => command.mut_subcommand(name, |inner| change(inner, rest, values)),
        None => values.iter().fold(command, |command, value| {
            let text = value.text.clone();
            command.mut_arg(&value.flag.id, |argument| argument.required(false).default_value(text))
        }),
    }
}

/// Those of the values that take effect.
fn effective<'a>(
    command: &Command,
    matches: &ArgMatches,
    texts: &[&'a CommandText],
) -> Result<Vec<&'a CommandText>> {
    let is_typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    // A switch that is turned off excludes nothing.
    let is_off = |id: &str| matches.try_get_one::<bool>(id).is_ok_and(|value| value == Some(&false));
    let ids = || command.get_arguments().map(|argument| argument.get_id().as_str());
    let excluding: Vec<&str> = ids().filter(|id| is_typed(id) && !is_off(id)).collect();
    let is_on = |text: &CommandText| !(text.flag.is_switch && text.text == "false");
    let open = |text: &&&CommandText| {
        let id = &text.flag.id;
        is_on(text) && !is_typed(id) && !excluding.iter().any(|other| exclude_each_other(command, id, other))
    };
    let open: Vec<&CommandText> = texts.iter().filter(open).copied().collect();
    let mut values = Vec::new();
    for &text in &open {
        let excludes = |other: &&&CommandText| exclude_each_other(command, &text.flag.id, &other.flag.id);
        let rank = |text: &CommandText| matches!(text.origin, Origin::Environment(_));
        match open.iter().find(excludes) {
            Some(other) if rank(other) == rank(text) => {
                let (flag, other_flag) = (text.flag.key(), other.flag.key());
                let (origin, other_origin) = (&text.origin, &other.origin);
                let message = format!(
                    "{flag} ({origin}) and {other_flag} ({other_origin}) cannot be used together; leave out one of them"
                );
                return Err(UsageError(message).into());
            }
            Some(other) if rank(other) => {}
            _ => values.push(text),
        }
    }
    Ok(values)
}

fn exclude_each_other(command: &Command, one: &str, other: &str) -> bool {
    let excludes = |one: &str, other: &str| {
        let argument = command.get_arguments().find(|argument| argument.get_id() == one);
        let excluded = argument.map(|argument| command.get_arg_conflicts_with(argument)).unwrap_or_default();
        excluded.iter().any(|argument| argument.get_id() == other)
    };
    excludes(one, other) || excludes(other, one)
}
