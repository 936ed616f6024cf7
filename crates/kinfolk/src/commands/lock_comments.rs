//! `lock-comments` and `unlock-comments`: close the comments of a post and open them again, as a moderator.

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
        set_lock(context, self.post, true)
    }
}

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
        set_lock(context, self.post, false)
    }
}

fn set_lock(context: &Context, post: Id, locked: bool) -> Result<Outcome> {
    let outcome = context.call(|client| match client {
        Client::Local(graph) => {
            let comments = graph.comments()?;
            Ok(graph.removed(graph.run(comments.lock_comment_thread(Parent::post(post), locked))?))
        }
        Client::Remote(server) if locked => Ok(server.lock_comments(post)?),
        Client::Remote(server) => Ok(server.unlock_comments(post)?),
    })?;
    let verb = if outcome.changed { "is" } else { "was already" };
    let state = if locked { "locked" } else { "open" };
    context.print_written(outcome, format!("the thread of post {post} {verb} {state}"))
}
