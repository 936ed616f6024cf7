//! How comments look: as a tree with what the visitor may do with each, or as a flat list.

use kinfolk_core::Id;
use kinfolk_core::comments::{Comment, CommentId, CommentNode, CommentStatus, Moderator, Parent, ParentKind};

use super::prelude::*;
use super::users::Action;

/// From this depth on, replies are not indented any further, and say how deep they are.
const INDENTED_DEPTH_MAX: u8 = 6;

/// What the visitor may do in a thread.
pub(super) struct Tools<'a> {
    /// The post.
    pub(super) post: Id,
    /// The user that the visitor may write as.
    pub(super) writer: Option<Id>,
    /// Whether it may moderate.
    pub(super) moderates: bool,
    /// Whether new comments are refused.
    pub(super) is_locked: bool,
    /// The page to come back to.
    pub(super) here: &'a str,
}

/// The address of a comment within the page of its post.
pub(super) fn anchor(comment: &Comment) -> String {
    format!("comment-{}", comment.id)
}

/// The page of a post on which a comment is sure to be shown, wherever in the thread it is.
pub(super) fn address_in_thread(comment: &Comment) -> Option<String> {
    match comment.parent {
        Parent { kind: ParentKind::Post, id } => {
            Some(format!("/console/posts/{id}?comment={}#{}", comment.id, anchor(comment)))
        }
        _ => None,
    }
}

/// Whether a comment is among those of a tree.
pub(super) fn has(nodes: &[CommentNode], id: CommentId) -> bool {
    nodes.iter().any(|node| node.comment.id == id || has(&node.replies, id))
}

/// A comment without its replies.
pub(super) fn alone(tools: &Tools<'_>, comment: Comment) -> Markup {
    item(tools, &CommentNode { comment, replies: Vec::new(), next: None })
}

/// Comments with their replies, as items of a list, and a link to those that follow.
pub(super) fn items(tools: &Tools<'_>, nodes: &[CommentNode], next: Option<&str>) -> Markup {
    html! {
        @for node in nodes { (item(tools, node)) }
        @if let Some(next) = next {
            li {
                a.more-replies data-more href={ "/console/posts/" (tools.post) "?cursor=" (next) "#comments" } { "Load more comments" }
            }
        }
    }
}

fn item(tools: &Tools<'_>, CommentNode { comment, replies, next }: &CommentNode) -> Markup {
    let more = comment.reply_count.saturating_sub(replies.len() as u64);
    html! {
        li {
            article.comment.comment-gone[!comment.is_active()] id=(anchor(comment)) aria-label={ "Comment by " (comment.author) } {
                (byline(comment))
                (body(comment))
                (actions(tools, comment))
            }
            @if !replies.is_empty() || next.is_some() {
                ol role="list" {
                    @for reply in replies { (item(tools, reply)) }
                    @if let Some(next) = next {
                        li {
                            a.more-replies data-more href={ "/console/posts/" (tools.post) "?cursor=" (next) "#comments" } {
                                "Load more replies (" (markup::number(more)) " left)"
                            }
                        }
                    }
                }
            }
        }
    }
}

fn byline(comment: &Comment) -> Markup {
    html! {
        p.byline {
            (markup::user(comment.author))
            a.muted href={ "#" (anchor(comment)) } { (markup::time(comment.created_at)) }
            @if let Some(edited_at) = comment.edited_at { span { "edited " (markup::time(edited_at)) } }
            @if comment.depth > INDENTED_DEPTH_MAX { span.badge { "level " (comment.depth) } }
        }
    }
}

/// What a comment says, or why it says nothing. Moderators see what was deleted or removed.
pub(super) fn body(comment: &Comment) -> Markup {
    let by = |moderator: &Option<Moderator>| match moderator {
        Some(moderator) => format!(" ({moderator})"),
        None => String::new(),
    };
    let gone = match comment.status {
        CommentStatus::Active => None,
        CommentStatus::Deleted => Some("Deleted by its author".to_owned()),
        CommentStatus::Removed => Some(format!("Removed by a moderator{}", by(&comment.removed_by))),
        CommentStatus::Purged => Some(format!("Purged: the text is erased{}", by(&comment.removed_by))),
    };
    html! {
        @if let Some(gone) = gone {
            p.comment-body { (gone) @if let Some(reason) = &comment.reason { ": " (reason) } }
            @if let Some(text) = &comment.body {
                details { summary.hint { "Show the text, which only moderators see" } p.comment-body { (text) } }
            }
        } @else {
            p.comment-body { (comment.body.as_deref().unwrap_or_default()) }
        }
    }
}

fn actions(tools: &Tools<'_>, comment: &Comment) -> Markup {
    let (id, here) = (comment.id, address_in_thread(comment));
    let may_write = comment.is_active() && tools.writer.is_some();
    let is_own = may_write && tools.writer == Some(comment.author);
    let next = || html! { @if let Some(here) = &here { input type="hidden" name="next" value=(here); } };
    html! {
        @if may_write || tools.moderates {
            div.actions {
                @if may_write && !tools.is_locked {
                    details {
                        summary { "Reply" }
                        form.form method="post" action={ "/console/posts/" (tools.post) "/comments" } {
                            input type="hidden" name="reply_to" value=(id);
                            (markup::acting_as(tools.writer))
                            (idempotency_key())
                            div.field {
                                label for={ "reply-" (id) } { "Reply to " (comment.author) }
                                textarea id={ "reply-" (id) } name="body" required {}
                            }
                            div.button-row { button.button.button-primary.button-small { "Reply" } }
                        }
                    }
                }
                @if is_own {
                    details {
                        summary { "Edit" }
                        form.form method="post" action={ "/console/comments/" (id) "/edit" } {
                            (next())
                            input type="hidden" name="version" value=(comment.version);
                            div.field {
                                label for={ "edit-" (id) } { "Comment" }
                                textarea id={ "edit-" (id) } name="body" required { (comment.body.as_deref().unwrap_or_default()) }
                            }
                            div.button-row { button.button.button-primary.button-small { "Save" } }
                        }
                    }
                    details {
                        summary { "Delete" }
                        form.form method="post" action={ "/console/comments/" (id) "/delete" } {
                            (next())
                            p.hint { "Its place in the thread stays, without the text." }
                            div.button-row { button.button.button-danger.button-small { "Delete this comment" } }
                        }
                    }
                }
                @if tools.moderates && comment.status != CommentStatus::Purged { (moderation(comment, &next())) }
                a.action href=(markup::comment_address(id)) { (if tools.moderates { "History" } else { "Details" }) }
            }
        }
    }
}

/// What moderators do with a comment.
fn moderation(comment: &Comment, next: &Markup) -> Markup {
    let id = comment.id;
    html! {
        details {
            summary { "Moderate" }
            div.form {
                @if comment.status < CommentStatus::Removed {
                    form.form method="post" action={ "/console/comments/" (id) "/remove" } {
                        (next)
                        div.field {
                            label for={ "reason-" (id) } { "Reason" }
                            div.form-row {
                                input id={ "reason-" (id) } name="reason" required;
                                button.button.button-danger.button-small { "Remove" }
                            }
                        }
                    }
                }
                form.form method="post" action={ "/console/comments/" (id) "/purge" } data-confirm="Erase the text of this comment for good?" {
                    (next)
                    p.hint { "A purge erases the text for good, from the history and the change log, too." }
                    div.button-row { button.button.button-danger.button-small { "Purge" } }
                }
            }
        }
    }
}

/// A form that is sent twice writes once.
pub(super) fn idempotency_key() -> Markup {
    let key = getrandom::u64().map(|key| format!("console-{key:016x}"));
    html! { @if let Ok(key) = key { input type="hidden" name="key" value=(key); } }
}

/// Comments of different threads.
pub(super) fn flat(comments: &[Comment]) -> Markup {
    html! {
        ul.posts role="list" {
            @for comment in comments {
                li {
                    p.byline {
                        @if let Parent { kind: ParentKind::Post, id } = comment.parent {
                            span { "on post " a.id href={ "/console/posts/" (id) } { (id) } }
                        }
                        a.muted href=(markup::comment_address(comment.id)) { (markup::time(comment.created_at)) }
                        @if comment.edited_at.is_some() { span { "edited" } }
                        @if comment.reply_count > 0 { span.byline-end { (markup::count(comment.reply_count, "reply", "replies")) } }
                    }
                    (body(comment))
                }
            }
        }
    }
}

/// Locks or unlocks a thread.
pub(super) fn lock_button(tools: &Tools<'_>) -> Markup {
    let (verb, label) =
        if tools.is_locked { ("unlock", "Unlock comments") } else { ("lock", "Lock comments") };
    let address = format!("/console/posts/{}/{verb}", tools.post);
    Action { here: tools.here, actor: None, address, label, about: None, class: "button button-small" }
        .render()
}
