//! What an operator wants to know about a fleet: which hosts answer, what they hold, how far the follower side is behind, and
//! which processes work on them.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use kinfolk_core::{Frontier, IdKind, Result, Shard};

use crate::Fleet;
use crate::log::LogReader;
use crate::postgres::{Failure, Host};
use crate::project::marks;
use crate::read::Reader;

/// The state of a deployment as this process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetStatus {
    /// The kind of all ids.
    pub id_kind: IdKind,
    /// The number of logical shards.
    pub shards: usize,
    /// Every host, by name.
    pub hosts: Vec<HostStatus>,
    /// The processes that are connected to a host that answers, this one included.
    pub processes: BTreeSet<ProcessStatus>,
}

/// A host as this process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStatus {
    /// Its name in the catalog.
    pub name: String,
    /// How many shards it holds.
    pub shards: usize,
    /// What it answers, or why it does not.
    pub condition: std::result::Result<HostCondition, String>,
}

/// A host that answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCondition {
    /// Changes of all sources that its follower side does not show yet. Unknown while a host with sources does not answer.
    pub changes_behind: Option<u64>,
    /// How far this process's clock is ahead of the host's. A process that is over a second ahead should not write: its times
    /// would become the floor of everybody's.
    pub clock_lead: Duration,
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
    pub async fn status(&self) -> Result<FleetStatus> {
        self.read(Frontier::EMPTY, |reader| async move { Ok(reader.status().await) }).await
    }
}

impl Reader {
    async fn status(&self) -> FleetStatus {
        let log = LogReader { shared: &self.shared, topology: &self.topology };
        let newest = log
            .spans()
            .await
            .map(|spans| spans.iter().map(|(&shard, span)| span.newest().on(shard)).collect::<Frontier>());
        let newest = newest.as_ref().ok();
        let hosts = self.topology.hosts.iter().enumerate().map(|(index, host)| async move {
            let condition = self.condition(host, newest).await;
            HostStatus {
                name: host.name.clone(),
                shards: self.topology.shards_on(index).count(),
                condition: condition.map_err(|failure| failure.into_error().to_string()),
            }
        });
        let processes = self.topology.hosts.iter().map(|host| host.processes());
        let (hosts, processes) = tokio::join!(join_all(hosts), join_all(processes));
        FleetStatus {
            id_kind: self.topology.id_kind,
            shards: self.topology.shards().len(),
            hosts,
            processes: processes.into_iter().flatten().flatten().collect(),
        }
    }

    async fn condition(
        &self,
        host: &Host,
        newest: Option<&Frontier>,
    ) -> std::result::Result<HostCondition, Failure> {
        let clock_lead = host.clock_lead(&*self.shared.clock).await?;
        let sources: Vec<Shard> = self.topology.shards().collect();
        let shown = marks(&self.shared, host, self.topology.epoch, &sources).await?;
        let behind = |newest: &Frontier| {
            let missing = newest.iter().map(|newest| {
                newest.sequence.0.saturating_sub(shown.get(newest.shard).unwrap_or_default().0)
            });
            missing.sum()
        };
        Ok(HostCondition { changes_behind: newest.map(behind), clock_lead })
    }
}
