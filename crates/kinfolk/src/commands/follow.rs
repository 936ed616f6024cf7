//! `follow`: adds an edge, durably.

use super::prelude::*;

/// Make one user follow another
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk follow 1 2\n\n\
    Following a user again succeeds and changes nothing. The graph is created if there is none.")]
pub(crate) struct Follow {
    /// The user who follows
    #[arg(value_parser = parse_id)]
    follower: Id,
    /// The user to follow
    #[arg(value_parser = parse_id)]
    followee: Id,
}

impl Follow {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let Self { follower, followee } = self;
        let outcome = context.call_or_create(&[follower, followee], |client| match client {
            Client::Local(graph) => {
                Ok(graph.changed(graph.run(graph.graph.follow(KIND, follower, followee))?))
            }
            Client::Remote(server) => Ok(server.acting_as(follower).follow(followee)?),
        })?;
        let verb = if outcome.changed { "now follows" } else { "already follows" };
        context.print_written(outcome, format!("{follower} {verb} {followee}"))
    }
}
