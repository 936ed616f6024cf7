//! `FOLLOWERS user [LIMIT n] [CURSOR c]`: a page of a user's followers.

use super::following::write_page;
use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "followers",
        summary: "a user's followers, newest first",
        syntax: "user [LIMIT limit] [CURSOR cursor]",
        example: &["7"],
        arity: -2,
        operation: Operation::Followers,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let (of, page) = (request.id(1)?, request.page(2)?);
    write_page(request.graph().followers(EdgeKind::Follow, of, page, request.at_least).await?, out);
    Ok(())
}
