//! Comments: one with what was made of it, and everything that writes or moderates. Threads are in `posts` and `thread`.

use kinfolk_core::comments::{
    Comment, CommentEdit, CommentId, CommentStatus, CommentVersion, NewComment, Parent, ParentKind,
};
use kinfolk_core::feeds::WriteOutcome;

use super::prelude::*;
use super::thread;
use crate::rest::guard::IsNewComment;

/// How many versions of a comment a page has.
const VERSIONS: usize = 50;

pub(super) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let of = |endpoint: Endpoint| endpoint.needing(Capability::Comments).in_console();
    let write = |operation| of(Endpoint::write(operation));
    let moderate = of(Endpoint::moderate(Operation::Moderate));
    routes
        .add_page(of(Endpoint::read(Operation::Console)), "/console/comments/{comment}", get(show::<S>))
        .add_page(
            write(Operation::Comment).costing(Cost::Comment),
            "/console/posts/{id}/comments",
            post(create::<S>),
        )
        .add_page(write(Operation::EditComment), "/console/comments/{comment}/edit", post(edit::<S>))
        .add_page(write(Operation::DeleteComment), "/console/comments/{comment}/delete", post(delete::<S>))
        .add_page(moderate, "/console/comments/{comment}/remove", post(remove::<S>))
        .add_page(moderate, "/console/comments/{comment}/purge", post(purge::<S>))
        .add_page(moderate, "/console/posts/{id}/lock", post(lock::<S>))
        .add_page(moderate, "/console/posts/{id}/unlock", post(unlock::<S>))
}

/// The page that a comment is read on.
fn page_of(comment: &Comment) -> String {
    thread::address_in_thread(comment).unwrap_or_else(|| markup::comment_address(comment.id))
}

async fn show<S: Store>(visit: Visit<S>, NamedComment(id): NamedComment, mut query: Query) -> RestResult {
    let threads = visit.comments()?;
    let comment = threads.read_comment(id, visit.reader(), &visit.seen).await?;
    let cursor = query.one("cursor")?;
    let page = PageRequest { limit: VERSIONS, cursor: cursor.as_deref() };
    let history = if visit.holds(Scope::Moderate) && comment.status != CommentStatus::Purged {
        Some(threads.comment_history(id, page, visit.reader(), &visit.seen).await?)
    } else {
        None
    };
    let content = html! {
        ol.crumbs aria-label="Path" {
            li { a href={ "/console/users/" (comment.author) } { "User " (comment.author) } }
            @if let Parent { kind: ParentKind::Post, id } = comment.parent {
                li { a href={ "/console/posts/" (id) } { "Post " (id) } }
            }
        }
        div.page-head {
            div {
                p.eyebrow { "Comment" }
                div.page-head-title {
                    h1.id { (id) }
                    (markup::copy(&id.to_string()))
                    @if !comment.is_active() { span.badge.badge-warn { (comment.status.name()) } }
                }
                dl.facts {
                    div { dt { "Author" } dd { (markup::user(comment.author)) } }
                    div { dt { "Written" } dd { (markup::time(comment.created_at)) } }
                    div { dt { "Version" } dd { (comment.version) } }
                    div { dt { "Replies" } dd { (markup::number(comment.reply_count)) } }
                    @if let Some(parent) = comment.reply_to {
                        div { dt { "Reply to" } dd { a.id href=(markup::comment_address(parent)) { (parent) } } }
                    }
                }
            }
            a.button href=(page_of(&comment)) { "Show in its thread" }
        }
        section.panel aria-label="The comment" { div.panel-body { (thread::body(&comment)) } }
        @if let Some(history) = &history {
            section.panel aria-labelledby="versions-title" {
                div.panel-head { h2 #versions-title { "Versions" } p { "Oldest first" } }
                ol.posts role="list" { @for version in &history.items { (version_item(version, comment.version)) } }
            }
            (markup::pager(&markup::comment_address(id), "", cursor.as_deref(), history.next.as_deref()))
        }
    };
    Ok(visit.page("Comment", Nav::Found, &content))
}

fn version_item(version: &CommentVersion, current: u32) -> Markup {
    html! {
        li {
            p.byline {
                strong { "Version " (version.version) }
                @if version.version == current { span.badge.badge-ok { "current" } }
                (markup::time(version.at))
            }
            p.comment-body { (version.body) }
        }
    }
}

async fn create<S: Store>(visit: Visit<S>, Ids([post]): Ids<1>, mut form: Form) -> RestResult {
    let new = NewComment {
        parent: Parent::post(post),
        author: visit.actor()?,
        body: form.require("body", "the text of the comment")?.into(),
        reply_to: form.take("reply_to").as_deref().map(CommentId::parse).transpose()?,
        // A page that is sent again after it was lost writes its comment once.
        idempotency_key: form.take("key").map(Into::into),
        depth_max: 0,
    };
    let written = visit.comments()?.comment(new).await?;
    let mut response =
        visit.written(&mut form, &page_of(&written.comment), Done::Commented, written.position);
    if written.is_new {
        response.extensions_mut().insert(IsNewComment);
    }
    Ok(response)
}

async fn edit<S: Store>(visit: Visit<S>, NamedComment(id): NamedComment, mut form: Form) -> RestResult {
    let version = form.require("version", "the version of the comment")?;
    let version = version
        .parse()
        .map_err(|_| Error::InvalidRequest { detail: "the version of a comment is a number".to_owned() })?;
    let edit = CommentEdit { id, version, body: form.require("body", "the text of the comment")?.into() };
    let written = visit.comments()?.edit_comment(Some(visit.actor()?), edit, &visit.seen).await?;
    Ok(visit.written(&mut form, &page_of(&written.comment), Done::CommentEdited, written.position))
}

/// The response to a change of a comment that exists.
fn changed<S: Store>(
    visit: &Visit<S>,
    id: CommentId,
    form: &mut Form,
    done: Done,
    outcome: WriteOutcome,
) -> RestResult {
    Ok(visit.written(form, &markup::comment_address(id), done, outcome.position))
}

async fn delete<S: Store>(visit: Visit<S>, NamedComment(id): NamedComment, mut form: Form) -> RestResult {
    let deleted = visit.comments()?.delete_comment(Some(visit.actor()?), id, &visit.seen).await?;
    changed(&visit, id, &mut form, Done::CommentDeleted, deleted)
}

async fn remove<S: Store>(visit: Visit<S>, NamedComment(id): NamedComment, mut form: Form) -> RestResult {
    let reason = form.require("reason", "the reason")?;
    let removed = visit.comments()?.remove_comment(id, reason.into(), visit.moderator()?).await?;
    changed(&visit, id, &mut form, Done::CommentRemoved, removed)
}

async fn purge<S: Store>(visit: Visit<S>, NamedComment(id): NamedComment, mut form: Form) -> RestResult {
    let purged = visit.comments()?.purge_comment(id, visit.moderator()?).await?;
    changed(&visit, id, &mut form, Done::CommentPurged, purged)
}

async fn lock<S: Store>(visit: Visit<S>, Ids([post]): Ids<1>, form: Form) -> RestResult {
    set_lock(&visit, post, form, true).await
}

async fn unlock<S: Store>(visit: Visit<S>, Ids([post]): Ids<1>, form: Form) -> RestResult {
    set_lock(&visit, post, form, false).await
}

async fn set_lock<S: Store>(visit: &Visit<S>, post: Id, mut form: Form, locked: bool) -> RestResult {
    let set = visit.comments()?.lock_comment_thread(Parent::post(post), locked).await?;
    let done = if locked { Done::CommentsLocked } else { Done::CommentsUnlocked };
    Ok(visit.written(&mut form, &format!("/console/posts/{post}"), done, set.position))
}
