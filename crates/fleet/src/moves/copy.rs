//! Copying the rows of a shard, page by page in the order of their keys, while they change. Each page is a transaction that also notes
//! where the next one begins, so that an interrupted copy goes on.

use kinfolk_core::graph::Edge;
use kinfolk_core::{Error, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{Mover, TRANSACTION_MAX};
use crate::log::{LogReader, Mark};
use crate::postgres::{Failure, IdValue, Pooled, Query, id_min};
use crate::project::{ProjectedRows, edge_of_row, kind_of};
use crate::write::NetEdge;

/// Rows that are copied at once.
const PAGE: i64 = 5_000;

/// Which rows are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Following,
    Followers,
    /// All are.
    Done,
}

impl Stage {
    fn of(number: i16) -> Self {
        match number {
            0 => Self::Following,
            1 => Self::Followers,
            _ => Self::Done,
        }
    }

    fn number(self) -> i16 {
        match self {
            Self::Following => 0,
            Self::Followers => 1,
            Self::Done => 2,
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Following => Self::Followers,
            Self::Followers | Self::Done => Self::Done,
        }
    }

    fn query(self) -> Query {
        match self {
            Self::Following => Query::EdgesOfShard,
            Self::Followers | Self::Done => Query::FollowersOfShard,
        }
    }
}

/// How far a copy is.
pub(super) struct Copied {
    stage: Stage,
    /// The key of the last row.
    after: (i16, IdValue, IdValue),
    rows: i64,
}

impl Mover<'_> {
    /// Copies what is not copied yet.
    pub(super) async fn copy(&self) -> Result<(), Failure> {
        if self.patiently(|| self.copied()).await?.is_none() {
            self.report("preparing", 0, None);
            self.patiently(|| self.open_old()).await?;
            self.patiently(|| self.erase_copy()).await?;
            self.patiently(|| self.begin_copy()).await?;
        }
        let total = self.rows_of_shard().await;
        while self.patiently(|| self.copy_next(total)).await? {}
        Ok(())
    }

    /// Copies the next page. Returns whether there was one.
    async fn copy_next(&self, total: Option<u64>) -> Result<bool, Failure> {
        let copied = self.copied().await?.ok_or_else(|| self.replaced())?;
        if copied.stage == Stage::Done {
            return Ok(false);
        }
        self.report("copying", copied.rows as u64, total);
        self.copy_page(copied).await.map(|()| true)
    }

    /// How many rows there are about, if they can be counted quickly.
    async fn rows_of_shard(&self) -> Option<u64> {
        let shard = self.number_of_shard();
        let count = format!(
            "SELECT coalesce((SELECT sum(following) FROM users WHERE shard = {shard}), 0)::bigint
                  + coalesce((SELECT sum(count) FROM follower_counts WHERE shard = {shard}), 0)::bigint"
        );
        let rows = self.from.ask(&count).await.ok()?;
        Some(rows.first()?.get::<_, i64>(0) as u64)
    }

    /// How far the copy of this epoch is, if there is one.
    async fn copied(&self) -> Result<Option<Copied>, Failure> {
        let ask = format!(
            "SELECT stage, kind, owner, member, copied FROM incoming WHERE shard = {} AND epoch = {} AND mover = {}",
            self.moved.shard.0,
            self.topology.epoch.0,
            self.number.get()
        );
        let rows = self.to.ask_durable(&ask).await?;
        Ok(rows.first().map(|row| Copied {
            stage: Stage::of(row.get(0)),
            after: (row.get(1), row.get(2), row.get(3)),
            rows: row.get(4),
        }))
    }

    /// Notes where the shard and the follower side of its old host are, before the first row is read: every later change is applied to the
    /// copy.
    async fn begin_copy(&self) -> Result<(), Failure> {
        let log = LogReader { shared: self.shared, topology: &self.topology };
        let connection = self.from.writer().await?;
        let span = log.span_by(&connection, self.moved.shard).await?;
        drop(connection);
        let sources: Vec<i16> = self.topology.shards().map(|source| source.0 as i16).collect();
        let rows = self.from.query_durable(&self.shared.statements, Query::Marks, &[&sources]).await?;
        let marks = rows.iter().map(Mark::of).filter(|mark| mark.epoch == self.topology.epoch);
        let (numbers, sequences): (Vec<i16>, Vec<i64>) =
            marks.map(|mark| (mark.source.0 as i16, mark.sequence.0 as i64)).unzip();
        if numbers.len() < sources.len() {
            return Err(Failure::Moved);
        }
        let (shard, epoch) = (self.number_of_shard(), self.topology.epoch.0 as i64);
        let (started, trimmed) = (span.newest().0 as i64, span.trimmed().0 as i64);
        let (number, first) = (self.number.get(), IdValue(id_min(self.topology.id_kind)));
        let failed = |error: tokio_postgres::Error| Failure::of_statement(&self.to.name, &error);
        let begun = self.to.transaction(TRANSACTION_MAX, async |connection: &Pooled| {
            let client = connection.client();
            self.require_copy_is_own(connection).await?;
            let ready = "SELECT count(*) FROM projected WHERE epoch = $1";
            let marks: i64 = client.query_one(ready, &[&epoch]).await.map_err(failed)?.get(0);
            if marks < numbers.len() as i64 {
                let detail = format!("host {} is not complete: run 'kinfolk fleet init'", self.to.name);
                return Err(Failure::Final(Error::InvalidStore { detail }));
            }
            let clear = "DELETE FROM incoming_marks WHERE shard = $1";
            client.execute(clear, &[&shard]).await.map_err(failed)?;
            client.execute("DELETE FROM incoming WHERE shard = $1", &[&shard]).await.map_err(failed)?;
            let begin = "INSERT INTO incoming
                             (shard, epoch, mover, started, applied, stage, kind, owner, member, copied)
                         VALUES ($1, $2, $3, $4, $5, 0, 0, $6, $6, 0)";
            let parameters: [&(dyn ToSql + Sync); 6] = [&shard, &epoch, &number, &started, &trimmed, &first];
            client.execute(begin, &parameters).await.map_err(failed)?;
            let of_marks: [&(dyn ToSql + Sync); 3] = [&shard, &numbers, &sequences];
            self.execute(connection, Query::SetIncomingMarks, &of_marks).await?;
            // A process that was stopped until the move was aborted must leave no copy: it would keep all logs from being trimmed.
            let is_own = self.shared.catalog().claim_move(&self.moved, Some(number), number).await;
            if is_own.map_err(Failure::Transient)? { Ok(()) } else { Err(self.replaced()) }
        });
        begun.await.map(drop)
    }

    /// Fails if another process has begun a copy, or the new host holds the shard.
    pub(super) async fn require_copy_is_own(&self, connection: &Pooled) -> Result<(), Failure> {
        let others = "SELECT EXISTS (SELECT FROM incoming WHERE shard = $1 AND mover <> $2)
                          OR EXISTS (SELECT FROM shards WHERE shard = $1)";
        let found =
            connection.client().query_one(others, &[&self.number_of_shard(), &self.number.get()]).await;
        let found = found.map_err(|error| Failure::of_statement(&self.to.name, &error))?;
        if found.get(0) { Err(self.replaced()) } else { Ok(()) }
    }

    async fn copy_page(&self, Copied { stage, after, rows: before }: Copied) -> Result<(), Failure> {
        let number = self.number_of_shard();
        let parameters: [&(dyn ToSql + Sync); 5] = [&number, &after.0, &after.1, &after.2, &PAGE];
        let rows = self.from.query_durable(&self.shared.statements, stage.query(), &parameters).await?;
        let edge =
            |row: &Row| if stage == Stage::Following { edge_of_row(row) } else { edge_of_follower(row) };
        let edges: Vec<NetEdge> = rows.iter().map(edge).collect::<Result<_, _>>()?;
        let (stage_after, key) = match rows.last().filter(|_| rows.len() as i64 == PAGE) {
            Some(last) => (stage, (last.get(0), last.get(1), last.get(2))),
            None => {
                let first = IdValue(id_min(self.topology.id_kind));
                (stage.next(), (0_i16, first, first))
            }
        };
        let copied = before + rows.len() as i64;
        let written = self.to.transaction(TRANSACTION_MAX, async |connection: &Pooled| {
            match stage {
                Stage::Following => self.receive_following(connection, edges).await?,
                _ => self.receive_followers(connection, edges).await?,
            }
            let note = "stage = $3, kind = $4, owner = $5, member = $6, copied = $7";
            let stage = stage_after.number();
            self.note(connection, note, &[&stage, &key.0, &key.1, &key.2, &copied]).await
        });
        written.await
    }

    /// Brings edges of the shard's users to a state, in a transaction on the new host.
    pub(super) async fn receive_following(
        &self,
        connection: &Pooled,
        edges: Vec<NetEdge>,
    ) -> Result<(), Failure> {
        let rows = ReceivedRows::new(self.number_of_shard(), &edges);
        self.execute(connection, Query::ReceiveFollowing, &rows.parameters()).await.map(drop)
    }

    /// Brings edges to the shard's users to a state, in a transaction on the new host.
    pub(super) async fn receive_followers(
        &self,
        connection: &Pooled,
        edges: Vec<NetEdge>,
    ) -> Result<(), Failure> {
        let rows = ProjectedRows::of_edges(&self.topology, edges);
        self.execute(connection, Query::Apply, &rows.parameters()).await.map(drop)
    }

    /// Runs a statement of the store in a transaction on the new host.
    pub(super) async fn execute(
        &self,
        connection: &Pooled,
        query: Query,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Failure> {
        let failed = |error: tokio_postgres::Error| Failure::of_statement(&self.to.name, &error);
        let statement = connection.prepare(&self.shared.statements, query).await.map_err(failed)?;
        connection.client().execute(&statement, parameters).await.map_err(failed)
    }

    /// Changes the copy's row in a transaction on the new host: the first two parameters are the shard and this process. Fails if another
    /// process has taken over.
    pub(super) async fn note(
        &self,
        connection: &Pooled,
        changes: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<(), Failure> {
        let shard = self.number_of_shard();
        let note = format!("UPDATE incoming SET {changes} WHERE shard = $1 AND mover = $2");
        let number = self.number.get();
        let own: [&(dyn ToSql + Sync); 2] = [&shard, &number];
        let all: Vec<&(dyn ToSql + Sync)> = own.into_iter().chain(parameters.iter().copied()).collect();
        let noted = connection.client().execute(&note, &all).await;
        match noted.map_err(|error| Failure::of_statement(&self.to.name, &error))? {
            0 => Err(self.replaced()),
            _ => Ok(()),
        }
    }
}

/// A row of `Query::FollowersOfShard`.
fn edge_of_follower(row: &Row) -> Result<NetEdge, Failure> {
    let (IdValue(followee), IdValue(follower)) = (row.get(1), row.get(2));
    Ok(NetEdge {
        kind: kind_of(row)?,
        edge: Edge { follower, followee },
        since: Some(Timestamp::from_millis(row.get::<_, i64>(3) as u64)),
        sequence: kinfolk_core::Sequence(row.get::<_, i64>(5) as u64),
    })
}

/// Rows of `following`, a column each.
#[derive(Default)]
struct Columns {
    shards: Vec<i16>,
    kinds: Vec<i16>,
    followers: Vec<IdValue>,
    followees: Vec<IdValue>,
    since: Vec<i64>,
    sequences: Vec<i64>,
}

/// The parameters of `Query::ReceiveFollowing`.
struct ReceivedRows {
    gone: Columns,
    there: Columns,
}

impl ReceivedRows {
    fn new(shard: i16, edges: &[NetEdge]) -> Self {
        let mut rows = Self { gone: Columns::default(), there: Columns::default() };
        for NetEdge { kind, edge, since, sequence } in edges {
            let columns = if since.is_some() { &mut rows.there } else { &mut rows.gone };
            columns.shards.push(shard);
            columns.kinds.push(kind.number().into());
            columns.followers.push(IdValue(edge.follower));
            columns.followees.push(IdValue(edge.followee));
            columns.since.extend(since.map(|since| since.millis() as i64));
            columns.sequences.push(sequence.0 as i64);
        }
        rows
    }

    fn parameters(&self) -> [&(dyn ToSql + Sync); 10] {
        let Self { gone, there } = self;
        [
            &gone.shards,
            &gone.kinds,
            &gone.followers,
            &gone.followees,
            &there.shards,
            &there.kinds,
            &there.followers,
            &there.followees,
            &there.since,
            &there.sequences,
        ]
    }
}
