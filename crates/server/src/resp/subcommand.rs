//! Commands that are families of others, as `CLIENT` is: finds the subcommand, refuses unknown ones in Redis' words, and
//! replies `HELP` from the same table that `COMMAND DOCS` lists.

use kinfolk_core::{Error, Result};

use super::batch::Arguments;
use super::command::takes;
use super::reply::Output;
use super::request::{invalid, is};

/// A subcommand.
#[derive(Debug)]
pub(super) struct Subcommand {
    /// In lower case.
    pub name: &'static str,
    /// A short description.
    pub summary: &'static str,
    /// Its arguments, see [`super::syntax`].
    pub syntax: &'static str,
    /// The number of arguments with both names; if negative, the minimum.
    pub arity: i8,
}

static HELP: Subcommand = Subcommand { name: "help", summary: "lists the subcommands", syntax: "", arity: 2 };

/// The subcommand that a call names: `HELP`, which is replied here, gives none.
///
/// # Errors
/// If there is no such subcommand, or it is called with a wrong number of arguments.
pub(super) fn find(
    command: &str,
    subcommands: &'static [Subcommand],
    arguments: Arguments<'_>,
    out: &mut Output,
) -> Result<Option<&'static Subcommand>> {
    let subcommand = require(command, subcommands, arguments)?;
    if subcommand.name == HELP.name {
        write_help(command, subcommands, out);
        return Ok(None);
    }
    Ok(Some(subcommand))
}

/// The subcommand that a call names.
///
/// # Errors
/// As [`find`].
pub(super) fn require(
    command: &str,
    subcommands: &'static [Subcommand],
    arguments: Arguments<'_>,
) -> Result<&'static Subcommand> {
    let name = arguments.get(1).unwrap_or_default();
    let found = subcommands.iter().chain([&HELP]).find(|subcommand| is(name, subcommand.name));
    let subcommand = found.ok_or_else(|| unknown(command, name))?;
    if !takes(subcommand.arity, arguments.len()) {
        return Err(wrong_number(&format!("{command}|{}", subcommand.name)));
    }
    Ok(subcommand)
}

/// The error of a call with a wrong number of arguments.
pub(super) fn wrong_number(command: &str) -> Error {
    invalid(format!("wrong number of arguments for '{command}' command"))
}

/// Text of a client, cut and without what could break a line.
pub(super) fn shown(text: &[u8]) -> String {
    const SHOWN_MAX: usize = 32;
    String::from_utf8_lossy(text.get(..SHOWN_MAX).unwrap_or(text)).escape_debug().to_string()
}

fn unknown(command: &str, name: &[u8]) -> Error {
    let shown = shown(name);
    invalid(format!("unknown subcommand '{shown}'. Try {} HELP.", command.to_uppercase()))
}

fn write_help(command: &str, subcommands: &[Subcommand], out: &mut Output) {
    out.array((subcommands.len() + 1) * 2 + 1);
    out.simple(&format!(
        "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        command.to_uppercase()
    ));
    for subcommand in subcommands.iter().chain([&HELP]) {
        let line = format!("{} {}", subcommand.name.to_uppercase(), subcommand.syntax);
        out.simple(line.trim_end());
        out.simple(&format!("    {}.", subcommand.summary));
    }
}
