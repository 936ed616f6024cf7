//! `fleet init`: creates the schemas of a fleet's databases and spreads the shards over its hosts; or brings a fleet up to date.

use std::num::NonZeroU16;

use super::super::prelude::*;
use super::arguments::Init;
use crate::profile::fleet::{FleetProfile, Initialized};

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
