//! `following`: the followees of a user.

use kinfolk_api::Users;

use super::prelude::*;

/// List the users that a user follows, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk following 7 --limit 10\n  \
    kinfolk following 7 --all --json\n\n\
    Every page but the last ends with the cursor of the next page.")]
pub(crate) struct Following {
    /// The user
    #[arg(value_parser = parse_id)]
    id: Id,
    #[command(flatten)]
    pages: PageArguments,
}

impl Following {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |client, page| match client {
            Client::Local(graph) => {
                Ok(Users::from(graph.run(graph.graph.following(KIND, self.id, page, &graph.seen))?))
            }
            Client::Remote(server) => page_of(server.following(self.id), page),
        })
    }
}
