//! `fleet init`: creates the schemas of a fleet's databases and spreads the shards over its hosts; or brings a fleet up to date.

use std::num::NonZeroU16;

use super::super::prelude::*;
use crate::profile::fleet::{FleetProfile, Initialized};

/// Create a fleet on the databases of the configuration
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk fleet init --config fleet.toml --shards 256 --ids integer\n\n\
    The databases must exist and be empty; the shards are spread over the hosts of fleet.hosts. Neither the number of\n\
    shards nor the kind of ids (--ids) can be changed later. An interrupted run can be repeated.\n\n\
    Where there is a fleet already, its schemas are brought to the version of this program, and hosts that are new in\n\
    fleet.hosts are added without shards: see 'kinfolk shards balance'.")]
pub(crate) struct Init {
    /// Number of logical shards, at most 512
    #[arg(long, value_name = "N", default_value = "256")]
    shards: NonZeroU16,
}

impl Init {
    pub(crate) fn run(self, context: &Context, profile: &FleetProfile) -> Result<Outcome> {
        let (done, ids) = profile.init(self.shards)?;
        let hosts = profile.hosts().map(str::to_owned).collect();
        match done {
            Initialized::Created => context.print(&Created { ids: ids.name(), shards: self.shards, hosts }),
            Initialized::Updated => context.print(&Updated { hosts }),
        }
    }
}

#[derive(Serialize)]
struct Updated {
    hosts: Vec<String>,
}

impl Print for Updated {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "brought the fleet on {} up to date", self.hosts.join(", "))
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
