//! One batch on some shards of a host: lock, check and read in one round trip, plan, then write and commit in another.
//!
//! The locks make the order of commits the order of sequences, for each shard. Nothing slow happens under it: the rows of a batch come back as
//! a few arrays, and a process that stops in the middle is ended by the host's idle timeout.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::graph::{Receipt, WriteRequest};
use kinfolk_core::{Epoch, Error, Id, Position, Result, Sequence, Shard, Timestamp};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::plan::{BatchPlan, Before, Head, Plan, Subjects};
use super::prepared::Prepared;
use super::rows::Rows;
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::log::{Entry, floor_after};
use crate::postgres::{Failure, Host, IdValue, Pooled, unavailable};

/// The first half of the key of a shard's advisory lock: "kf" in ASCII. The second half is the shard.
pub(crate) const LOCK_CLASS: i32 = 0x6b66;

/// READ COMMITTED, so that each statement after the lock has a snapshot from after the lock.
pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// A commit is never cancelled: PostgreSQL would answer a cancelled wait for the standby with success. And a transaction that
/// has failed refuses the first statement, so that success means COMMIT and never the ROLLBACK that a bare COMMIT turns into.
pub(crate) const COMMIT: &str = "SET LOCAL statement_timeout = 0; COMMIT";

/// A host answers within its own timeouts; a connection that is silent for so much longer is lost.
const GRACE: Duration = Duration::from_secs(1);

/// The pauses before a batch is tried again.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(2);
pub(super) const PAUSE_MAX: Duration = Duration::from_millis(200);

/// Writes batches, each to some shards of one host.
#[derive(Clone)]
pub(crate) struct BatchWriter {
    pub(crate) shared: Arc<Shared>,
}

/// A batch whose COMMIT was sent and not answered.
pub(super) struct Unsettled {
    plan: BatchPlan,
    /// The last change of one of its shards.
    pub(super) last: Position,
    pub(super) batch: Id,
    pub(super) epoch: Epoch,
}

/// Shards under their locks, and what was read of them.
pub(crate) struct Locked {
    prepared: Prepared,
    pub(crate) before: Before,
    pub(crate) heads: BTreeMap<Shard, Head>,
}

/// A batch under the lock, between its reads and its writes.
struct Begun {
    locked: Locked,
    plan: BatchPlan,
}

/// What became of one attempt.
enum Attempt {
    Committed(BatchPlan, Epoch),
    /// Nothing has happened.
    Failed(Failure),
    /// Nobody knows yet.
    Lost(Unsettled),
}

impl BatchWriter {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Applies requests to the shards of a host. One result for each, in order. None for a request whose shard takes no writes there: it was
    /// moved, or is about to be.
    pub(super) async fn write(
        &self,
        host: usize,
        deadline: Instant,
        requests: &[&WriteRequest],
    ) -> Vec<Option<Result<Receipt>>> {
        let refuse = |error: &dyn Fn() -> Error| requests.iter().map(|_| Some(Err(error()))).collect();
        let mut pause = PAUSE_MIN;
        loop {
            let failure = match self.attempt(host, requests).await {
                Attempt::Committed(plan, epoch) => return self.acknowledge(plan, epoch),
                Attempt::Failed(failure) => failure,
                Attempt::Lost(unsettled) => match self.settle(&unsettled).await {
                    Some(true) => return self.acknowledge(unsettled.plan, unsettled.epoch),
                    // The lock was taken after it, so that it can't commit any more.
                    Some(false) => Failure::Transient(unavailable("the host", "a connection was lost")),
                    None => return unsettled.plan.into_unknown(),
                },
            };
            let error = match failure {
                Failure::Moved => return requests.iter().map(|_| None).collect(),
                Failure::Transient(_) if Instant::now() + pause < deadline => {
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                    continue;
                }
                failure => failure.into_error(),
            };
            tracing::warn!(requests = requests.len(), %error, "a batch was not written");
            return refuse(&|| copy_of(&error));
        }
    }

    fn acknowledge(&self, plan: BatchPlan, epoch: Epoch) -> Vec<Option<Result<Receipt>>> {
        plan.changing().for_each(|plan| self.committed(epoch, plan.last()));
        plan.into_results()
    }

    /// Notes that a change was committed.
    pub(crate) fn committed(&self, epoch: Epoch, newest: Position) {
        self.shared.acknowledged.note(epoch, newest);
        self.shared.announce_progress();
    }

    async fn attempt(&self, index: usize, requests: &[&WriteRequest]) -> Attempt {
        let topology = self.shared.topology();
        let is_here =
            |request: &&&WriteRequest| topology.host_of(topology.shard_of(request.follower)) == index;
        // A shard that the newest map has elsewhere is not even locked.
        let here: Vec<&WriteRequest> = requests.iter().filter(is_here).copied().collect();
        if here.is_empty() {
            return Attempt::Failed(Failure::Moved);
        }
        let host = &topology.hosts[index];
        let connection = match host.writer().await {
            Ok(connection) => connection,
            Err(failure) => return Attempt::Failed(failure),
        };
        let timeouts = self.shared.settings.timeouts;
        let silent = || Failure::Transient(unavailable(&host.name, "the host did not answer in time"));
        let begun = self.begin(&connection, &topology, (index, &here), requests);
        let begun = timeout(timeouts.lock + timeouts.statement + GRACE, begun);
        let begun = match begun.await.unwrap_or_else(|_| Err(silent())) {
            Ok(begun) => begun,
            Err(failure) => {
                // Whatever state the transaction is in ends with the connection.
                connection.discard();
                return Attempt::Failed(failure);
            }
        };
        let Some(last) = begun.plan.changing().next().map(Plan::last) else {
            return match connection.end("ROLLBACK").await {
                Ok(()) => Attempt::Committed(begun.plan, topology.epoch),
                Err(error) => {
                    connection.discard();
                    Attempt::Failed(Failure::of_statement(&host.name, &error))
                }
            };
        };
        self.commit(host, connection, begun, (last, topology.epoch)).await
    }

    async fn begin(
        &self,
        connection: &Pooled,
        topology: &Topology,
        (host, here): (usize, &[&WriteRequest]),
        requests: &[&WriteRequest],
    ) -> std::result::Result<Begun, Failure> {
        let locked = self.lock(connection, topology, host, &Subjects::of(here)).await?;
        let plan = BatchPlan::new(topology, &locked.before, &locked.heads, requests);
        Ok(Begun { locked, plan })
    }

    /// The first round trip: lock, check, read. Nothing is written. A shard that takes no writes here has no head.
    pub(crate) async fn lock(
        &self,
        connection: &Pooled,
        topology: &Topology,
        host: usize,
        subjects: &Subjects,
    ) -> std::result::Result<Locked, Failure> {
        let target = &topology.hosts[host];
        let failed = |error: tokio_postgres::Error| Failure::of_statement(&target.name, &error);
        let shard_of = |id: Id| topology.shard_of(id).0 as i16;
        let edge_shards: Vec<i16> = subjects.edges.iter().map(|(_, edge)| shard_of(edge.follower)).collect();
        let user_shards: Vec<i16> = subjects.users.iter().map(|&(_, id)| shard_of(id)).collect();
        let shards: BTreeSet<i16> = user_shards.iter().copied().collect();
        let lock_keys: Vec<i32> = shards.iter().map(|&shard| shard.into()).collect();
        let shards: Vec<i16> = shards.into_iter().collect();
        let prepared = Prepared::new(connection, &self.shared.statements).await.map_err(failed)?;

        let edge_kinds: Vec<i16> = subjects.edges.iter().map(|(kind, _)| kind.number().into()).collect();
        let followers: Vec<IdValue> = subjects.edges.iter().map(|(_, edge)| IdValue(edge.follower)).collect();
        let followees: Vec<IdValue> = subjects.edges.iter().map(|(_, edge)| IdValue(edge.followee)).collect();
        let user_kinds: Vec<i16> = subjects.users.iter().map(|(kind, _)| kind.number().into()).collect();
        let ids: Vec<IdValue> = subjects.users.iter().map(|&(_, id)| IdValue(id)).collect();

        let client = connection.client();
        let to_lock: [&(dyn ToSql + Sync); 2] = [&LOCK_CLASS, &lock_keys];
        let of_heads: [&(dyn ToSql + Sync); 1] = [&shards];
        let of_edges: [&(dyn ToSql + Sync); 4] = [&edge_shards, &edge_kinds, &followers, &followees];
        let of_users: [&(dyn ToSql + Sync); 3] = [&user_shards, &user_kinds, &ids];
        // In this order on the wire: each future sends its statement when it is first polled.
        let (begun, locked, heads, edges, users) = tokio::join!(
            biased;
            connection.begin(BEGIN),
            client.query_one(&prepared.lock, &to_lock),
            client.query(&prepared.head, &of_heads),
            client.query_one(&prepared.edges, &of_edges),
            client.query_one(&prepared.users, &of_users),
        );
        begun.map_err(failed)?;
        locked.map_err(failed)?;
        let heads = heads.map_err(failed)?;
        let (edges, users) = (edges.map_err(failed)?, users.map_err(failed)?);
        let before = subjects.before(&edges, &users);
        let heads = heads.iter().filter_map(|row| self.head(row, topology, target).transpose());
        let heads: BTreeMap<Shard, Head> = heads.collect::<std::result::Result<_, _>>()?;
        Ok(Locked { prepared, before, heads })
    }

    /// The end of the log of a shard, if the shard is open on the host.
    fn head(
        &self,
        row: &Row,
        topology: &Topology,
        host: &Host,
    ) -> std::result::Result<Option<(Shard, Head)>, Failure> {
        let shard = Shard(row.get::<_, i16>(0) as u16);
        let assignment = topology.assignment(shard).ok_or(Failure::Moved)?;
        let expected = (topology.epoch.0 as i64, assignment.term, true);
        if (row.get(1), row.get(2), row.get(3)) != expected {
            return Ok(None);
        }
        let sequence = Sequence(row.get::<_, Option<i64>>(4).unwrap_or(0) as u64);
        let newest = sequence.on(shard);
        self.shared.acknowledged.require(host, topology.epoch, newest)?;
        let mut floor = self.shared.clock.now();
        if sequence > Sequence::START {
            let at = Timestamp::from_millis(row.get::<_, i64>(5) as u64);
            let entry = Entry { at, kind: row.get(6), body: row.get(7) };
            let change = entry.decode(newest, topology.id_kind).map_err(Failure::Final)?;
            floor = floor.max(floor_after(&change.change));
        }
        Ok(Some((shard, Head { newest, floor })))
    }

    /// The second round trip: write and commit. From here on, only a reply shows what has happened.
    async fn commit(
        &self,
        host: &Host,
        connection: Pooled,
        begun: Begun,
        (last, epoch): (Position, Epoch),
    ) -> Attempt {
        let batch = match random_batch() {
            Ok(batch) => batch,
            Err(error) => {
                connection.discard();
                return Attempt::Failed(Failure::Final(error));
            }
        };
        let timeouts = self.shared.settings.timeouts;
        let Begun { locked, plan } = &begun;
        let mut rows = Rows::default();
        plan.changing().for_each(|plan| rows.add(&locked.before, plan.newest, &plan.events));
        let sent = self.send(host, &connection, locked, &rows, batch);
        let written = timeout(timeouts.statement + GRACE, sent).await;
        match written {
            Ok(Ok(())) => Attempt::Committed(begun.plan, epoch),
            Ok(Err(Sent::Nothing(failure))) => {
                connection.discard();
                Attempt::Failed(failure)
            }
            Ok(Err(Sent::Unanswered)) | Err(_) => {
                connection.discard();
                Attempt::Lost(Unsettled { plan: begun.plan, last, batch, epoch })
            }
        }
    }

    /// Writes rows and commits.
    pub(crate) async fn send(
        &self,
        host: &Host,
        connection: &Pooled,
        Locked { prepared, .. }: &Locked,
        Rows { removed, added, counted, log }: &Rows,
        batch: Id,
    ) -> std::result::Result<(), Sent> {
        let batch = IdValue(batch);
        let delete_parameters: [&(dyn ToSql + Sync); 4] =
            [&removed.shards, &removed.kinds, &removed.followers, &removed.followees];
        let upsert_parameters: [&(dyn ToSql + Sync); 6] =
            [&added.shards, &added.kinds, &added.followers, &added.followees, &added.since, &added.sequences];
        let count_parameters: [&(dyn ToSql + Sync); 5] =
            [&counted.shards, &counted.kinds, &counted.ids, &counted.following, &counted.sequences];
        let append_parameters: [&(dyn ToSql + Sync); 6] =
            [&batch, &log.shards, &log.sequences, &log.at, &log.kinds, &log.bodies];
        let client = connection.client();
        let (deleted, upserted, counted_rows, appended, committed) = tokio::join!(
            biased;
            async {
                // Most batches remove nothing.
                let is_empty = removed.kinds.is_empty();
                if is_empty { Ok(0) } else { client.execute(&prepared.delete, &delete_parameters).await }
            },
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
                        host = host.name,
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
            Some(error) => Err(Sent::Nothing(Failure::of_statement(&host.name, &error))),
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
