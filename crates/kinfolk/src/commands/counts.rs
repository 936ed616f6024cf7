//! `counts`: how many edges users have on each side.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use kinfolk_core::Id;
use serde::{Serialize, Serializer};

use crate::answer::{Align, Answer, Outcome, as_text, write_table};
use crate::arguments::parse_id;
use crate::context::Context;

/// How many users the graph counts in one call.
const USERS_PER_CALL: usize = 100;

/// What `counts` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk counts 1 2 3\n\nA user that the graph does not know has no edges.")]
pub struct Arguments {
    /// The users
    #[arg(value_name = "ID", value_parser = parse_id, required = true)]
    users: Vec<Id>,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let target = context.place.open()?;
        let mut items = Vec::with_capacity(self.users.len());
        for ids in self.users.chunks(USERS_PER_CALL) {
            let counts = target.counts(ids)?;
            items.extend(ids.iter().zip(counts).map(|(&id, counts)| Item {
                id,
                following: counts.following,
                followers: counts.followers,
            }));
        }
        target.close()?;
        context.print(&Counted(items))?;
        Ok(Outcome::Done)
    }
}

#[derive(Serialize)]
struct Item {
    #[serde(serialize_with = "as_text")]
    id: Id,
    following: u64,
    followers: u64,
}

struct Counted(Vec<Item>);

/// One user's counts stand alone, those of several are a list.
impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct List<'a> {
            items: &'a [Item],
        }
        match self.0.as_slice() {
            [item] => item.serialize(serializer),
            items => List { items }.serialize(serializer),
        }
    }
}

impl Answer for Counted {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = [("id", Align::Left), ("following", Align::Right), ("followers", Align::Right)];
        let rows = self
            .0
            .iter()
            .map(|item| [item.id.to_string(), item.following.to_string(), item.followers.to_string()]);
        write_table(out, columns, rows)
    }
}
