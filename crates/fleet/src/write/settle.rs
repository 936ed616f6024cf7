//! Settles a commit whose reply was lost: the log has the batch id if it was committed. A transaction id would not do: after a
//! promotion the same one belongs to another transaction.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::transaction::{BEGIN, BatchWriter, COMMIT, LOCK_CLASS, Unsettled};
use kinfolk_core::Position;

use crate::postgres::{Failure, IdValue, Pooled, Query};

/// Waits, like any commit, for the standby: what was read before it is then on the standby, too.
const WRITE: &str = "SELECT pg_logical_emit_message(true, 'kinfolk', 'settled')";

impl BatchWriter {
    /// Whether a batch was committed, unless that can't be found out in time. If it was not, it never will be: the
    /// locks are free only once the transaction of the batch is over. So one of its shards tells about all of them.
    pub(super) async fn settle(&self, unsettled: &Unsettled) -> Option<bool> {
        let limit = self.shared.settings.timeouts.settle;
        let deadline = Instant::now() + limit;
        let last = unsettled.last;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match timeout(left, self.look(unsettled)).await {
                Ok(Ok(found)) => return Some(found),
                Ok(Err(failure)) => {
                    tracing::debug!(shard = last.shard.0, ?failure, "a lost commit is not settled yet");
                    if matches!(failure, Failure::Moved) {
                        // Without the newest map the next look fails as this one did.
                        _ = self.shared.reload_topology().await;
                        if self.shared.topology().epoch != unsettled.epoch {
                            // A restore may have kept it or not, and a later one may still lose it.
                            return None;
                        }
                    }
                }
                Err(_) => return None,
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn look(&self, unsettled: &Unsettled) -> Result<bool, Failure> {
        let topology = self.shared.topology();
        let assignment = topology.assignment(unsettled.last.shard).ok_or(Failure::Moved)?;
        let host = &topology.hosts[assignment.host];
        let connection = host.writer().await?;
        let outcome = self.look_with(&connection, unsettled).await;
        match outcome {
            Ok(Some(found)) => Ok(found),
            Ok(None) => {
                connection.discard();
                Err(Failure::Moved)
            }
            Err(error) => {
                connection.discard();
                Err(Failure::of_statement(&host.name, &error))
            }
        }
    }

    async fn look_with(
        &self,
        connection: &Pooled,
        unsettled: &Unsettled,
    ) -> Result<Option<bool>, tokio_postgres::Error> {
        let statements = &self.shared.statements;
        let lock = connection.prepare(statements, Query::LockShards).await?;
        let head = connection.prepare(statements, Query::Head).await?;
        let outcome = connection.prepare(statements, Query::Outcome).await?;
        let client = connection.client();
        let Position { shard, sequence } = unsettled.last;
        let (number, last) = (shard.0 as i16, sequence.0 as i64);
        connection.begin(BEGIN).await?;
        client.query_one(&lock, &[&LOCK_CLASS, &[i32::from(shard.0)].as_slice()]).await?;
        let head = client.query_opt(&head, &[&[number].as_slice()]).await?;
        let acknowledged = self.shared.acknowledged.get(unsettled.epoch, shard).0 as i64;
        let is_here = head.is_some_and(|head| {
            let newest = head.get::<_, Option<i64>>(4).unwrap_or(0);
            (head.get(1), head.get(3)) == (unsettled.epoch.0 as i64, true) && newest >= acknowledged
        });
        if !is_here {
            return Ok(None);
        }
        let found = client.query_one(&outcome, &[&number, &last, &IdValue(unsettled.batch)]).await?.get(0);
        client.batch_execute(WRITE).await?;
        connection.end(COMMIT).await?;
        Ok(Some(found))
    }
}
