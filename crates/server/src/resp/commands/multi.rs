//! `MULTI`: queues the commands that follow.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "multi",
        summary: "queues the commands that follow",
        ..Command::transaction(Run::Session(run))
    }
}

fn run<S: Store>(session: &mut Session<S>, _: Arguments<'_>, out: &mut Output) -> Result<()> {
    if session.transaction.is_some() {
        return Err(invalid("MULTI calls can not be nested"));
    }
    session.open_transaction();
    out.ok();
    Ok(())
}
