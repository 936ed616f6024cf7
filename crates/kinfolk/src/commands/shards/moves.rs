//! `shards move`: moves a shard to another host, goes on with an interrupted move, or gives one up.

use std::time::Instant;

use super::super::prelude::*;
use super::arguments::Move;
use crate::failure::UsageError;
use crate::profile::fleet::FleetProfile;

impl Move {
    pub(crate) fn run(self, context: &Context, profile: &FleetProfile) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let (began, shard, reporter) = (Instant::now(), self.shard, &context.reporter);
        if self.abort {
            profile.abort_move(shard)?;
            return context.print(&Moved { shard, host: None, seconds: began.elapsed().as_secs_f64() });
        }
        let Some(host) = self.host.filter(|host| !host.is_empty()) else {
            let message = "the host is missing; name it, or give up the move with --abort";
            return Err(UsageError(message.to_owned()).into());
        };
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
