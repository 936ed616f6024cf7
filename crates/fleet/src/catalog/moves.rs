//! Moves of shards, as the catalog knows them: what is to be moved, and the map once it has been.

use kinfolk_core::{Epoch, Error, Result, Shard};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{Catalog, storage};
use crate::postgres::Failure;

/// A shard that is being moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) shard: Shard,
    pub(crate) from: String,
    pub(crate) to: String,
    /// Its term on the old host.
    pub(crate) term: i64,
}

impl Move {
    fn of(row: &Row) -> Self {
        Self { shard: Shard(row.get::<_, i16>(0) as u16), from: row.get(1), to: row.get(2), term: row.get(3) }
    }
}

impl Catalog {
    /// The moves that have begun and are not over, by shard.
    pub(crate) async fn moves(&self) -> Result<Vec<Move>> {
        let ask = "SELECT shard, from_host, to_host, term FROM moves ORDER BY shard";
        let rows = self.client().await?.query(ask, &[]).await.map_err(|error| storage(&error))?;
        Ok(rows.iter().map(Move::of).collect())
    }

    /// Notes that a shard is to be moved to a host. Returns the move, or the one of that shard that has begun already.
    pub(crate) async fn begin_move(&self, shard: Shard, to: &str) -> Result<Move> {
        let client = self.client().await?;
        let number = shard.0 as i16;
        let begin = "INSERT INTO moves (shard, from_host, to_host, term)
                     SELECT shard, host, $2, term FROM shard_map WHERE shard = $1 AND host <> $2
                     ON CONFLICT DO NOTHING";
        client.execute(begin, &[&number, &to]).await.map_err(|error| storage(&error))?;
        let ask = "SELECT shard, from_host, to_host, term FROM moves WHERE shard = $1";
        let row = client.query_opt(ask, &[&number]).await.map_err(|error| storage(&error))?;
        let is_there =
            || Error::InvalidStore { detail: format!("shard {} is on host {to} already", shard.0) };
        row.as_ref().map(Move::of).ok_or_else(is_there)
    }

    /// Names the process that moves a shard from now on, in place of one number or of any. Returns false if the move is over, or another
    /// process has taken over.
    pub(crate) async fn claim_move(&self, moved: &Move, old: Option<i64>, new: i64) -> Result<bool> {
        let claim = "UPDATE moves SET mover = $5
                     WHERE shard = $1 AND term = $2 AND to_host = $3 AND ($4::bigint IS NULL OR mover IN ($4, $5))";
        let number = moved.shard.0 as i16;
        let parameters: [&(dyn ToSql + Sync); 5] = [&number, &moved.term, &moved.to, &old, &new];
        let claimed = self.client().await?.execute(claim, &parameters).await;
        claimed.map(|rows| rows > 0).map_err(|error| storage(&error))
    }

    /// Makes the new host that of the shard in the map. Harmless if it is already. Returns false if another process has taken over.
    pub(crate) async fn publish_move(&self, moved: &Move, mover: i64) -> Result<bool> {
        let mut client = self.client().await?;
        let failed = |error: tokio_postgres::Error| storage(&error);
        let transaction = client.transaction().await.map_err(failed)?;
        let own = "SELECT FROM moves WHERE shard = $1 AND term = $2 AND mover = $3 FOR UPDATE";
        let own = transaction.query_opt(own, &[&(moved.shard.0 as i16), &moved.term, &mover]).await;
        if own.map_err(failed)?.is_none() {
            return Ok(false);
        }
        let publish = "UPDATE shard_map SET host = $2, term = $3 + 1 WHERE shard = $1 AND term = $3";
        let number = moved.shard.0 as i16;
        let changed =
            transaction.execute(publish, &[&number, &moved.to, &moved.term]).await.map_err(failed)?;
        let count = "UPDATE deployment SET map_version = map_version + $1";
        transaction.execute(count, &[&(changed as i64)]).await.map_err(failed)?;
        transaction.commit().await.map_err(failed).map(|()| true)
    }

    /// Notes that a move is over, whether the shard was moved or not, unless another process has taken over.
    pub(crate) async fn end_move(&self, moved: &Move, mover: i64) -> Result<()> {
        let end = "DELETE FROM moves WHERE shard = $1 AND term = $2 AND mover = $3";
        let client = self.client().await?;
        let ended = client.execute(end, &[&(moved.shard.0 as i16), &moved.term, &mover]).await;
        ended.map(drop).map_err(|error| storage(&error))
    }

    /// Makes a host that of a shard in the map, whatever the map said before.
    pub(crate) async fn assign(&self, shard: Shard, host: &str, term: i64) -> Result<()> {
        let assign = "WITH changed AS (
                          UPDATE shard_map SET host = $2, term = $3
                          WHERE shard = $1 AND (host, term) IS DISTINCT FROM ($2, $3)
                          RETURNING shard
                      )
                      UPDATE deployment SET map_version = map_version + 1 WHERE EXISTS (SELECT FROM changed)";
        let assigned = self.client().await?.execute(assign, &[&(shard.0 as i16), &host, &term]).await;
        assigned.map(drop).map_err(|error| storage(&error))
    }

    /// Forgets all moves: what their hosts knew of them is gone.
    pub(crate) async fn forget_moves(&self) -> Result<()> {
        let forgotten = self.client().await?.execute("DELETE FROM moves", &[]).await;
        forgotten.map(drop).map_err(|error| storage(&error))
    }

    /// Whether the map of an epoch has some shards on a host, with these terms, as it is now.
    pub(crate) async fn names(
        &self,
        epoch: Epoch,
        host: &str,
        shards: &[(Shard, i64)],
    ) -> std::result::Result<bool, Failure> {
        let (numbers, terms): (Vec<i16>, Vec<i64>) =
            shards.iter().map(|&(shard, term)| (shard.0 as i16, term)).unzip();
        let ask = "SELECT count(*)
                   FROM unnest($3::smallint[], $4::bigint[]) AS asked (shard, term)
                   JOIN shard_map USING (shard, term)
                   JOIN deployment ON deployment.epoch = $1
                   WHERE shard_map.host = $2";
        let client = self.client().await.map_err(Failure::Transient)?;
        let found = client.query_one(ask, &[&(epoch.0 as i64), &host, &numbers, &terms]).await;
        let found = found.map_err(|error| Failure::of_statement("the catalog", &error))?;
        Ok(found.get::<_, i64>(0) == shards.len() as i64)
    }

    /// The host and term of a shard in the map, as they are now.
    pub(crate) async fn assignment(&self, shard: Shard) -> Result<(String, i64)> {
        let ask = "SELECT host, term FROM shard_map WHERE shard = $1";
        let row = self.client().await?.query_opt(ask, &[&(shard.0 as i16)]).await;
        let unknown = || Error::InvalidStore { detail: format!("the deployment has no shard {}", shard.0) };
        row.map_err(|error| storage(&error))?.map(|row| (row.get(0), row.get(1))).ok_or_else(unknown)
    }
}
