//! `FOLLOWS follower followee [followee …]`: whether a user follows others. An integer for one, an array for more.

use kinfolk_core::graph::Edge;

use super::prelude::*;
use super::smismember;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "follows",
        summary: "whether a user follows others",
        syntax: "follower followee [followee …]",
        complexity: "O(N) where N is the number of followees",
        example: &["7", "8"],
        arity: -3,
        ..Command::check(edge, Some(|request, out| Box::pin(run(request, out))))
    }
}

fn edge<S: Store>(request: &Request<'_, S>) -> Result<Edge> {
    Ok(Edge { follower: request.id(1)?, followee: request.id(2)? })
}

/// For more than one followee.
async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let follower = request.id(1)?;
    let edge = |followee: Result<_>| Ok(Edge { follower, followee: followee? });
    let edges = request.ids(2).map(edge).collect::<Result<Vec<_>>>()?;
    smismember::check(request, &edges, out).await
}
