//! `comments` and `comment-history`: a thread, flat or as a tree, a user's comments, and the texts that one comment had. Writing
//! them is in `comment`.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use kinfolk_core::comments::{
    Comment, CommentId, CommentNode, CommentOrder, CommentStatus, CommentVersion, Moderator, Parent,
    TreeShape,
};
use kinfolk_core::{Id, Timestamp};
use serde::Serialize;

use super::pages::{Page, PageArguments};
use crate::answer::{Answer, Outcome, as_optional_text, as_parent, as_text, begin, harmless};
use crate::arguments::{parse_comment_id, parse_id};
use crate::context::Context;

/// How wide the time and the id before a comment are.
const MARGIN: usize = 24 + 2 + 36 + 2;

/// What `comments` is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk comments 70 --order newest --limit 10\n  \
    kinfolk comments 70 --tree --depth 2\n  \
    kinfolk comments --by 7 --all --json\n\n\
    The lines are time, id, author and the begin of the text. Of a comment that was deleted, removed or purged its place\n\
    is left; moderators see its text until it is purged. A page that is not the last one ends with the cursor of the next,\n\
    and so does each branch of a tree.")]
pub struct Arguments {
    /// Which post
    #[arg(value_name = "POST", value_parser = parse_id, required_unless_present = "by")]
    post: Option<Id>,
    /// List a user's own comments instead, newest first
    #[arg(long, value_name = "USER", value_parser = parse_id, conflicts_with_all = ["post", "order", "tree"])]
    by: Option<Id>,
    /// Which comments come first: oldest or newest [default: oldest]
    #[arg(long, value_parser = parse_order, conflicts_with = "tree")]
    order: Option<CommentOrder>,
    /// Show replies below what they answer
    #[arg(long)]
    tree: bool,
    /// How many levels of replies a tree shows [default: 3]
    #[arg(long, value_name = "N", requires = "tree", value_parser = clap::value_parser!(u8).range(0..=50))]
    depth: Option<u8>,
    /// How many replies to each comment a tree shows [default: 3]
    #[arg(long, value_name = "N", requires = "tree", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    replies: Option<u16>,
    #[command(flatten)]
    pages: PageArguments,
}

/// What `comment-history` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk comment-history 019a1b2c-3d4e-7f60-8a9b-0c1d2e3f4a5b\n\n\
    The texts of all versions, oldest first. A comment that was purged has none.")]
pub struct HistoryArguments {
    /// Which comment
    #[arg(value_name = "COMMENT", value_parser = parse_comment_id)]
    id: CommentId,
    #[command(flatten)]
    pages: PageArguments,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let post = match (self.by, self.post) {
            (Some(author), _) => {
                return self.pages.print(context, |target, request| {
                    let page = target.comments_by(author, request)?;
                    Ok(Page::<OwnItem>::uncounted(page.items, page.next))
                });
            }
            (None, Some(post)) => post,
            (None, None) => unreachable!("one of them is required"),
        };
        if !self.tree {
            let order = self.order.unwrap_or_default();
            return self.pages.print(context, |target, request| {
                let page = target.comment_thread(post, order, request)?;
                Ok(Page::<Item>::uncounted(page.items, page.next))
            });
        }
        let usual = TreeShape::default();
        let shape = TreeShape {
            depth: self.depth.unwrap_or(usual.depth),
            replies: self.replies.map_or(usual.replies, usize::from),
        };
        self.pages.print(context, |target, request| {
            let page = target.comment_tree(post, shape, request)?;
            Ok(Page::<Node>::uncounted(page.items, page.next))
        })
    }
}

impl HistoryArguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |target, request| {
            let page = target.comment_history(self.id, request)?;
            Ok(Page::<Version>::uncounted(page.items, page.next))
        })
    }
}

fn parse_order(text: &str) -> Result<CommentOrder, String> {
    CommentOrder::from_name(text).ok_or_else(|| "expected oldest or newest".to_owned())
}

/// A comment as it is printed.
#[derive(Serialize)]
pub struct Item {
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
    /// What has become of it, and the begin of what it says.
    fn text(&self) -> String {
        let status = (self.status != CommentStatus::Active).then(|| {
            let by = self.removed_by.as_ref().map(|by| format!(" by {}", begin(&by.to_string())));
            let reason = self.reason.as_ref().map(|reason| format!(": {}", begin(reason)));
            format!("[{}{}{}]", self.status.name(), by.unwrap_or_default(), reason.unwrap_or_default())
        });
        let edited = (self.version > 1).then(|| format!("(version {})", self.version));
        let parts = [status, self.body.as_deref().map(begin), edited];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

impl Answer for Item {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}  {}  {}  {}", self.created_at, self.id, self.author, self.text())
    }
}

fn as_name<S: serde::Serializer>(status: &CommentStatus, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.name())
}

/// A comment in the list of its author, which tells where it was written.
#[derive(Serialize)]
#[serde(transparent)]
struct OwnItem(Item);

impl From<Comment> for OwnItem {
    fn from(comment: Comment) -> Self {
        Self(comment.into())
    }
}

impl Answer for OwnItem {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
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

impl Answer for Node {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_at(0, out)
    }
}

/// A text that a comment has or had.
#[derive(Serialize)]
struct Version {
    version: u32,
    #[serde(serialize_with = "as_text")]
    at: Timestamp,
    #[serde(serialize_with = "as_text")]
    body: Arc<str>,
}

impl From<CommentVersion> for Version {
    fn from(CommentVersion { version, at, body }: CommentVersion) -> Self {
        Self { version, at, body }
    }
}

impl Answer for Version {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "version {}, {}", self.version, self.at)?;
        let shown = |line: &str| line.chars().map(harmless).collect::<String>();
        self.body.split('\n').try_for_each(|line| writeln!(out, "    {}", shown(line)))
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

    fn printed(answer: &impl Answer) -> String {
        let mut out = Vec::new();
        answer.write_plain(&mut out).unwrap();
        String::from_utf8(out).unwrap() + &serde_json::to_string(answer).unwrap()
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
    fn trees_and_histories() {
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
        let version = CommentVersion { version: 2, at: Timestamp::from_millis(5), body: "a\n\tb".into() };
        insta::assert_snapshot!(printed(&Version::from(version)), @r#"
        version 2, 1970-01-01T00:00:00.005Z
            a
             b
        {"version":2,"at":"1970-01-01T00:00:00.005Z","body":"a\n\tb"}
        "#);
    }
}
