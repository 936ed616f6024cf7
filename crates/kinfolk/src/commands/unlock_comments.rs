//! `unlock-comments`: opens the comments of a post again, as a moderator.

use kinfolk_core::comments::Parent;

use super::prelude::*;

/// Allow new comments on a post again, as a moderator
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk unlock-comments 70\n\n\
    Unlocking a post that is not locked succeeds and changes nothing.")]
pub(crate) struct UnlockComments {
    /// The post
    #[arg(value_parser = parse_id)]
    post: Id,
}

impl UnlockComments {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let post = self.post;
        let outcome =
            context.call(|client| match client {
                Client::Local(graph) => Ok(graph
                    .removed(graph.run(graph.comments()?.lock_comment_thread(Parent::post(post), false))?)),
                Client::Remote(server) => Ok(server.unlock_comments(post)?),
            })?;
        let verb = if outcome.changed { "is" } else { "was already" };
        context.print_written(outcome, format!("the thread of post {post} {verb} open"))
    }
}
