//! Reads of comments: one, those on a post in order or as a tree, those of a user, and the history of one.

use kinfolk_api::schema::CommentsView;
use kinfolk_api::{Comment, CommentNode, CommentVersion};
use kinfolk_core::comments::{CommentOrder, Parent, TreeShape};

use super::super::prelude::*;
use super::version::entity_tag;

/// The documented parameters of the comments on a post.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents what View reads")]
pub(crate) struct ThreadParameters {
    /// The order; not with a tree, which is always oldest first.
    #[param(pattern = "^(oldest|newest)$", default = "oldest", required = false)]
    order: String,
    /// As a tree.
    #[param(pattern = "^tree$", required = false)]
    view: String,
    /// How many levels of replies below the first; only with a tree.
    #[param(minimum = 0, default = 3, required = false)]
    depth: u32,
    /// How many replies to each comment; only with a tree.
    #[param(minimum = 1, maximum = 1000, default = 3, required = false)]
    replies: u32,
}

/// In order, or as a tree.
enum View {
    List(CommentOrder),
    Tree(TreeShape),
}

impl View {
    fn take(query: &mut Query) -> Result<Self> {
        let is_tree = match query.one("view")?.as_deref() {
            None => false,
            Some("tree") => true,
            Some(_) => return Err(invalid("the parameter view must be tree".to_owned())),
        };
        let order = query.one("order")?;
        let (depth, replies) = (query.number("depth")?, query.number("replies")?);
        if !is_tree {
            if depth.is_some() || replies.is_some() {
                return Err(invalid("the parameters depth and replies are for view=tree".to_owned()));
            }
            let known = order.map_or(Some(CommentOrder::default()), |name| CommentOrder::from_name(&name));
            let wrong = || invalid("the parameter order must be oldest or newest".to_owned());
            return Ok(Self::List(known.ok_or_else(wrong)?));
        }
        if order.is_some() {
            return Err(invalid("a tree has no order: it is always oldest first".to_owned()));
        }
        let shape = TreeShape::default();
        // A depth that does not fit is too deep, which the graph refuses.
        let depth = depth.map_or(shape.depth, |depth| u8::try_from(depth).unwrap_or(u8::MAX));
        Ok(Self::Tree(TreeShape { depth, replies: replies.unwrap_or(shape.replies) }))
    }

    /// The parameters that ask for it.
    fn parameters(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::List(order) => vec![("order", order.name().to_owned())],
            Self::Tree(TreeShape { depth, replies }) => vec![
                ("view", "tree".to_owned()),
                ("depth", depth.to_string()),
                ("replies", replies.to_string()),
            ],
        }
    }
}

/// The comments on a post.
///
/// In order, oldest or newest first, with tombstones for comments that are not active any more. Or as a tree: some comments of a
/// branch, from the top, each with its first replies, and these with theirs. The `next` of a comment, as `cursor` with the same
/// parameters, continues with its replies. A tree has at most 1,000 comments.
#[utoipa::path(get, path = "/v1/posts/{id}/comments", tag = "comments",
    params(
        ("id" = api::Id, Path, description = "The post"),
        ("Kinfolk-Actor" = inline(Option<api::Id>), Header, description = "The viewer. An end user is itself"),
        ThreadParameters,
        PageParameters),
    responses((status = 200, description = "A page of the comments, or a part of the tree", body = inline(CommentsView))))]
pub(crate) async fn thread<S: Store>(call: Call<S>, Ids([id]): Ids<1>, mut query: Query) -> RestResult {
    let view = View::take(&mut query)?;
    let page = Page::take(&mut query)?;
    query.end()?;
    let (threads, parent, viewer) = (call.comments()?, Parent::post(id), call.comment_viewer()?);
    let parameters = view.parameters();
    Ok(match view {
        View::List(order) => {
            let found = threads.comment_thread(parent, order, page.request(), viewer, &call.seen).await?;
            page.respond::<Comment>(&parameters, found)
        }
        View::Tree(shape) => {
            let found = threads.comment_tree(parent, shape, page.request(), viewer, &call.seen).await?;
            page.respond::<CommentNode>(&parameters, found)
        }
    })
}

/// The active comments of a user, newest first.
#[utoipa::path(get, path = "/v1/users/{id}/comments", tag = "comments",
    params(
        ("id" = api::Id, Path, description = "The author"),
        ("Kinfolk-Actor" = inline(Option<api::Id>), Header, description = "The viewer. An end user is itself"),
        PageParameters),
    responses((status = 200, description = "A page of the comments", body = api::Comments)))]
pub(crate) async fn comments_by<S: Store>(call: Call<S>, Ids([author]): Ids<1>, page: Page) -> RestResult {
    let viewer = call.comment_viewer()?;
    let found = call.comments()?.comments_by(author, page.request(), viewer, &call.seen).await?;
    Ok(page.respond::<Comment>(&[], found))
}

/// A comment, or its tombstone.
///
/// The header `ETag` has its version: send it as `If-Match` to edit that version.
#[utoipa::path(get, path = "/v1/comments/{comment}", tag = "comments",
    params(
        ("comment" = api::CommentId, Path, description = "The comment"),
        ("Kinfolk-Actor" = inline(Option<api::Id>), Header, description = "The viewer. An end user is itself")),
    responses((status = 200, description = "The comment", body = Comment, headers(
        ("ETag" = String, description = "Its version, in quotes")))))]
pub(crate) async fn comment<S: Store>(
    call: Call<S>,
    NamedComment(id): NamedComment,
    _: NoQuery,
) -> RestResult {
    let found = call.comments()?.read_comment(id, call.comment_viewer()?, &call.seen).await?;
    Ok(([entity_tag(found.version)], Json(Comment::from(found))).into_response())
}

/// The versions of a comment, oldest first: for its author while it is active, and for moderators.
#[utoipa::path(get, path = "/v1/comments/{comment}/history", tag = "comments",
    params(
        ("comment" = api::CommentId, Path, description = "The comment. An end user who is not a moderator reads only the history of its own comments"),
        ("Kinfolk-Actor" = inline(Option<api::Id>), Header, description = "The viewer. An end user is itself"),
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
