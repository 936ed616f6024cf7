//! `unfollow`: removes an edge, durably.

use super::prelude::*;

/// Make one user unfollow another
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk unfollow 1 2\n\n\
    Unfollowing a user who is not followed succeeds and changes nothing.")]
pub(crate) struct Unfollow {
    /// The user who unfollows
    #[arg(value_parser = parse_id)]
    follower: Id,
    /// The user to unfollow
    #[arg(value_parser = parse_id)]
    followee: Id,
}

impl Unfollow {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let Self { follower, followee } = self;
        let outcome = context.call(|client| match client {
            Client::Local(graph) => {
                Ok(graph.changed(graph.run(graph.graph.unfollow(KIND, follower, followee))?))
            }
            Client::Remote(server) => Ok(server.acting_as(follower).unfollow(followee)?),
        })?;
        let verb = if outcome.changed { "no longer follows" } else { "did not follow" };
        context.print_written(outcome, format!("{follower} {verb} {followee}"))
    }
}
