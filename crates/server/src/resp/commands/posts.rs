//! `POST`, `DELPOST`, `POSTS`, `FEED`: posts, and the feeds that are made of them. Posts are only parsed and allowed
//! here; they are registered together with their neighbours, see [`super::super::writes`].

use kinfolk_core::feeds::NewPost;
use kinfolk_core::{Frontier, Id, Position, Result, Store, Timestamp};

use super::super::batch::Arguments;
use super::super::reply::Output;
use super::super::table::Read;
use super::lists::page;
use super::{Request, is, number, options, syntax_error, text};
use crate::payload;
use crate::service::Service;

/// `POST author [ID id] [AT milliseconds] [PAYLOAD json] [KEY key]`: answers the post's id and the consistency token.
pub fn parse<S: Store>(author: Id, service: &Service<S>, arguments: Arguments<'_>) -> Result<NewPost> {
    let feeds = service.feeds()?;
    let mut post = NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None };
    for option in options(arguments, 2) {
        match option? {
            (name, value) if is(name, "ID") => post.id = Some(service.id_kind().parse_bytes(value)?),
            (name, value) if is(name, "AT") => post.created_at = Some(Timestamp::from_millis(number(value)?)),
            (name, value) if is(name, "PAYLOAD") => {
                post.payload = payload::compact(value, feeds.payload_bytes_max())?;
            }
            (name, value) if is(name, "KEY") => post.idempotency_key = Some(text(value)?.into()),
            _ => return Err(syntax_error()),
        }
    }
    service.limits.take_change(author)?;
    Ok(post)
}

/// `DELPOST author id`: the author deletes a post. Returns where that is in the log.
pub async fn delete<S: Store>(
    actor: Option<Id>,
    service: &Service<S>,
    arguments: Arguments<'_>,
    at_least: &Frontier,
) -> Result<Position> {
    let author = actor.ok_or_else(syntax_error)?;
    let id = service.id_kind().parse_bytes(arguments.get(2).ok_or_else(syntax_error)?)?;
    service.limits.take_change(author)?;
    Ok(service.feeds()?.delete_post(Some(author), id, at_least).await?.position)
}

/// `FEED user [LIMIT n] [CURSOR c]` and `POSTS author …`: an array of posts, each an id, its author, milliseconds since
/// 1970, and its payload or null; then the cursor of the next page, or null at the end.
pub async fn list<S: Store>(list: Read, request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let of = request.id(1)?;
    let page = page(request, 2)?;
    let feeds = request.service.feeds()?;
    let page = match list {
        Read::Feed => feeds.feed(of, page, request.at_least).await?,
        _ => feeds.posts_by(of, page, request.at_least).await?,
    };
    out.array(2);
    out.array(page.items.len());
    for post in page.items {
        out.array(4);
        out.id(post.id);
        out.id(post.author);
        out.integer(post.created_at.millis());
        out.bulk_or_null(post.payload.as_deref());
    }
    out.bulk_or_null(page.next);
    Ok(())
}
