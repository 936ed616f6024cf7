//! `comment-history`: all versions of a comment.

use kinfolk_api::{CommentVersion, Page};
use kinfolk_core::comments::CommentId;

use super::prelude::*;
use crate::client::OPERATOR;
use crate::print::harmless;

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
        self.pages.print(context, |client, request| match client {
            Client::Local(graph) => {
                let history =
                    graph.run(graph.comments()?.comment_history(self.id, request, OPERATOR, &graph.seen))?;
                Ok(Page::<CommentVersion>::from(history))
            }
            Client::Remote(server) => page_of(server.comment_history(self.id), request),
        })
    }
}

impl Print for CommentVersion {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "version {}, {}", self.version, self.at)?;
        let shown = |line: &str| line.chars().map(harmless).collect::<String>();
        self.body.split('\n').try_for_each(|line| writeln!(out, "    {}", shown(line)))
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::Timestamp;

    use super::*;

    #[test]
    fn both_forms() {
        let version =
            CommentVersion { version: 2, at: Timestamp::from_millis(5).into(), body: "a\n\tb".into() };
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
