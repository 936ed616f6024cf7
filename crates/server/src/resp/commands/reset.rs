//! `RESET`: brings the connection back to its start.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "reset",
        summary: "brings the connection back to its start",
        is_queued: false,
        ..Command::open(|session, _, out| {
            session.reset();
            out.version = session.version;
            out.simple("RESET");
            Ok(())
        })
    }
}
