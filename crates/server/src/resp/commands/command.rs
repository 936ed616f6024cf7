//! `COMMAND [subcommand]`: the table of commands, as clients read it.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "command",
        summary: "describes the commands",
        example: &["count"],
        arity: -1,
        group: "server",
        ..Command::session(run)
    }
}

fn run<S: Store>(_: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    let names = arguments.skip(2);
    let commands = Command::<S>::ALL;
    match arguments.get(1) {
        None => list(commands, out),
        Some(word) if is(word, "COUNT") => out.integer(commands.len()),
        Some(word) if is(word, "LIST") => {
            out.array(commands.len());
            commands.iter().for_each(|command| out.bulk(command.name));
        }
        Some(word) if is(word, "INFO") && names.len() == 0 => list(commands, out),
        Some(word) if is(word, "INFO") => {
            out.array(names.len());
            for name in names.iter() {
                match Command::<S>::find(name) {
                    Some(command) => entry(command, out),
                    None => out.null_array(),
                }
            }
        }
        Some(word) if is(word, "DOCS") => {
            let named =
                |command: &&Command<S>| names.len() == 0 || names.iter().any(|name| is(name, command.name));
            let found: Vec<&Command<S>> = commands.iter().filter(named).collect();
            out.map(found.len());
            found.into_iter().for_each(|command| documentation(command, out));
        }
        Some(_) => return Err(invalid("COMMAND has COUNT, DOCS, INFO and LIST")),
    }
    Ok(())
}

fn list<S: Store>(commands: &[Command<S>], out: &mut Output) {
    out.array(commands.len());
    commands.iter().for_each(|command| entry(command, out));
}

/// Name, arity, flags, first key, last key, step; then categories, tips, key specifications and subcommands, which
/// are empty.
fn entry<S: Store>(command: &Command<S>, out: &mut Output) {
    out.array(10);
    out.bulk(command.name);
    out.integer(command.arity);
    out.set(command.flags.len());
    command.flags.iter().for_each(|flag| out.simple(flag));
    out.integer(command.keys.first);
    out.integer(command.keys.last);
    out.integer(command.keys.step);
    out.set(0);
    (0..3).for_each(|_| out.array(0));
}

fn documentation<S: Store>(command: &Command<S>, out: &mut Output) {
    out.bulk(command.name);
    out.map(3);
    out.bulk("summary");
    out.bulk(command.summary);
    out.bulk("since");
    out.bulk("1.0.0");
    out.bulk("group");
    out.bulk(if command.keys.first > 0 { "set" } else { command.group });
}
