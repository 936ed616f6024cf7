//! `lock-comments`: closes the comments of a post, as a moderator.

use kinfolk_core::comments::Parent;

use super::prelude::*;

/// Stop new comments on a post, as a moderator
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk lock-comments 70\n\n\
    Existing comments can still be read, edited and deleted.")]
pub(crate) struct LockComments {
    /// The post
    #[arg(value_parser = parse_id)]
    post: Id,
}

impl LockComments {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let post = self.post;
        let outcome = context.call(|client| match client {
            Client::Local(graph) => {
                Ok(graph.removed(graph.run(graph.comments()?.lock_comment_thread(Parent::post(post), true))?))
            }
            Client::Remote(server) => Ok(server.lock_comments(post)?),
        })?;
        let verb = if outcome.changed { "is" } else { "was already" };
        context.print_written(outcome, format!("the thread of post {post} {verb} locked"))
    }
}
