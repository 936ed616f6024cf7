//! `fleet`: creates, shows and warms the deployment that the section fleet of the configuration names.

mod init;
mod sets;
mod status;

use clap::Subcommand;

use super::prelude::*;
use crate::failure::UsageError;
use crate::profile::fleet::FleetProfile;

/// Create a fleet of PostgreSQL databases, show its state, or warm its cache
#[derive(Debug, Args)]
pub(crate) struct Fleet {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    Init(init::Init),
    Status(status::Status),
    SaveSets(sets::SaveSets),
    Warm(sets::Warm),
}

impl Fleet {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let profile = FleetProfile::of(context).ok_or_else(|| {
            UsageError("no fleet is configured; set fleet.catalog and fleet.hosts in a file, and name it with --config".to_owned())
        })?;
        match self.command {
            FleetCommand::Init(command) => command.run(context, &profile),
            FleetCommand::Status(command) => command.run(context, &profile),
            FleetCommand::SaveSets(command) => command.run(context, &profile),
            FleetCommand::Warm(command) => command.run(context, &profile),
        }
    }
}
