//! `FRIENDS user [LIMIT n] [CURSOR c]`: a page of the followers that a user follows back.

use super::following::write_page;
use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "friends",
        summary: "a user's followers that it follows back, newest first",
        syntax: "user [LIMIT limit] [CURSOR cursor]",
        example: &["7"],
        arity: -2,
        operation: Operation::Friends,
        cost: Cost::Rows,
        is_abandonable: true,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let (of, page) = (request.id(1)?, request.page(2)?);
    write_page(request.service.friends(request.reading(), of, page).await?, out);
    Ok(())
}
