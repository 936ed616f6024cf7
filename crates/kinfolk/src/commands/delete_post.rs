//! `delete-post`: deletes a post, durably.

use super::prelude::*;

/// Delete a post
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk delete-post 1 70\n\n\
    Deleting a post again succeeds and changes nothing. Its id cannot be used again.")]
pub(crate) struct DeletePost {
    /// The author of the post
    #[arg(value_parser = parse_id)]
    author: Id,
    /// The post
    #[arg(value_name = "POST", value_parser = parse_id)]
    id: Id,
}

impl DeletePost {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let Self { author, id } = self;
        let outcome = context.call(|client| match client {
            Client::Local(graph) => {
                let feeds = graph.feeds()?;
                Ok(graph.removed(graph.run(feeds.delete_post(Some(author), id, &graph.seen))?))
            }
            Client::Remote(server) => Ok(server.acting_as(author).delete_post(id)?),
        })?;
        let verb = if outcome.changed { "is deleted" } else { "was deleted before" };
        context.print_written(outcome, format!("post {id} {verb}"))
    }
}
