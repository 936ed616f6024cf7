//! `DBSIZE`: how many sets are not empty.

use super::prelude::*;
use crate::access::Scope;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "dbsize",
        summary: "how many sets are not empty",
        complexity: "O(1)",
        scope: Some(Scope::Read),
        ..Command::server(|session, _, out| {
            Box::pin(async {
                let sets = session.shared.service.set_count();
                out.integer(sets.ok_or(Error::NotAvailable { what: "counting all keys" })?);
                Ok(())
            })
        })
    }
}
