//! `COMMAND`: the table of commands, as clients read it.

use kinfolk_core::Result;

use super::super::batch::Arguments;
use super::super::reply::Output;
use super::super::table::{COMMANDS, Command};
use super::{invalid, is};

/// Runs `COMMAND` or a subcommand.
pub fn run(arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    let names = arguments.skip(2);
    match arguments.get(1) {
        None => list(out),
        Some(word) if is(word, "COUNT") => out.integer(COMMANDS.len()),
        Some(word) if is(word, "LIST") => {
            out.array(COMMANDS.len());
            COMMANDS.iter().for_each(|command| out.bulk(command.name));
        }
        Some(word) if is(word, "INFO") && names.len() == 0 => list(out),
        Some(word) if is(word, "INFO") => {
            out.array(names.len());
            for name in names.iter() {
                match Command::find(name) {
                    Some(command) => entry(command, out),
                    None => out.null_array(),
                }
            }
        }
        Some(word) if is(word, "DOCS") => {
            let named =
                |command: &&Command| names.len() == 0 || names.iter().any(|name| is(name, command.name));
            let found: Vec<&Command> = COMMANDS.iter().filter(named).collect();
            out.map(found.len());
            found.into_iter().for_each(|command| documentation(command, out));
        }
        Some(_) => return Err(invalid("COMMAND has COUNT, DOCS, INFO and LIST")),
    }
    Ok(())
}

fn list(out: &mut Output) {
    out.array(COMMANDS.len());
    COMMANDS.iter().for_each(|command| entry(command, out));
}

/// Name, arity, flags, first key, last key, step; then categories, tips, key specifications and subcommands, which
/// are empty.
fn entry(command: &Command, out: &mut Output) {
    out.array(10);
    out.bulk(command.name);
    out.integer(command.arity);
    out.set(command.flags().len());
    command.flags().iter().for_each(|flag| out.simple(flag));
    let (first, last, step) = command.keys;
    out.integer(first);
    out.integer(last);
    out.integer(step);
    out.set(0);
    (0..3).for_each(|_| out.array(0));
}

fn documentation(command: &Command, out: &mut Output) {
    out.bulk(command.name);
    out.map(3);
    out.bulk("summary");
    out.bulk(command.summary);
    out.bulk("since");
    out.bulk("1.0.0");
    out.bulk("group");
    out.bulk(command.group());
}
