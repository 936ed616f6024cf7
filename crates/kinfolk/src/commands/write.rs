//! `follow` and `unfollow`: one edge, made or removed, durable when the command ends.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use kinfolk_core::Id;
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand};
use serde::Serialize;

use crate::answer::{Answer, Outcome};
use crate::arguments::parse_id;
use crate::context::Context;
use crate::place::WriteDone;

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
    let target = match action {
        EdgeAction::Follow => context.place.open_to_add(&[edge.follower, edge.followee])?,
        EdgeAction::Unfollow => context.place.open()?,
    };
    let done = target.write(EdgeCommand { action, edge })?;
    target.close()?;
    let verb = match (action, done.changed) {
        (EdgeAction::Follow, true) => "now follows",
        (EdgeAction::Follow, false) => "already follows",
        (EdgeAction::Unfollow, true) => "no longer follows",
        (EdgeAction::Unfollow, false) => "did not follow",
    };
    let said = format!("{} {verb} {}", edge.follower, edge.followee);
    context.print(&Written::new(done, said))?;
    Ok(Outcome::Done)
}

/// What a write did, as every command that writes one edge answers.
#[derive(Serialize)]
pub struct Written {
    changed: bool,
    token: String,
    /// The same in words.
    #[serde(skip)]
    said: String,
}

impl Written {
    /// An answer with what was done in words.
    pub fn new(WriteDone { changed, token }: WriteDone, said: String) -> Self {
        Self { changed, token, said }
    }
}

impl Answer for Written {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.said)?;
        writeln!(out, "token {}", self.token)
    }
}
