//! `changes`: reads the change log.

use kinfolk_api::{self as api, Change};
use kinfolk_core::comments::Parent;

use super::prelude::*;
use crate::print::excerpt;

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
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    limit: u16,
}

impl Changes {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let (after, limit) = (self.after.as_deref(), self.limit.into());
        let page = context.call(|client| match client {
            Client::Local(graph) => {
                let context = &graph.graph.context;
                let after = after.map(|token| context.frontier(token)).transpose()?.unwrap_or_default();
                let page = graph.run(graph.changes().read(&after, limit))?;
                let items = page.changes.into_iter().map(Change::from).collect();
                Ok(api::Changes { items, next: context.token(page.next) })
            }
            Client::Remote(server) => Ok(server.changes(after, limit)?),
        })?;
        context.print(&page)
    }
}

impl Print for api::Changes {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let positions: Vec<String> = self.items.iter().map(|change| change.position.to_string()).collect();
        let position_width = positions.iter().map(String::len).max().unwrap_or_default();
        let type_width = self.items.iter().map(|change| change.r#type.len()).max().unwrap_or_default();
        for (position, change) in positions.iter().zip(&self.items) {
            let Change { r#type, at, .. } = change;
            write!(out, "{position:>position_width$}  {at}  {type:type_width$}  ")?;
            writeln!(out, "{}", subject(change))?;
        }
        writeln!(out, "next {}", self.next)
    }
}

/// What a change is about.
fn subject(change: &Change) -> String {
    let parent = change.parent().map(|Parent { kind, id }| format!("{} {id}", kind.name()));
    let parent = parent.unwrap_or_default();
    match change {
        Change { follower: Some(follower), followee: Some(followee), .. } => format!("{follower} {followee}"),
        Change { edges: Some(edges), .. } => format!("{edges} edges"),
        Change { comment: Some(comment), author: Some(author), removed_by, .. } => {
            let by = removed_by.as_ref().map(|by| format!(", moderated by {}", excerpt(&by.to_string())));
            format!("{comment} by {author} on {parent}{}", by.unwrap_or_default())
        }
        Change { post: Some(post), author: Some(author), .. } => format!("{post} by {author}"),
        _ => parent,
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::changes::{self, ChangeBody};
    use kinfolk_core::comments::{CommentChange, CommentId, CommentStatus, Moderator};
    use kinfolk_core::feeds::{Delivery, Post};
    use kinfolk_core::graph::Edge;
    use kinfolk_core::{EdgeKind, Id, Sequence, Shard, Timestamp};

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
        let items = bodies.into_iter().zip(99..).map(|(body, at)| changes::Change {
            position: Sequence(at).on(Shard::ONLY),
            at: Timestamp::from_millis(at),
            body,
        });
        let changes = api::Changes { items: items.map(Change::from).collect(), next: "abc".to_owned() };
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
