//! The state of a fleet as people and programs read it: its hosts, processes and shards, as JSON and as rows of tables.

use kinfolk_server::{StateColumn, StateTable};
use serde::Serialize;

use super::{CheckReport, FleetStatus, HostStatus, ShardStatus, relay_behind};
use crate::print::grouped;

/// The columns of hosts.
pub(crate) const HOSTS: [StateColumn; 5] =
    [text("host"), number("shards"), number("behind"), number("clock lead"), text("state")];
/// The columns of processes.
pub(crate) const PROCESSES: [StateColumn; 3] = [text("role"), text("address"), number("process")];
/// The columns of the checks of processes.
pub(crate) const CHECKS: [StateColumn; 7] = [
    text("checks of"),
    text("machine"),
    number("process"),
    number("in 10 s"),
    number("filter"),
    number("cache"),
    number("shard"),
];
/// The columns of shards.
pub(crate) const SHARDS: [StateColumn; 6] =
    [number("shard"), text("host"), number("newest"), number("relayed"), number("projected"), text("relay")];

const fn text(name: &'static str) -> StateColumn {
    StateColumn { name, is_number: false }
}

const fn number(name: &'static str) -> StateColumn {
    StateColumn { name, is_number: true }
}

/// The state of a fleet.
#[derive(Serialize)]
pub(crate) struct FleetReport {
    pub(crate) ids: &'static str,
    pub(crate) epoch: u64,
    pub(crate) shards: usize,
    /// Changes that are not in the topic yet, if anything was ever relayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_relayed: Option<u64>,
    pub(crate) hosts: Vec<HostLine>,
    pub(crate) processes: Vec<ProcessLine>,
    /// Who has answered the checks of each process in the last ten seconds, if there is Redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checks: Option<Vec<CheckLine>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) shard_marks: Vec<ShardLine>,
}

/// How far the changes of a shard have come.
#[derive(Serialize)]
pub(crate) struct ShardLine {
    pub(crate) shard: u16,
    pub(crate) host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) newest: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) relayed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) projected: Option<u64>,
    /// The process that relays it: its address and process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) relay: Option<String>,
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

    pub(crate) fn row(&self) -> [String; 6] {
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), grouped);
        [
            self.shard.to_string(),
            self.host.clone(),
            number(self.newest),
            number(self.relayed),
            number(self.projected),
            self.relay.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    }
}

/// A host and what it can be used for.
#[derive(Serialize)]
pub(crate) struct HostLine {
    pub(crate) name: String,
    pub(crate) shards: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) behind: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) clock_lead_ms: Option<u64>,
    /// Why the host can't be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

impl HostLine {
    pub(crate) fn row(&self) -> [String; 5] {
        [
            self.name.clone(),
            self.shards.to_string(),
            self.behind.map_or_else(|| "unknown".to_owned(), grouped),
            self.clock_lead_ms.map_or_else(|| "unknown".to_owned(), |lead| format!("{lead} ms")),
            self.problem.clone().unwrap_or_else(|| "ok".to_owned()),
        ]
    }
}

/// A process that is connected to a host.
#[derive(Serialize)]
pub(crate) struct ProcessLine {
    pub(crate) role: String,
    pub(crate) address: String,
    pub(crate) process: u32,
}

impl ProcessLine {
    pub(crate) fn row(&self) -> [String; 3] {
        [self.role.clone(), self.address.clone(), self.process.to_string()]
    }
}

/// The reports of processes that serve: the others have no checks.
fn check_lines(reports: Vec<CheckReport>) -> Vec<CheckLine> {
    let serves = |report: &CheckReport| matches!(report.role.as_str(), "api" | "all");
    reports.into_iter().filter(serves).map(CheckLine::new).collect()
}

/// How many checks each layer of a process has answered.
#[derive(Serialize)]
pub(crate) struct CheckLine {
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

    pub(crate) fn row(&self) -> [String; 7] {
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

impl FleetReport {
    /// Describes a status, with the marks of each shard if they are asked for.
    pub(crate) fn new(status: FleetStatus, with_shards: bool) -> Self {
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
        Self {
            ids: status.id_kind.name(),
            epoch: status.epoch.0,
            shards: status.shards.len(),
            not_relayed: relay_behind(&status.shards),
            hosts: status.hosts.into_iter().map(host).collect(),
            processes: status
                .processes
                .into_iter()
                .map(|found| ProcessLine { role: found.role, address: found.address, process: found.process })
                .collect(),
            checks: status.checks.map(check_lines),
            shard_marks: status.shards.iter().filter(|_| with_shards).map(ShardLine::new).collect(),
        }
    }

    /// The tables that the console shows.
    pub(crate) fn tables(&self) -> Vec<StateTable> {
        let checks = self.checks.iter().flatten();
        vec![
            table("Hosts", &HOSTS, self.hosts.iter().map(HostLine::row)),
            table("Processes", &PROCESSES, self.processes.iter().map(ProcessLine::row)),
            table("Who answers checks", &CHECKS, checks.map(CheckLine::row)),
            table("Shards", &SHARDS, self.shard_marks.iter().map(ShardLine::row)),
        ]
    }
}

fn table<const N: usize>(
    title: &'static str,
    columns: &'static [StateColumn; N],
    rows: impl Iterator<Item = [String; N]>,
) -> StateTable {
    StateTable { title, columns, rows: rows.map(Vec::from).collect() }
}
