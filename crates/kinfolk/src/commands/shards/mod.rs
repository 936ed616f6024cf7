//! `shards`: which host has which shard of a fleet, and moving them.

mod balance;
mod list;
mod moves;

use clap::Subcommand;

use super::prelude::*;
use crate::profile::fleet::FleetProfile;

/// Show which host has which shard of a fleet, move a shard, or plan moves
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk shards --config fleet.toml\n\n\
    Shows every shard with its host, and unfinished moves.")]
pub(crate) struct Shards {
    #[command(subcommand)]
    command: Option<ShardsCommand>,
}

#[derive(Debug, Subcommand)]
enum ShardsCommand {
    Move(moves::Move),
    Balance(balance::Balance),
}

impl Shards {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let profile = FleetProfile::required(context)?;
        match self.command {
            None => list::run(context, &profile),
            Some(ShardsCommand::Move(command)) => command.run(context, &profile),
            Some(ShardsCommand::Balance(command)) => command.run(context, &profile),
        }
    }
}
