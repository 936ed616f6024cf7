//! `check`: whether one user follows another, and since when.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use kinfolk_core::graph::Edge;
use kinfolk_core::{Id, Timestamp};
use serde::Serialize;

use crate::answer::{Answer, Outcome, as_optional_text};
use crate::arguments::parse_id;
use crate::context::Context;

/// What `check` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk check 1 2 && echo 'user 1 follows user 2'\n\n\
    The exit status is 0 for yes and 1 for no.")]
pub struct Arguments {
    /// Who may follow
    #[arg(value_name = "FOLLOWER", value_parser = parse_id)]
    follower: Id,
    /// Who may be followed
    #[arg(value_name = "FOLLOWEE", value_parser = parse_id)]
    followee: Id,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let target = context.place.open()?;
        let since = target.since(Edge { follower: self.follower, followee: self.followee })?;
        target.close()?;
        context.print(&Checked { following: since.is_some(), since })?;
        Ok(if since.is_some() { Outcome::Done } else { Outcome::No })
    }
}

#[derive(Serialize)]
struct Checked {
    following: bool,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    since: Option<Timestamp>,
}

impl Answer for Checked {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.since {
            Some(since) => writeln!(out, "yes, since {since}"),
            None => writeln!(out, "no"),
        }
    }
}
