//! `UNWATCH`: forgets watched keys. There are none, as `WATCH` is not supported, so it always succeeds.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "unwatch",
        summary: "forgets watched keys; there are none",
        group: "transactions",
        ..Command::session(|_, _, out| {
            out.ok();
            Ok(())
        })
    }
}
