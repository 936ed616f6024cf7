//! `purge-comment`: erases the body of a comment for good, as a moderator.

use kinfolk_core::comments::{CommentId, Moderator};

use super::prelude::*;
use crate::client::as_moderator;

/// Erase the body of a comment for good, as a moderator
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk purge-comment 019a1b2c-3d4e-7f60-8a9b-0c1d2e3f4a5b\n\n\
    From then on nobody can read any version of it, not even moderators, and there is no undo. 'kinfolk compact', or the\n\
    server within comments.erase_after, erases the bodies from the files. Earlier backups still contain them.")]
pub(crate) struct PurgeComment {
    /// The comment
    #[arg(value_name = "COMMENT", value_parser = parse_comment_id)]
    id: CommentId,
    /// The moderating user, for the record [default: the caller's API key, on a server]
    #[arg(long, value_name = "USER", value_parser = parse_id)]
    moderator: Option<Id>,
}

impl PurgeComment {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let Self { id, moderator } = self;
        let outcome = context.call(|client| match client {
            Client::Local(graph) => {
                let comments = graph.comments()?;
                Ok(graph.removed(graph.run(comments.purge_comment(id, moderator.map(Moderator::User)))?))
            }
            Client::Remote(server) => Ok(as_moderator(server, moderator).purge_comment(id)?),
        })?;
        // An earlier withdrawal may have been of another kind.
        let status = if outcome.changed { "is purged" } else { "was gone before" };
        context.print_written(outcome, format!("comment {id} {status}"))
    }
}
