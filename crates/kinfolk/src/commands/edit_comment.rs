//! `edit-comment`: replaces the body of a comment, durably.

use kinfolk_api::{self as api, Written};
use kinfolk_core::comments::{CommentEdit, CommentId};

use super::comment::read_body;
use super::prelude::*;

/// Edit a comment
#[derive(Debug, Args)]
#[command(
    after_help = "Example: kinfolk edit-comment 1 019a1b2c-3d4e-7f60-8a9b-0c1d2e3f4a5b 1 'What a view.'\n\n\
    An edit of a version that is no longer current is refused: another edit came first."
)]
pub(crate) struct EditComment {
    /// The author of the comment
    #[arg(value_parser = parse_id)]
    author: Id,
    /// The comment
    #[arg(value_name = "COMMENT", value_parser = parse_comment_id)]
    id: CommentId,
    /// The version to edit; a new comment has version 1
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    version: u32,
    /// The new body; '-' reads standard input
    #[arg(value_name = "TEXT")]
    body: String,
}

impl EditComment {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let Self { author, id, version, body } = self;
        let body = read_body(body, io::stdin())?;
        let written = context.call(|client| match client {
            Client::Local(graph) => {
                let (comments, edit) = (graph.comments()?, CommentEdit { id, version, body });
                let comment = graph.run(comments.edit_comment(Some(author), edit, &graph.seen))?;
                let outcome = graph.written(comment.position, comment.is_new);
                Ok(Written::<api::Comment>::new(outcome, comment.comment.into()))
            }
            Client::Remote(server) => Ok(server.acting_as(author).edit_comment(id, version, &*body)?),
        })?;
        context.print(&written)
    }
}
