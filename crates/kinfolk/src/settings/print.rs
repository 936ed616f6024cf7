//! Prints the effective configuration as a valid file, and the reference of all settings.

use std::collections::BTreeMap;
use std::io::{self, Write};

use kinfolk_server::EffectiveSetting;
use serde::Serialize;
use serde_json::Value as Json;

use super::{CommandFlag, CommandText, Reach, SETTINGS, Setting, SettingText, Texts};
use crate::print::Print;

/// The effective configuration, each line with its origin. Of the flags of single commands, those that are set.
#[derive(Serialize)]
pub(crate) struct Effective {
    items: Vec<EffectiveItem>,
}

#[derive(Serialize)]
struct EffectiveItem {
    key: String,
    value: Json,
    origin: String,
    #[serde(skip)]
    section: String,
    #[serde(skip)]
    line: String,
}

impl EffectiveItem {
    fn new(section: &str, name: &str, SettingText { text, origin }: &SettingText, literal: &str) -> Self {
        // TOML has no empty value: the line becomes a comment.
        let mark = if text.is_empty() { "# " } else { "" };
        Self {
            key: format!("{section}.{name}"),
            value: if text.is_empty() { Json::Null } else { json_value(literal) },
            origin: origin.to_string(),
            section: section.to_owned(),
            line: format!("{mark}{name} = {literal}"),
        }
    }
}

impl Effective {
    pub(crate) fn new(texts: &Texts, command_texts: &[CommandText]) -> Self {
        let setting = |setting: &Setting| {
            let text = texts.get(setting.section, setting.name);
            EffectiveItem::new(setting.section, setting.name, text, &(setting.literal)(&text.text))
        };
        let mut items: Vec<EffectiveItem> = SETTINGS.iter().map(setting).collect();
        for CommandText { flag, text, origin } in command_texts.iter().filter(|text| !text.flag.is_setting())
        {
            let setting = SettingText { text: text.clone(), origin: origin.clone() };
            let item = EffectiveItem::new(&flag.section, &flag.name, &setting, &flag.literal(text));
            // A file has a section only once.
            let last = items.iter().rposition(|other| other.section == item.section);
            items.insert(last.map_or(items.len(), |last| last + 1), item);
        }
        Self { items }
    }
}

/// The effective settings as the console shows them.
pub(super) fn effective(texts: &Texts) -> Vec<EffectiveSetting> {
    let text = |value: Json| match value {
        Json::Null => String::new(),
        Json::String(text) => text,
        other => other.to_string(),
    };
    let items = Effective::new(texts, &[]).items.into_iter();
    items
        .map(|item| EffectiveSetting { key: item.key, value: text(item.value), origin: item.origin })
        .collect()
}

impl Print for Effective {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for (at, items) in self.items.chunk_by(|one, next| one.section == next.section).enumerate() {
            let gap = if at == 0 { "" } else { "\n" };
            let section = items.first().map(|item| item.section.as_str()).unwrap_or_default();
            writeln!(out, "{gap}[{section}]")?;
            for EffectiveItem { line, origin, .. } in items {
                writeln!(out, "{line:48} # {origin}")?;
            }
        }
        Ok(())
    }
}

/// A value of a TOML file as JSON.
fn json_value(literal: &str) -> Json {
    let parsed: Result<BTreeMap<String, Json>, _> = toml::from_str(&format!("value = {literal}"));
    parsed.ok().and_then(|mut table| table.remove("value")).unwrap_or_else(|| literal.into())
}

/// The reference of all settings.
#[derive(Serialize)]
pub(crate) struct Reference {
    items: Vec<ReferenceItem>,
}

#[derive(Serialize)]
struct ReferenceItem {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    flag: Option<String>,
    /// The command that has the flag; absent for the settings that several commands share.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    variable: String,
    #[serde(skip_serializing_if = "Json::is_null")]
    default: Json,
    description: String,
    /// Heading and introduction of the part that it belongs to.
    #[serde(skip)]
    part: (String, String),
    /// The columns of the table that differ from the fields above.
    #[serde(skip)]
    columns: [String; 3],
}

impl Reference {
    pub(crate) fn new(flags: &[CommandFlag]) -> Self {
        let settings = SETTINGS.iter().map(ReferenceItem::of_setting);
        Self { items: settings.chain(flags.iter().map(ReferenceItem::of_flag)).collect() }
    }
}

impl ReferenceItem {
    fn of_setting(setting: &Setting) -> Self {
        let flag = (setting.reach != Reach::Nowhere).then(|| format!("--{}", setting.flag));
        let flag_column = match (&flag, setting.reach) {
            (Some(flag), Reach::Everywhere) => format!("`{flag}`, all commands"),
            (Some(flag), _) => format!("`{flag}`"),
            (None, _) => "—".to_owned(),
        };
        let default = Some((setting.literal)(setting.default)).filter(|_| !setting.default.is_empty());
        Self {
            columns: [setting.name.to_owned(), flag_column, default_column(default.as_deref())],
            key: setting.key(),
            flag,
            command: None,
            variable: setting.variable(),
            default: default.as_deref().map(json_value).unwrap_or_default(),
            description: setting.help.to_owned(),
            part: (format!("## {}", setting.section), setting.about.to_owned()),
        }
    }

    fn of_flag(flag: &CommandFlag) -> Self {
        let default = Some(flag.literal(&flag.default)).filter(|_| !flag.default.is_empty());
        let (command, name) = (flag.command.join(" "), format!("--{}", flag.flag));
        Self {
            columns: [flag.name.clone(), format!("`{name}`"), default_column(default.as_deref())],
            key: flag.key(),
            flag: Some(name),
            variable: flag.variable.clone(),
            default: default.as_deref().map(json_value).unwrap_or_default(),
            description: flag.help.clone(),
            part: (format!("### {command}"), format!("Section `[{}]`.", flag.section)),
            command: Some(command),
        }
    }
}

fn default_column(default: Option<&str>) -> String {
    default.map_or_else(|| "—".to_owned(), |default| format!("`{default}`"))
}

impl Print for Reference {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(HEAD.as_bytes())?;
        let mut is_before_commands = true;
        for items in self.items.chunk_by(|one, next| one.part == next.part) {
            let Some(first) = items.first() else { continue };
            if first.command.is_some() && std::mem::take(&mut is_before_commands) {
                write!(out, "\n{COMMANDS_HEAD}")?;
            }
            let (heading, about) = &first.part;
            writeln!(out, "\n{heading}\n\n{about}\n")?;
            writeln!(out, "| key | flag | variable | default | description |\n|---|---|---|---|---|")?;
            for ReferenceItem { variable, description, columns: [name, flag, default], .. } in items {
                writeln!(out, "| `{name}` | {flag} | `{variable}` | {default} | {description} |")?;
            }
        }
        Ok(())
    }
}

const HEAD: &str = "\
# Configuration

<!-- Generated by `kinfolk config --reference`; a test compares. -->

Every setting is a flag, an environment variable and a key in a TOML file, unless the table says otherwise. A flag overrides a variable, and a variable
overrides the file. The file is `--config FILE` (`KINFOLK_CONFIG`), or `./kinfolk.toml` if it exists. An unknown key is an
error. `kinfolk config` prints the effective values and the origin of each.

```toml
[data]
folder = \"/var/lib/kinfolk\"

[http]
address = \"127.0.0.1:7400\"

[log]
keep = \"30 d\"

[import]
skip_invalid = true
```

Times are written like `500 ms`, `30 s`, `10 min`, `12 h` or `7 d`, sizes like `64 MiB` or `10 GiB`. Paths are relative to the
working folder. Flags belong to `serve`, `demo` and `config` unless the table says otherwise. The [flags of single
commands](#flags-of-single-commands) are settings, too.
";

const COMMANDS_HEAD: &str = "\
## Flags of single commands

Each flag of a command has a key in the section of the command, and a variable of both names. A flag that is typed overrides
the variable and the file, and so does one that excludes it: with `following.all = true`, `kinfolk following 1 --limit 5` lists
five. A switch is turned off with `--all=false`. An empty variable counts as absent. Keys that a section above has, too, are the same setting.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_has_an_introduction_and_is_contiguous() {
        let sections = SETTINGS.chunk_by(|one, next| one.section == next.section);
        let mut sections: Vec<(&str, &str)> = sections
            .filter_map(|settings| Some((settings.first()?.section, settings.first()?.about)))
            .collect();
        assert!(sections.iter().all(|(_, about)| !about.is_empty()), "{sections:?}");
        let count = sections.len();
        sections.sort();
        sections.dedup_by_key(|(section, _)| *section);
        assert_eq!(sections.len(), count);
    }
}
