//! `fleet status`: the hosts of a fleet, what they hold, how far they are behind, and the processes that use them.

use super::super::prelude::*;
use super::arguments::Status;
use crate::print::{Align, write_table};
use crate::profile::fleet::{CheckReport, FleetProfile, FleetStatus, HostStatus, ShardStatus, relay_behind};

impl Status {
    pub(crate) fn run(self, context: &Context, profile: &FleetProfile) -> Result<Outcome> {
        let status = StatusDocument::new(profile.inspect()?, self.shards);
        context.print(&status)?;
        let is_sound = status.hosts.iter().all(|host| host.problem.is_none());
        Ok(if is_sound { Outcome::Done } else { Outcome::No })
    }
}

#[derive(Serialize)]
struct StatusDocument {
    ids: &'static str,
    epoch: u64,
    shards: usize,
    /// Changes that are not in the topic yet, if anything was ever relayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_relayed: Option<u64>,
    hosts: Vec<HostLine>,
    processes: Vec<ProcessLine>,
    /// Who has answered the checks of each process in the last ten seconds, if there is Redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<Vec<CheckLine>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shard_marks: Vec<ShardLine>,
}

/// How far the changes of a shard have come.
#[derive(Serialize)]
struct ShardLine {
    shard: u16,
    host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relayed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    projected: Option<u64>,
    /// The process that relays it: its address and process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    relay: Option<String>,
}

impl ShardLine {
    fn new(status: &ShardStatus) -> Self {
        Self {
            shard: status.shard.0,
            host: status.host.clone(),
            newest: status.newest.map(|sequence| sequence.0),
            relayed: status.relayed.map(|sequence| sequence.0),
            projected: status.projected.map(|sequence| sequence.0),
            relay: status.relay.as_ref().map(|relay| format!("{}:{}", relay.address, relay.process)),
        }
    }
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

/// The reports of processes that serve: the others have no checks.
fn check_lines(reports: Vec<CheckReport>) -> Vec<CheckLine> {
    let serves = |report: &CheckReport| matches!(report.role.as_str(), "api" | "all");
    reports.into_iter().filter(serves).map(CheckLine::new).collect()
}

/// How many checks each layer of a process has answered.
#[derive(Serialize)]
struct CheckLine {
    role: String,
    machine: String,
    process: u32,
    filter: u64,
    cache: u64,
    shard: u64,
}

impl CheckLine {
    fn new(report: CheckReport) -> Self {
        let CheckReport { role, machine, process, by_filter, by_cache, by_shard } = report;
        Self { role, machine, process, filter: by_filter, cache: by_cache, shard: by_shard }
    }

    fn row(&self) -> [String; 7] {
        let checks = self.filter + self.cache + self.shard;
        let share = |count: u64| match checks {
            0 => "-".to_owned(),
            checks => format!("{:.1} %", 100.0 * count as f64 / checks as f64),
        };
        [
            self.role.clone(),
            self.machine.clone(),
            self.process.to_string(),
            grouped(checks),
            share(self.filter),
            share(self.cache),
            share(self.shard),
        ]
    }
}

impl StatusDocument {
    fn new(status: FleetStatus, with_shards: bool) -> Self {
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
            epoch: status.epoch.0,
            shards: status.shards.len(),
            not_relayed: relay_behind(&status.shards),
            hosts: status.hosts.into_iter().map(host).collect(),
            processes: others
                .map(|found| ProcessLine { role: found.role, address: found.address, process: found.process })
                .collect(),
            checks: status.checks.map(check_lines),
            shard_marks: status.shards.iter().filter(|_| with_shards).map(ShardLine::new).collect(),
        }
    }

    /// Who answers checks, process by process.
    fn write_checks(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(checks) = self.checks.as_ref().filter(|checks| !checks.is_empty()) else { return Ok(()) };
        let columns = [
            ("checks of", Align::Left),
            ("machine", Align::Left),
            ("process", Align::Right),
            ("in 10 s", Align::Right),
            ("filter", Align::Right),
            ("cache", Align::Right),
            ("shard", Align::Right),
        ];
        writeln!(out)?;
        write_table(out, columns, checks.iter().map(CheckLine::row))
    }

    fn write_shards(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = [
            ("shard", Align::Right),
            ("host", Align::Left),
            ("newest", Align::Right),
            ("relayed", Align::Right),
            ("projected", Align::Right),
            ("relay", Align::Left),
        ];
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), grouped);
        let rows = self.shard_marks.iter().map(|shard| {
            [
                shard.shard.to_string(),
                shard.host.clone(),
                number(shard.newest),
                number(shard.relayed),
                number(shard.projected),
                shard.relay.clone().unwrap_or_else(|| "-".to_owned()),
            ]
        });
        write_table(out, columns, rows)
    }
}

impl Print for StatusDocument {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let relayed = self.not_relayed.map(|count| format!(", {} changes not relayed", grouped(count)));
        let relayed = relayed.unwrap_or_default();
        writeln!(out, "{} shards, {} ids, epoch {}{relayed}\n", self.shards, self.ids, self.epoch)?;
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
        if !self.shard_marks.is_empty() {
            self.write_shards(out)?;
            writeln!(out)?;
        }
        if self.processes.is_empty() {
            writeln!(out, "no process is connected")?;
        } else {
            let columns = [("role", Align::Left), ("address", Align::Left), ("process", Align::Right)];
            let rows = self
                .processes
                .iter()
                .map(|found| [found.role.clone(), found.address.clone(), found.process.to_string()]);
            write_table(out, columns, rows)?;
        }
        self.write_checks(out)
    }
}
