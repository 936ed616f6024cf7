//! Reads `kinfolk.toml`: sections of keys. Unknown sections and keys are errors; the table validates the values.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::commands::CommandFlag;
use super::{FILE, Origin, SETTINGS};
use crate::failure::UsageError;

/// The one setting that is a table.
const HOSTS: &str = "fleet.hosts";

/// A value in a file.
pub(crate) struct FileText {
    pub(crate) text: String,
    /// The file and the line, for messages.
    pub(crate) location: String,
}

/// The values of a file by key.
type FileTexts = HashMap<String, FileText>;

/// A configuration file.
pub(crate) struct ConfigurationFile {
    pub(super) texts: FileTexts,
    is_named: bool,
}

impl ConfigurationFile {
    /// Reads the named file, or the default file if it exists. `flags` are those of single commands.
    pub(crate) fn read(named: Option<&Path>, flags: &[CommandFlag]) -> Result<Self> {
        Ok(Self { texts: read(named, Path::new(FILE), flags)?, is_named: named.is_some() })
    }

    /// The origin of the value at this location.
    pub(super) fn origin(&self, location: &str) -> Origin {
        let origin = if self.is_named { Origin::File } else { Origin::FoundFile };
        origin(location.to_owned())
    }
}

fn read(named: Option<&Path>, default: &Path, flags: &[CommandFlag]) -> Result<FileTexts> {
    let path = named.unwrap_or(default);
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
            return Ok(FileTexts::new());
        }
        Err(error) => return Err(error).with_context(|| format!("could not read {}", path.display())),
    };
    let file = File { name: path.display().to_string(), text: &text, keys: Keys::new(flags) };
    file.texts()
}

/// All keys that a file may have: section and name.
struct Keys<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Keys<'a> {
    fn new(flags: &'a [CommandFlag]) -> Self {
        let settings = SETTINGS.iter().map(|setting| (setting.section, setting.name));
        Self(settings.chain(flags.iter().map(|flag| (flag.section.as_str(), flag.name.as_str()))).collect())
    }

    fn has(&self, section: &str, name: &str) -> bool {
        self.0.contains(&(section, name))
    }

    /// Whether there is such a section, or one within it.
    fn has_section(&self, section: &str) -> bool {
        self.0.iter().any(|(known, _)| {
            known.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    /// Suggests a key of the same name, or lists the keys of the section.
    fn similar(&self, section: &str, name: &str) -> String {
        let mut same_name = self.0.iter().filter(|(_, known)| *known == name);
        if let (Some((section, name)), None) = (same_name.next(), same_name.next()) {
            return format!("; did you mean {section}.{name}?");
        }
        let own = self.0.iter().filter(|(known, _)| *known == section).map(|(_, name)| *name);
        let within = |known: &'a str| known.strip_prefix(section).and_then(|rest| rest.strip_prefix('.'));
        let mut names: Vec<&str> = own.chain(self.0.iter().filter_map(|(known, _)| within(known))).collect();
        // A flag may override the setting of the same key.
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(*name));
        if names.is_empty() { String::new() } else { format!("; {section} has {}", names.join(", ")) }
    }
}

struct File<'a> {
    name: String,
    text: &'a str,
    keys: Keys<'a>,
}

impl File<'_> {
    fn texts(&self) -> Result<FileTexts> {
        let table = DeTable::parse(self.text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            self.wrong(start, error.message().trim())
        })?;
        let mut texts = FileTexts::new();
        for (section, keys) in table.get_ref() {
            self.require_section(section, keys)?;
            self.read_section(section.get_ref(), keys.get_ref(), &mut texts)?;
        }
        Ok(texts)
    }

    fn read_section(&self, section: &str, keys: &DeValue<'_>, texts: &mut FileTexts) -> Result<()> {
        for (name, value) in keys.as_table().into_iter().flatten() {
            let key = format!("{section}.{}", name.get_ref());
            let start = name.span().start;
            if !self.keys.has(section, name.get_ref()) {
                // A command within a command has a section within a section.
                if value.get_ref().is_table() && self.keys.has_section(&key) {
                    self.read_section(&key, value.get_ref(), texts)?;
                    continue;
                }
                let name = shown(name.get_ref());
                let similar = self.keys.similar(section, name);
                return Err(self.wrong(start, &format!("{section}.{name} is unknown{similar}")));
            }
            let text = if key == HOSTS { hosts(value.get_ref()) } else { scalar(value.get_ref()) };
            let text = text.ok_or_else(|| {
                let expected = if key == HOSTS {
                    "a table of connection strings without semicolons"
                } else {
                    "a string, a number, a boolean or a list of strings"
                };
                self.wrong(start, &format!("{key} is invalid: expected {expected}"))
            })?;
            texts.insert(key, FileText { text, location: self.location(start) });
        }
        Ok(())
    }

    fn require_section(&self, section: &Spanned<DeString<'_>>, keys: &Spanned<DeValue<'_>>) -> Result<()> {
        let (name, start) = (shown(section.get_ref()), section.span().start);
        if !keys.get_ref().is_table() {
            return Err(self.wrong(start, &format!("{name} is outside of a section")));
        }
        if name == "fleet" && keys.get_ref().as_table().is_some_and(DeTable::is_empty) {
            let needed = "the section fleet is empty; it needs catalog and hosts, or leave it out";
            return Err(self.wrong(start, needed));
        }
        if self.keys.has_section(name) {
            return Ok(());
        }
        let mut sections: Vec<&str> = SETTINGS.iter().map(|setting| setting.section).collect();
        sections.dedup();
        Err(self.wrong(
            start,
            &format!(
                "the section {name} is unknown; the sections are {}, and the commands that have flags of their own",
                sections.join(", ")
            ),
        ))
    }

    fn wrong(&self, start: usize, what: &str) -> anyhow::Error {
        UsageError(format!("{}: {what}", self.location(start))).into()
    }

    fn location(&self, start: usize) -> String {
        let before = self.text.get(..start).unwrap_or_default();
        format!("{}:{}", self.name, before.matches('\n').count() + 1)
    }
}

/// The text of a value; none for a table, or a list with anything but strings.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(truth) => Some(truth.to_string()),
        // Elsewhere a list is one text, separated by commas.
        DeValue::Array(items) => {
            let items: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
            items.map(|items| items.join(","))
        }
        _ => None,
    }
}

/// The text of a table of connection strings; none for anything that its text could not hold.
fn hosts(value: &DeValue<'_>) -> Option<String> {
    let Some(table) = value.as_table() else { return scalar(value) };
    let host = |(name, connection): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let connection = connection.get_ref().as_str().filter(|connection| !connection.contains(';'))?;
        Some(format!("{}={connection}", name.get_ref()))
    };
    let hosts: Option<Vec<String>> = table.iter().map(host).collect();
    hosts.map(|hosts| hosts.join("; "))
}

/// A name as messages show it. A connection string with its password may stand where a name belongs.
fn shown(name: &str) -> &str {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if name.chars().all(is_plain) { name } else { "(not a name)" }
}
