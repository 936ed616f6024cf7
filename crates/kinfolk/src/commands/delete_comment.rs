//! `delete-comment`: deletes a comment as its author, durably.

use kinfolk_core::comments::CommentId;

use super::prelude::*;

/// Delete a comment as its author
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk delete-comment 1 019a1b2c-3d4e-7f60-8a9b-0c1d2e3f4a5b\n\n\
    Its position and its replies remain. Deleting it again succeeds and changes nothing.")]
pub(crate) struct DeleteComment {
    /// The author of the comment
    #[arg(value_parser = parse_id)]
    author: Id,
    /// The comment
    #[arg(value_name = "COMMENT", value_parser = parse_comment_id)]
    id: CommentId,
}

impl DeleteComment {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let Self { author, id } = self;
        let outcome = context.call(|client| match client {
            Client::Local(graph) => {
                let comments = graph.comments()?;
                Ok(graph.removed(graph.run(comments.delete_comment(Some(author), id, &graph.seen))?))
            }
            Client::Remote(server) => Ok(server.acting_as(author).delete_comment(id)?),
        })?;
        // An earlier withdrawal may have been of another kind.
        let status = if outcome.changed { "is deleted" } else { "was gone before" };
        context.print_written(outcome, format!("comment {id} {status}"))
    }
}
