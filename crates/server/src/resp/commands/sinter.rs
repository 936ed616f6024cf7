//! `SINTER key [key …]`: the users that are in all of some sets, by id, if they fit into one reply.

use kinfolk_core::graph::UserSet;

use super::prelude::*;
use super::smembers::MEMBERS_MAX;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "sinter",
        summary: "the users that are in all sets, up to 10,000",
        syntax: "key [key …]",
        complexity: "O(N*M) where N is the size of the smallest set and M is the number of sets",
        example: &["following:7", "following:8"],
        arity: -2,
        keys: Keys::ALL,
        operation: Operation::Common,
        cost: Cost::Rows,
        is_abandonable: true,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let sets = request.keys(1).collect::<Result<Vec<_>>>()?;
    out.ids(&collect(request, &sets).await?);
    Ok(())
}

/// All users that are in all sets.
pub(super) async fn collect<S: Store>(request: &Request<'_, S>, sets: &[UserSet]) -> Result<Vec<Id>> {
    let found = request.service.overlap(request.reading(), sets, MEMBERS_MAX).await?;
    if found.count > MEMBERS_MAX as u64 {
        return Err(invalid(format!(
            "more than {MEMBERS_MAX} users are in all of the sets, the maximum in one reply: use SINTERCARD, SSCAN, \
             or COMMON with LIMIT and CURSOR"
        )));
    }
    Ok(found.ids)
}
