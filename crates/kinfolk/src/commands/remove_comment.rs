//! `remove-comment`: removes a comment as a moderator, durably.

use kinfolk_core::comments::{CommentId, Moderator};

use super::prelude::*;
use crate::client::as_moderator;

/// Remove a comment as a moderator
#[derive(Debug, Args)]
#[command(
    after_help = "Example: kinfolk remove-comment 019a1b2c-3d4e-7f60-8a9b-0c1d2e3f4a5b 'advertising'\n\n\
    Its position and its replies remain. Only moderators see its body and the reason."
)]
pub(crate) struct RemoveComment {
    /// The comment
    #[arg(value_name = "COMMENT", value_parser = parse_comment_id)]
    id: CommentId,
    /// The reason, for other moderators
    reason: String,
    /// The moderating user, for the record [default: the caller's API key, on a server]
    #[arg(long, value_name = "USER", value_parser = parse_id)]
    moderator: Option<Id>,
}

impl RemoveComment {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let Self { id, reason, moderator } = self;
        let outcome = context.call(|client| match client {
            Client::Local(graph) => {
                let comments = graph.comments()?;
                Ok(graph.removed(graph.run(comments.remove_comment(
                    id,
                    reason.into(),
                    moderator.map(Moderator::User),
                ))?))
            }
            Client::Remote(server) => Ok(as_moderator(server, moderator).remove_comment(id, reason)?),
        })?;
        // An earlier withdrawal may have been of another kind.
        let status = if outcome.changed { "is removed" } else { "was gone before" };
        context.print_written(outcome, format!("comment {id} {status}"))
    }
}
