//! `comments`: the comments on a post, as a list or a tree, or those of a user. `comment` prints the same entries.

use kinfolk_api::{Comment, CommentNode, Page};
use kinfolk_core::comments::{CommentOrder, CommentStatus, Parent, TreeShape};
use serde::Deserialize;

use super::prelude::*;
use crate::client::OPERATOR;
use crate::failure::UsageError;
use crate::print::excerpt;

/// The width of the time and the id before a comment.
const MARGIN: usize = 24 + 2 + 36 + 2;

/// List the comments on a post, or a user's own
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk comments 70 --order newest --limit 10\n  \
    kinfolk comments 70 --tree --depth 2\n  \
    kinfolk comments --by 7 --all --json\n\n\
    Prints time, id, author and the beginning of the body. A deleted, removed or purged comment keeps its position\n\
    without its body; moderators see the body until it is purged. Every page but the last, and every incomplete branch\n\
    of a tree, ends with the cursor of the rest.")]
pub(crate) struct Comments {
    /// The post
    // Not required for clap, which does not see a --by that comes from the configuration.
    #[arg(value_parser = parse_id)]
    post: Option<Id>,
    /// List a user's own comments instead, newest first
    #[arg(long, value_name = "USER", value_parser = parse_id, conflicts_with_all = ["post", "order", "tree"])]
    by: Option<Id>,
    /// The order: oldest or newest first [default: oldest]
    #[arg(long, value_parser = parse_order, conflicts_with = "tree")]
    order: Option<CommentOrder>,
    /// Show replies below their parents
    #[arg(long)]
    tree: bool,
    /// Maximum depth of replies in a tree [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=50))]
    depth: Option<u8>,
    /// Maximum number of replies to each comment in a tree [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    replies: Option<u16>,
    #[command(flatten)]
    pages: PageArguments,
}

impl Comments {
    /// A depth or a number of replies that is typed needs a tree, which clap does not see if it comes from the configuration.
    fn require_tree(&self, context: &Context) -> Result<()> {
        let is_typed = |key, is_present| is_present && !context.is_configured(key);
        let is_of_tree = is_typed("comments.depth", self.depth.is_some())
            || is_typed("comments.replies", self.replies.is_some());
        if is_of_tree && !self.tree {
            return Err(UsageError("--depth and --replies need --tree".to_owned()).into());
        }
        Ok(())
    }

    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        self.require_tree(context)?;
        match (self.by, self.post) {
            (Some(author), _) => self.print_by(author, context),
            (None, Some(post)) if self.tree => self.print_tree(post, context),
            (None, Some(post)) => self.print_list(post, context),
            (None, None) => {
                let message = "the post is missing; name it, or a user with --by USER";
                Err(UsageError(message.to_owned()).into())
            }
        }
    }

    fn print_by(&self, author: Id, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |client, request| {
            let page: Page<Comment> = match client {
                Client::Local(graph) => {
                    graph.run(graph.comments()?.comments_by(author, request, OPERATOR, &graph.seen))?.into()
                }
                Client::Remote(server) => page_of(server.comments_by(author), request)?,
            };
            Ok(Page { items: page.items.into_iter().map(OwnComment).collect(), next: page.next })
        })
    }

    fn print_list(&self, post: Id, context: &Context) -> Result<Outcome> {
        let order = self.order.unwrap_or_default();
        self.pages.print(context, |client, request| match client {
            Client::Local(graph) => {
                let comments = graph.comments()?;
                let call = comments.comment_thread(Parent::post(post), order, request, OPERATOR, &graph.seen);
                Ok(Page::<Comment>::from(graph.run(call)?))
            }
            Client::Remote(server) => page_of(server.comments(post, order), request),
        })
    }

    fn print_tree(&self, post: Id, context: &Context) -> Result<Outcome> {
        let defaults = TreeShape::default();
        let shape = TreeShape {
            depth: self.depth.unwrap_or(defaults.depth),
            replies: self.replies.map_or(defaults.replies, usize::from),
        };
        self.pages.print(context, |client, request| match client {
            Client::Local(graph) => {
                let comments = graph.comments()?;
                let call = comments.comment_tree(Parent::post(post), shape, request, OPERATOR, &graph.seen);
                Ok(Page::<CommentNode>::from(graph.run(call)?))
            }
            Client::Remote(server) => page_of(server.comment_tree(post, shape), request),
        })
    }
}

fn parse_order(text: &str) -> Result<CommentOrder, String> {
    CommentOrder::from_name(text).ok_or_else(|| "expected oldest or newest".to_owned())
}

/// The status of a comment, and an excerpt of its body.
fn text(comment: &Comment) -> String {
    let status = (comment.status != CommentStatus::Active).then(|| {
        let by = comment.removed_by.as_ref().map(|by| format!(" by {}", excerpt(&by.to_string())));
        let reason = comment.reason.as_ref().map(|reason| format!(": {}", excerpt(reason)));
        format!("[{}{}{}]", comment.status.name(), by.unwrap_or_default(), reason.unwrap_or_default())
    });
    let edited = (comment.version > 1).then(|| format!("(version {})", comment.version));
    let parts = [status, comment.body.as_deref().map(excerpt), edited];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

impl Print for Comment {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}  {}  {}  {}", self.created_at, self.id, self.author, text(self))
    }
}

/// A comment in the list of its author, which shows its parent.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct OwnComment(Comment);

impl Print for OwnComment {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Comment { id, created_at, .. } = &self.0;
        let parent = self.0.parent().map(|Parent { kind, id }| format!("{} {id}", kind.name()));
        writeln!(out, "{created_at}  {id}  {}  {}", parent.unwrap_or_default(), text(&self.0))
    }
}

/// Writes a comment with its replies below it.
fn write_node(node: &CommentNode, level: usize, out: &mut dyn Write) -> io::Result<()> {
    let Comment { id, author, created_at, .. } = &node.comment;
    writeln!(out, "{created_at}  {id}  {:1$}{author}  {2}", "", level * 2, text(&node.comment))?;
    node.replies.iter().try_for_each(|reply| write_node(reply, level + 1, out))?;
    match &node.next {
        Some(next) => writeln!(out, "{:1$}… more with --cursor {next}", "", MARGIN + level * 2 + 2),
        None => Ok(()),
    }
}

impl Print for CommentNode {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        write_node(self, 0, out)
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::Timestamp;
    use kinfolk_core::comments::{self, CommentId, CommentStatus, Moderator};

    use super::*;

    fn comment(number: u128, status: CommentStatus, body: Option<&str>) -> comments::Comment {
        comments::Comment {
            id: CommentId(number),
            parent: Parent::post(Id::Integer(70)),
            author: Id::Integer(1),
            reply_to: None,
            depth: 0,
            created_at: Timestamp::from_millis(5),
            version: 1,
            edited_at: None,
            status,
            body: body.map(Into::into),
            reason: None,
            removed_by: None,
            reply_count: 0,
        }
    }

    fn printed(item: &impl Print) -> String {
        let mut out = Vec::new();
        item.write_text(&mut out).unwrap();
        String::from_utf8(out).unwrap() + &serde_json::to_string(item).unwrap()
    }

    #[test]
    fn comments_and_their_tombstones() {
        let first = comment(1, CommentStatus::Active, Some("one\n\ttwo"));
        insta::assert_snapshot!(printed(&Comment::from(first.clone())), @r#"
        1970-01-01T00:00:00.005Z  00000000-0000-0000-0000-000000000001  1  one  two
        {"id":"00000000-0000-0000-0000-000000000001","post":"70","author":"1","body":"one\n\ttwo","version":1,"created_at":"1970-01-01T00:00:00.005Z","status":"active","depth":0,"reply_count":0}
        "#);
        insta::assert_snapshot!(printed(&OwnComment(Comment::from(first.clone()))), @r#"
        1970-01-01T00:00:00.005Z  00000000-0000-0000-0000-000000000001  post 70  one  two
        {"id":"00000000-0000-0000-0000-000000000001","post":"70","author":"1","body":"one\n\ttwo","version":1,"created_at":"1970-01-01T00:00:00.005Z","status":"active","depth":0,"reply_count":0}
        "#);
        let edited = comments::Comment { version: 3, edited_at: Some(Timestamp::from_millis(9)), ..first };
        assert!(printed(&Comment::from(edited)).contains("  1  one  two (version 3)\n"));
        let deleted = comment(2, CommentStatus::Deleted, None);
        assert!(printed(&Comment::from(deleted.clone())).contains("  1  [deleted]\n"));
        let seen = comments::Comment { body: Some("gone".into()), ..deleted };
        assert!(printed(&Comment::from(seen)).contains("  1  [deleted] gone\n"));
        let removed = comment(3, CommentStatus::Removed, Some("buy"));
        let removed = comments::Comment { reason: Some("spam\u{1b}".into()), ..removed };
        assert!(printed(&Comment::from(removed.clone())).contains("  1  [removed: spam\u{fffd}] buy\n"));
        let known = comments::Comment { removed_by: Some(Moderator::User(Id::Integer(8))), ..removed };
        let shown = printed(&Comment::from(known));
        assert!(shown.contains("  1  [removed by user:8: spam\u{fffd}] buy\n"), "{shown}");
        assert!(shown.ends_with(",\"removed_by\":\"user:8\"}"), "{shown}");
        let purged = comment(4, CommentStatus::Purged, None);
        let purged = comments::Comment { removed_by: Some(Moderator::Service("feed".into())), ..purged };
        assert!(printed(&Comment::from(purged)).contains("  1  [purged by key:feed]\n"));
    }

    #[test]
    fn trees() {
        let node = |number, replies, next: Option<&str>| comments::CommentNode {
            comment: comment(number, CommentStatus::Active, Some("text")),
            replies,
            next: next.map(str::to_owned),
        };
        let tree = node(
            1,
            vec![node(2, vec![node(3, vec![], None)], Some("abc")), node(4, vec![], Some("def"))],
            None,
        );
        insta::assert_snapshot!(printed(&CommentNode::from(tree)), @r#"
        1970-01-01T00:00:00.005Z  00000000-0000-0000-0000-000000000001  1  text
        1970-01-01T00:00:00.005Z  00000000-0000-0000-0000-000000000002    1  text
        1970-01-01T00:00:00.005Z  00000000-0000-0000-0000-000000000003      1  text
                                                                            … more with --cursor abc
        1970-01-01T00:00:00.005Z  00000000-0000-0000-0000-000000000004    1  text
                                                                            … more with --cursor def
        {"id":"00000000-0000-0000-0000-000000000001","post":"70","author":"1","body":"text","version":1,"created_at":"1970-01-01T00:00:00.005Z","status":"active","depth":0,"reply_count":0,"replies":[{"id":"00000000-0000-0000-0000-000000000002","post":"70","author":"1","body":"text","version":1,"created_at":"1970-01-01T00:00:00.005Z","status":"active","depth":0,"reply_count":0,"replies":[{"id":"00000000-0000-0000-0000-000000000003","post":"70","author":"1","body":"text","version":1,"created_at":"1970-01-01T00:00:00.005Z","status":"active","depth":0,"reply_count":0,"replies":[]}],"next":"abc"},{"id":"00000000-0000-0000-0000-000000000004","post":"70","author":"1","body":"text","version":1,"created_at":"1970-01-01T00:00:00.005Z","status":"active","depth":0,"reply_count":0,"replies":[],"next":"def"}]}
        "#);
    }
}
