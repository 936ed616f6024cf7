//! `fleet`: creates and shows the deployment that the section fleet of the configuration names.

mod init;
mod status;

use clap::Subcommand;

use super::prelude::*;
use crate::failure::UsageError;
use crate::profile::fleet::FleetProfile;

/// Create a fleet of PostgreSQL databases, or show its state
#[derive(Debug, Args)]
pub(crate) struct Fleet {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    Init(init::Init),
    Status(status::Status),
}

impl Fleet {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let profile = FleetProfile::of(context).ok_or_else(|| {
            UsageError("no fleet is configured; set fleet.catalog and fleet.hosts in a file, and name it with --config".to_owned())
        })?;
        match self.command {
            FleetCommand::Init(command) => command.run(context, &profile),
            FleetCommand::Status(command) => command.run(context, &profile),
        }
    }
}
