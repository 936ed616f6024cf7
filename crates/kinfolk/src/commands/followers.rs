//! `followers`: the followers of a user. `following` and `friends` print the same entries.

use kinfolk_api::{ListEntry, Users};

use super::prelude::*;

/// List the followers of a user, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk followers 7 --limit 10\n  \
    kinfolk followers 7 --all --json\n\n\
    Every page but the last ends with the cursor of the next page.")]
pub(crate) struct Followers {
    /// The user
    #[arg(value_parser = parse_id)]
    id: Id,
    #[command(flatten)]
    pages: PageArguments,
}

impl Followers {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |client, page| match client {
            Client::Local(graph) => {
                Ok(Users::from(graph.run(graph.graph.followers(KIND, self.id, page, &graph.seen))?))
            }
            Client::Remote(server) => page_of(server.followers(self.id), page),
        })
    }
}

impl Print for ListEntry {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        // The time comes first: its width is fixed, which keeps the columns aligned across pages.
        writeln!(out, "{}  {}", self.since, self.id)
    }
}
