//! `WATCH key [key …]`: not available.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "watch",
        summary: "is not available yet",
        example: &["following:7"],
        arity: -2,
        flags: SESSION,
        is_queued: false,
        ..Command::read(|_, _| Box::pin(async { Err(Error::NotAvailable { what: "WATCH" }) }))
    }
}
