//! Moves of shards, as the catalog knows them: what is to be moved, and the map once it has been.

use kinfolk_core::{Error, Result, Shard};
use tokio_postgres::Row;

use super::{Catalog, storage};

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

    /// Makes the new host that of the shard in the map. Harmless if it is already.
    pub(crate) async fn publish_move(&self, moved: &Move) -> Result<()> {
        let mut client = self.client().await?;
        let failed = |error: tokio_postgres::Error| storage(&error);
        let transaction = client.transaction().await.map_err(failed)?;
        let publish = "UPDATE shard_map SET host = $2, term = $3 + 1 WHERE shard = $1 AND term = $3";
        let number = moved.shard.0 as i16;
        let changed =
            transaction.execute(publish, &[&number, &moved.to, &moved.term]).await.map_err(failed)?;
        let count = "UPDATE deployment SET map_version = map_version + $1";
        transaction.execute(count, &[&(changed as i64)]).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)
    }

    /// Notes that a move is over, whether the shard was moved or not.
    pub(crate) async fn end_move(&self, moved: &Move) -> Result<()> {
        let end = "DELETE FROM moves WHERE shard = $1 AND term = $2";
        let client = self.client().await?;
        let ended = client.execute(end, &[&(moved.shard.0 as i16), &moved.term]).await;
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

    /// The host and term of a shard in the map, as they are now.
    pub(crate) async fn assignment(&self, shard: Shard) -> Result<(String, i64)> {
        let ask = "SELECT host, term FROM shard_map WHERE shard = $1";
        let row = self.client().await?.query_opt(ask, &[&(shard.0 as i16)]).await;
        let unknown = || Error::InvalidStore { detail: format!("the deployment has no shard {}", shard.0) };
        row.map_err(|error| storage(&error))?.map(|row| (row.get(0), row.get(1))).ok_or_else(unknown)
    }
}
