//! `common`: the users that several users all follow. How an entry of an overlap prints is here too.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use kinfolk_core::graph::OverlapPage;
use kinfolk_core::{Frontier, Id};
use serde::Serialize;

use super::KIND;
use super::arguments::parse_id;
use super::pages::{Page, PageArguments};
use crate::client::Client;
use crate::context::Context;
use crate::print::{Outcome, Print, as_text};

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
        self.pages.print(context, |client, page| {
            let page = match client {
                Client::Local(graph) => {
                    graph.run(graph.graph().common(KIND, &self.users, page, Frontier::EMPTY))?
                }
                Client::Remote(server) => server.common(&self.users, page)?,
            };
            Ok(Page::<Item>::from(page))
        })
    }
}

/// A user of an overlap.
#[derive(Serialize)]
pub(crate) struct Item {
    #[serde(serialize_with = "as_text")]
    id: Id,
}

impl From<OverlapPage> for Page<Item> {
    fn from(OverlapPage { count, items, next }: OverlapPage) -> Self {
        Self { count: Some(count), items: items.into_iter().map(|id| Item { id }).collect(), next }
    }
}

impl Print for Item {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.id)
    }
}
