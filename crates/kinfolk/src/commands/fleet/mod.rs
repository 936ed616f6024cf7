//! `fleet`: creates, shows, restores and warms the deployment that the section fleet of the configuration names.

mod arguments;
#[cfg(feature = "fleet")]
mod init;
#[cfg(feature = "fleet")]
mod new_epoch;
#[cfg(feature = "fleet")]
mod sets;
#[cfg(feature = "fleet")]
mod status;

pub(crate) use arguments::Fleet;

use super::prelude::*;

#[cfg(feature = "fleet")]
impl Fleet {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        use arguments::FleetCommand;

        let profile = crate::profile::fleet::FleetProfile::required(context)?;
        match self.command {
            FleetCommand::Init(command) => command.run(context, &profile),
            FleetCommand::Status(command) => command.run(context, &profile),
            FleetCommand::NewEpoch(command) => command.run(context, &profile),
            FleetCommand::SaveSets(command) => command.run(context, &profile),
            FleetCommand::Warm(command) => command.run(context, &profile),
        }
    }
}

#[cfg(not(feature = "fleet"))]
impl Fleet {
    pub(crate) fn run(self, _: &Context) -> Result<Outcome> {
        anyhow::bail!(crate::context::BUILT_WITHOUT_FLEET)
    }
}
