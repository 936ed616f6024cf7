//! `friends`: the users who follow a user and are followed back.

use kinfolk_api::Users;

use super::prelude::*;

/// List the mutual followers of a user, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk friends 7 --limit 10\n  \
    kinfolk friends 7 --all --json\n\n\
    Every page but the last ends with the cursor of the next page.")]
pub(crate) struct Friends {
    /// The user
    #[arg(value_parser = parse_id)]
    id: Id,
    #[command(flatten)]
    pages: PageArguments,
}

impl Friends {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |client, page| match client {
            Client::Local(graph) => {
                Ok(Users::from(graph.run(graph.graph.friends(KIND, self.id, page, &graph.seen))?))
            }
            Client::Remote(server) => page_of(server.friends(self.id), page),
        })
    }
}
