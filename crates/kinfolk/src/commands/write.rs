//! `follow` and `unfollow`: one edge, made or removed, durable when the command ends.

use std::io::{self, Write};

use anyhow::{Context as _, Result};
use clap::Args;
use kinfolk_core::Id;
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand};
use serde::Serialize;

use super::KIND;
use crate::answer::{Answer, Outcome};
use crate::arguments::parse_id;
use crate::context::Context;

/// The two ends of an edge.
#[derive(Debug, Args)]
struct EdgeArguments {
    /// Who follows
    #[arg(value_name = "FOLLOWER", value_parser = parse_id)]
    follower: Id,
    /// Who is followed
    #[arg(value_name = "FOLLOWEE", value_parser = parse_id)]
    followee: Id,
}

/// What `follow` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk follow 1 2\n\n\
    Following someone again changes nothing and is a success. The graph is made if there is none.")]
pub struct FollowArguments {
    #[command(flatten)]
    edge: EdgeArguments,
}

/// What `unfollow` is given.
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk unfollow 1 2\n\n\
    Unfollowing someone who is not followed changes nothing and is a success.")]
pub struct UnfollowArguments {
    #[command(flatten)]
    edge: EdgeArguments,
}

impl FollowArguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        run(EdgeAction::Follow, &self.edge, context)
    }
}

impl UnfollowArguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        run(EdgeAction::Unfollow, &self.edge, context)
    }
}

fn run(action: EdgeAction, edge: &EdgeArguments, context: &Context) -> Result<Outcome> {
    let edge = Edge { follower: edge.follower, followee: edge.followee };
    let folder = context.target.folder();
    let open = match action {
        EdgeAction::Follow => {
            if folder.holds_no_store() {
                // Before the store is made: one of the wrong kind would be in the way ever after.
                let kind = folder.kind_when_created();
                kind.require(edge.follower)
                    .and_then(|()| kind.require(edge.followee))
                    .context("no graph was made; choose its kind of ids with --ids")?;
            }
            folder.open_or_create()?
        }
        EdgeAction::Unfollow => folder.open()?,
    };
    let written = open.run(open.graph().apply(KIND, vec![EdgeCommand { action, edge }]))?;
    let changed = written.changed.first().copied().unwrap_or_default();
    open.close()?;
    context.print(&Written { changed, token: written.token, edge, action })?;
    Ok(Outcome::Done)
}

#[derive(Serialize)]
struct Written {
    changed: bool,
    token: String,
    #[serde(skip)]
    edge: Edge,
    #[serde(skip)]
    action: EdgeAction,
}

impl Answer for Written {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        let Edge { follower, followee } = self.edge;
        let verb = match (self.action, self.changed) {
            (EdgeAction::Follow, true) => "now follows",
            (EdgeAction::Follow, false) => "already follows",
            (EdgeAction::Unfollow, true) => "no longer follows",
            (EdgeAction::Unfollow, false) => "did not follow",
        };
        writeln!(out, "{follower} {verb} {followee}")?;
        writeln!(out, "token {}", self.token)
    }
}
