//! `DISMISS actor user`: the user is not suggested to the actor again. Replies the consistency token.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "dismiss",
        summary: "stops suggesting a user to another; replies the consistency token",
        syntax: "viewer user",
        example: &["7", "8"],
        operation: Operation::Dismiss,
        capability: Some(Capability::Suggestions),
        ..Command::commit(|actor, target, request| Box::pin(run(actor, target, request)))
    }
}

async fn run<S: Store>(actor: Actor, target: Id, request: &Request<'_, S>) -> Result<Position> {
    Ok(request.suggestions()?.dismiss(actor.id(), target).await?.position)
}
