//! Configuration: one table of settings, from which flags, variables, the file's keys and the reference derive.
//!
//! A value comes from a flag, else from the environment, else from the file, else it is the default. All of them
//! are read once, here, into [`Configuration`].

mod comments;
mod file;
mod print;
mod suggest;
mod table;
mod value;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

pub(crate) use print::{effective, reference};
pub(crate) use suggest::bound;
pub(crate) use table::{Client, Comments, Configuration, SETTINGS, Suggest, TlsFiles, Tracing};
pub(crate) use value::{LogFormat, Role, Value};

use crate::failure::UsageError;

/// The file that is read where it is present and no other is named.
const FILE: &str = "kinfolk.toml";

/// A setting as the table has it.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The section of the file.
    pub(crate) section: &'static str,
    /// The key in the section.
    pub(crate) name: &'static str,
    /// The flag, without its dashes; the variable is made of it.
    pub(crate) flag: &'static str,
    /// What the flag's value is called.
    pub(crate) value_name: &'static str,
    /// Where the flag can be given.
    pub(crate) reach: Reach,
    /// The value where none is given; empty if it is left open.
    pub(crate) default: &'static str,
    /// What it is for.
    pub(crate) help: &'static str,
    quoted: bool,
    switch: bool,
    /// Checks a text and gives its canonical form.
    canonical: fn(&str) -> Result<String, String>,
}

/// Which commands have a setting's flag. Its variable and key hold for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Every command.
    Everywhere,
    /// Only those that serve.
    Server,
}

/// Where a value came from; a later one counts more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// Nobody has set it.
    Default,
    /// A file that lies in the working folder and that nobody has named, at a line. It may be anybody's.
    FoundFile(String),
    /// The file that was named, at a line.
    File(String),
    /// A variable of the environment.
    Environment(String),
    /// The command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => out.write_str("default"),
            Self::FoundFile(place) | Self::File(place) => out.write_str(place),
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

    /// The variable of the environment.
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

/// The text of every setting, and where it came from.
#[derive(Debug)]
pub(crate) struct Texts(HashMap<String, (String, Origin)>);

impl Texts {
    /// Reads all layers. `flags` are those that were typed.
    pub(crate) fn read(
        flags: &Flags,
        file: Option<&Path>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self> {
        let from_file = file::read(file, Path::new(FILE))?;
        let mut texts = HashMap::with_capacity(SETTINGS.len());
        for setting in SETTINGS {
            let key = setting.key();
            let found = if let Some(text) = flags.0.get(setting.flag) {
                (text.clone(), Origin::Flag(setting.flag.to_owned()))
            } else if let Some(text) = variable(&setting.variable()) {
                let name = setting.variable();
                let text = text.into_string().map_err(|_| UsageError(format!("{name} is not UTF-8")))?;
                let canonical = (setting.canonical)(&text)
                    .map_err(|reason| UsageError(format!("{name}: invalid value '{text}': {reason}")))?;
                (canonical, Origin::Environment(name))
            } else if let Some((text, place)) = from_file.get(&key) {
                let canonical = (setting.canonical)(text)
                    .map_err(|reason| UsageError(format!("{place}: {key} is invalid: {reason}")))?;
                let origin = if file.is_some() { Origin::File } else { Origin::FoundFile };
                (canonical, origin(place.clone()))
            } else {
                let default = (setting.canonical)(setting.default);
                (default.unwrap_or_else(|reason| panic!("the default of {key}: {reason}")), Origin::Default)
            };
            texts.insert(key, found);
        }
        Ok(Self(texts))
    }

    fn text(&self, section: &str, name: &str) -> &str {
        &self.get(section, name).0
    }

    /// Where a setting's value came from.
    pub(crate) fn origin(&self, section: &str, name: &str) -> &Origin {
        &self.get(section, name).1
    }

    fn get(&self, section: &str, name: &str) -> &(String, Origin) {
        self.0.get(&format!("{section}.{name}")).expect("every setting has been read")
    }
}

/// The settings that were typed as flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags(HashMap<&'static str, String>);

impl Flags {
    fn of(matches: &ArgMatches, reach: Reach) -> Self {
        let settings = SETTINGS.iter().filter(|setting| setting.reach == reach);
        let typed = settings
            .filter_map(|setting| Some((setting.flag, matches.get_one::<String>(setting.flag)?.clone())));
        Self(typed.collect())
    }

    /// Both sets together.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }
}

/// The flags of one reach, as clap wants them.
macro_rules! flags {
    ($(#[$meta:meta])* $name:ident, $reach:expr) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $name(pub Flags);

        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self(Flags::of(matches, $reach)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                self.0 = Flags::of(matches, $reach);
                Ok(())
            }
        }

        impl Args for $name {
            fn augment_args(command: Command) -> Command {
                let settings = SETTINGS.iter().filter(|setting| setting.reach == $reach);
                command.args(settings.map(Setting::argument))
            }

            fn augment_args_for_update(command: Command) -> Command {
                Self::augment_args(command)
            }
        }
    };
}

flags! {
    /// The flags that every command has.
    CommonFlags, Reach::Everywhere
}

flags! {
    /// The flags of commands that serve.
    ServerFlags, Reach::Server
}

/// Where the file is, if one was named.
#[derive(Clone, Debug, Args)]
pub(crate) struct FileArgument {
    /// The configuration file [default: ./kinfolk.toml, if there is one]
    #[arg(long, global = true, value_name = "FILE", env = "KINFOLK_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(flags: &[(&'static str, &str)], variables: &[(&str, &str)], file: &str) -> Result<Texts> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.toml");
        std::fs::write(&path, file).unwrap();
        let flags = Flags(flags.iter().map(|(flag, text)| (*flag, (*text).to_owned())).collect());
        Texts::read(&flags, Some(&path), |name| {
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
    fn what_is_wrong_is_named() {
        for (file, part) in [
            ("[http]\nadress = \"127.0.0.1:3\"\n", "k.toml:2: http.adress is unknown"),
            ("[http]\naddress = \"here\"\n", "k.toml:2: http.address is invalid: expected an address"),
            ("\n[web]\nport = 1\n", "k.toml:2: the section web is unknown"),
            ("port = 1\n", "k.toml:1: port stands outside of a section"),
            ("[http]\naddress = [1]\n", "k.toml:2: http.address is invalid"),
            ("[http\n", "k.toml:1: "),
            ("[fleet]\nshards = 1\n", "not available"),
        ] {
            let message = format!("{:#}", texts(&[], &[], file).unwrap_err());
            assert!(message.contains(part), "{file:?}: {message}");
        }
        let message = texts(&[], &[("KINFOLK_JSON", "perhaps")], "").unwrap_err().to_string();
        assert!(message.contains("KINFOLK_JSON: invalid value 'perhaps'"), "{message}");
    }
}
