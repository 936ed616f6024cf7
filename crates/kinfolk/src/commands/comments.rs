//! `comments`: the comments on a post, as a list or a tree, or those of a user. How a comment prints is here too.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use kinfolk_core::comments::{
    Comment, CommentId, CommentNode, CommentOrder, CommentStatus, Moderator, Parent, TreeShape,
};
use kinfolk_core::{Frontier, Id, Timestamp};
use serde::Serialize;

use super::arguments::parse_id;
use super::pages::{Page, PageArguments};
use crate::client::{Client, OPERATOR};
use crate::context::Context;
use crate::print::{Outcome, Print, as_optional_text, as_parent, as_text, excerpt};

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
    #[arg(value_parser = parse_id, required_unless_present = "by")]
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
    #[arg(long, value_name = "N", requires = "tree", value_parser = clap::value_parser!(u8).range(0..=50))]
    depth: Option<u8>,
    /// Maximum number of replies to each comment in a tree [default: 3]
    #[arg(long, value_name = "N", requires = "tree", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    replies: Option<u16>,
    #[command(flatten)]
    pages: PageArguments,
}

impl Comments {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        match (self.by, self.post) {
            (Some(author), _) => self.print_by(author, context),
            (None, Some(post)) if self.tree => self.print_tree(post, context),
            (None, Some(post)) => self.print_list(post, context),
            (None, None) => unreachable!("clap requires one of them"),
        }
    }

    fn print_by(&self, author: Id, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |client, page| {
            let page = match client {
                Client::Local(graph) => {
                    graph.run(graph.comments()?.comments_by(author, page, OPERATOR, Frontier::EMPTY))?
                }
                Client::Remote(server) => server.comments_by(author, page)?,
            };
            Ok(Page::<OwnItem>::uncounted(page.items, page.next))
        })
    }

    fn print_list(&self, post: Id, context: &Context) -> Result<Outcome> {
        let order = self.order.unwrap_or_default();
        self.pages.print(context, |client, page| {
            let page = match client {
                Client::Local(graph) => graph.run(graph.comments()?.comment_thread(
                    Parent::post(post),
                    order,
                    page,
                    OPERATOR,
                    Frontier::EMPTY,
                ))?,
                Client::Remote(server) => server.comments(post, order, page)?,
            };
            Ok(Page::<Item>::uncounted(page.items, page.next))
        })
    }

    fn print_tree(&self, post: Id, context: &Context) -> Result<Outcome> {
        let defaults = TreeShape::default();
        let shape = TreeShape {
            depth: self.depth.unwrap_or(defaults.depth),
            replies: self.replies.map_or(defaults.replies, usize::from),
        };
        self.pages.print(context, |client, page| {
            let page = match client {
                Client::Local(graph) => graph.run(graph.comments()?.comment_tree(
                    Parent::post(post),
                    shape,
                    page,
                    OPERATOR,
                    Frontier::EMPTY,
                ))?,
                Client::Remote(server) => server.comment_tree(post, shape, page)?,
            };
            Ok(Page::<Node>::uncounted(page.items, page.next))
        })
    }
}

fn parse_order(text: &str) -> Result<CommentOrder, String> {
    CommentOrder::from_name(text).ok_or_else(|| "expected oldest or newest".to_owned())
}

/// A comment.
#[derive(Serialize)]
pub(crate) struct Item {
    #[serde(serialize_with = "as_text")]
    id: CommentId,
    #[serde(flatten, serialize_with = "as_parent")]
    parent: Parent,
    #[serde(serialize_with = "as_text")]
    author: Id,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    body: Option<Arc<str>>,
    version: u32,
    #[serde(serialize_with = "as_text")]
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    edited_at: Option<Timestamp>,
    #[serde(serialize_with = "as_name")]
    status: CommentStatus,
    depth: u8,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    reply_to: Option<CommentId>,
    reply_count: u64,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    reason: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    removed_by: Option<Moderator>,
}

impl From<Comment> for Item {
    fn from(comment: Comment) -> Self {
        let Comment { id, parent, author, reply_to, depth, created_at, version, edited_at, .. } = comment;
        let Comment { status, body, reason, removed_by, reply_count, .. } = comment;
        Self {
            id,
            parent,
            author,
            body,
            version,
            created_at,
            edited_at,
            status,
            depth,
            reply_to,
            reply_count,
            reason,
            removed_by,
        }
    }
}

impl Item {
    /// Its status and an excerpt of its body.
    fn text(&self) -> String {
        let status = (self.status != CommentStatus::Active).then(|| {
            let by = self.removed_by.as_ref().map(|by| format!(" by {}", excerpt(&by.to_string())));
            let reason = self.reason.as_ref().map(|reason| format!(": {}", excerpt(reason)));
            format!("[{}{}{}]", self.status.name(), by.unwrap_or_default(), reason.unwrap_or_default())
        });
        let edited = (self.version > 1).then(|| format!("(version {})", self.version));
        let parts = [status, self.body.as_deref().map(excerpt), edited];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

impl Print for Item {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}  {}  {}  {}", self.created_at, self.id, self.author, self.text())
    }
}

fn as_name<S: serde::Serializer>(status: &CommentStatus, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.name())
}

/// A comment in the list of its author, which shows its parent.
#[derive(Serialize)]
#[serde(transparent)]
struct OwnItem(Item);

impl From<Comment> for OwnItem {
    fn from(comment: Comment) -> Self {
        Self(comment.into())
    }
}

impl Print for OwnItem {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Item { id, parent: Parent { kind, id: parent }, created_at, .. } = &self.0;
        writeln!(out, "{created_at}  {id}  {} {parent}  {}", kind.name(), self.0.text())
    }
}

/// A comment with some of its replies.
#[derive(Serialize)]
struct Node {
    #[serde(flatten)]
    comment: Item,
    replies: Vec<Node>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<CommentNode> for Node {
    fn from(CommentNode { comment, replies, next }: CommentNode) -> Self {
        Self { comment: comment.into(), replies: replies.into_iter().map(Self::from).collect(), next }
    }
}

impl Node {
    fn write_at(&self, level: usize, out: &mut dyn Write) -> io::Result<()> {
        let Item { id, author, created_at, .. } = &self.comment;
        writeln!(out, "{created_at}  {id}  {:1$}{author}  {2}", "", level * 2, self.comment.text())?;
        self.replies.iter().try_for_each(|reply| reply.write_at(level + 1, out))?;
        match &self.next {
            Some(next) => writeln!(out, "{:1$}… more with --cursor {next}", "", MARGIN + level * 2 + 2),
            None => Ok(()),
        }
    }
}

impl Print for Node {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_at(0, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment(number: u128, status: CommentStatus, body: Option<&str>) -> Comment {
        Comment {
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
        insta::assert_snapshot!(printed(&Item::from(first.clone())), @r#"
        1970-01-01T00:00:00.005Z  00000000-0000-0000-0000-000000000001  1  one  two
        {"id":"00000000-0000-0000-0000-000000000001","post":"70","author":"1","body":"one\n\ttwo","version":1,"created_at":"1970-01-01T00:00:00.005Z","status":"active","depth":0,"reply_count":0}
        "#);
        insta::assert_snapshot!(printed(&OwnItem::from(first.clone())), @r#"
        1970-01-01T00:00:00.005Z  00000000-0000-0000-0000-000000000001  post 70  one  two
        {"id":"00000000-0000-0000-0000-000000000001","post":"70","author":"1","body":"one\n\ttwo","version":1,"created_at":"1970-01-01T00:00:00.005Z","status":"active","depth":0,"reply_count":0}
        "#);
        let edited = Comment { version: 3, edited_at: Some(Timestamp::from_millis(9)), ..first };
        assert!(printed(&Item::from(edited)).contains("  1  one  two (version 3)\n"));
        let deleted = comment(2, CommentStatus::Deleted, None);
        assert!(printed(&Item::from(deleted.clone())).contains("  1  [deleted]\n"));
        let seen = Comment { body: Some("gone".into()), ..deleted };
        assert!(printed(&Item::from(seen)).contains("  1  [deleted] gone\n"));
        let removed = comment(3, CommentStatus::Removed, Some("buy"));
        let removed = Comment { reason: Some("spam\u{1b}".into()), ..removed };
        assert!(printed(&Item::from(removed.clone())).contains("  1  [removed: spam\u{fffd}] buy\n"));
        let known = Comment { removed_by: Some(Moderator::User(Id::Integer(8))), ..removed };
        let shown = printed(&Item::from(known));
        assert!(shown.contains("  1  [removed by user:8: spam\u{fffd}] buy\n"), "{shown}");
        assert!(shown.ends_with(",\"removed_by\":\"user:8\"}"), "{shown}");
        let purged = comment(4, CommentStatus::Purged, None);
        let purged = Comment { removed_by: Some(Moderator::Service("feed".into())), ..purged };
        assert!(printed(&Item::from(purged)).contains("  1  [purged by key:feed]\n"));
    }

    #[test]
    fn trees() {
        let node = |number, replies, next: Option<&str>| CommentNode {
            comment: comment(number, CommentStatus::Active, Some("text")),
            replies,
            next: next.map(str::to_owned),
        };
        let tree = node(
            1,
            vec![node(2, vec![node(3, vec![], None)], Some("abc")), node(4, vec![], Some("def"))],
            None,
        );
        insta::assert_snapshot!(printed(&Node::from(tree)), @r#"
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
