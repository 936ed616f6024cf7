//! `COMMAND [subcommand]`: the table of commands, as clients read it.

mod documentation;
mod keys;

use super::super::glob::Pattern;
use super::prelude::*;

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand { name: "count", summary: "how many commands there are", syntax: "", arity: 2 },
    Subcommand {
        name: "docs",
        summary: "documents commands with their arguments",
        syntax: "[command-name …]",
        arity: -2,
    },
    Subcommand { name: "getkeys", summary: "the keys of a call", syntax: "command [arg …]", arity: -3 },
    Subcommand {
        name: "getkeysandflags",
        summary: "the keys of a call and what it does with each",
        syntax: "command [arg …]",
        arity: -3,
    },
    Subcommand { name: "info", summary: "describes commands", syntax: "[command-name …]", arity: -2 },
    Subcommand {
        name: "list",
        summary: "the names of the commands",
        syntax: "[FILTERBY PATTERN pattern]",
        arity: -2,
    },
];

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "command",
        summary: "describes the commands",
        subcommands: SUBCOMMANDS,
        example: &["count"],
        arity: -1,
        group: "server",
        ..Command::session(run)
    }
}

fn run<S: Store>(_: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    let commands = Command::<S>::ALL;
    if arguments.len() == 1 {
        list(commands, out);
        return Ok(());
    }
    let Some(subcommand) = subcommand::find("command", SUBCOMMANDS, arguments, out)? else { return Ok(()) };
    let names = arguments.skip(2);
    match subcommand.name {
        "count" => out.integer(commands.len()),
        "docs" => documentation::write::<S>(names, out),
        "getkeys" => keys::write_keys::<S>(names, false, out)?,
        "getkeysandflags" => keys::write_keys::<S>(names, true, out)?,
        "info" if names.len() == 0 => list(commands, out),
        "info" => {
            out.array(names.len());
            for name in names.iter() {
                match Command::<S>::find(name) {
                    Some(command) => entry(command, out),
                    None => out.null_array(),
                }
            }
        }
        _ => list_names(commands, names, out)?,
    }
    Ok(())
}

/// All names, or those that a filter lets through.
fn list_names<S: Store>(commands: &[Command<S>], filter: Arguments<'_>, out: &mut Output) -> Result<()> {
    let word = |number: usize| filter.get(number).unwrap_or_default();
    let is_pattern = filter.len() == 3 && is(word(0), "FILTERBY") && is(word(1), "PATTERN");
    if filter.len() > 0 && !is_pattern {
        return Err(syntax_error());
    }
    let lowercase = word(2).to_ascii_lowercase();
    let pattern = is_pattern.then(|| Pattern::new(&lowercase)).transpose()?;
    let is_listed = |name: &&str| pattern.is_none_or(|pattern| pattern.matches(name.as_bytes()));
    let names: Vec<&str> = commands.iter().map(|command| command.name).filter(is_listed).collect();
    out.array(names.len());
    names.iter().for_each(|name| out.bulk(name));
    Ok(())
}

fn list<S: Store>(commands: &[Command<S>], out: &mut Output) {
    out.array(commands.len());
    commands.iter().for_each(|command| entry(command, out));
}

/// Name, arity, flags, first key, last key, step; then categories and tips, which are empty, key specifications and
/// subcommands.
fn entry<S: Store>(command: &Command<S>, out: &mut Output) {
    // A client that looks for keys at these places must not find the number of keys.
    let places = if command.keys.is_counted { Keys::NONE } else { command.keys };
    head(command.name, command.arity, command.flags, places, out);
    out.set(0);
    out.array(0);
    keys::write_specification(command, out);
    out.array(command.subcommands.len());
    for subcommand in command.subcommands {
        let name = format!("{}|{}", command.name, subcommand.name);
        head(&name, subcommand.arity, command.flags, places, out);
        out.set(0);
        (0..3).for_each(|_| out.array(0));
    }
}

fn head(name: &str, arity: i8, flags: &[&str], places: Keys, out: &mut Output) {
    out.array(10);
    out.bulk(name);
    out.integer(arity);
    out.set(flags.len());
    flags.iter().for_each(|flag| out.simple(flag));
    out.integer(places.first);
    out.integer(places.last);
    out.integer(places.step);
}
