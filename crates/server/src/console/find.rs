//! The search: an id leads to the user, post or comment that has it.

use kinfolk_core::comments::CommentId;

use super::prelude::*;
use super::visit::redirect;

pub(super) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    routes.add_page(Endpoint::read(Operation::Console).in_console(), "/console/find", get(find::<S>))
}

async fn find<S: Store>(visit: Visit<S>, mut query: Query) -> RestResult {
    let text = query.one("id")?.unwrap_or_default();
    let text = text.trim();
    let id = match visit.id_kind().parse(text) {
        Ok(id) => id,
        // Comments have UUIDs, whichever ids users have.
        Err(error) => match CommentId::parse(text) {
            Ok(comment) => return Ok(redirect(&markup::comment_address(comment))),
            Err(_) => return Err(Failure(error)),
        },
    };
    let counts = visit.graph().counts(EdgeKind::Follow, &[id], &visit.seen).await?;
    let has_edges = counts.iter().any(|counts| counts.following + counts.followers > 0);
    let is_post = match visit.feeds() {
        Ok(feeds) => feeds.post(id, &visit.seen).await.is_ok(),
        Err(_) => false,
    };
    // Where users have UUIDs, too, an id that nobody else has may be that of a comment.
    if !is_post
        && !has_edges
        && let (Ok(comment), Ok(threads)) = (CommentId::parse(text), visit.comments())
        && threads.read_comment(comment, visit.reader(), &visit.seen).await.is_ok()
    {
        return Ok(redirect(&markup::comment_address(comment)));
    }
    if is_post && has_edges {
        let content = html! {
            div.page-head { h1 { "Two things have the id " span.id { (id) } } }
            section.panel {
                ul.rows role="list" {
                    li { div.row-main { a href={ "/console/users/" (id) } { "The user" } } }
                    li { div.row-main { a href={ "/console/posts/" (id) } { "The post" } } }
                }
            }
        };
        return Ok(visit.page(&format!("Id {id}"), Nav::Found, &content));
    }
    Ok(redirect(&format!("/console/{}/{id}", if is_post { "posts" } else { "users" })))
}
