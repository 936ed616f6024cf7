//! Recorded counts against rows: both are on one host and change in one transaction, so that one statement sees them agree.

use kinfolk_core::Shard;
use kinfolk_core::graph::Side;
use tokio_postgres::types::ToSql;

use super::{Owner, PAGE, Pass, transaction};
use crate::postgres::{Failure, IdValue, Pooled, Query, id_min};
use crate::project::kind_of;
use crate::write::{COMMIT, LOCK_CLASS};

/// Rows of one user that are counted within the timeout of a statement; a user with more is counted on its own.
const COUNTED_TOGETHER: i64 = 100_000;

/// A count that is wrong.
#[derive(Clone, Copy)]
struct Wrong {
    owner: Owner,
    rows: i64,
    recorded: i64,
}

fn count_query(side: Side) -> Query {
    match side {
        Side::Following => Query::CountFollowing,
        Side::Followers => Query::CountFollowers,
    }
}

impl Pass<'_> {
    /// Compares the counts of users that have rows.
    pub(super) async fn check_counts(
        &mut self,
        side: Side,
        shard: Shard,
        owners: &[Owner],
    ) -> Result<(), Failure> {
        let number = shard.0 as i16;
        let kinds: Vec<i16> = owners.iter().map(|(kind, _)| kind.number().into()).collect();
        let ids: Vec<IdValue> = owners.iter().map(|&(_, id)| IdValue(id)).collect();
        let parameters: [&(dyn ToSql + Sync); 4] = [&number, &kinds, &ids, &COUNTED_TOGETHER];
        let rows = self.host(shard).query(&self.shared.statements, count_query(side), &parameters).await?;
        for row in rows {
            let owner = owners[row.get::<_, i64>(0) as usize - 1];
            let mut wrong = Wrong { owner, rows: row.get(1), recorded: row.get(2) };
            if wrong.rows == COUNTED_TOGETHER {
                wrong = transaction(self.host(shard), async |connection: &Pooled| {
                    let counted = self.count(connection, side, shard, owner).await?;
                    self.finish(connection, "ROLLBACK", shard).await.map(|()| counted)
                })
                .await?;
            }
            if wrong.rows != wrong.recorded {
                self.wrong_count(side, shard, wrong).await?;
            }
        }
        Ok(())
    }

    /// Finds recorded counts of users that have no rows.
    pub(super) async fn check_counts_without_rows(&mut self, shard: Shard) -> Result<(), Failure> {
        for (side, query) in
            [(Side::Following, Query::UsersOfShard), (Side::Followers, Query::FollowerCountsOfShard)]
        {
            let number = shard.0 as i16;
            let mut after = (0_i16, IdValue(id_min(self.topology.id_kind)));
            loop {
                let parameters: [&(dyn ToSql + Sync); 4] = [&number, &after.0, &after.1, &PAGE];
                let rows = self.host(shard).query(&self.shared.statements, query, &parameters).await?;
                self.looked_at(rows.len());
                for row in &rows {
                    let (recorded, has_rows): (i64, bool) = (row.get(2), row.get(3));
                    if recorded != 0 && !has_rows {
                        let owner = (kind_of(row)?, row.get::<_, IdValue>(1).0);
                        self.wrong_count(side, shard, Wrong { owner, rows: 0, recorded }).await?;
                    }
                }
                let Some(last) = rows.last().filter(|_| rows.len() as i64 == PAGE) else { break };
                after = (last.get(0), last.get(1));
            }
        }
        Ok(())
    }

    async fn wrong_count(&mut self, side: Side, shard: Shard, wrong: Wrong) -> Result<(), Failure> {
        let Wrong { owner: (kind, id), rows, recorded } = wrong;
        let name = match side {
            Side::Following => "followees",
            Side::Followers => "followers",
        };
        self.differs(|| {
            format!("{id} has {rows} {name} of kind {}, its recorded count is {recorded}", kind.name())
        });
        if !self.repair {
            return Ok(());
        }
        transaction(self.host(shard), async |connection: &Pooled| match side {
            Side::Following => self.correct_following(connection, shard, wrong.owner).await,
            Side::Followers => self.correct_followers(connection, shard, wrong.owner).await,
        })
        .await
    }

    /// Writers of the shard wait: each of them writes the count that it has read plus its changes.
    async fn correct_following(
        &self,
        connection: &Pooled,
        shard: Shard,
        owner: Owner,
    ) -> Result<(), Failure> {
        let shards = [i32::from(shard.0)];
        let lock: [&(dyn ToSql + Sync); 2] = [&LOCK_CLASS, &shards.as_slice()];
        self.query(connection, shard, Query::LockShards, &lock).await?;
        let Wrong { rows, .. } = self.count(connection, Side::Following, shard, owner).await?;
        let (number, kind, id) = key(shard, owner);
        self.query(connection, shard, Query::CorrectFollowingCount, &[&number, &kind, &id, &rows]).await?;
        self.finish(connection, COMMIT, shard).await
    }

    /// Projections of this followee wait.
    async fn correct_followers(
        &self,
        connection: &Pooled,
        shard: Shard,
        owner: Owner,
    ) -> Result<(), Failure> {
        let (number, kind, id) = key(shard, owner);
        self.query(connection, shard, Query::LockFollowerCount, &[&number, &kind, &id]).await?;
        let Wrong { rows, recorded, .. } = self.count(connection, Side::Followers, shard, owner).await?;
        let step = rows - recorded;
        self.query(connection, shard, Query::CorrectFollowerCount, &[&number, &kind, &id, &step]).await?;
        self.finish(connection, COMMIT, shard).await
    }

    /// Counts all rows of one user, however long that takes.
    async fn count(
        &self,
        connection: &Pooled,
        side: Side,
        shard: Shard,
        owner: Owner,
    ) -> Result<Wrong, Failure> {
        let (number, kind, id) = key(shard, owner);
        let unlimited = connection.client().batch_execute("SET LOCAL statement_timeout = 0").await;
        unlimited.map_err(|error| Failure::of_statement(&self.host(shard).name, &error))?;
        let (kinds, ids) = ([kind], [id]);
        let parameters: [&(dyn ToSql + Sync); 4] = [&number, &kinds.as_slice(), &ids.as_slice(), &i64::MAX];
        let rows = self.query(connection, shard, count_query(side), &parameters).await?;
        let row = rows.first().ok_or(Failure::Moved)?;
        Ok(Wrong { owner, rows: row.get(1), recorded: row.get(2) })
    }

    /// Runs a statement of a transaction.
    pub(super) async fn query(
        &self,
        connection: &Pooled,
        shard: Shard,
        query: Query,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, Failure> {
        let rows = async {
            let statement = connection.prepare(&self.shared.statements, query).await?;
            connection.client().query(&statement, parameters).await
        };
        rows.await.map_err(|error| Failure::of_statement(&self.host(shard).name, &error))
    }

    /// Ends a transaction.
    pub(super) async fn finish(&self, connection: &Pooled, end: &str, shard: Shard) -> Result<(), Failure> {
        let ended = connection.end(end).await;
        ended.map_err(|error| Failure::of_statement(&self.host(shard).name, &error))
    }
}

fn key(shard: Shard, (kind, id): Owner) -> (i16, i16, IdValue) {
    (shard.0 as i16, kind.number().into(), IdValue(id))
}
