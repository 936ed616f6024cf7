//! `shards move`: moves a shard to another host, goes on with an interrupted move, or gives one up.

use std::time::Instant;

use anyhow::bail;

use super::super::prelude::*;
use crate::profile::fleet::FleetProfile;

/// Move a shard to another host while it is read and written
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk shards move 17 c --config fleet.toml\n\n\
    The shard's rows are copied, changes follow, and in the end writes to it wait for a moment. An interrupted move does\n\
    no harm: run the same command again, or give it up with --abort. A new host is added by 'kinfolk fleet init' after it is\n\
    in fleet.hosts of all processes.")]
pub(crate) struct Move {
    /// The number of the shard
    shard: u16,
    /// The host that it is moved to
    #[arg(required_unless_present = "abort", conflicts_with = "abort")]
    host: Option<String>,
    /// Give up a move that was interrupted: the shard stays on its old host
    #[arg(long)]
    abort: bool,
}

impl Move {
    pub(crate) fn run(self, context: &Context, profile: &FleetProfile) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let (began, shard, reporter) = (Instant::now(), self.shard, &context.reporter);
        let Some(host) = self.host.filter(|_| !self.abort) else {
            profile.abort_move(shard)?;
            return context.print(&Moved { shard, host: None, seconds: began.elapsed().as_secs_f64() });
        };
        if host.is_empty() {
            bail!("name the host");
        }
        profile.move_shard(shard, &host, &|progress| reporter.report(progress))?;
        reporter.finish();
        context.print(&Moved { shard, host: Some(host), seconds: began.elapsed().as_secs_f64() })
    }
}

#[derive(Serialize)]
pub(super) struct Moved {
    pub(super) shard: u16,
    /// Its new host; none if the move was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host: Option<String>,
    pub(super) seconds: f64,
}

impl Print for Moved {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { shard, host, seconds } = self;
        match host {
            Some(host) => writeln!(out, "moved shard {shard} to host {host} in {seconds:.1} s"),
            None => writeln!(out, "gave up the move of shard {shard}; it stays where it is"),
        }
    }
}
