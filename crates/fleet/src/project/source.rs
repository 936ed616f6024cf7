//! Where changes come from: here, straight from the logs of the shards. The topic is another source, behind the same trait.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::join_all;
use kinfolk_core::{Epoch, Frontier, Position, Result, Shard};

use crate::Fleet;
use crate::fleet::Shared;
use crate::log::{LogReader, LoggedChange};
use crate::postgres::Failure;

/// Changes of one source.
#[derive(Clone, Debug)]
pub struct SourceBatch {
    /// Whose log they are from.
    pub source: Shard,
    /// The life of that log.
    pub epoch: Epoch,
    /// The changes.
    pub changes: Vec<LoggedChange>,
}

/// Brings changes to a projection.
///
/// It should bring the changes that follow on the marks, in order. One that brings changes late, twice, out of order, with
/// gaps or not at all makes the projection late, and nothing worse: what is missing is read from the log.
pub trait ChangeSource: Send + Sync + 'static {
    /// Up to about `limit` changes after the marks of a host, which name every source.
    fn changes(
        &self,
        host: usize,
        after: &Frontier,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<SourceBatch>>> + Send;
}

/// The logs of the shards themselves: one statement for each host. Those of a host that fails are left out, so that the
/// changes of the others are projected meanwhile.
#[derive(Clone)]
pub struct LogSource {
    shared: Arc<Shared>,
}

impl LogSource {
    /// The logs of a fleet.
    pub fn new(fleet: &Fleet) -> Self {
        Self { shared: Arc::clone(&fleet.shared) }
    }

    pub(super) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl ChangeSource for LogSource {
    async fn changes(&self, _host: usize, after: &Frontier, limit: usize) -> Result<Vec<SourceBatch>> {
        let shard = |logged: &LoggedChange| logged.change.position.shard;
        let topology = self.shared.topology();
        let log = LogReader { shared: &self.shared, topology: &topology };
        let after_on = |host| -> Vec<Position> {
            after.iter().filter(|position| topology.host_of(position.shard) == host).collect()
        };
        let by_host = (0..topology.hosts.len()).map(after_on).filter(|after| !after.is_empty());
        let pages = by_host.map(|after| async move { log.durable_changes(&after, limit).await });
        let (mut changes, mut failed) = (Vec::new(), None);
        for page in join_all(pages).await {
            match page {
                Ok(page) => changes.extend(page),
                Err(failure @ Failure::Moved) => return Err(failure.into_error()),
                Err(failure) => failed = Some(failure.into_error()),
            }
        }
        if let Some(error) = failed.filter(|_| changes.is_empty()) {
            return Err(error);
        }
        changes.sort_by_key(shard);
        let of_one = changes.chunk_by(|one, other| shard(one) == shard(other));
        let batch = |changes: &[LoggedChange]| SourceBatch {
            source: shard(&changes[0]),
            epoch: topology.epoch,
            changes: changes.to_vec(),
        };
        Ok(of_one.map(batch).collect())
    }
}
