//! `shards balance`: plans moves that spread the shards evenly over the hosts, and makes them if asked to.

use std::time::Instant;

use super::super::prelude::*;
use super::arguments::Balance;
use super::moves::Moved;
use crate::print::{Align, write_table};
use crate::profile::fleet::{FleetProfile, PlannedMove, plan_balance};

impl Balance {
    pub(crate) fn run(self, context: &Context, profile: &FleetProfile) -> Result<Outcome> {
        let (status, _) = profile.shards()?;
        let hosts: Vec<String> = status.hosts.into_iter().map(|host| host.name).collect();
        let shards: Vec<_> = status.shards.into_iter().map(|shard| (shard.shard, shard.host)).collect();
        let planned = plan_balance(&hosts, &shards);
        if !self.run {
            return context.print(&Planned { moves: planned.iter().map(PlannedLine::new).collect() });
        }
        interrupt::end_at_once()?;
        for PlannedMove { shard, to, .. } in planned {
            let (began, reporter) = (Instant::now(), &context.reporter);
            profile.move_shard(shard.0, &to, &|progress| reporter.report(progress))?;
            reporter.finish();
            context.print(&Moved {
                shard: shard.0,
                host: Some(to),
                seconds: began.elapsed().as_secs_f64(),
            })?;
        }
        Ok(Outcome::Done)
    }
}

#[derive(Serialize)]
struct Planned {
    moves: Vec<PlannedLine>,
}

#[derive(Serialize)]
struct PlannedLine {
    shard: u16,
    from: String,
    to: String,
}

impl PlannedLine {
    fn new(planned: &PlannedMove) -> Self {
        Self { shard: planned.shard.0, from: planned.from.clone(), to: planned.to.clone() }
    }
}

impl Print for Planned {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.moves.is_empty() {
            return writeln!(out, "the shards are spread evenly");
        }
        let columns = [("shard", Align::Right), ("from", Align::Left), ("to", Align::Left)];
        let rows = self.moves.iter().map(|line| [line.shard.to_string(), line.from.clone(), line.to.clone()]);
        write_table(out, columns, rows)?;
        writeln!(out, "\nrun 'kinfolk shards balance --run' to make these moves")
    }
}
