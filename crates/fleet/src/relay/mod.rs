//! The relay: hands the log of every shard to the topic, in order, and remembers how far.
//!
//! A shard is relayed by whoever has its lock. Two at once would be harmless: readers of the topic take each change of a shard once,
//! in its order. A message that was not delivered, and a relay that ended, mean that the shard goes on from its mark, so that some
//! messages come twice and none is left out.

mod host;
mod ownership;

use std::sync::Arc;

use kinfolk_core::{Error, Result};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) use self::ownership::{Owner, owners};
use crate::Fleet;
use crate::topic::{Kafka, require_fitting};

/// Relays the logs of all hosts while it is kept. Any number of processes may do so; they share the shards.
pub struct Relay {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    condition: RelayCondition,
}

/// Whether a relay can reach its topic, as it has found out last. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct RelayCondition(Arc<Mutex<Option<String>>>);

impl RelayCondition {
    /// Why nothing can be relayed right now, if so.
    pub fn problem(&self) -> Option<String> {
        self.0.lock().clone()
    }

    fn set(&self, problem: Option<String>) {
        *self.0.lock() = problem;
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
        for index in 0..topology.hosts.len() {
            let relay = host::HostRelay {
                shared: Arc::clone(&fleet.shared),
                host: index,
                kafka: kafka.clone(),
                condition: condition.clone(),
            };
            tasks.spawn_on(relay.run(stopping.clone()), fleet.handle());
        }
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
