//! `common` and `known-followers`: who is in all of some lists, by id, and how many these are.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use kinfolk_core::Id;
use kinfolk_core::graph::OverlapPage;
use serde::Serialize;

use super::pages::{Page, PageArguments};
use crate::answer::{Answer, Outcome, as_text};
use crate::arguments::parse_id;
use crate::context::Context;

/// The most users of one call, as the graph has it.
const USERS_MAX: usize = 10;

/// What `common` is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk common 1 2\n  \
    kinfolk common 1 2 3 --all --json\n\n\
    The lines are ids, from low to high; how many there are in all is told on standard error, or as count in JSON.")]
pub struct CommonArguments {
    /// The users, up to 10: whom do all of them follow?
    #[arg(value_name = "ID", value_parser = parse_id, num_args = 2..=USERS_MAX, required = true)]
    users: Vec<Id>,
    #[command(flatten)]
    pages: PageArguments,
}

/// What `known-followers` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk known-followers 1 2\n\n\
    Who among those whom user 1 follows also follows user 2? The lines are ids, from low to high; how many there are\n\
    in all is told on standard error, or as count in JSON.")]
pub struct KnownFollowersArguments {
    /// Who asks
    #[arg(value_name = "VIEWER", value_parser = parse_id)]
    viewer: Id,
    /// Whose followers
    #[arg(value_name = "ID", value_parser = parse_id)]
    id: Id,
    #[command(flatten)]
    pages: PageArguments,
}

impl CommonArguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |target, request| target.common(&self.users, request).map(printable))
    }
}

impl KnownFollowersArguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        self.pages.print(context, |target, request| {
            target.known_followers(self.viewer, self.id, request).map(printable)
        })
    }
}

fn printable(OverlapPage { count, items, next }: OverlapPage) -> Page<Item> {
    Page { count: Some(count), items: items.into_iter().map(|id| Item { id }).collect(), next }
}

#[derive(Serialize)]
struct Item {
    #[serde(serialize_with = "as_text")]
    id: Id,
}

impl Answer for Item {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.id)
    }
}
