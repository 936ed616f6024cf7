//! `known-followers`: the followers of a user that a viewer follows.

use kinfolk_api::CountedPage;

use super::prelude::*;

/// List the followers of a user that a viewer follows, by id
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk known-followers 1 2\n\n\
    Lists the followees of user 1 that follow user 2: ids in ascending order. The total goes to standard error, or to\n\
    'count' in JSON.")]
pub(crate) struct KnownFollowers {
    /// The user who views the list
    #[arg(value_parser = parse_id)]
    viewer: Id,
    /// The user whose followers to list
    #[arg(value_parser = parse_id)]
    id: Id,
    #[command(flatten)]
    pages: PageArguments,
}

impl KnownFollowers {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let Self { viewer, id, pages } = self;
        pages.print(context, |client, page| match client {
            Client::Local(graph) => {
                let call = graph.graph.known_followers(KIND, viewer, id, page, &graph.seen);
                Ok(CountedPage::from(graph.run(call)?))
            }
            Client::Remote(server) => page_of(server.known_followers(viewer, id), page),
        })
    }
}
