//! `changes`: reads the change log.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::comments::{CommentChange, CommentId, Moderator, Parent};
use kinfolk_core::feeds::Post;
use kinfolk_core::{Id, Timestamp};
use kinfolk_server::payload;
use serde::Serialize;

use crate::client::{ChangePage, Client};
use crate::context::Context;
use crate::print::{Outcome, Print, as_optional_text, as_parent, as_text, excerpt};

/// List changes, oldest first
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk changes --after TOKEN --limit 1000\n\n\
    The output ends with the token of the next page. An import is one change.")]
pub(crate) struct Changes {
    /// Start after this token of a write or an earlier page [default: the oldest kept change]
    // One token in 64 starts with a hyphen.
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    after: Option<String>,
    /// Maximum number of changes
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    limit: u16,
}

impl Changes {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let (after, limit) = (self.after.as_deref(), self.limit.into());
        let page = context.call(|client| match client {
            Client::Local(graph) => {
                let context = &graph.graph().context;
                let after = after.map(|token| context.frontier(token)).transpose()?.unwrap_or_default();
                let page = graph.run(graph.changes().read(&after, limit))?;
                Ok(ChangePage { items: page.items, next: context.token(page.next) })
            }
            Client::Remote(server) => server.changes(after, limit),
        })?;
        context.print(&Page::from(page))?;
        Ok(Outcome::Done)
    }
}

#[derive(Serialize)]
struct Page {
    items: Vec<Item>,
    next: String,
}

#[derive(Serialize)]
struct Item {
    position: String,
    r#type: String,
    #[serde(serialize_with = "as_text")]
    at: Timestamp,
    #[serde(flatten)]
    fields: Fields,
}

/// The fields of a type of change.
#[derive(Serialize)]
#[serde(untagged)]
enum Fields {
    Edge {
        #[serde(serialize_with = "as_text")]
        follower: Id,
        #[serde(serialize_with = "as_text")]
        followee: Id,
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
        since: Option<Timestamp>,
    },
    Imported {
        edges: u64,
    },
    Post {
        #[serde(serialize_with = "as_text")]
        post: Id,
        #[serde(serialize_with = "as_text")]
        author: Id,
        #[serde(serialize_with = "as_text")]
        created_at: Timestamp,
        #[serde(skip_serializing_if = "Option::is_none")]
        delivery: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "payload::as_json")]
        payload: Option<Arc<str>>,
    },
    Comment {
        #[serde(serialize_with = "as_text")]
        comment: CommentId,
        #[serde(flatten, serialize_with = "as_parent")]
        parent: Parent,
        #[serde(serialize_with = "as_text")]
        author: Id,
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
        reply_to: Option<CommentId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        depth: Option<u8>,
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
        body: Option<Arc<str>>,
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
        removed_by: Option<Moderator>,
    },
    Thread {
        #[serde(flatten, serialize_with = "as_parent")]
        parent: Parent,
    },
}

impl Fields {
    /// The type and the fields of a change of comments.
    fn of_thread(change: CommentChange) -> (String, Self) {
        let (reply_to, depth, version, body, removed_by) = (None, None, None, None, None);
        match change {
            CommentChange::Written { id: comment, parent, author, reply_to, depth, body } => {
                let depth = Some(depth);
                (
                    "comment".to_owned(),
                    Self::Comment { comment, parent, author, reply_to, depth, version, body, removed_by },
                )
            }
            CommentChange::Edited { id: comment, parent, author, version, body } => {
                let version = Some(version);
                let fields =
                    Self::Comment { comment, parent, author, reply_to, depth, version, body, removed_by };
                ("comment_edited".to_owned(), fields)
            }
            CommentChange::Withdrawn { id: comment, parent, author, status, by: removed_by } => {
                let fields =
                    Self::Comment { comment, parent, author, reply_to, depth, version, body, removed_by };
                (format!("comment_{}", status.name()), fields)
            }
            CommentChange::Locked { parent, locked } => {
                let name = if locked { "comments_locked" } else { "comments_unlocked" };
                (name.to_owned(), Self::Thread { parent })
            }
        }
    }
}

impl From<ChangePage> for Page {
    fn from(page: ChangePage) -> Self {
        Self { items: page.items.into_iter().map(Item::from).collect(), next: page.next }
    }
}

impl From<Change> for Item {
    fn from(change: Change) -> Self {
        let (r#type, fields) = match change.body {
            ChangeBody::Followed { kind, edge } => (
                kind.name().to_owned(),
                Fields::Edge { follower: edge.follower, followee: edge.followee, since: None },
            ),
            ChangeBody::Unfollowed { kind, edge, since } => (
                format!("un{}", kind.name()),
                Fields::Edge { follower: edge.follower, followee: edge.followee, since: Some(since) },
            ),
            ChangeBody::Imported { edges, .. } => ("imported".to_owned(), Fields::Imported { edges }),
            ChangeBody::Posted { post: Post { id: post, author, created_at, payload }, delivery } => {
                let delivery = Some(delivery.name());
                ("post".to_owned(), Fields::Post { post, author, created_at, delivery, payload })
            }
            ChangeBody::PostDeleted { id: post, author, created_at } => {
                let (delivery, payload) = (None, None);
                ("post_deleted".to_owned(), Fields::Post { post, author, created_at, delivery, payload })
            }
            ChangeBody::Comment(change) => Fields::of_thread(change),
        };
        Self { position: change.position.to_string(), r#type, at: change.at, fields }
    }
}

impl Print for Page {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let position_width = self.items.iter().map(|item| item.position.len()).max().unwrap_or_default();
        let type_width = self.items.iter().map(|item| item.r#type.len()).max().unwrap_or_default();
        for Item { position, r#type, at, fields } in &self.items {
            write!(out, "{position:>position_width$}  {at}  {type:type_width$}  ")?;
            match fields {
                Fields::Edge { follower, followee, .. } => writeln!(out, "{follower} {followee}")?,
                Fields::Imported { edges } => writeln!(out, "{edges} edges")?,
                Fields::Post { post, author, .. } => writeln!(out, "{post} by {author}")?,
                Fields::Comment { comment, parent: Parent { kind, id }, author, removed_by, .. } => {
                    write!(out, "{comment} by {author} on {} {id}", kind.name())?;
                    match removed_by {
                        Some(by) => writeln!(out, ", moderated by {}", excerpt(&by.to_string()))?,
                        None => writeln!(out)?,
                    }
                }
                Fields::Thread { parent: Parent { kind, id } } => writeln!(out, "{} {id}", kind.name())?,
            }
        }
        writeln!(out, "next {}", self.next)
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::comments::CommentStatus;
    use kinfolk_core::feeds::Delivery;
    use kinfolk_core::graph::Edge;
    use kinfolk_core::{EdgeKind, Sequence, Shard};

    use super::*;

    #[test]
    fn both_forms() {
        let (kind, edge) = (EdgeKind::Follow, Edge { follower: Id::Integer(1), followee: Id::Integer(2) });
        let (id, author, created_at) = (Id::Integer(7), Id::Integer(1), Timestamp::from_millis(5));
        let post = Post { id, author, created_at, payload: Some(r#"{"b":1.10}"#.into()) };
        let (parent, comment, status) = (Parent::post(id), CommentId(9), CommentStatus::Removed);
        let by = Some(Moderator::User(Id::Integer(8)));
        let written = ChangeBody::Comment(CommentChange::Written {
            id: comment,
            parent,
            author,
            reply_to: Some(CommentId(8)),
            depth: 1,
            body: Some("\"hi\"".into()),
        });
        let bodies = [
            ChangeBody::Followed { kind, edge },
            ChangeBody::Unfollowed { kind, edge, since: Timestamp::from_millis(99) },
            ChangeBody::Imported { kind, edges: 1_000 },
            ChangeBody::Posted { post, delivery: Delivery::Push },
            ChangeBody::PostDeleted { id, author, created_at },
            written,
            ChangeBody::Comment(CommentChange::Edited {
                id: comment,
                parent,
                author,
                version: 2,
                body: None,
            }),
            ChangeBody::Comment(CommentChange::Withdrawn { id: comment, parent, author, status, by }),
            ChangeBody::Comment(CommentChange::Locked { parent, locked: true }),
        ];
        let items = bodies.into_iter().zip(99..).map(|(body, at)| Change {
            position: Sequence(at).on(Shard::ONLY),
            at: Timestamp::from_millis(at),
            body,
        });
        let changes = Page::from(ChangePage { items: items.collect(), next: "abc".to_owned() });
        let mut out = Vec::new();
        changes.write_text(&mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
         0-99  1970-01-01T00:00:00.099Z  follow           1 2
        0-100  1970-01-01T00:00:00.100Z  unfollow         1 2
        0-101  1970-01-01T00:00:00.101Z  imported         1000 edges
        0-102  1970-01-01T00:00:00.102Z  post             7 by 1
        0-103  1970-01-01T00:00:00.103Z  post_deleted     7 by 1
        0-104  1970-01-01T00:00:00.104Z  comment          00000000-0000-0000-0000-000000000009 by 1 on post 7
        0-105  1970-01-01T00:00:00.105Z  comment_edited   00000000-0000-0000-0000-000000000009 by 1 on post 7
        0-106  1970-01-01T00:00:00.106Z  comment_removed  00000000-0000-0000-0000-000000000009 by 1 on post 7, moderated by user:8
        0-107  1970-01-01T00:00:00.107Z  comments_locked  post 7
        next abc
        ");
        insta::assert_snapshot!(serde_json::to_string(&changes).unwrap(), @r#"{"items":[{"position":"0-99","type":"follow","at":"1970-01-01T00:00:00.099Z","follower":"1","followee":"2"},{"position":"0-100","type":"unfollow","at":"1970-01-01T00:00:00.100Z","follower":"1","followee":"2","since":"1970-01-01T00:00:00.099Z"},{"position":"0-101","type":"imported","at":"1970-01-01T00:00:00.101Z","edges":1000},{"position":"0-102","type":"post","at":"1970-01-01T00:00:00.102Z","post":"7","author":"1","created_at":"1970-01-01T00:00:00.005Z","delivery":"push","payload":{"b":1.10}},{"position":"0-103","type":"post_deleted","at":"1970-01-01T00:00:00.103Z","post":"7","author":"1","created_at":"1970-01-01T00:00:00.005Z"},{"position":"0-104","type":"comment","at":"1970-01-01T00:00:00.104Z","comment":"00000000-0000-0000-0000-000000000009","post":"7","author":"1","reply_to":"00000000-0000-0000-0000-000000000008","depth":1,"body":"\"hi\""},{"position":"0-105","type":"comment_edited","at":"1970-01-01T00:00:00.105Z","comment":"00000000-0000-0000-0000-000000000009","post":"7","author":"1","version":2},{"position":"0-106","type":"comment_removed","at":"1970-01-01T00:00:00.106Z","comment":"00000000-0000-0000-0000-000000000009","post":"7","author":"1","removed_by":"user:8"},{"position":"0-107","type":"comments_locked","at":"1970-01-01T00:00:00.107Z","post":"7"}],"next":"abc"}"#);
    }
}
