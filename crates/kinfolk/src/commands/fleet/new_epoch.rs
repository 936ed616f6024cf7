//! `fleet new-epoch`: what an operator runs after a database was restored from a backup.

use super::super::prelude::*;
use super::arguments::NewEpoch;
use crate::profile::fleet::FleetProfile;

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
