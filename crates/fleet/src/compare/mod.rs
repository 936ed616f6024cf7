//! What is derived against the truth, a page of one side at a time: `verify` and the reconciler walk with it.
//!
//! The keys of a page are a range. The other side says how many of them it has, with a checksum of what it says about them; only
//! where that is something else are rows read. What then seems to differ is looked at again while the mark of its source is
//! locked, so that writes and projections go on meanwhile and nothing that is only on its way is called a difference.

mod counts;
mod difference;
mod ranges;
mod settle;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kinfolk_core::{EdgeKind, Id, Shard};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

#[cfg(test)]
pub(crate) use self::difference::CountDifference;
pub(crate) use self::difference::{Difference, Subject};
pub(crate) use self::settle::Settled;
pub(crate) use self::walk::{Step, Walk};
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::postgres::{Failure, Host, Pooled, Query};
use crate::write::BEGIN;

/// Rows that are read at once, at most.
pub(crate) const PAGE: i64 = 2_000;

/// A host that has failed is left out for so long, by those who go on without it.
const LEFT_OUT: Duration = Duration::from_secs(5);

/// A user with edges of a kind.
pub(crate) type Owner = (EdgeKind, Id);

/// Compares, as the map of the shards has it. A repair fails with [`Failure::Moved`] if the map is old.
pub(crate) struct Comparison<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) topology: &'a Topology,
    pub(crate) thoroughness: Thoroughness<'a>,
}

/// How much is asked of the hosts.
#[derive(Clone, Copy)]
pub(crate) enum Thoroughness<'a> {
    /// Everything is compared, however long it takes. What fails ends it.
    Full,
    /// No statement takes long: the counts of users with very many rows are passed over. What needs a host that fails is, too.
    Bounded(&'a LeftOut),
}

/// Hosts that have failed a moment ago.
#[derive(Default)]
pub(crate) struct LeftOut {
    failed: Mutex<BTreeMap<String, Instant>>,
    times: AtomicU64,
}

impl LeftOut {
    /// Leaves a host out for a while.
    pub(crate) fn note(&self, host: &Host, failure: &Failure) {
        tracing::debug!(host = host.name, ?failure, "a host is left out");
        self.failed.lock().insert(host.name.clone(), Instant::now());
        self.times.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a host is left out right now.
    pub(crate) fn has(&self, host: &Host) -> bool {
        let is_out = self.failed.lock().get(&host.name).is_some_and(|failed| failed.elapsed() < LEFT_OUT);
        self.times.fetch_add(is_out.into(), Ordering::Relaxed);
        is_out
    }

    /// How often something was passed over because of a host.
    pub(crate) fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }
}

impl Comparison<'_> {
    fn host(&self, shard: Shard) -> &Host {
        &self.topology.hosts[self.topology.host_of(shard)]
    }

    /// Waits for work that needs a host. Nothing comes of it if the host fails and the others go on.
    async fn at_host<T: Default>(
        &self,
        host: &Host,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let Thoroughness::Bounded(left_out) = self.thoroughness else { return work.await };
        if left_out.has(host) {
            return Ok(T::default());
        }
        match work.await {
            Err(failure @ Failure::Transient(_)) => {
                left_out.note(host, &failure);
                Ok(T::default())
            }
            outcome => outcome,
        }
    }

    /// Begins a transaction of a host. Whatever fails in it must discard the connection.
    async fn begin(&self, host: &Host) -> Result<Pooled, Failure> {
        let connection = host.writer().await?;
        match connection.begin(BEGIN).await {
            Ok(()) => Ok(connection),
            Err(error) => {
                connection.discard();
                Err(Failure::of_statement(&host.name, &error))
            }
        }
    }

    /// Runs a statement of a transaction.
    async fn query(
        &self,
        connection: &Pooled,
        host: &Host,
        query: Query,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        let rows = async {
            let statement = connection.prepare(&self.shared.statements, query).await?;
            connection.client().query(&statement, parameters).await
        };
        rows.await.map_err(|error| Failure::of_statement(&host.name, &error))
    }

    /// Ends a transaction.
    async fn finish(&self, connection: &Pooled, host: &Host, end: &str) -> Result<(), Failure> {
        connection.end(end).await.map_err(|error| Failure::of_statement(&host.name, &error))
    }

    /// Makes sure that shards are open at their host, and stay there until the transaction ends. After the lock of writers and
    /// before those of marks and rows, which is the order of others.
    async fn hold(&self, connection: &Pooled, host: &Host, shards: &BTreeSet<Shard>) -> Result<(), Failure> {
        let terms = shards.iter().map(|&shard| Some(self.topology.assignment(shard)?.term));
        let terms: Vec<i64> = terms.collect::<Option<_>>().ok_or(Failure::Moved)?;
        let numbers: Vec<i16> = shards.iter().map(|shard| shard.0 as i16).collect();
        let epoch = self.topology.epoch.0 as i64;
        let parameters: [&(dyn ToSql + Sync); 3] = [&numbers, &terms, &epoch];
        let held = self.query(connection, host, Query::HoldShards, &parameters).await?;
        if held.len() == shards.len() { Ok(()) } else { Err(Failure::Moved) }
    }

    /// Makes sure that a shard was open at its host for as long as this comparison has read it: a shard that leaves a host comes
    /// back only with another term.
    pub(crate) async fn require_open(&self, shard: Shard) -> Result<(), Failure> {
        let assignment = self.topology.assignment(shard).ok_or(Failure::Moved)?;
        let numbers = [shard.0 as i16];
        let parameters: [&(dyn ToSql + Sync); 1] = [&numbers.as_slice()];
        let rows = self.host(shard).query(&self.shared.statements, Query::Head, &parameters).await?;
        let current = (self.topology.epoch.0 as i64, assignment.term, true);
        let is_open = |row: &Row| (row.get(1), row.get(2), row.get(3)) == current;
        if rows.first().is_some_and(is_open) { Ok(()) } else { Err(Failure::Moved) }
    }

    /// Runs one statement as a transaction of the host of a shard, if the shard is there. Returns how many rows it has changed.
    pub(crate) async fn execute(
        &self,
        shard: Shard,
        query: Query,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Failure> {
        let host = self.host(shard);
        let connection = self.begin(host).await?;
        let changed = async {
            self.hold(&connection, host, &[shard].into()).await?;
            let changed = async {
                let statement = connection.prepare(&self.shared.statements, query).await?;
                connection.client().execute(&statement, parameters).await
            };
            let changed = changed.await.map_err(|error| Failure::of_statement(&host.name, &error))?;
            self.finish(&connection, host, crate::write::COMMIT).await.map(|()| changed)
        };
        changed.await.inspect_err(|_| connection.discard())
    }
}
