//! `SINTERCARD numkeys key [key …] [LIMIT limit]`: how many users are in all of some sets.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "sintercard",
        summary: "how many users are in all sets",
        example: &["1", "following:7"],
        arity: -3,
        operation: Operation::Common,
        cost: Cost::Rows,
        is_abandonable: true,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let count: usize = number(request.argument(1)?)?;
    if count == 0 || count > request.arguments.len() - 2 {
        return Err(invalid("the number of keys must be at least 1 and at most the keys that follow"));
    }
    let sets = request.keys(2).take(count).collect::<Result<Vec<_>>>()?;
    let mut limit = 0;
    for option in request.options(2 + count) {
        match option? {
            option if option.is("LIMIT") => limit = number(option.value)?,
            _ => return Err(syntax_error()),
        }
    }
    let found = request.service.overlap(request.reading(), &sets, 0).await?.count;
    // As in Redis, 0 means no limit.
    out.integer(if limit == 0 { found } else { found.min(limit) });
    Ok(())
}
