//! `WATCH key [key …]`: not supported.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "watch",
        summary: "is not supported",
        syntax: "key [key …]",
        example: &["following:7"],
        arity: -2,
        flags: SESSION,
        is_queued: false,
        ..Command::read(|_, _| Box::pin(async { Err(invalid("WATCH is not supported")) }))
    }
}
