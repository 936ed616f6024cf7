//! Marks: how far somebody has taken the log of each shard, as a host remembers it.

use kinfolk_core::{Epoch, Frontier, Sequence, Shard};
use tokio_postgres::Row;

use crate::fleet::Shared;
use crate::postgres::{Failure, Host, Query};

/// A row of marks.
pub(crate) struct Mark {
    pub(crate) source: Shard,
    pub(crate) epoch: Epoch,
    pub(crate) sequence: Sequence,
}

impl Mark {
    pub(crate) fn of(row: &Row) -> Self {
        Self {
            source: Shard(row.get::<_, i16>(0) as u16),
            epoch: Epoch(row.get::<_, i64>(1) as u64),
            sequence: Sequence(row.get::<_, i64>(2) as u64),
        }
    }
}

/// How far the follower side of a host shows some sources, in an epoch.
pub(crate) async fn marks(
    shared: &Shared,
    host: &Host,
    epoch: Epoch,
    of: &[Shard],
) -> Result<Frontier, Failure> {
    read(shared, host, Query::Marks, epoch, of).await
}

/// How far some sources may be trimmed as far as a host is concerned: what it shows, and what shards have that are being moved to it.
pub(crate) async fn kept_marks(
    shared: &Shared,
    host: &Host,
    epoch: Epoch,
    of: &[Shard],
) -> Result<Frontier, Failure> {
    read(shared, host, Query::KeptMarks, epoch, of).await
}

/// How far some shards of a host were relayed, in an epoch. One that was never relayed is missing.
pub(crate) async fn relay_marks(
    shared: &Shared,
    host: &Host,
    epoch: Epoch,
    of: &[Shard],
) -> Result<Frontier, Failure> {
    read(shared, host, Query::RelayMarks, epoch, of).await
}

async fn read(
    shared: &Shared,
    host: &Host,
    query: Query,
    epoch: Epoch,
    of: &[Shard],
) -> Result<Frontier, Failure> {
    let shards: Vec<i16> = of.iter().map(|shard| shard.0 as i16).collect();
    let rows = host.query(&shared.statements, query, &[&shards]).await?;
    let current = rows.iter().map(Mark::of).filter(|mark| mark.epoch == epoch);
    Ok(current.map(|mark| mark.sequence.on(mark.source)).collect())
}
