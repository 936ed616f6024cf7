//! `RESET`: resets the connection.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "reset",
        summary: "resets the connection",
        is_queued: false,
        ..Command::open(|session, _, out| {
            session.reset();
            out.version = session.version;
            out.simple("RESET");
            Ok(())
        })
    }
}
