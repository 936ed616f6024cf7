//! Retention: the oldest changes go when they are too old or too many, but never before every host shows them, and none of a shard that is
//! being moved.

use std::time::Duration;

use futures_util::future::try_join_all;
use kinfolk_core::{Frontier, Result, Sequence, Shard};

use super::{LogReader, ShardSpan, kept_marks};
use crate::Fleet;
use crate::postgres::{Failure, Query};
use crate::read::Reader;

/// Changes that one statement removes: it holds no lock that a write needs, but its work should be short.
const STEP: u64 = 10_000;

/// What is kept of the log.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Changes stay for so long.
    pub age: Duration,
    /// The changes that each shard keeps at most.
    pub entries_max: u64,
}

/// What a run has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// The number of changes.
    pub entries: u64,
    /// Shards that would keep less, if every host showed their changes already.
    pub shards_held_back: u64,
}

impl Fleet {
    /// Removes what need not be kept.
    pub async fn trim_log(&self, retention: Retention) -> Result<Trimmed> {
        self.read(Frontier::EMPTY, move |reader| async move { reader.trim(retention).await }).await
    }
}

impl Reader {
    async fn trim(&self, retention: Retention) -> std::result::Result<Trimmed, Failure> {
        let log = LogReader { shared: &self.shared, topology: &self.topology };
        let hosts = &self.topology.hosts;
        let all: Vec<Shard> = self.topology.shards().collect();
        let epoch = self.topology.epoch;
        let marks = hosts.iter().map(|host| kept_marks(&self.shared, host, epoch, &all));
        let marks = try_join_all(marks).await?;
        // After the marks: a host that was named before they were read begins at or after them.
        self.require_known_hosts().await?;
        let mut trimmed = Trimmed::default();
        for (shard, span) in log.spans().await? {
            let lowest =
                marks.iter().map(|marks| marks.get(shard).unwrap_or_default()).min().unwrap_or_default();
            let (entries, held_back) = self.trim_shard(shard, span, lowest, retention).await?;
            trimmed.entries += entries;
            trimmed.shards_held_back += u64::from(held_back);
        }
        Ok(trimmed)
    }

    /// Refuses to go on without a host that was added since: what it does not show yet must be kept.
    async fn require_known_hosts(&self) -> std::result::Result<(), Failure> {
        let described = self.shared.catalog().describe().await.map_err(Failure::Final)?;
        let is_known = |name: &String| self.topology.host_named(name).is_some();
        if described.hosts.iter().all(is_known) { Ok(()) } else { Err(Failure::Moved) }
    }

    /// Trims one shard, in steps. Returns how many changes went, and whether more would have.
    async fn trim_shard(
        &self,
        shard: Shard,
        span: ShardSpan,
        lowest: Sequence,
        retention: Retention,
    ) -> std::result::Result<(u64, bool), Failure> {
        let host = &self.topology.hosts[self.topology.host_of(shard)];
        let number = shard.0 as i16;
        let age = retention.age.as_millis() as u64;
        let moment = self.shared.clock.now().millis().saturating_sub(age) as i64;
        let by_size = span.newest().0.saturating_sub(retention.entries_max);
        let mut removed = 0;
        loop {
            let oldest = span.trimmed().0 + removed;
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
                [&number, &moment, &(STEP as i64)];
            let rows = host.query(&self.shared.statements, Query::CutByAge, &parameters).await?;
            let by_age = rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).unwrap_or(0) as u64;
            let wanted = by_age.max(by_size).min(oldest + STEP).min(span.newest().0.saturating_sub(1));
            let cut = wanted.min(lowest.0);
            if cut <= oldest {
                return Ok((removed, wanted > oldest));
            }
            let gone = host.execute(&self.shared.statements, Query::Trim, &[&number, &(cut as i64)]).await?;
            removed += gone;
            if gone < cut - oldest {
                return Ok((removed, true));
            }
        }
    }
}
