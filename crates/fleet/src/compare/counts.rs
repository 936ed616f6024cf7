//! Recorded counts against rows: both are on one host and change in one transaction, so that one statement sees them agree.

use kinfolk_core::Shard;
use kinfolk_core::graph::Side;
use tokio_postgres::types::ToSql;

use super::difference::{CountDifference, Difference};
use super::settle::RepairIf;
use super::{Comparison, Owner, Settled, Thoroughness};
use crate::postgres::{Failure, IdValue, Pooled, Query};
use crate::write::{COMMIT, LOCK_CLASS};

/// Rows of one user that are counted within the timeout of a statement. A user with more is counted on its own, or passed over.
const COUNTED_TOGETHER: i64 = 100_000;

fn count_query(side: Side) -> Query {
    match side {
        Side::Following => Query::CountFollowing,
        Side::Followers => Query::CountFollowers,
    }
}

impl Comparison<'_> {
    /// Compares the counts of users of a shard. Returns what differs, and how many rows were counted.
    pub(super) async fn compare_counts(
        &self,
        side: Side,
        shard: Shard,
        owners: &[Owner],
        repair_if: RepairIf<'_>,
    ) -> Result<(Vec<Settled>, u64), Failure> {
        if owners.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let number = shard.0 as i16;
        let kinds: Vec<i16> = owners.iter().map(|(kind, _)| kind.number().into()).collect();
        let ids: Vec<IdValue> = owners.iter().map(|&(_, id)| IdValue(id)).collect();
        let parameters: [&(dyn ToSql + Sync); 4] = [&number, &kinds, &ids, &COUNTED_TOGETHER];
        let rows = self.host(shard).query(&self.shared.statements, count_query(side), &parameters).await?;
        let (mut settled, mut counted) = (Vec::new(), 0);
        for row in rows {
            let owner = owners[row.get::<_, i64>(0) as usize - 1];
            let found = CountDifference { side, shard, owner, rows: row.get(1), recorded: row.get(2) };
            counted += found.rows as u64;
            if found.rows == COUNTED_TOGETHER || found.step() != 0 {
                settled.extend(self.settle_count(side, shard, owner, repair_if).await?);
            }
        }
        Ok((settled, counted))
    }

    /// Looks at the count of one user, and corrects it if it is wrong and that is asked for.
    pub(crate) async fn settle_count(
        &self,
        side: Side,
        shard: Shard,
        owner: Owner,
        repair_if: RepairIf<'_>,
    ) -> Result<Option<Settled>, Failure> {
        let host = self.host(shard);
        let connection = self.begin(host).await?;
        let looked = async {
            let found = self.count(&connection, side, shard, owner).await?;
            self.finish(&connection, host, "ROLLBACK").await.map(|()| found)
        };
        let Some(found) = looked.await.inspect_err(|_| connection.discard())? else { return Ok(None) };
        self.require_open(shard).await?;
        if !repair_if(&found) {
            return Ok(Some(Settled { difference: found, is_repaired: false }));
        }
        let connection = self.begin(host).await?;
        let settled = self.correct_locked(&connection, &found).await;
        settled.inspect_err(|_| connection.discard())
    }

    /// Counts again while nobody can change the rows, and corrects the count if it is still wrong by the same number.
    async fn correct_locked(
        &self,
        connection: &Pooled,
        wrong: &Difference,
    ) -> Result<Option<Settled>, Failure> {
        let Difference::Count(CountDifference { side, shard, owner, .. }) = *wrong else { return Ok(None) };
        let host = self.host(shard);
        // In the order in which others lock: writers, shards, rows.
        if side == Side::Following {
            self.lock_writers(connection, shard).await?;
        }
        self.hold(connection, host, &[shard].into()).await?;
        if side == Side::Followers {
            self.lock_followers(connection, shard, owner).await?;
        }
        let found = self.count(connection, side, shard, owner).await?;
        let is_repaired = found.is_some_and(|found| found.is_still(wrong));
        if let Some(found) = found.filter(|_| is_repaired) {
            self.correct(connection, &found).await?;
        }
        self.finish(connection, host, if is_repaired { COMMIT } else { "ROLLBACK" }).await?;
        Ok(found.map(|difference| Settled { difference, is_repaired }))
    }

    /// Writers of the shard wait: each of them writes the count that it has read plus its changes.
    async fn lock_writers(&self, connection: &Pooled, shard: Shard) -> Result<(), Failure> {
        let shards = [i32::from(shard.0)];
        let lock: [&(dyn ToSql + Sync); 2] = [&LOCK_CLASS, &shards.as_slice()];
        self.query(connection, self.host(shard), Query::LockShards, &lock).await.map(drop)
    }

    /// Projections of this followee wait.
    async fn lock_followers(&self, connection: &Pooled, shard: Shard, owner: Owner) -> Result<(), Failure> {
        let (number, kind, id) = key(shard, owner);
        let parameters: [&(dyn ToSql + Sync); 3] = [&number, &kind, &id];
        self.query(connection, self.host(shard), Query::LockFollowerCount, &parameters).await.map(drop)
    }

    async fn correct(&self, connection: &Pooled, difference: &Difference) -> Result<(), Failure> {
        let Difference::Count(wrong) = difference else { return Ok(()) };
        let (query, value) = match wrong.side {
            Side::Following => (Query::CorrectFollowingCount, wrong.rows),
            Side::Followers => (Query::CorrectFollowerCount, wrong.step()),
        };
        let (number, kind, id) = key(wrong.shard, wrong.owner);
        let parameters: [&(dyn ToSql + Sync); 4] = [&number, &kind, &id, &value];
        self.query(connection, self.host(wrong.shard), query, &parameters).await.map(drop)
    }

    /// Counts all rows of one user, however long that takes, unless no statement may take long. Returns whether that differs from
    /// the recorded count.
    async fn count(
        &self,
        connection: &Pooled,
        side: Side,
        shard: Shard,
        owner: Owner,
    ) -> Result<Option<Difference>, Failure> {
        let host = self.host(shard);
        let rows_max = match self.thoroughness {
            Thoroughness::Bounded(_) => COUNTED_TOGETHER,
            Thoroughness::Full => {
                let unlimited = connection.client().batch_execute("SET LOCAL statement_timeout = 0").await;
                unlimited.map_err(|error| Failure::of_statement(&host.name, &error))?;
                i64::MAX
            }
        };
        let (number, kind, id) = key(shard, owner);
        let (kinds, ids) = ([kind], [id]);
        let parameters: [&(dyn ToSql + Sync); 4] = [&number, &kinds.as_slice(), &ids.as_slice(), &rows_max];
        let rows = self.query(connection, host, count_query(side), &parameters).await?;
        let row = rows.first().ok_or(Failure::Moved)?;
        let found = CountDifference { side, shard, owner, rows: row.get(1), recorded: row.get(2) };
        let is_wrong = found.step() != 0 && found.rows < rows_max;
        Ok(is_wrong.then_some(Difference::Count(found)))
    }
}

fn key(shard: Shard, (kind, id): Owner) -> (i16, i16, IdValue) {
    (shard.0 as i16, kind.number().into(), IdValue(id))
}
