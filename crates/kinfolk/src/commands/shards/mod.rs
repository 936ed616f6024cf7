//! `shards`: which host has which shard of a fleet, and moving them.

mod arguments;
#[cfg(feature = "fleet")]
mod balance;
#[cfg(feature = "fleet")]
mod list;
#[cfg(feature = "fleet")]
mod moves;

pub(crate) use arguments::Shards;

use super::prelude::*;

#[cfg(feature = "fleet")]
impl Shards {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        use arguments::ShardsCommand;

        let profile = crate::profile::fleet::FleetProfile::required(context)?;
        match self.command {
            None => list::run(context, &profile),
            Some(ShardsCommand::Move(command)) => command.run(context, &profile),
            Some(ShardsCommand::Balance(command)) => command.run(context, &profile),
        }
    }
}

#[cfg(not(feature = "fleet"))]
impl Shards {
    pub(crate) fn run(self, _: &Context) -> Result<Outcome> {
        anyhow::bail!(crate::context::BUILT_WITHOUT_FLEET)
    }
}
