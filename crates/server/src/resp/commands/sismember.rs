//! `SISMEMBER key member`: whether a user is in a set.

use kinfolk_core::graph::Edge;

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "sismember",
        summary: "whether a user is in a set",
        syntax: "key member",
        complexity: "O(1)",
        example: &["following:7", "8"],
        arity: 3,
        keys: Keys::ONE,
        ..Command::check(edge, None)
    }
}

fn edge<S: Store>(request: &Request<'_, S>) -> Result<Edge> {
    Ok(request.key(1)?.edge(request.id(2)?))
}
