//! `SCARD key`: how many users are in a set.

use kinfolk_core::graph::UserSet;

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "scard",
        summary: "how many users are in a set",
        syntax: "key",
        complexity: "O(1)",
        example: &["followers:7"],
        arity: 2,
        keys: Keys::ONE,
        flags: FAST_READ,
        operation: Operation::Counts,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let sizes = sizes(request, &[request.key(1)?]).await?;
    out.integer(sizes.into_iter().sum::<u64>());
    Ok(())
}

/// How many members each set has. Reads no list.
pub(super) async fn sizes<S: Store>(request: &Request<'_, S>, keys: &[UserSet]) -> Result<Vec<u64>> {
    let users: Vec<Id> = keys.iter().map(|key| key.of).collect();
    let counts = request.graph().counts(EdgeKind::Follow, &users, request.at_least).await?;
    Ok(keys.iter().zip(counts).map(|(key, counts)| counts.on(key.side)).collect())
}
