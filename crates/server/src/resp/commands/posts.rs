//! `POSTS author [LIMIT n] [CURSOR c]`: a page of a user's own posts.

use super::feed::write_page;
use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "posts",
        summary: "a user's own posts, newest first",
        syntax: "user [LIMIT limit] [CURSOR cursor]",
        example: &["7"],
        arity: -2,
        operation: Operation::Posts,
        capability: Some(Capability::Feeds),
        is_abandonable: true,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let (author, page) = (request.id(1)?, request.page(2)?);
    write_page(request.feeds()?.posts_by(author, page, request.at_least).await?, out);
    Ok(())
}
