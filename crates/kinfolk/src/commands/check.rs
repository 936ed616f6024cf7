//! `check`: whether one user follows another, and since when.

use kinfolk_api::Follows;

use super::prelude::*;

/// Check whether one user follows another
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk check 1 2 && echo 'user 1 follows user 2'\n\n\
    The exit status is 0 for yes and 1 for no.")]
pub(crate) struct Check {
    /// The follower
    #[arg(value_parser = parse_id)]
    follower: Id,
    /// The followee
    #[arg(value_parser = parse_id)]
    followee: Id,
}

impl Check {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let Self { follower, followee } = self;
        let follows = context.call(|client| match client {
            Client::Local(graph) => {
                let others = [followee];
                let call = graph.graph.relationships(KIND, follower, &others, &graph.seen);
                Ok(graph.run(call)?.first().and_then(|relationship| relationship.since).into())
            }
            Client::Remote(server) => Ok(server.follows(follower, followee)?),
        })?;
        context.print(&follows)?;
        Ok(if follows.following { Outcome::Done } else { Outcome::No })
    }
}

impl Print for Follows {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.since {
            Some(since) => writeln!(out, "yes, since {since}"),
            None => writeln!(out, "no"),
        }
    }
}
