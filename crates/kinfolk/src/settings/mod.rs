//! Configuration: one table of settings, from which flags, environment variables, keys of the file and the reference
//! derive.
//!
//! A value comes from a flag, else from the environment, else from the file, else it is the default. [`Texts`] reads all
//! of them once; [`Configuration`] has the parsed values.

mod commands;
mod connection;
mod file;
mod print;
mod service;
mod store;
mod table;
mod value;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;

use anyhow::Result;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

pub(crate) use commands::{CommandFlag, CommandText, apply, complete, read as read_command_texts};
pub(crate) use file::ConfigurationFile;
pub(crate) use print::{Effective, Reference};
pub(crate) use service::bound;
pub(crate) use store::TuningArguments;
pub(crate) use table::{Client, Comments, Configuration, Fleet, SETTINGS, Suggest, TlsFiles, Tracing};
#[cfg(feature = "fleet")]
pub(crate) use table::{Kafka, Redis};
pub(crate) use value::{Bytes, Fraction, LogFormat, Role, Span, Value};

use self::file::FileText;
use crate::failure::UsageError;

/// The default configuration file, read if it exists.
const FILE: &str = "kinfolk.toml";

/// An entry of the table.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The section of the file.
    pub(crate) section: &'static str,
    /// The description of the section.
    about: &'static str,
    /// The key in the section.
    pub(crate) name: &'static str,
    /// The flag without dashes; the variable derives from it.
    pub(crate) flag: &'static str,
    /// The name of the flag's value.
    pub(crate) value_name: &'static str,
    /// The commands that have the flag.
    pub(crate) reach: Reach,
    /// The default; empty for none.
    pub(crate) default: &'static str,
    /// The description.
    pub(crate) help: &'static str,
    switch: bool,
    /// Validates a text; returns its canonical form.
    canonical: fn(&str) -> Result<String, String>,
    /// Formats a canonical text for a TOML file, without secrets.
    literal: fn(&str) -> String,
}

/// The commands that have a setting's flag. Its variable and key apply to all commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Every command.
    Everywhere,
    /// Commands that run a server.
    Server,
    /// None: its value may hold a secret, and other users of the machine can read command lines.
    Nowhere,
}

/// The origin of a value, in ascending order of precedence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// The default.
    Default,
    /// A line of the file in the working folder, which was not named. Anybody may have written it.
    FoundFile(String),
    /// A line of the named file.
    File(String),
    /// An environment variable.
    Environment(String),
    /// The command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => out.write_str("default"),
            Self::FoundFile(location) | Self::File(location) => out.write_str(location),
            Self::Environment(variable) => out.write_str(variable),
            Self::Flag(flag) => write!(out, "--{flag}"),
        }
    }
}

impl Setting {
    /// The key with its section.
    pub(crate) fn key(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// The environment variable.
    pub(crate) fn variable(&self) -> String {
        format!("KINFOLK_{}", self.flag.to_ascii_uppercase().replace('-', "_"))
    }

    fn argument(&'static self) -> Arg {
        let default = match self.default {
            "" | "false" => String::new(),
            default => format!(" [default: {default}]"),
        };
        let canonical = self.canonical;
        let argument = Arg::new(self.flag)
            .long(self.flag)
            .help(format!("{} [env: {}]{default}", self.help, self.variable()))
            .value_parser(move |text: &str| canonical(text))
            .global(self.reach == Reach::Everywhere);
        let argument = if self.flag == "quiet" { argument.short('q') } else { argument };
        // One token in 64 starts with a hyphen.
        let argument = argument.allow_hyphen_values(self.flag == "token");
        if self.switch {
            argument
                .value_name("BOOL")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .hide_possible_values(true)
        } else {
            argument.value_name(self.value_name)
        }
    }
}

/// The text of a setting, and its origin.
struct SettingText {
    text: String,
    origin: Origin,
}

/// Without the text, which may hold a secret.
impl fmt::Debug for SettingText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.origin)
    }
}

/// The texts of all settings by key.
#[derive(Debug)]
pub(crate) struct Texts(HashMap<String, SettingText>);

impl Texts {
    /// Reads all sources. `flags` are the ones on the command line.
    pub(crate) fn read(
        flags: &Flags,
        file: &ConfigurationFile,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self> {
        let mut texts = HashMap::with_capacity(SETTINGS.len());
        for setting in SETTINGS {
            let key = setting.key();
            let found = if let Some(text) = flags.0.get(setting.flag) {
                SettingText { text: text.clone(), origin: Origin::Flag(setting.flag.to_owned()) }
            } else if let Some(text) = variable_text(&setting.variable(), &variable)? {
                let name = setting.variable();
                let canonical = (setting.canonical)(&text).map_err(|reason| {
                    let shown =
                        if setting.reach == Reach::Nowhere { String::new() } else { format!(" '{text}'") };
                    UsageError(format!("{name}: invalid value{shown}: {reason}"))
                })?;
                SettingText { text: canonical, origin: Origin::Environment(name) }
            } else if let Some(FileText { text, location }) = file.texts.get(&key) {
                let canonical = (setting.canonical)(text)
                    .map_err(|reason| UsageError(format!("{location}: {key} is invalid: {reason}")))?;
                SettingText { text: canonical, origin: file.origin(location) }
            } else {
                let default = (setting.canonical)(setting.default);
                let text = default.unwrap_or_else(|reason| panic!("the default of {key}: {reason}"));
                SettingText { text, origin: Origin::Default }
            };
            texts.insert(key, found);
        }
        Ok(Self(texts))
    }

    fn text(&self, section: &str, name: &str) -> &str {
        &self.get(section, name).text
    }

    /// The origin of a setting's value.
    pub(crate) fn origin(&self, section: &str, name: &str) -> &Origin {
        &self.get(section, name).origin
    }

    fn get(&self, section: &str, name: &str) -> &SettingText {
        self.0.get(&format!("{section}.{name}")).expect("all settings were read")
    }
}

/// The text of a variable, if it is set.
fn variable_text(name: &str, variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<String>> {
    let text = variable(name).map(OsString::into_string).transpose();
    text.map_err(|_| UsageError(format!("{name} is not UTF-8")).into())
}

/// The settings on the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags(HashMap<&'static str, String>);

impl Flags {
    fn of(matches: &ArgMatches, reach: Reach) -> Self {
        let settings = SETTINGS.iter().filter(|setting| setting.reach == reach);
        let typed = settings
            .filter_map(|setting| Some((setting.flag, matches.get_one::<String>(setting.flag)?.clone())));
        Self(typed.collect())
    }

    /// The union of both.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }
}

/// The flags of all commands.
pub(crate) type CommonFlags = FlagsOf<false>;

/// The flags of commands that run a server.
pub(crate) type ServerFlags = FlagsOf<true>;

/// The flags of one reach, for clap.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlagsOf<const SERVER: bool>(pub(crate) Flags);

impl<const SERVER: bool> FlagsOf<SERVER> {
    const REACH: Reach = if SERVER { Reach::Server } else { Reach::Everywhere };
}

impl<const SERVER: bool> FromArgMatches for FlagsOf<SERVER> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(Flags::of(matches, Self::REACH)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = Flags::of(matches, Self::REACH);
        Ok(())
    }
}

impl<const SERVER: bool> Args for FlagsOf<SERVER> {
    fn augment_args(command: Command) -> Command {
        let settings = SETTINGS.iter().filter(|setting| setting.reach == Self::REACH);
        command.args(settings.map(Setting::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::*;
    use crate::print::Print;

    fn texts(flags: &[(&'static str, &str)], variables: &[(&str, &str)], file: &str) -> Result<Texts> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.toml");
        std::fs::write(&path, file).unwrap();
        let flags = Flags(flags.iter().map(|(flag, text)| (*flag, (*text).to_owned())).collect());
        Texts::read(&flags, &ConfigurationFile::read(Some(&path), &[])?, |name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, text)| text.into())
        })
    }

    #[test]
    fn keys_flags_and_variables_are_unique() {
        for of in [Setting::key, Setting::variable, |setting: &Setting| setting.flag.to_owned()] {
            let mut names: Vec<String> = SETTINGS.iter().map(of).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), SETTINGS.len());
        }
    }

    #[test]
    fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
        let file = "[http]\naddress = \"127.0.0.1:3\"\n";
        let variables = [("KINFOLK_HTTP", "127.0.0.1:2")];
        let flags = [("http", "127.0.0.1:1")];
        for (flags, variables, file, port, origin) in [
            (&flags[..], &variables[..], file, 1, "--http"),
            (&[], &variables, file, 2, "KINFOLK_HTTP"),
            (&[], &[], file, 3, "k.toml:2"),
            (&[], &[], "", 7400, "default"),
        ] {
            let texts = texts(flags, variables, file).unwrap();
            assert_eq!(Configuration::from_texts(&texts).unwrap().http.address.port(), port);
            assert!(texts.origin("http", "address").to_string().ends_with(origin));
        }
    }

    #[test]
    fn errors_name_the_setting() {
        for (file, part) in [
            ("[http]\nadress = \"127.0.0.1:3\"\n", "k.toml:2: http.adress is unknown"),
            ("[http]\naddress = \"here\"\n", "k.toml:2: http.address is invalid: expected an address"),
            ("\n[web]\nport = 1\n", "k.toml:2: the section web is unknown"),
            ("port = 1\n", "k.toml:1: port is outside of a section"),
            ("[http]\naddress = [1]\n", "k.toml:2: http.address is invalid"),
            ("[http\n", "k.toml:1: "),
            ("[fleet]\nshards = 1\n", "k.toml:2: fleet.shards is unknown"),
            ("[fleet]\n", "k.toml:1: the section fleet is empty"),
            ("[fleet]\nhosts = \"a\"\n", "k.toml:2: fleet.hosts is invalid: expected NAME=CONNECTION"),
            ("[fleet.hosts]\na = 1\n", "k.toml:1: fleet.hosts is invalid"),
            ("[fleet.hosts]\na = \"x;y\"\n", "k.toml:1: fleet.hosts is invalid"),
        ] {
            let message = format!("{:#}", texts(&[], &[], file).unwrap_err());
            assert!(message.contains(part), "{file:?}: {message}");
        }
        let message = texts(&[], &[("KINFOLK_JSON", "perhaps")], "").unwrap_err().to_string();
        assert!(message.contains("KINFOLK_JSON: invalid value 'perhaps'"), "{message}");
    }

    #[test]
    fn secrets_are_read_but_not_shown() {
        let file = "[fleet]\ncatalog = \"postgres://me:hunter2@db/catalog\"\n\
                    [fleet.hosts]\na = \"postgres://me:hunter2@db/a\"\n\"b\" = \"host=db password=hunter2\"\n";
        let read = texts(&[], &[], file).unwrap();
        let configuration = Configuration::from_texts(&read).unwrap();
        let names: Vec<&String> = configuration.fleet.hosts.0.keys().collect();
        assert_eq!(names, ["a", "b"]);
        let effective = Effective::new(&read, &[]);
        let json = serde_json::to_string(&effective).unwrap();
        assert!(json.contains(r#""value":{"a":"postgres://me:***@db/a","b":"#), "{json}");
        let mut printed = Vec::new();
        effective.write_text(&mut printed).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        for shown in [&printed, &json, &format!("{read:?}"), &format!("{configuration:?}")] {
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        assert!(printed.contains("hosts = { \"a\" = \"postgres://me:***@db/a\", "), "{printed}");
        assert!(DeTable::parse(&printed).is_ok(), "{printed}");
        let variables = [("KINFOLK_FLEET_HOSTS", "a=postgres://me:hunter2@db/a; hunter2")];
        let message = texts(&[], &variables, "").unwrap_err().to_string();
        assert!(message.contains("KINFOLK_FLEET_HOSTS") && !message.contains("hunter2"), "{message}");
    }
}
