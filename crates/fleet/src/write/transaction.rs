//! One batch on one shard: lock, check and read in one round trip, plan, then write and commit in another.
//!
//! The lock makes the order of commits the order of sequences. Nothing slow happens under it: the rows of a batch come back as
//! a few arrays, and a process that stops in the middle is ended by the host's idle timeout.

use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::graph::{Receipt, WriteRequest};
use kinfolk_core::{Epoch, Error, Id, Position, Result, Sequence, Shard, Timestamp};
use tokio::time::{Instant, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::plan::{Before, Plan, Subjects};
use super::prepared::Prepared;
use super::rows::Rows;
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::log::{Entry, floor_after};
use crate::postgres::{Failure, IdValue, Pooled, unavailable};

/// The first half of the key of a shard's advisory lock: "kf" in ASCII. The second half is the shard.
pub(crate) const LOCK_CLASS: i32 = 0x6b66;

/// READ COMMITTED, so that each statement after the lock has a snapshot from after the lock.
pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// A commit is never cancelled: PostgreSQL would answer a cancelled wait for the standby with success. And a transaction that
/// has failed refuses the first statement, so that success means COMMIT and never the ROLLBACK that a bare COMMIT turns into.
pub(crate) const COMMIT: &str = "SET LOCAL statement_timeout = 0; COMMIT";

/// A host answers within its own timeouts; a connection that is silent for so much longer is lost.
const GRACE: Duration = Duration::from_secs(1);

/// Writes batches of one shard.
pub(crate) struct ShardWriter {
    pub(crate) shared: Arc<Shared>,
    pub(crate) shard: Shard,
}

/// A batch whose COMMIT was sent and not answered.
pub(super) struct Unsettled {
    pub(super) plan: Plan,
    pub(super) batch: Id,
    pub(super) epoch: Epoch,
}

/// A shard under its lock, and what was read of it.
pub(crate) struct Locked {
    prepared: Prepared,
    pub(crate) before: Before,
    pub(crate) newest: Position,
    /// The earliest time of the next change.
    pub(crate) floor: Timestamp,
}

/// A batch under the lock, between its reads and its writes.
struct Begun {
    locked: Locked,
    plan: Plan,
}

/// What became of one attempt.
enum Attempt {
    Committed(Plan, Epoch),
    /// Nothing has happened.
    Failed(Failure),
    /// Nobody knows yet.
    Lost(Unsettled),
}

impl ShardWriter {
    pub(crate) fn new(shared: Arc<Shared>, shard: Shard) -> Self {
        Self { shared, shard }
    }

    /// Applies requests. One result for each, in order.
    pub(super) async fn write(&self, requests: &[&WriteRequest]) -> Vec<Result<Receipt>> {
        let deadline = Instant::now() + self.shared.settings.timeouts.write;
        let refuse = |error: &dyn Fn() -> Error| requests.iter().map(|_| Err(error())).collect();
        let mut pause = Duration::from_millis(2);
        loop {
            let failure = match self.attempt(requests).await {
                Attempt::Committed(plan, epoch) => return self.acknowledge(plan, epoch),
                Attempt::Failed(failure) => failure,
                Attempt::Lost(unsettled) => match self.settle(&unsettled).await {
                    Some(true) => return self.acknowledge(unsettled.plan, unsettled.epoch),
                    // The lock was taken after it, so that it can't commit any more.
                    Some(false) => Failure::Transient(unavailable(&self.name(), "a connection was lost")),
                    None => return refuse(&|| Error::TimedOut),
                },
            };
            let is_over = Instant::now() + pause >= deadline;
            let outcome = match failure {
                Failure::Final(error) => Err(error),
                other if is_over => Err(other.into_error()),
                Failure::Moved => self.shared.reload_topology().await.or(Ok(())),
                Failure::Transient(_) => Ok(()),
            };
            if let Err(error) = outcome {
                tracing::warn!(shard = self.shard.0, %error, "a batch was not written");
                return refuse(&|| copy_of(&error));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }

    pub(crate) fn name(&self) -> String {
        format!("shard {}", self.shard.0)
    }

    fn acknowledge(&self, plan: Plan, epoch: Epoch) -> Vec<Result<Receipt>> {
        if !plan.events.is_empty() {
            self.committed(epoch, plan.last());
        }
        plan.results
    }

    /// Notes that a change was committed.
    pub(crate) fn committed(&self, epoch: Epoch, newest: Position) {
        self.shared.acknowledged.note(epoch, newest);
        self.shared.announce_progress();
    }

    async fn attempt(&self, requests: &[&WriteRequest]) -> Attempt {
        let topology = self.shared.topology();
        let host = &topology.hosts[topology.host_of(self.shard)];
        let connection = match host.writer().await {
            Ok(connection) => connection,
            Err(failure) => return Attempt::Failed(failure),
        };
        let timeouts = self.shared.settings.timeouts;
        let begun =
            timeout(timeouts.lock + timeouts.statement + GRACE, self.begin(&connection, &topology, requests));
        let begun = match begun.await.unwrap_or_else(|_| Err(self.silent())) {
            Ok(begun) => begun,
            Err(failure) => {
                // Whatever state the transaction is in ends with the connection.
                connection.discard();
                return Attempt::Failed(failure);
            }
        };
        if begun.plan.events.is_empty() {
            return match connection.end("ROLLBACK").await {
                Ok(()) => Attempt::Committed(begun.plan, topology.epoch),
                Err(error) => {
                    connection.discard();
                    Attempt::Failed(Failure::of_statement(&host.name, &error))
                }
            };
        }
        self.commit(connection, begun, topology.epoch).await
    }

    fn silent(&self) -> Failure {
        Failure::Transient(unavailable(&self.name(), "the host did not answer in time"))
    }

    async fn begin(
        &self,
        connection: &Pooled,
        topology: &Topology,
        requests: &[&WriteRequest],
    ) -> std::result::Result<Begun, Failure> {
        let locked = self.lock(connection, topology, &Subjects::of(requests)).await?;
        let plan = Plan::new(&locked.before, requests, locked.newest, locked.floor);
        Ok(Begun { locked, plan })
    }

    /// The first round trip: lock, check, read. Nothing is written.
    pub(crate) async fn lock(
        &self,
        connection: &Pooled,
        topology: &Topology,
        subjects: &Subjects,
    ) -> std::result::Result<Locked, Failure> {
        let assignment = topology.assignment(self.shard).ok_or(Failure::Moved)?;
        let name = &topology.hosts[assignment.host].name;
        let failed = |error: tokio_postgres::Error| Failure::of_statement(name, &error);
        let prepared = Prepared::new(connection, &self.shared.statements).await.map_err(failed)?;

        let shard = self.shard.0 as i16;
        let edge_kinds: Vec<i16> = subjects.edges.iter().map(|(kind, _)| kind.number().into()).collect();
        let followers: Vec<IdValue> = subjects.edges.iter().map(|(_, edge)| IdValue(edge.follower)).collect();
        let followees: Vec<IdValue> = subjects.edges.iter().map(|(_, edge)| IdValue(edge.followee)).collect();
        let user_kinds: Vec<i16> = subjects.users.iter().map(|(kind, _)| kind.number().into()).collect();
        let ids: Vec<IdValue> = subjects.users.iter().map(|&(_, id)| IdValue(id)).collect();

        let client = connection.client();
        let lock_key: [&(dyn ToSql + Sync); 2] = [&LOCK_CLASS, &i32::from(self.shard.0)];
        let of_head: [&(dyn ToSql + Sync); 1] = [&shard];
        let of_edges: [&(dyn ToSql + Sync); 4] = [&shard, &edge_kinds, &followers, &followees];
        let of_users: [&(dyn ToSql + Sync); 3] = [&shard, &user_kinds, &ids];
        // In this order on the wire: each future sends its statement when it is first polled.
        let (begun, locked, head, edges, users) = tokio::join!(
            biased;
            connection.begin(BEGIN),
            client.query_one(&prepared.lock, &lock_key),
            client.query_opt(&prepared.head, &of_head),
            client.query_one(&prepared.edges, &of_edges),
            client.query_one(&prepared.users, &of_users),
        );
        begun.map_err(failed)?;
        locked.map_err(failed)?;
        let head = head.map_err(failed)?.ok_or(Failure::Moved)?;
        let (edges, users) = (edges.map_err(failed)?, users.map_err(failed)?);
        let expected = (topology.epoch.0 as i64, assignment.term, true);
        if (head.get(0), head.get(1), head.get(2)) != expected {
            return Err(Failure::Moved);
        }
        let before = subjects.before(&edges, &users);
        let (newest, floor) = self.newest(&head, topology).map_err(Failure::Final)?;
        let host = &topology.hosts[assignment.host];
        self.shared.acknowledged.require(host, topology.epoch, newest.on(self.shard))?;
        let floor = self.shared.clock.now().max(floor);
        Ok(Locked { prepared, before, newest: newest.on(self.shard), floor })
    }

    /// The newest change of the shard, and the earliest time of the next one.
    fn newest(&self, head: &Row, topology: &Topology) -> Result<(Sequence, Timestamp)> {
        let Some(sequence) = head.get::<_, Option<i64>>(3) else {
            return Ok((Sequence::START, Timestamp::MIN));
        };
        let sequence = Sequence(sequence as u64);
        let at = Timestamp::from_millis(head.get::<_, i64>(4) as u64);
        let entry = Entry { at, kind: head.get(5), body: head.get(6) };
        let change = entry.decode(sequence.on(self.shard), topology.id_kind)?;
        Ok((sequence, floor_after(&change.change)))
    }

    /// The second round trip: write and commit. From here on, only a reply shows what has happened.
    async fn commit(&self, connection: Pooled, begun: Begun, epoch: Epoch) -> Attempt {
        let batch = match random_batch() {
            Ok(batch) => batch,
            Err(error) => {
                connection.discard();
                return Attempt::Failed(Failure::Final(error));
            }
        };
        let timeouts = self.shared.settings.timeouts;
        let Begun { locked, plan } = &begun;
        let rows = Rows::new(&locked.before, plan.newest.sequence, &plan.events);
        let written = timeout(timeouts.statement + GRACE, self.send(&connection, locked, &rows, batch)).await;
        match written {
            Ok(Ok(())) => Attempt::Committed(begun.plan, epoch),
            Ok(Err(Sent::Nothing(failure))) => {
                connection.discard();
                Attempt::Failed(failure)
            }
            Ok(Err(Sent::Unanswered)) | Err(_) => {
                connection.discard();
                Attempt::Lost(Unsettled { plan: begun.plan, batch, epoch })
            }
        }
    }

    /// Writes rows and commits.
    pub(crate) async fn send(
        &self,
        connection: &Pooled,
        Locked { prepared, .. }: &Locked,
        Rows { removed, added, counted, log, last }: &Rows,
        batch: Id,
    ) -> std::result::Result<(), Sent> {
        let (shard, last) = (self.shard.0 as i16, last.0 as i64);
        let batch = IdValue(batch);
        let delete_parameters: [&(dyn ToSql + Sync); 4] =
            [&shard, &removed.kinds, &removed.followers, &removed.followees];
        let upsert_parameters: [&(dyn ToSql + Sync); 6] =
            [&shard, &added.kinds, &added.followers, &added.followees, &added.since, &added.sequences];
        let count_parameters: [&(dyn ToSql + Sync); 5] =
            [&shard, &counted.kinds, &counted.ids, &counted.following, &last];
        let append_parameters: [&(dyn ToSql + Sync); 6] =
            [&shard, &batch, &log.sequences, &log.at, &log.kinds, &log.bodies];
        let client = connection.client();
        let (deleted, upserted, counted_rows, appended, committed) = tokio::join!(
            biased;
            client.execute(&prepared.delete, &delete_parameters),
            client.execute(&prepared.upsert, &upsert_parameters),
            client.execute(&prepared.count, &count_parameters),
            client.execute(&prepared.append, &append_parameters),
            connection.end(COMMIT),
        );
        let expected = [removed.kinds.len(), added.kinds.len(), counted.kinds.len(), log.kinds.len()];
        let outcome = [deleted, upserted, counted_rows, appended];
        if committed.is_ok() {
            for (written, expected) in outcome.into_iter().zip(expected) {
                // A statement that has failed would have made the commit impossible.
                let written = written.map_err(|_| Sent::Unanswered)?;
                if written != expected as u64 {
                    tracing::error!(
                        shard = shard,
                        written,
                        expected,
                        "rows are not as they were read under the lock"
                    );
                }
            }
            return Ok(());
        }
        // A statement that the host has refused makes the commit impossible; anything else leaves it open.
        match outcome.into_iter().find_map(|one| one.err().filter(|error| error.code().is_some())) {
            Some(error) => Err(Sent::Nothing(Failure::of_statement(&self.name(), &error))),
            None => Err(Sent::Unanswered),
        }
    }
}

/// Why a batch that was sent is not known to be committed.
pub(crate) enum Sent {
    /// It is not committed.
    Nothing(Failure),
    /// The connection was lost, or the commit itself has failed.
    Unanswered,
}

/// A new batch id.
pub(crate) fn random_batch() -> Result<Id> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Storage { detail: format!("the system has no randomness: {error}") })?;
    Ok(Id::Uuid(u128::from_be_bytes(bytes)))
}

/// The same error for another request of the batch.
fn copy_of(error: &Error) -> Error {
    match error {
        Error::Unavailable { what, retry_after } => {
            Error::Unavailable { what: what.clone(), retry_after: *retry_after }
        }
        Error::StorageFull { detail } => Error::StorageFull { detail: detail.clone() },
        other => Error::Storage { detail: other.to_string() },
    }
}
