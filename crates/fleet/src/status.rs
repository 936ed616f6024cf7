//! What an operator wants to know about a fleet: which hosts answer, what they hold, how far the follower side is behind, and
//! which processes work on them.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use kinfolk_core::{Epoch, Frontier, IdKind, Position, Sequence, Shard};

use crate::log::{LogReader, marks, relay_marks};
use crate::postgres::{Failure, Host};
use crate::read::Reader;
use crate::relay::{Owner, owners};
use crate::{CheckReport, Fleet};

/// The state of a deployment as this process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetStatus {
    /// The kind of all ids.
    pub id_kind: IdKind,
    /// The epoch, which every event of the topic names.
    pub epoch: Epoch,
    /// Every logical shard, in order.
    pub shards: Vec<ShardStatus>,
    /// Every host, by name.
    pub hosts: Vec<HostStatus>,
    /// How many logs are full, so that the writes of their shards are refused, as this process has found out last.
    pub full_logs: usize,
    /// The processes that are connected to a host that answers, this one included.
    pub processes: BTreeSet<ProcessStatus>,
    /// What processes have reported of their checks, when it was asked for. None without Redis.
    pub checks: Option<Vec<CheckReport>>,
}

/// A shard and how far its changes have come. What only a host that does not answer knows is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardStatus {
    /// Which one.
    pub shard: Shard,
    /// The name of its host.
    pub host: String,
    /// The newest change of its log.
    pub newest: Option<Sequence>,
    /// How far it was relayed to the topic. Missing also for a shard that was never relayed.
    pub relayed: Option<Sequence>,
    /// Who relays it right now.
    pub relay: Option<ProcessStatus>,
    /// What every host shows of it.
    pub projected: Option<Sequence>,
}

impl ShardStatus {
    /// How many changes are not in the topic yet, of a shard that is relayed.
    pub fn relay_behind(&self) -> Option<u64> {
        Some(self.newest?.0.saturating_sub(self.relayed?.0))
    }

    /// How many changes some host does not show yet.
    pub fn projection_behind(&self) -> Option<u64> {
        Some(self.newest?.0.saturating_sub(self.projected?.0))
    }
}

/// A host as this process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStatus {
    /// Its name in the catalog.
    pub name: String,
    /// How many shards it holds.
    pub shards: usize,
    /// What it answers, or why it does not.
    pub condition: Result<HostCondition, String>,
}

/// A host that answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCondition {
    /// Changes of all sources that its follower side does not show yet. Unknown while a host with sources does not answer.
    pub changes_behind: Option<u64>,
    /// How far this process's clock is ahead of the host's. A process that is over a second ahead should not write: its times
    /// would become the floor of everybody's.
    pub clock_lead: Duration,
    /// Shards that it has and does not let anybody write, because they are being moved.
    pub shards_closed: u64,
}

/// A process of the fleet, as its connections name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessStatus {
    /// What it does: [`Settings::role`](crate::Settings::role).
    pub role: String,
    /// The address that it connects from.
    pub address: String,
    /// Its process id there.
    pub process: u32,
}

impl Fleet {
    /// The state of the deployment.
    pub async fn status(&self) -> kinfolk_core::Result<FleetStatus> {
        self.read(Frontier::EMPTY, |reader| async move { reader.status().await }).await
    }
}

/// What a host has reported.
struct Answer {
    newest: Frontier,
    relayed: Frontier,
    owners: Vec<Owner>,
    shown: Frontier,
    clock_lead: Duration,
    shards_closed: u64,
}

impl Reader {
    async fn status(&self) -> Result<FleetStatus, Failure> {
        let topology = &self.topology;
        let hosts = topology.hosts.iter().enumerate();
        let answers = hosts.map(|(index, host)| self.answer(index, host));
        let processes = topology.hosts.iter().map(|host| host.processes());
        let (answers, processes) = tokio::join!(join_all(answers), join_all(processes));
        if answers.iter().any(|answer| matches!(answer, Err(Failure::Moved))) {
            return Err(Failure::Moved);
        }
        let reason = |failure: Failure| failure.into_error().to_string();
        let answers: Vec<Result<Answer, String>> =
            answers.into_iter().map(|answer| answer.map_err(reason)).collect();
        let answered: Option<Vec<&Answer>> = answers.iter().map(|answer| answer.as_ref().ok()).collect();
        let newest = answered
            .as_ref()
            .map(|all| -> Vec<Position> { all.iter().flat_map(|answer| answer.newest.iter()).collect() });
        let condition = |answer: &Answer| {
            let missing = |newest: &Position| {
                newest.sequence.0.saturating_sub(answer.shown.get(newest.shard).unwrap_or_default().0)
            };
            let changes_behind = newest.as_ref().map(|newest| newest.iter().map(missing).sum());
            let Answer { clock_lead, shards_closed, .. } = *answer;
            HostCondition { changes_behind, clock_lead, shards_closed }
        };
        let shard = |shard: Shard| {
            let host = topology.host_of(shard);
            let own = answers[host].as_ref().ok();
            let owner = own.and_then(|own| own.owners.iter().find(|owner| owner.shard == shard));
            let shown = |answer: &&Answer| answer.shown.get(shard).unwrap_or_default();
            ShardStatus {
                shard,
                host: topology.hosts[host].name.clone(),
                newest: own.and_then(|own| own.newest.get(shard)),
                relayed: own.and_then(|own| own.relayed.get(shard)),
                relay: owner.map(|owner| owner.process.clone()),
                projected: answered.as_ref().and_then(|all| all.iter().map(shown).min()),
            }
        };
        let host = |(index, answer): (usize, &Result<Answer, String>)| HostStatus {
            name: topology.hosts[index].name.clone(),
            shards: topology.shards_on(index).count(),
            condition: answer.as_ref().map(condition).map_err(Clone::clone),
        };
        Ok(FleetStatus {
            id_kind: topology.id_kind,
            epoch: topology.epoch,
            shards: topology.shards().map(shard).collect(),
            hosts: answers.iter().enumerate().map(host).collect(),
            full_logs: self.shared.staleness.full(),
            processes: processes.into_iter().flatten().flatten().collect(),
            checks: None,
        })
    }

    async fn answer(&self, index: usize, host: &Host) -> Result<Answer, Failure> {
        let (shared, topology) = (&self.shared, &self.topology);
        let clock_lead = host.clock_lead(&*shared.clock).await?;
        let spans = match (LogReader { shared, topology }).spans_on(index).await {
            // Nobody can read a shard for a moment, or for longer if the process that moves it has died.
            Err(Failure::Moved) if self.has_reloaded() => Vec::new(),
            spans => spans?,
        };
        let sources: Vec<Shard> = topology.shards().collect();
        let own: Vec<Shard> = topology.shards_on(index).collect();
        // Not those that have left: their rows are removed after a move.
        let numbers: Vec<String> = own.iter().map(|shard| shard.0.to_string()).collect();
        let closed = format!(
            "SELECT count(*) FROM shards WHERE state <> 'open' AND shard = ANY ('{{{}}}')",
            numbers.join(",")
        );
        let closed = host.ask(&closed).await?;
        Ok(Answer {
            newest: spans.iter().map(|(shard, span)| span.newest().on(*shard)).collect(),
            relayed: relay_marks(shared, host, topology.epoch, &own).await?,
            owners: owners(host).await?,
            shown: marks(shared, host, topology.epoch, &sources).await?,
            clock_lead,
            shards_closed: closed.first().map_or(0, |row| row.get::<_, i64>(0) as u64),
        })
    }
}
