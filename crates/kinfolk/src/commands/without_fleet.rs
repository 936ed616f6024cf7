//! `fleet` in a binary that was built without the fleet profile: it says so.

use anyhow::Result;
use clap::Args;

use crate::context::{BUILT_WITHOUT_FLEET, Context};
use crate::print::Outcome;

/// Create a fleet of PostgreSQL databases, or show its state (not in this binary)
#[derive(Debug, Args)]
pub(crate) struct Fleet {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Fleet {
    pub(crate) fn run(self, _: &Context) -> Result<Outcome> {
        drop(self.arguments);
        anyhow::bail!(BUILT_WITHOUT_FLEET)
    }
}
