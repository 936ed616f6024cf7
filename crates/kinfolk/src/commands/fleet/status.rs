//! `fleet status`: the hosts of a fleet, what they hold, how far they are behind, and the processes that use them.

use super::super::prelude::*;
use super::arguments::Status;
use crate::print::{Align, write_table};
use crate::profile::fleet::FleetProfile;
use crate::profile::fleet::report::{
    CHECKS, CheckLine, FleetReport, HOSTS, HostLine, PROCESSES, ProcessLine, SHARDS, ShardLine,
};
use kinfolk_server::StateColumn;

impl Status {
    pub(crate) fn run(self, context: &Context, profile: &FleetProfile) -> Result<Outcome> {
        let mut status = profile.inspect()?;
        // Not this process, which only looks.
        status.processes.retain(|found| found.process != std::process::id());
        let status = FleetReport::new(status, self.shards);
        context.print(&status)?;
        let is_sound = status.hosts.iter().all(|host| host.problem.is_none());
        Ok(if is_sound { Outcome::Done } else { Outcome::No })
    }
}

/// Writes a table of the report.
fn write_rows<const N: usize>(
    out: &mut dyn Write,
    columns: [StateColumn; N],
    rows: impl Iterator<Item = [String; N]>,
) -> io::Result<()> {
    let align = |is_number| if is_number { Align::Right } else { Align::Left };
    write_table(out, columns.map(|column| (column.name, align(column.is_number))), rows)
}

impl Print for FleetReport {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let relayed = self.not_relayed.map(|count| format!(", {} changes not relayed", grouped(count)));
        let relayed = relayed.unwrap_or_default();
        writeln!(out, "{} shards, {} ids, epoch {}{relayed}\n", self.shards, self.ids, self.epoch)?;
        write_rows(out, HOSTS, self.hosts.iter().map(HostLine::row))?;
        writeln!(out)?;
        if !self.shard_marks.is_empty() {
            write_rows(out, SHARDS, self.shard_marks.iter().map(ShardLine::row))?;
            writeln!(out)?;
        }
        if self.processes.is_empty() {
            writeln!(out, "no process is connected")?;
        } else {
            write_rows(out, PROCESSES, self.processes.iter().map(ProcessLine::row))?;
        }
        let Some(checks) = self.checks.as_ref().filter(|checks| !checks.is_empty()) else { return Ok(()) };
        writeln!(out)?;
        write_rows(out, CHECKS, checks.iter().map(CheckLine::row))
    }
}
