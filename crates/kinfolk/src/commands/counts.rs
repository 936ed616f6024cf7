//! `counts`: how many users each user follows, and how many follow them.

use kinfolk_api::{Counts as UserCounts, CountsList};
use serde::Serializer;

use super::prelude::*;
use crate::print::{Align, write_table};

/// The maximum number of users of one call.
const USERS_PER_CALL: usize = 100;

/// Print how many users each user follows and is followed by
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk counts 1 2 3\n\nAn unknown user has no edges.")]
pub(crate) struct Counts {
    /// The users
    #[arg(value_name = "ID", value_parser = parse_id, required = true)]
    users: Vec<Id>,
}

impl Counts {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let mut items = Vec::with_capacity(self.users.len());
        context.call(|client| {
            for ids in self.users.chunks(USERS_PER_CALL) {
                match client {
                    Client::Local(graph) => {
                        let counts = graph.run(graph.graph.counts(KIND, ids, &graph.seen))?;
                        items.extend(ids.iter().zip(counts).map(|(&id, counts)| UserCounts::new(id, counts)));
                    }
                    Client::Remote(server) => items.extend(server.counts_of(ids.iter().copied())?),
                }
            }
            Ok(())
        })?;
        context.print(&Counted(items))
    }
}

struct Counted(Vec<UserCounts>);

/// One user's counts are an object, several users' a list.
impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [item] => item.serialize(serializer),
            items => CountsList { items: items.to_vec() }.serialize(serializer),
        }
    }
}

impl Print for Counted {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = [("id", Align::Left), ("following", Align::Right), ("followers", Align::Right)];
        let rows = self
            .0
            .iter()
            .map(|item| [item.id.to_string(), item.following.to_string(), item.followers.to_string()]);
        write_table(out, columns, rows)
    }
}
