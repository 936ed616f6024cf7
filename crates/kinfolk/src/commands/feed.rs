//! `feed`: the posts of a user's followees.

use kinfolk_api::Posts;

use super::prelude::*;

/// List the posts of a user's followees, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk feed 7 --limit 10\n  \
    kinfolk feed 7 --all --json\n\n\
    Prints time, id, author and the beginning of the payload. Every page but the last ends with the cursor of the\n\
    next page.")]
pub(crate) struct Feed {
    /// The user
    #[arg(value_parser = parse_id)]
    id: Id,
    #[command(flatten)]
    pages: PageArguments,
}

impl Feed {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |client, page| match client {
            Client::Local(graph) => {
                Ok(Posts::from(graph.run(graph.feeds()?.feed(self.id, page, &graph.seen))?))
            }
            Client::Remote(server) => page_of(server.feed(self.id), page),
        })
    }
}
