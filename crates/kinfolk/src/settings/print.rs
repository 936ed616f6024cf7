//! The configuration for people: the effective one as a file that could be read again, and the reference of all
//! settings.

use std::fmt::Write;

use super::{Reach, SETTINGS, Setting, Texts};

/// What the sections are about, in the order of the reference.
fn introduction(section: &str) -> &'static str {
    match section {
        "data" => "Where the graph is kept.",
        "http" => "The REST interface.",
        "resp" => "The Redis protocol.",
        "server" => "The process.",
        "tls" => "Encryption, for both protocols.",
        "auth" => {
            "Who may ask. Without any of these, everybody on this machine may do everything, and nobody else can reach it."
        }
        "limits" => "How often. Without authentication there are no rate limits.",
        "graph" => "The rules of the graph.",
        "suggest" => "People whom users may know: [how they are computed](README.md#suggestions).",
        "feed" => "Home feeds: [how they are made](README.md#posts-and-feeds).",
        "comments" => "Comment threads: [moderating them, and what a purge reaches](comments.md).",
        "log" => "How much of the change log is kept.",
        "clock" => "When the system's clock is not followed: [why, and what to do](README.md#time).",
        "cache" => "Memory.",
        "logging" => "What goes to standard error.",
        "tracing" => "OpenTelemetry.",
        "client" => "The commands that talk to a server.",
        _ => "",
    }
}

/// The configuration as it holds now, each line with its origin.
pub(crate) fn effective(texts: &Texts) -> String {
    let mut out = String::new();
    for_each_section(|section, settings| {
        let gap = if out.is_empty() { "" } else { "\n" };
        out.push_str(&format!("{gap}[{section}]\n"));
        for setting in settings {
            let (text, origin) = texts.get(section, setting.name);
            // A key without a value would not be TOML: it is left open by leaving it out.
            let mark = if text.is_empty() { "# " } else { "" };
            let line = format!("{mark}{} = {}", setting.name, literal(setting, text));
            out.push_str(&format!("{line:48} # {origin}\n"));
        }
    });
    out
}

/// All settings with what they are for.
pub(crate) fn reference() -> String {
    let mut out = String::from(HEAD);
    for_each_section(|section, settings| {
        let _ = writeln!(out, "\n## {section}\n\n{}\n", introduction(section));
        out.push_str("| key | flag | variable | default | what it is for |\n|---|---|---|---|---|\n");
        for setting in settings {
            let flag = match setting.reach {
                Reach::Everywhere => format!("`--{}`, all commands", setting.flag),
                Reach::Server => format!("`--{}`", setting.flag),
            };
            let default = match setting.default {
                "" => "—".to_owned(),
                default => format!("`{}`", literal(setting, default)),
            };
            let (name, variable, help) = (setting.name, setting.variable(), setting.help);
            let _ = writeln!(out, "| `{name}` | {flag} | `{variable}` | {default} | {help} |");
        }
    });
    out
}

const HEAD: &str = "\
# Configuration

<!-- Made by `kinfolk config --reference`; a test compares. -->

Every setting can be a flag, a variable of the environment or a key in a TOML file; a flag counts more than a variable, a
variable more than the file. The file is `--config FILE` (`KINFOLK_CONFIG`), or `./kinfolk.toml` where there is one. A key
that is not known is an error. `kinfolk config` prints what holds, and where each value came from.

```toml
[data]
folder = \"/var/lib/kinfolk\"

[http]
address = \"127.0.0.1:7400\"

[log]
keep = \"30 d\"
```

Times are written like `500 ms`, `30 s`, `10 min`, `12 h` or `7 d`, sizes like `64 MiB` or `10 GiB`. Paths are relative to the
folder in which the program runs. Flags of the tables below belong to `serve`, `demo` and `config`, if nothing else is said.
";

fn literal(setting: &Setting, text: &str) -> String {
    if setting.quoted {
        // The strings of JSON are strings of TOML too.
        serde_json::Value::from(text).to_string()
    } else {
        text.to_owned()
    }
}

fn for_each_section(mut each: impl FnMut(&str, &[Setting])) {
    for settings in SETTINGS.chunk_by(|one, next| one.section == next.section) {
        if let Some(first) = settings.first() {
            each(first.section, settings);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_is_introduced_and_stands_together() {
        let mut sections = Vec::new();
        for_each_section(|section, _| {
            assert_ne!(introduction(section), "", "{section}");
            sections.push(section.to_owned());
        });
        let count = sections.len();
        sections.sort();
        sections.dedup();
        assert_eq!(sections.len(), count);
    }
}
