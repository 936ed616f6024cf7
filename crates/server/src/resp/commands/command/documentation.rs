//! `COMMAND DOCS [name …]`: what commands do and take, in the structure that `redis-cli` builds its hints from.

use super::super::super::syntax;
use super::super::prelude::*;

/// Documents the named commands, or all. An unknown name is left out, as in Redis.
pub(super) fn write<S: Store>(names: Arguments<'_>, out: &mut Output) {
    let is_named =
        |command: &&Command<S>| names.len() == 0 || names.iter().any(|name| is(name, command.name));
    let found: Vec<&Command<S>> = Command::<S>::ALL.iter().filter(is_named).collect();
    out.map(found.len());
    found.into_iter().for_each(|command| write_command(command, out));
}

fn write_command<S: Store>(command: &Command<S>, out: &mut Output) {
    let group = if command.keys.first > 0 && command.group == "graph" { "set" } else { command.group };
    let entry = Entry {
        name: command.name,
        summary: command.summary,
        group,
        complexity: command.complexity,
        syntax: command.syntax,
    };
    entry.write(usize::from(!command.subcommands.is_empty()), out);
    if command.subcommands.is_empty() {
        return;
    }
    out.bulk("subcommands");
    out.map(command.subcommands.len());
    for Subcommand { name, summary, syntax, .. } in command.subcommands {
        let name = &format!("{}|{name}", command.name);
        Entry { name, summary, group, complexity: "", syntax }.write(0, out);
    }
}

/// What is documented of a command or a subcommand.
struct Entry<'a> {
    name: &'a str,
    summary: &'a str,
    group: &'a str,
    complexity: &'a str,
    syntax: &'a str,
}

impl Entry<'_> {
    /// Writes it as a map, to which so many more entries are added.
    fn write(&self, more: usize, out: &mut Output) {
        let Self { name, summary, group, complexity, syntax } = self;
        out.bulk(name);
        out.map(3 + usize::from(!complexity.is_empty()) + usize::from(!syntax.is_empty()) + more);
        for (field, value) in
            [("summary", summary), ("since", &"1.0.0"), ("group", group), ("complexity", complexity)]
        {
            if !value.is_empty() {
                out.bulk(field);
                out.bulk(value);
            }
        }
        if !syntax.is_empty() {
            out.bulk("arguments");
            syntax::write_arguments(syntax, out);
        }
    }
}
