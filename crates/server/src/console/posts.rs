//! A post with its thread, writing and deleting posts, and how posts look in lists. What is done with comments is in `comments`.

use kinfolk_core::comments::{Comment, CommentId, CommentNode, CommentThreadState, Parent, TreeShape};
use kinfolk_core::feeds::{Delivery, NewPost, Post, PostState, PostStore};

use super::prelude::*;
use super::thread::{self, Tools};
use super::{lists, page};
use crate::payload;

/// How many comments of the first level are read at once.
const COMMENTS: usize = 20;
/// How much of each of them.
const SHAPE: TreeShape = TreeShape { depth: 8, replies: 4 };
/// How many levels a part of a thread has that is read alone.
const PART: TreeShape = TreeShape { depth: 8, replies: 10 };

pub(super) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let of = |endpoint: Endpoint| endpoint.needing(Capability::Feeds).in_console();
    routes
        .add_page(of(Endpoint::read(Operation::Console)), "/console/posts/{id}", get(show::<S>))
        .add_page(
            of(Endpoint::write(Operation::Post).by(ActorRule::Author)),
            "/console/posts",
            post(register::<S>),
        )
        .add_page(of(Endpoint::write(Operation::DeletePost)), "/console/posts/{id}/delete", post(delete::<S>))
}

/// A post and how it reaches the followers of its author.
async fn read<S: Store>(visit: &Visit<S>, id: Id) -> Result<(Post, Delivery)> {
    let found = visit.feeds()?.store().posts(&[id], &visit.seen).await?.into_iter().next().flatten();
    match found {
        Some(PostState::Present(post, delivery)) => Ok((post, delivery)),
        Some(PostState::Deleted { author }) => {
            Err(Error::NotFound { detail: format!("post {id} of user {author} was deleted") })
        }
        None => Err(Error::NotFound { detail: format!("there is no post {id}") }),
    }
}

async fn show<S: Store>(visit: Visit<S>, Ids([id]): Ids<1>, mut query: Query) -> RestResult {
    let (post, delivery) = read(&visit, id).await?;
    let cursor = query.one("cursor")?;
    let is_fragment = query.one("fragment")?.is_some();
    let (threads, parent) = (visit.comments()?, Parent::post(id));
    let state = threads.thread_state(parent, &visit.seen).await?;
    let request = PageRequest { limit: COMMENTS, cursor: cursor.as_deref() };
    let shape = if cursor.is_some() { PART } else { SHAPE };
    let shape = TreeShape { depth: shape.depth.min(threads.depth_max()), ..shape };
    let tree = threads.comment_tree(parent, shape, request, visit.reader(), &visit.seen).await?;
    let tools = Tools {
        post: id,
        writer: visit.writer(),
        moderates: visit.holds(Scope::Moderate),
        is_locked: state.locked,
        here: &visit.here,
    };
    let items = thread::items(&tools, &tree.items, tree.next.as_deref());
    if is_fragment {
        return Ok(page::respond(axum::http::StatusCode::OK, items));
    }
    let named = query.one("comment")?.map(|text| CommentId::parse(&text)).transpose()?;
    let named = match named.filter(|&named| !thread::has(&tree.items, named)) {
        Some(named) => read_named(&visit, parent, named).await?,
        None => None,
    };
    let counts = visit.graph().counts(EdgeKind::Follow, &[post.author], &visit.seen).await?;
    let followers = counts.first().map_or(0, |counts| counts.followers);
    let content = html! {
        (head(&visit, &post, &delivered(delivery, followers), state))
        section.panel aria-labelledby="payload-title" {
            div.panel-head { h2 #payload-title { "Payload" } }
            div.panel-body { (payload_text(&post)) }
        }
        @if let Some(comment) = named { (named_comment(&tools, comment)) }
        (comments(&tools, &tree.items, &items, state, cursor.is_some()))
    };
    Ok(visit.page_with_script(&format!("Post {id}"), Nav::Found, &content, Some("thread.js")))
}

/// A comment that the address names, if it is one of this thread.
async fn read_named<S: Store>(visit: &Visit<S>, parent: Parent, id: CommentId) -> Result<Option<Comment>> {
    match visit.comments()?.read_comment(id, visit.reader(), &visit.seen).await {
        Ok(comment) => Ok(Some(comment).filter(|comment| comment.parent == parent)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A comment of a part of the thread that is not on the page, such as the one that was just written.
fn named_comment(tools: &Tools<'_>, comment: Comment) -> Markup {
    let reply_to = comment.reply_to;
    html! {
        section.panel aria-labelledby="named-title" data-named {
            div.panel-head {
                h2 #named-title { "This comment" }
                @if let Some(parent) = reply_to { p { a href=(markup::comment_address(parent)) { "What it replies to" } } }
            }
            ol.thread role="list" { (thread::alone(tools, comment)) }
        }
    }
}

/// How a post reaches its readers. Inboxes were written when it was posted, so the number is only about as many.
fn delivered(delivery: Delivery, followers: u64) -> String {
    let followers = markup::count(followers, "follower", "followers");
    match delivery {
        Delivery::Push => format!("pushed to inboxes; its author has {followers} now"),
        Delivery::Pull => format!("pulled when followers read their feeds; its author has {followers} now"),
    }
}

fn head<S: Store>(visit: &Visit<S>, post: &Post, delivery: &str, state: CommentThreadState) -> Markup {
    html! {
        ol.crumbs aria-label="Path" {
            li { a href=(lists::address(post.author)) { "User " (post.author) } }
            li { a href={ (lists::address(post.author)) "/posts" } { "Posts" } }
        }
        div.page-head {
            div {
                p.eyebrow { "Post" }
                div.page-head-title {
                    h1.id { (post.id) }
                    (markup::copy(&post.id.to_string()))
                    @if state.locked { span.badge.badge-warn { "Comments locked" } }
                }
                dl.facts {
                    div { dt { "Author" } dd { (markup::user(post.author)) } }
                    div { dt { "Posted" } dd { (markup::time(post.created_at)) } }
                    div { dt { "Delivery" } dd { (delivery) } }
                    div { dt { "Comments" } dd { (markup::number(state.count)) } }
                }
            }
            @if visit.acts_as(post.author) {
                details.reveal {
                    summary.button { "Delete…" }
                    form.form method="post" action={ "/console/posts/" (post.id) "/delete" } {
                        p.hint { "Its comments go with it, and its id cannot be used again." }
                        div.button-row { button.button.button-danger { "Delete post" } }
                    }
                }
            }
        }
    }
}

fn comments(
    tools: &Tools<'_>,
    nodes: &[CommentNode],
    items: &Markup,
    state: CommentThreadState,
    is_part: bool,
) -> Markup {
    html! {
        section.panel #comments aria-labelledby="comments-title" {
            div.panel-head {
                h2 #comments-title { "Comments " span.count { (markup::number(state.count)) } }
                p.hidden-visually role="status" data-thread-status {}
                @if is_part { p { a href={ "/console/posts/" (tools.post) "#comments" } { "The whole thread" } } }
                @if tools.moderates { (thread::lock_button(tools)) }
            }
            @if nodes.is_empty() {
                @if is_part {
                    (markup::empty("No further comments", "The thread ends here."))
                } @else {
                    (markup::empty("No comments yet", "The first one appears here."))
                }
            } @else {
                ol.thread role="list" { (items) }
            }
            @match tools.writer {
                Some(writer) if !tools.is_locked => {
                    form.panel-foot.form method="post" action={ "/console/posts/" (tools.post) "/comments" } {
                        (markup::acting_as(tools.writer))
                        (thread::idempotency_key())
                        div.field {
                            label for="new-comment" { "New comment as " (writer) }
                            textarea #new-comment name="body" required {}
                        }
                        div.button-row { button.button.button-primary { "Comment" } }
                    }
                }
                _ if tools.is_locked => p.panel-foot { "The comments are locked: new ones are refused." },
                _ => {}
            }
        }
    }
}

/// The payload of a post.
fn payload_text(post: &Post) -> Markup {
    html! {
        @match &post.payload {
            Some(json) => pre.payload data-json { (markup::pretty(json)) },
            None => p.muted { "No payload." },
        }
    }
}

/// Posts, newest first, with their authors where they have different ones.
pub(super) fn list(posts: &[Post], with_authors: bool) -> Markup {
    html! {
        ul.posts role="list" {
            @for post in posts {
                li {
                    p.byline {
                        @if with_authors { (markup::user(post.author)) }
                        (markup::time(post.created_at))
                        a.byline-end href={ "/console/posts/" (post.id) } aria-label={ "Post " (post.id) } { span.id { (post.id) } }
                    }
                    (payload_text(post))
                }
            }
        }
    }
}

/// The form for a new post.
pub(super) fn new_post(here: &str, author: Id) -> Markup {
    html! {
        section.panel aria-labelledby="write-title" {
            div.panel-head { h2 #write-title { "New post" } }
            form.panel-body.form method="post" action="/console/posts" {
                input type="hidden" name="next" value=(here);
                (markup::acting_as(Some(author)))
                (thread::idempotency_key())
                div.field {
                    label for="payload" { "Payload" }
                    textarea.code #payload name="payload" rows="3" spellcheck="false" aria-describedby="payload-hint" {
                        "{\"title\": \"Hello\"}"
                    }
                    p.hint #payload-hint { "JSON, or nothing." }
                }
                div.button-row { button.button.button-primary { "Post" } }
            }
        }
    }
}

async fn register<S: Store>(visit: Visit<S>, mut form: Form) -> RestResult {
    let feeds = visit.feeds()?;
    let payload = form.take("payload");
    let compact = |json: &String| payload::compact(json.as_bytes(), feeds.payload_bytes_max());
    let payload = payload.as_ref().map(compact).transpose()?.flatten();
    let author = visit.author(None)?.id();
    let idempotency_key = form.take("key").map(Into::into);
    let written =
        feeds.register_post(NewPost { id: None, author, created_at: None, payload, idempotency_key }).await?;
    Ok(visit.written(&mut form, &lists::address(author), Done::Posted, written.position))
}

async fn delete<S: Store>(visit: Visit<S>, Ids([id]): Ids<1>, mut form: Form) -> RestResult {
    let actor = visit.actor()?;
    let deleted = visit.feeds()?.delete_post(Some(actor), id, &visit.seen).await?;
    Ok(visit.written(&mut form, &lists::address(actor), Done::PostDeleted, deleted.position))
}
