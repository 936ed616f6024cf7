//! `PING [text]`: replies `PONG`, or the text.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "ping",
        summary: "replies PONG, or its argument",
        syntax: "[message]",
        complexity: "O(1)",
        arity: -1,
        ..Command::session(run)
    }
}

fn run<S: Store>(_: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    match (arguments.len(), arguments.get(1)) {
        (1, _) => out.simple("PONG"),
        (2, Some(text)) => out.bulk(text),
        _ => return Err(wrong_number("ping")),
    }
    Ok(())
}
