//! `fleet status`: the hosts of a fleet, what they hold, how far they are behind, and the processes that use them.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::print::{Align, Outcome, Print, grouped, write_table};
use crate::profile::fleet::{FleetProfile, FleetStatus, HostStatus};

/// Show the hosts, shards, lag and processes of a fleet
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk fleet status --config fleet.toml\n\n\
    'behind' is the number of changes that followers and counts on a host do not show yet; it is unknown while a host\n\
    does not answer. Processes are those with connections to a host. The exit status is 1 if a host can't be used.")]
pub(crate) struct Status {}

impl Status {
    pub(crate) fn run(self, context: &Context, profile: &FleetProfile) -> Result<Outcome> {
        let status = StatusDocument::new(profile.inspect()?);
        context.print(&status)?;
        let is_sound = status.hosts.iter().all(|host| host.problem.is_none());
        Ok(if is_sound { Outcome::Done } else { Outcome::No })
    }
}

#[derive(Serialize)]
struct StatusDocument {
    ids: &'static str,
    shards: usize,
    hosts: Vec<HostLine>,
    processes: Vec<ProcessLine>,
}

#[derive(Serialize)]
struct HostLine {
    name: String,
    shards: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_lead_ms: Option<u64>,
    /// Why the host can't be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Serialize)]
struct ProcessLine {
    role: String,
    address: String,
    process: u32,
}

impl StatusDocument {
    fn new(status: FleetStatus) -> Self {
        let host = |HostStatus { name, shards, condition }| {
            let (condition, problem) = match condition {
                Ok(condition) => (Some(condition), None),
                Err(problem) => (None, Some(problem)),
            };
            HostLine {
                name,
                shards,
                behind: condition.and_then(|condition| condition.changes_behind),
                clock_lead_ms: condition.map(|condition| condition.clock_lead.as_millis() as u64),
                problem,
            }
        };
        // Not this process, which only looks.
        let others = status.processes.into_iter().filter(|found| found.process != std::process::id());
        Self {
            ids: status.id_kind.name(),
            shards: status.shards,
            hosts: status.hosts.into_iter().map(host).collect(),
            processes: others
                .map(|found| ProcessLine { role: found.role, address: found.address, process: found.process })
                .collect(),
        }
    }
}

impl Print for StatusDocument {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} shards, {} ids\n", self.shards, self.ids)?;
        let columns = [
            ("host", Align::Left),
            ("shards", Align::Right),
            ("behind", Align::Right),
            ("clock lead", Align::Right),
            ("state", Align::Left),
        ];
        let rows = self.hosts.iter().map(|host| {
            [
                host.name.clone(),
                host.shards.to_string(),
                host.behind.map_or_else(|| "unknown".to_owned(), grouped),
                host.clock_lead_ms.map_or_else(|| "unknown".to_owned(), |lead| format!("{lead} ms")),
                host.problem.clone().unwrap_or_else(|| "ok".to_owned()),
            ]
        });
        write_table(out, columns, rows)?;
        writeln!(out)?;
        if self.processes.is_empty() {
            return writeln!(out, "no process is connected");
        }
        let columns = [("role", Align::Left), ("address", Align::Left), ("process", Align::Right)];
        let rows = self
            .processes
            .iter()
            .map(|found| [found.role.clone(), found.address.clone(), found.process.to_string()]);
        write_table(out, columns, rows)
    }
}
