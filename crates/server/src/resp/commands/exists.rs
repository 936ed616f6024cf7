//! `EXISTS key [key …]`: how many sets have members. One that is named twice counts twice, as in Redis.

use super::prelude::*;
use super::scard::sizes;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "exists",
        summary: "how many of some sets are not empty",
        syntax: "key [key …]",
        complexity: "O(N) where N is the number of keys",
        example: &["following:7"],
        arity: -2,
        keys: Keys::ALL,
        operation: Operation::Counts,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let keys = request.keys(1).collect::<Result<Vec<_>>>()?;
    out.integer(sizes(request, &keys).await?.iter().filter(|&&size| size > 0).count());
    Ok(())
}
