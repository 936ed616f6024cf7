//! `SMISMEMBER key member [member …]`: whether each of some users is in a set.

use kinfolk_core::graph::Edge;

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "smismember",
        summary: "whether each of some users is in a set",
        syntax: "key member [member …]",
        complexity: "O(N) where N is the number of members",
        example: &["following:7", "8", "9"],
        arity: -3,
        keys: Keys::ONE,
        flags: FAST_READ,
        operation: Operation::CheckMany,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let key = request.key(1)?;
    let mut edges = Vec::with_capacity(request.arguments.len());
    for member in request.ids(2) {
        edges.push(key.edge(member?));
    }
    check(request, &edges, out).await
}

pub(super) async fn check<S: Store>(
    request: &Request<'_, S>,
    edges: &[Edge],
    out: &mut Output,
) -> Result<()> {
    let found = request.graph().check(EdgeKind::Follow, edges, request.at_least).await?;
    out.array(found.len());
    found.into_iter().for_each(|found| out.flag(found));
    Ok(())
}
