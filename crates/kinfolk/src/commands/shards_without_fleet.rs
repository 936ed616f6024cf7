//! `shards` in a binary that was built without the fleet profile: it says so.

use anyhow::Result;
use clap::Args;

use crate::context::{BUILT_WITHOUT_FLEET, Context};
use crate::print::Outcome;

/// Show or move the shards of a fleet (not in this binary)
#[derive(Debug, Args)]
pub(crate) struct Shards {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Shards {
    pub(crate) fn run(self, _: &Context) -> Result<Outcome> {
        drop(self.arguments);
        anyhow::bail!(BUILT_WITHOUT_FLEET)
    }
}
