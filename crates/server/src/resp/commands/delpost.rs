//! `DELPOST author id`: the author deletes a post. Replies the consistency token.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "delpost",
        summary: "deletes a post of a user; replies the consistency token",
        syntax: "author post",
        example: &["7", "1"],
        operation: Operation::DeletePost,
        capability: Some(Capability::Feeds),
        ..Command::commit(|author, id, request| Box::pin(run(author, id, request)))
    }
}

async fn run<S: Store>(author: Actor, id: Id, request: &Request<'_, S>) -> Result<Position> {
    let deleted = request.feeds()?.delete_post(Some(author.id()), id, request.at_least).await?;
    Ok(deleted.position)
}
