//! `COUNTS user [user …]`: how many users each follows and is followed by. For more than one user, an array of such pairs.

use kinfolk_core::graph::Counts;

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "counts",
        summary: "how many users each of some users follows and is followed by",
        syntax: "user [user …]",
        complexity: "O(N) where N is the number of users",
        example: &["7"],
        arity: -2,
        operation: Operation::Counts,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let users = request.ids(1).collect::<Result<Vec<_>>>()?;
    let counts = request.graph().counts(EdgeKind::Follow, &users, request.at_least).await?;
    if counts.len() > 1 {
        out.array(counts.len());
    }
    for Counts { following, followers } in counts {
        out.array(2);
        out.integer(following);
        out.integer(followers);
    }
    Ok(())
}
