//! The relay: hands the log of every shard to the topic, in order, and remembers how far.
//!
//! A shard is relayed by the process that has its lock. Two at once would be harmless: readers of the topic take each change of a shard once,
//! in its order. A message that was not delivered, and a relay that ended, mean that the shard goes on from its mark, so that some
//! messages come twice and none is left out.

mod host;
mod ownership;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::{Error, Result};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

pub(crate) use self::ownership::{Owner, owners};
use crate::Fleet;
use crate::fleet::Shared;
use crate::topic::{Kafka, require_fitting};

/// How often hosts are looked for that were added to the fleet.
const NEW_HOSTS_EVERY: Duration = Duration::from_millis(500);

/// Relays the logs of all hosts while it is kept. Any number of processes may do so; they share the shards.
pub struct Relay {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    condition: RelayCondition,
}

/// Whether a relay can do its work, as it has found out last. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct RelayCondition(
    /// By the index of the host.
    Arc<Mutex<BTreeMap<usize, String>>>,
);

impl RelayCondition {
    /// Why something can't be relayed right now, if so.
    pub fn problem(&self) -> Option<String> {
        self.0.lock().values().next().cloned()
    }

    fn set(&self, host: usize, problem: Option<String>) {
        let mut problems = self.0.lock();
        let before = match &problem {
            Some(problem) => problems.insert(host, problem.clone()),
            None => problems.remove(&host),
        };
        drop(problems);
        match (before, problem) {
            (None, Some(problem)) => tracing::warn!(host, problem, "changes can't be relayed"),
            (Some(_), None) => tracing::info!(host, "changes are relayed again"),
            _ => {}
        }
    }
}

impl Relay {
    /// Starts to relay a fleet to a topic. The topic is created if it is not there; one that does not fit is refused.
    pub async fn start(fleet: &Fleet, kafka: &Kafka) -> Result<Self> {
        let topology = fleet.shared.topology();
        let (settings, shards) = (kafka.clone(), topology.shards().len());
        fleet.run(async move { require_fitting(&settings, shards).await }).await?;
        let condition = RelayCondition::default();
        let (stop, stopping) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let of_host = {
            let (shared, kafka, condition) = (Arc::clone(&fleet.shared), kafka.clone(), condition.clone());
            move |host| host::HostRelay {
                shared: Arc::clone(&shared),
                host,
                kafka: kafka.clone(),
                condition: condition.clone(),
            }
        };
        tasks.spawn_on(relay_all(Arc::clone(&fleet.shared), of_host, stopping), fleet.handle());
        Ok(Self { stop, tasks, condition })
    }

    /// How it is.
    pub fn condition(&self) -> RelayCondition {
        self.condition.clone()
    }

    /// Waits for what was sent, remembers it, and frees the shards for others.
    pub async fn stop(mut self) -> Result<()> {
        // Without receivers all tasks have ended already.
        _ = self.stop.send(true);
        while let Some(ended) = self.tasks.join_next().await {
            ended.map_err(|_| Error::Closed)?;
        }
        Ok(())
    }
}

/// Relays each host, those that are added later included, until it is to stop and all of them have ended.
async fn relay_all(
    shared: Arc<Shared>,
    of_host: impl Fn(usize) -> host::HostRelay,
    mut stopping: watch::Receiver<bool>,
) {
    let (mut relays, mut started) = (JoinSet::new(), 0);
    while !*stopping.borrow_and_update() {
        let hosts = shared.topology().hosts.len();
        (started..hosts).for_each(|host| _ = relays.spawn(of_host(host).run(stopping.clone())));
        started = hosts;
        _ = timeout(NEW_HOSTS_EVERY, stopping.changed()).await;
    }
    while let Some(ended) = relays.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}
