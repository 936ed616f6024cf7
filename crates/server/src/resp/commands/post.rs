//! `POST author [ID id] [AT milliseconds] [PAYLOAD json] [KEY key]`: registers a post. Replies its id and the
//! consistency token.

use kinfolk_core::Timestamp;
use kinfolk_core::feeds::NewPost;

use super::super::writes::Change;
use super::prelude::*;
use crate::payload;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "post",
        summary: "registers a post; replies its id and the consistency token",
        syntax: "author [ID post] [AT milliseconds] [PAYLOAD json] [KEY idempotency-key]",
        example: &["7"],
        arity: -2,
        operation: Operation::Post,
        capability: Some(Capability::Feeds),
        ..Command::write(ActorIn::Id, parse)
    }
}

fn parse<S: Store>(author: Actor, request: &Request<'_, S>) -> Result<Change> {
    let (id, created_at, payload, idempotency_key) = (None, None, None, None);
    let mut post = NewPost { id, author: author.id(), created_at, payload, idempotency_key };
    for option in request.options(2) {
        match option? {
            option if option.is("ID") => post.id = Some(request.service.id_kind().parse_bytes(option.value)?),
            option if option.is("AT") => {
                post.created_at = Some(Timestamp::from_millis(number(option.value)?));
            }
            option if option.is("PAYLOAD") => {
                post.payload = payload::compact(option.value, request.feeds()?.payload_bytes_max())?;
            }
            option if option.is("KEY") => post.idempotency_key = Some(text(option.value)?.into()),
            _ => return Err(syntax_error()),
        }
    }
    Ok(Change::Post(post))
}
