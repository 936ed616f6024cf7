//! `TYPE key`: set, or none if it is empty.

use super::prelude::*;
use super::scard::sizes;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "type",
        summary: "set, or none if it is empty",
        syntax: "key",
        complexity: "O(1)",
        example: &["following:7"],
        arity: 2,
        keys: Keys::ONE,
        operation: Operation::Counts,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let sizes = sizes(request, &[request.key(1)?]).await?;
    out.simple(if sizes.iter().any(|&size| size > 0) { "set" } else { "none" });
    Ok(())
}
