//! `fleet init`: creates the schemas of a fleet's databases and spreads the shards over its hosts.

use std::num::NonZeroU16;

use super::super::prelude::*;
use crate::profile::fleet::FleetProfile;

/// Create a fleet on the databases of the configuration
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk fleet init --config fleet.toml --shards 256 --ids integer\n\n\
    The databases must exist and be empty; the shards are spread over the hosts of fleet.hosts. Neither the number of\n\
    shards nor the kind of ids (--ids) can be changed later. An interrupted run can be repeated.")]
pub(crate) struct Init {
    /// Number of logical shards, at most 512
    #[arg(long, value_name = "N", default_value = "256")]
    shards: NonZeroU16,
}

impl Init {
    pub(crate) fn run(self, context: &Context, profile: &FleetProfile) -> Result<Outcome> {
        let ids = profile.init(self.shards)?;
        let hosts = profile.hosts().map(str::to_owned).collect();
        context.print(&Created { ids: ids.name(), shards: self.shards, hosts })?;
        Ok(Outcome::Done)
    }
}

#[derive(Serialize)]
struct Created {
    ids: &'static str,
    shards: NonZeroU16,
    hosts: Vec<String>,
}

impl Print for Created {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { ids, shards, hosts } = self;
        writeln!(out, "created a fleet with {shards} shards and {ids} ids on {}", hosts.join(", "))
    }
}
