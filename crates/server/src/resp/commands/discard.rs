//! `DISCARD`: drops the queued commands.

use super::super::memory::Purpose;
use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "discard",
        summary: "drops the queued commands",
        ..Command::transaction(Run::Session(run))
    }
}

fn run<S: Store>(session: &mut Session<S>, _: Arguments<'_>, out: &mut Output) -> Result<()> {
    session.transaction.take().ok_or_else(|| invalid("DISCARD without MULTI"))?;
    session.memory.release(Purpose::Queue);
    out.ok();
    Ok(())
}
