//! `EXEC`: runs the queued commands. The pipeline runs them, see [`super::super::pipeline`].

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "exec",
        summary: "runs the queued commands in order; consecutive commands of one follower apply together or not at all",
        ..Command::transaction(Run::Exec)
    }
}

/// The commands to run.
pub(crate) fn take_queue<S: Store>(session: &mut Session<S>) -> Result<Box<Queue>> {
    let queue = session.transaction.take().ok_or_else(|| invalid("EXEC without MULTI"))?;
    if queue.aborted { Err(Error::TransactionAborted) } else { Ok(queue) }
}
