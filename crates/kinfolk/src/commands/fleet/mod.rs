//! `fleet`: creates, shows, restores and warms the deployment that the section fleet of the configuration names.

mod init;
mod new_epoch;
mod sets;
mod status;

use clap::Subcommand;

use super::prelude::*;
use crate::profile::fleet::FleetProfile;

/// Create a fleet of PostgreSQL databases, show its state, begin a new epoch, or warm its cache
#[derive(Debug, Args)]
pub(crate) struct Fleet {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    Init(init::Init),
    Status(status::Status),
    NewEpoch(new_epoch::NewEpoch),
    SaveSets(sets::SaveSets),
    Warm(sets::Warm),
}

impl Fleet {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let profile = FleetProfile::required(context)?;
        match self.command {
            FleetCommand::Init(command) => command.run(context, &profile),
            FleetCommand::Status(command) => command.run(context, &profile),
            FleetCommand::NewEpoch(command) => command.run(context, &profile),
            FleetCommand::SaveSets(command) => command.run(context, &profile),
            FleetCommand::Warm(command) => command.run(context, &profile),
        }
    }
}
