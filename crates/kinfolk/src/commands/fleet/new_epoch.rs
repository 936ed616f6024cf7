//! `fleet new-epoch`: what an operator runs after a database was restored from a backup.

use super::super::prelude::*;
use crate::profile::fleet::FleetProfile;

/// Begin a new epoch, after a database of the fleet was restored from a backup
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk fleet new-epoch --config fleet.toml\n\n\
    A restored database has lost its newest changes, and would give their positions to other ones. A new epoch makes that\n\
    harmless: tokens and cursors of the old one are refused, cached sets and filters are dropped, and the follower side is\n\
    rebuilt from the edges as they are now. The fleet serves neither reads nor writes until it is done; it takes as long as\n\
    writing every edge once more. An interrupted run leaves all shards closed: run it again.")]
pub(crate) struct NewEpoch {}

impl NewEpoch {
    pub(crate) fn run(self, context: &Context, profile: &FleetProfile) -> Result<Outcome> {
        let epoch = profile.begin_epoch()?;
        context.print(&Begun { epoch: epoch.0 })
    }
}

#[derive(Serialize)]
struct Begun {
    epoch: u64,
}

impl Print for Begun {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "epoch {} has begun; tokens and cursors from before it are refused", self.epoch)
    }
}
