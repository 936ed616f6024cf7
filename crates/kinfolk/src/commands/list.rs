//! `following`, `followers` and `friends`: one user's list, a page or all of it.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use kinfolk_core::graph::ListEntry;
use kinfolk_core::{Id, Timestamp};
use serde::Serialize;

use super::pages::{Page, PageArguments};
use crate::answer::{Answer, Outcome, as_text};
use crate::arguments::parse_id;
use crate::context::Context;
use crate::place::List;

/// What a list command is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk followers 7 --limit 10\n  \
    kinfolk followers 7 --all --json\n\n\
    A page that is not the last one ends with the cursor of the next.")]
pub struct Arguments {
    /// Whose list
    #[arg(value_name = "ID", value_parser = parse_id)]
    id: Id,
    #[command(flatten)]
    pages: PageArguments,
}

impl Arguments {
    pub fn run(self, list: List, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |target, request| {
            let page = target.page(list, self.id, request)?;
            Ok(Page::<Item>::uncounted(page.items, page.next))
        })
    }
}

#[derive(Serialize)]
struct Item {
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

impl Answer for Item {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        // The time comes first: it is always as wide, which keeps the columns straight on every page.
        writeln!(out, "{}  {}", self.since, self.id)
    }
}
