//! `TIME`: the server's clock, in seconds since 1970 and microseconds.

use std::time::{SystemTime, UNIX_EPOCH};

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "time",
        summary: "the server's time",
        complexity: "O(1)",
        group: "server",
        ..Command::session(|_, _, out| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            out.array(2);
            out.bulk(now.as_secs().to_string());
            out.bulk(now.subsec_micros().to_string());
            Ok(())
        })
    }
}
