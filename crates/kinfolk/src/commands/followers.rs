//! `followers`: the followers of a user. How an entry of a list of users prints is here too.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use kinfolk_core::graph::ListEntry;
use kinfolk_core::{Frontier, Id, Timestamp};
use serde::Serialize;

use super::KIND;
use super::arguments::parse_id;
use super::pages::{Page, PageArguments};
use crate::client::Client;
use crate::context::Context;
use crate::print::{Outcome, Print, as_text};

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
        self.pages.print(context, |client, page| {
            let page = match client {
                Client::Local(graph) => {
                    graph.run(graph.graph().followers(KIND, self.id, page, Frontier::EMPTY))?
                }
                Client::Remote(server) => server.list("followers", self.id, page)?,
            };
            Ok(Page::<Item>::uncounted(page.items, page.next))
        })
    }
}

/// A user of a list.
#[derive(Serialize)]
pub(crate) struct Item {
    #[serde(serialize_with = "as_text")]
    id: Id,
    #[serde(serialize_with = "as_text")]
    since: Timestamp,
}

impl From<ListEntry> for Item {
    fn from(ListEntry { since, id }: ListEntry) -> Self {
        Self { id, since }
    }
}

impl Print for Item {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        // The time comes first: its width is fixed, which keeps the columns aligned across pages.
        writeln!(out, "{}  {}", self.since, self.id)
    }
}
