//! What an operator wants to know about a fleet: which hosts answer, what they hold, and how far the follower side is behind.

use std::time::Duration;

use futures_util::future::join_all;
use kinfolk_core::{Frontier, Result, Shard};

use crate::Fleet;
use crate::log::LogReader;
use crate::postgres::{Failure, Host};
use crate::project::marks;
use crate::read::Reader;

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
    /// Changes of all sources that its follower side does not show yet.
    pub changes_behind: u64,
    /// How far this process's clock is ahead of the host's. A process that is over a second ahead should not write: its times
    /// would become the floor of everybody's.
    pub clock_lead: Duration,
}

impl Fleet {
    /// The state of every host.
    pub async fn status(&self) -> Result<Vec<HostStatus>> {
        self.read(Frontier::EMPTY, |reader| async move { Ok(reader.status().await) }).await
    }
}

impl Reader {
    async fn status(&self) -> Vec<HostStatus> {
        let log = LogReader { shared: &self.shared, topology: &self.topology };
        let newest = log
            .spans()
            .await
            .map(|spans| spans.iter().map(|(&shard, span)| span.newest().on(shard)).collect::<Frontier>());
        let hosts = self.topology.hosts.iter().enumerate().map(|(index, host)| {
            let newest = newest.as_ref().ok();
            async move {
                let condition = self.condition(host, newest).await;
                HostStatus {
                    name: host.name.clone(),
                    shards: self.topology.shards_on(index).count(),
                    condition: condition.map_err(|failure| failure.into_error().to_string()),
                }
            }
        });
        join_all(hosts).await
    }

    async fn condition(
        &self,
        host: &Host,
        newest: Option<&Frontier>,
    ) -> std::result::Result<HostCondition, Failure> {
        let clock_lead = host.clock_lead(&*self.shared.clock).await?;
        let sources: Vec<Shard> = self.topology.shards().collect();
        let shown = marks(&self.shared, host, self.topology.epoch, &sources).await?;
        let newest = newest.cloned().unwrap_or_default();
        let behind = newest
            .iter()
            .map(|newest| newest.sequence.0.saturating_sub(shown.get(newest.shard).unwrap_or_default().0));
        Ok(HostCondition { changes_behind: behind.sum(), clock_lead })
    }
}
