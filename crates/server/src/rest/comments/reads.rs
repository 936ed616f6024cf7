//! Reads of comments: one, those on a post in order or as a tree, those of a user, and the history of one.

use kinfolk_api::{Comment, CommentNode, CommentVersion};
use kinfolk_core::comments::{CommentOrder, Parent, TreeShape};

use super::super::entity_tag::{IF_NONE_MATCH_DESCRIPTION, NOT_MODIFIED};
use super::super::json;
use super::super::prelude::*;

/// The documented order of the comments on a post.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents what View reads")]
pub(crate) struct OrderParameters {
    /// The order.
    #[param(pattern = "^(oldest|newest)$", default = "oldest", required = false)]
    order: String,
}

/// The documented shape of a tree.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents what tree_shape reads")]
pub(crate) struct TreeParameters {
    /// How many levels of replies below the first; at most 50 by default.
    #[param(minimum = 0, default = 3, required = false)]
    depth: u32,
    /// How many replies to each comment.
    #[param(minimum = 1, maximum = 1000, default = 3, required = false)]
    replies: u32,
}

/// In order, or as a tree.
enum View {
    List(CommentOrder),
    /// With `view=tree`, which older clients send; the tree has a path of its own.
    Tree(TreeShape),
}

impl View {
    fn take(query: &mut Query) -> Result<Self> {
        match query.one("view")?.as_deref() {
            Some("tree") => return tree_shape(query).map(Self::Tree),
            Some(_) => return Err(invalid("the parameter view must be tree".to_owned())),
            None => {}
        }
        if query.number("depth")?.is_some() || query.number("replies")?.is_some() {
            let detail = "the parameters depth and replies are for a tree: read it at …/comments/tree";
            return Err(invalid(detail.to_owned()));
        }
        let order = query.named("order", CommentOrder::from_name, "oldest or newest")?;
        Ok(Self::List(order.unwrap_or_default()))
    }
}

/// Takes the shape of a tree out of a query.
fn tree_shape(query: &mut Query) -> Result<TreeShape> {
    if query.one("order")?.is_some() {
        return Err(invalid("a tree has no order: it is always oldest first".to_owned()));
    }
    let (depth, replies) = (query.number("depth")?, query.number("replies")?);
    let shape = TreeShape::default();
    // A depth that does not fit is too deep, which the graph refuses.
    let depth = depth.map_or(shape.depth, |depth| u8::try_from(depth).unwrap_or(u8::MAX));
    Ok(TreeShape { depth, replies: replies.unwrap_or(shape.replies) })
}

/// The parameters that ask for a tree of a shape.
fn shape_parameters(TreeShape { depth, replies }: TreeShape) -> [(&'static str, String); 2] {
    [("depth", depth.to_string()), ("replies", replies.to_string())]
}

/// The comments on a post, oldest or newest first.
///
/// Tombstones stand for comments that are not active any more. The same comments as a tree are at `/v1/posts/{id}/comments/tree`;
/// `view=tree` on this path is an older name of that.
#[utoipa::path(get, path = "/v1/posts/{id}/comments", tag = "comments",
    params(
        ("id" = api::Id, Path, description = "The post"),
        ("Kinfolk-Actor" = Option<api::Id>, Header, description = "The viewer. An end user is itself"),
        OrderParameters,
        PageParameters),
    responses((status = 200, description = "A page of the comments", body = api::Comments)))]
pub(crate) async fn comments<S: Store>(call: Call<S>, Ids([id]): Ids<1>, mut query: Query) -> RestResult {
    let view = View::take(&mut query)?;
    let page = Page::take(&mut query)?;
    query.end()?;
    let order = match view {
        View::List(order) => order,
        View::Tree(shape) => {
            let [depth, replies] = shape_parameters(shape);
            let parameters = [("view", "tree".to_owned()), depth, replies];
            return tree(&call, Parent::post(id), shape, &page, &parameters).await;
        }
    };
    let (threads, viewer) = (call.comments()?, call.comment_viewer()?);
    let found = threads.comment_thread(Parent::post(id), order, page.request(), viewer, &call.seen).await?;
    Ok(page.respond::<Comment>(&[("order", order.name().to_owned())], found))
}

/// The comments on a post as a tree, oldest first.
///
/// Some comments of a branch, from the top, each with its first replies, and these with theirs. The `next` of a comment, as `cursor`
/// with the same parameters, continues with its replies. A tree has at most 1,000 comments.
#[utoipa::path(get, path = "/v1/posts/{id}/comments/tree", tag = "comments",
    params(
        ("id" = api::Id, Path, description = "The post"),
        ("Kinfolk-Actor" = Option<api::Id>, Header, description = "The viewer. An end user is itself"),
        TreeParameters,
        PageParameters),
    responses((status = 200, description = "A part of the tree", body = api::CommentTree)))]
pub(crate) async fn comment_tree<S: Store>(call: Call<S>, Ids([id]): Ids<1>, mut query: Query) -> RestResult {
    let shape = tree_shape(&mut query)?;
    let page = Page::take(&mut query)?;
    query.end()?;
    tree(&call, Parent::post(id), shape, &page, &shape_parameters(shape)).await
}

/// The response with a part of a tree. `parameters` are those of the link to the next part.
async fn tree<S: Store>(
    call: &Call<S>,
    parent: Parent,
    shape: TreeShape,
    page: &Page,
    parameters: &[(&'static str, String)],
) -> RestResult {
    let viewer = call.comment_viewer()?;
    let found = call.comments()?.comment_tree(parent, shape, page.request(), viewer, &call.seen).await?;
    Ok(page.respond::<CommentNode>(parameters, found))
}

/// The active comments of a user, newest first.
#[utoipa::path(get, path = "/v1/users/{id}/comments", tag = "comments",
    params(
        ("id" = api::Id, Path, description = "The author"),
        ("Kinfolk-Actor" = Option<api::Id>, Header, description = "The viewer. An end user is itself"),
        PageParameters),
    responses((status = 200, description = "A page of the comments", body = api::Comments)))]
pub(crate) async fn comments_by<S: Store>(call: Call<S>, Ids([author]): Ids<1>, page: Page) -> RestResult {
    let viewer = call.comment_viewer()?;
    let found = call.comments()?.comments_by(author, page.request(), viewer, &call.seen).await?;
    Ok(page.respond::<Comment>(&[], found))
}

/// A comment, or its tombstone.
///
/// The header `ETag` names its version and this representation of it: it changes with everything that the response has, such as the
/// number of replies. Send it as `If-Match` to edit that version, or as `If-None-Match` to read the comment only if it has changed.
#[utoipa::path(get, path = "/v1/comments/{comment}", tag = "comments",
    params(
        ("comment" = api::CommentId, Path, description = "The comment"),
        ("Kinfolk-Actor" = Option<api::Id>, Header, description = "The viewer. An end user is itself"),
        ("If-None-Match" = inline(Option<String>), Header, description = IF_NONE_MATCH_DESCRIPTION)),
    responses(
        (status = 200, description = "The comment", body = Comment, headers(
            ("ETag" = String, description = "Names its version and this representation of it"))),
        (status = 304, description = NOT_MODIFIED)))]
pub(crate) async fn comment<S: Store>(
    call: Call<S>,
    NamedComment(id): NamedComment,
    cached: Cached,
    _: NoQuery,
) -> RestResult {
    let found = call.comments()?.read_comment(id, call.comment_viewer()?, &call.seen).await?;
    let comment = Comment::from(found);
    let text = json::text(&comment);
    Ok(cached.respond(&EntityTag::of_version(comment.version, &text), text))
}

/// The versions of a comment, oldest first: for its author while it is active, and for moderators.
#[utoipa::path(get, path = "/v1/comments/{comment}/history", tag = "comments",
    params(
        ("comment" = api::CommentId, Path, description = "The comment. An end user who is not a moderator reads only the history of its own comments"),
        ("Kinfolk-Actor" = Option<api::Id>, Header, description = "The viewer. An end user is itself"),
        PageParameters),
    responses((status = 200, description = "A page of the versions", body = api::CommentHistory)))]
pub(crate) async fn comment_history<S: Store>(
    call: Call<S>,
    NamedComment(id): NamedComment,
    page: Page,
) -> RestResult {
    let viewer = call.comment_viewer()?;
    let found = call.comments()?.comment_history(id, page.request(), viewer, &call.seen).await?;
    Ok(page.respond::<CommentVersion>(&[], found))
}
