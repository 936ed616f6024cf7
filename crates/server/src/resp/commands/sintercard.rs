//! `SINTERCARD numkeys key [key …] [LIMIT limit]`: how many users are in all of some sets.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "sintercard",
        summary: "how many users are in all sets",
        syntax: "numkeys key [key …] [LIMIT limit]",
        complexity: "O(N*M) where N is the size of the smallest set and M is the number of sets",
        example: &["1", "following:7"],
        arity: -3,
        keys: Keys::COUNTED,
        flags: MOVABLE_READ,
        operation: Operation::Common,
        cost: Cost::Rows,
        is_abandonable: true,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let count = number::<usize>(request.argument(1)?).unwrap_or(0);
    if count == 0 {
        return Err(invalid("numkeys should be greater than 0"));
    }
    if count > request.arguments.len() - 2 {
        return Err(invalid("Number of keys can't be greater than number of args"));
    }
    let sets = request.keys(2).take(count).collect::<Result<Vec<_>>>()?;
    let mut limit = 0;
    for option in request.options(2 + count) {
        match option? {
            option if option.is("LIMIT") => {
                limit = number(option.value).map_err(|_| invalid("LIMIT can't be negative"))?;
            }
            _ => return Err(syntax_error()),
        }
    }
    let found = request.service.overlap(request.reading(), &sets, 0).await?.count;
    // As in Redis, 0 means no limit.
    out.integer(if limit == 0 { found } else { found.min(limit) });
    Ok(())
}
