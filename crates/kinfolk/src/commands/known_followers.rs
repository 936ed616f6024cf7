//! `known-followers`: the followers of a user that a viewer follows.

use anyhow::Result;
use clap::Args;
use kinfolk_core::{Frontier, Id};

use super::KIND;
use super::arguments::parse_id;
use super::common::Item;
use super::pages::{Page, PageArguments};
use crate::client::Client;
use crate::context::Context;
use crate::print::Outcome;

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
        pages.print(context, |client, page| {
            let page = match client {
                Client::Local(graph) => {
                    graph.run(graph.graph().known_followers(KIND, viewer, id, page, Frontier::EMPTY))?
                }
                Client::Remote(server) => server.known_followers(viewer, id, page)?,
            };
            Ok(Page::<Item>::from(page))
        })
    }
}
