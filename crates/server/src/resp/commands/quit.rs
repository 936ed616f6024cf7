//! `QUIT`: ends the connection.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "quit",
        summary: "ends the connection",
        arity: -1,
        is_queued: false,
        ..Command::open(|session, _, out| {
            session.closing = true;
            out.ok();
            Ok(())
        })
    }
}
