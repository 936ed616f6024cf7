//! `comment-history`: all versions of a comment.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use kinfolk_core::comments::{CommentId, CommentVersion};
use kinfolk_core::{Frontier, Timestamp};
use serde::Serialize;

use super::arguments::parse_comment_id;
use super::pages::{Page, PageArguments};
use crate::client::{Client, OPERATOR};
use crate::context::Context;
use crate::print::{Outcome, Print, as_text, harmless};

/// List all versions of a comment, oldest first
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk comment-history 019a1b2c-3d4e-7f60-8a9b-0c1d2e3f4a5b\n\n\
    Prints the body of every version. A purged comment has none.")]
pub(crate) struct CommentHistory {
    /// The comment
    #[arg(value_name = "COMMENT", value_parser = parse_comment_id)]
    id: CommentId,
    #[command(flatten)]
    pages: PageArguments,
}

impl CommentHistory {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |client, page| {
            let page = match client {
                Client::Local(graph) => {
                    graph.run(graph.comments()?.comment_history(self.id, page, OPERATOR, Frontier::EMPTY))?
                }
                Client::Remote(server) => server.comment_history(self.id, page)?,
            };
            Ok(Page::<Version>::uncounted(page.items, page.next))
        })
    }
}

/// A version of a comment.
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

impl Print for Version {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "version {}, {}", self.version, self.at)?;
        let shown = |line: &str| line.chars().map(harmless).collect::<String>();
        self.body.split('\n').try_for_each(|line| writeln!(out, "    {}", shown(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let version = CommentVersion { version: 2, at: Timestamp::from_millis(5), body: "a\n\tb".into() };
        let version = Version::from(version);
        let mut out = Vec::new();
        version.write_text(&mut out).unwrap();
        let printed = String::from_utf8(out).unwrap() + &serde_json::to_string(&version).unwrap();
        insta::assert_snapshot!(printed, @r#"
        version 2, 1970-01-01T00:00:00.005Z
            a
             b
        {"version":2,"at":"1970-01-01T00:00:00.005Z","body":"a\n\tb"}
        "#);
    }
}
