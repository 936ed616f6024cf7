//! `SELECT 0`: chooses the only database.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "select",
        summary: "selects the database; there is only number 0",
        syntax: "index",
        example: &["0"],
        arity: 2,
        ..Command::session(run)
    }
}

fn run<S: Store>(_: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    match number::<u64>(arguments.get(1).unwrap_or_default())? {
        0 => out.ok(),
        _ => return Err(invalid("there is one database, number 0")),
    }
    Ok(())
}
