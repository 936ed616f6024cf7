//! `ECHO text`: replies the text.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "echo",
        summary: "replies its argument",
        syntax: "message",
        complexity: "O(1)",
        example: &["hello"],
        arity: 2,
        ..Command::session(|_, arguments, out| {
            out.bulk(arguments.get(1).unwrap_or_default());
            Ok(())
        })
    }
}
