//! `common`: the users that several users all follow. `known-followers` prints the same entries.

use kinfolk_api::{CountedPage, Member};

use super::prelude::*;

/// The maximum number of users of one call.
const USERS_MAX: usize = 10;

/// List the users that all of several users follow, by id
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk common 1 2\n  \
    kinfolk common 1 2 3 --all --json\n\n\
    Prints ids in ascending order. The total goes to standard error, or to 'count' in JSON.")]
pub(crate) struct Common {
    /// The users whose followees to compare, up to 10
    #[arg(value_name = "ID", value_parser = parse_id, num_args = 2..=USERS_MAX, required = true)]
    users: Vec<Id>,
    #[command(flatten)]
    pages: PageArguments,
}

impl Common {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |client, page| match client {
            Client::Local(graph) => {
                Ok(CountedPage::from(graph.run(graph.graph.common(KIND, &self.users, page, &graph.seen))?))
            }
            Client::Remote(server) => page_of(server.common(self.users.iter().copied()), page),
        })
    }
}

impl Print for Member {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.id)
    }
}
