//! Reading the logs of shards: one statement for each host.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use kinfolk_core::{Position, Sequence, Shard, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{Entry, LoggedChange};
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::postgres::{Failure, Pooled, Query, limit_value};
use crate::read::Acknowledged;

/// The oldest and the newest change of a shard, if it has any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardSpan {
    pub(crate) oldest: Option<Sequence>,
    pub(crate) newest: Option<Sequence>,
}

impl ShardSpan {
    /// Changes up to here are gone.
    pub(crate) fn trimmed(self) -> Sequence {
        self.oldest.map_or(Sequence::START, |oldest| Sequence(oldest.0 - 1))
    }

    pub(crate) fn newest(self) -> Sequence {
        self.newest.unwrap_or_default()
    }

    /// How many changes there are.
    pub(crate) fn len(self) -> u64 {
        self.newest().0 - self.trimmed().0
    }
}

/// Which connections read.
#[derive(Clone, Copy)]
enum Connections {
    OfReads,
    OfWrites,
}

/// Reads logs of a deployment.
#[derive(Clone, Copy)]
pub(crate) struct LogReader<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) topology: &'a Topology,
}

impl LogReader<'_> {
    /// What every shard has.
    pub(crate) async fn spans(&self) -> Result<BTreeMap<Shard, ShardSpan>, Failure> {
        let hosts = 0..self.topology.hosts.len();
        let spans = try_join_all(hosts.map(|host| self.spans_on(host))).await?;
        Ok(spans.into_iter().flatten().collect())
    }

    /// What every shard of a host has. Of a shard that is closed, because it is being handed over, the host still has all there is, unless
    /// the map has come to name another: nobody writes to the new host before.
    pub(crate) async fn spans_on(&self, host: usize) -> Result<Vec<(Shard, ShardSpan)>, Failure> {
        let shards: Vec<i16> = self.topology.shards_on(host).map(|shard| shard.0 as i16).collect();
        let target = &self.topology.hosts[host];
        // Before the host is asked: others write meanwhile.
        let acknowledged = self.shared.acknowledged.so_far(self.topology.epoch);
        let rows = target.query(&self.shared.statements, Query::Span, &[&shards]).await?;
        let spans: Vec<_> = rows.iter().map(|row| self.span(row)).collect::<Result<_, _>>()?;
        if spans.len() < shards.len() {
            return Err(Failure::Moved);
        }
        let closed: Vec<(Shard, i64)> = rows.iter().filter_map(closed).collect();
        // After the rows were read.
        let catalog = self.shared.catalog();
        if !closed.is_empty() && !catalog.names(self.topology.epoch, &target.name, &closed).await? {
            return Err(Failure::Moved);
        }
        for (shard, span) in &spans {
            let acknowledged = acknowledged.get(*shard).unwrap_or_default();
            Acknowledged::require_past(acknowledged, target, span.newest().on(*shard))?;
        }
        Ok(spans)
    }

    /// A row of `Query::Span`.
    fn span(&self, row: &Row) -> Result<(Shard, ShardSpan), Failure> {
        let shard = Shard(row.get::<_, i16>(0) as u16);
        let assignment = self.topology.assignment(shard).ok_or(Failure::Moved)?;
        if (row.get(1), row.get(2)) != (self.topology.epoch.0 as i64, assignment.term) {
            return Err(Failure::Moved);
        }
        let sequence = |column| row.get::<_, Option<i64>>(column).map(|sequence| Sequence(sequence as u64));
        let span = ShardSpan { oldest: sequence(4), newest: sequence(5) };
        Ok((shard, span))
    }

    /// What a shard that is not closed has, by a connection to its host.
    pub(crate) async fn span_by(&self, connection: &Pooled, shard: Shard) -> Result<ShardSpan, Failure> {
        let host = self.topology.host_of(shard);
        let shards = [shard.0 as i16];
        let (target, statements) = (&self.topology.hosts[host], &self.shared.statements);
        let acknowledged = self.shared.acknowledged.get(self.topology.epoch, shard);
        let rows = target.query_by(connection, statements, Query::Span, &[&shards.as_slice()]).await?;
        let row = rows.first().filter(|row| closed(row).is_none()).ok_or(Failure::Moved)?;
        let (_, span) = self.span(row)?;
        Acknowledged::require_past(acknowledged, target, span.newest().on(shard))?;
        Ok(span)
    }

    /// Up to `limit` changes after some positions, one of each shard. Those of a shard are in order; the shards that are named
    /// first come first.
    pub(crate) async fn changes(
        &self,
        after: &[Position],
        limit: usize,
    ) -> Result<Vec<LoggedChange>, Failure> {
        let mut changes = self.changes_by(after, limit, Connections::OfReads).await?;
        changes.truncate(limit);
        Ok(changes)
    }

    /// As [`LogReader::changes`], by connections that have committed a write before they are used: what they show is on the
    /// standby, so that it may be passed on to other hosts. The limit is that of each host: what was read is used.
    pub(crate) async fn durable_changes(
        &self,
        after: &[Position],
        limit: usize,
    ) -> Result<Vec<LoggedChange>, Failure> {
        self.changes_by(after, limit, Connections::OfWrites).await
    }

    async fn changes_by(
        &self,
        after: &[Position],
        limit: usize,
        connections: Connections,
    ) -> Result<Vec<LoggedChange>, Failure> {
        let mut by_host: BTreeMap<usize, Vec<Position>> = BTreeMap::new();
        for &position in after {
            by_host.entry(self.topology.host_of(position.shard)).or_default().push(position);
        }
        let pages = by_host.into_iter().map(|(host, after)| self.changes_on(host, after, limit, connections));
        Ok(try_join_all(pages).await?.into_iter().flatten().collect())
    }

    async fn changes_on(
        &self,
        host: usize,
        after: Vec<Position>,
        limit: usize,
        connections: Connections,
    ) -> Result<Vec<LoggedChange>, Failure> {
        let shards: Vec<i16> = after.iter().map(|position| position.shard.0 as i16).collect();
        let sequences: Vec<i64> = after.iter().map(|position| position.sequence.0 as i64).collect();
        let (limit, epoch) = (limit_value(limit), self.topology.epoch.0 as i64);
        let host = &self.topology.hosts[host];
        let parameters: [&(dyn ToSql + Sync); 4] = [&shards, &sequences, &limit, &epoch];
        let statements = &self.shared.statements;
        let rows = match connections {
            Connections::OfReads => host.query(statements, Query::Changes, &parameters).await?,
            Connections::OfWrites => host.query_durable(statements, Query::Changes, &parameters).await?,
        };
        rows.iter().map(|row| self.change(row)).collect()
    }

    fn change(&self, row: &Row) -> Result<LoggedChange, Failure> {
        let position = Sequence(row.get::<_, i64>(1) as u64).on(Shard(row.get::<_, i16>(0) as u16));
        let at = Timestamp::from_millis(row.get::<_, i64>(2) as u64);
        let entry = Entry { at, kind: row.get(3), body: row.get(4) };
        entry.decode(position, self.topology.id_kind).map_err(Failure::Final)
    }
}

/// The shard of a row of `Query::Span` and its term, if it is closed.
fn closed(row: &Row) -> Option<(Shard, i64)> {
    let is_closed: bool = row.get(3);
    is_closed.then(|| (Shard(row.get::<_, i16>(0) as u16), row.get(2)))
}
