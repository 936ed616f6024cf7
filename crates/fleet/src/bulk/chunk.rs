//! Applying staged edges to one shard, a chunk at a time: each is a transaction of ordinary log entries, under the lock of the
//! shard like any batch. The progress of the import is part of the transaction, so that every edge is applied exactly once.

use std::time::Duration;

use kinfolk_core::graph::{Edge, EdgeAction, EdgePlanner, FollowerCommand, PlannedEdges, WriteRequest};
use kinfolk_core::{EdgeKind, Position, Result, Sequence, Shard, Timestamp};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::staging::NO_SINCE;
use crate::catalog::Topology;
use crate::log::PlannedEvent;
use crate::postgres::{Failure, IdValue, Pooled, Query, unavailable};
use crate::write::{BatchWriter, Rows, Sent, Subjects, random_batch};

/// Edges of one chunk: a shard is locked for a few milliseconds.
const CHUNK: i64 = 1_000;

/// An import gives up when a shard refuses it for so long. It can be resumed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Applies staged edges to a shard.
pub(super) struct ShardImport {
    pub(super) writer: BatchWriter,
    pub(super) shard: Shard,
    pub(super) kind: EdgeKind,
    pub(super) following_limit: Option<u32>,
}

/// A staged edge.
struct Staged {
    edge: Edge,
    since: i64,
    line: i64,
}

impl Staged {
    fn of(row: &Row) -> Self {
        let (IdValue(follower), IdValue(followee)) = (row.get(1), row.get(3));
        Self { edge: Edge { follower, followee }, since: row.get(2), line: row.get(4) }
    }
}

/// Staged edges that are applied together.
struct Chunk {
    number: i64,
    edges: Vec<Staged>,
}

/// What becomes of a chunk.
#[derive(Default)]
struct Plan {
    events: Vec<PlannedEvent>,
    duplicates: i64,
    over_limit: i64,
}

impl ShardImport {
    /// Applies what is left. Reports the number of edges of each chunk.
    pub(super) async fn apply(&self, report: &impl Fn(u64)) -> Result<()> {
        let (mut deadline, mut pause) = (Instant::now() + PATIENCE, Duration::from_millis(2));
        loop {
            match self.apply_next().await {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    report(count as u64);
                    (deadline, pause) = (Instant::now() + PATIENCE, Duration::from_millis(2));
                    continue;
                }
                Err(Failure::Final(error)) => return Err(error),
                Err(failure) if Instant::now() >= deadline => return Err(failure.into_error()),
                // Whether or not that succeeds, the next attempt finds out what is wrong.
                Err(Failure::Moved) => _ = self.writer.shared.reload_topology().await,
                Err(Failure::Transient(error)) => {
                    tracing::debug!(%error, shard = self.shard.0, "a chunk is tried again");
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    /// Applies the next chunk, and returns how many edges it had. After a lost commit the next attempt finds its chunk done or
    /// not: the lock of the shard is free only once the transaction before is over.
    async fn apply_next(&self) -> std::result::Result<usize, Failure> {
        let topology = self.writer.shared.topology();
        let host = &topology.hosts[topology.host_of(self.shard)];
        let number = self.shard.0 as i16;
        let statements = &self.writer.shared.statements;
        let rows = host.query(statements, Query::StagedPage, &[&number, &CHUNK]).await?;
        let Some(first) = rows.first() else { return Ok(0) };
        self.writer.shared.staleness.require_room(self.shard).map_err(Failure::Transient)?;
        let chunk = Chunk { number: first.get(0), edges: rows.iter().map(Staged::of).collect() };
        let connection = host.writer().await?;
        let timeouts = self.writer.shared.settings.timeouts;
        let limit = timeouts.lock + timeouts.statement * 2;
        let applied = timeout(limit, self.apply_chunk(&connection, &topology, &chunk)).await;
        let silent = || Failure::Transient(unavailable(&host.name, "the host did not answer in time"));
        match applied.unwrap_or_else(|_| Err(silent())) {
            Ok(newest) => {
                self.writer.committed(topology.epoch, newest);
                Ok(chunk.edges.len())
            }
            Err(failure) => {
                connection.discard();
                Err(failure)
            }
        }
    }

    async fn apply_chunk(
        &self,
        connection: &Pooled,
        topology: &Topology,
        chunk: &Chunk,
    ) -> std::result::Result<Position, Failure> {
        let index = topology.host_of(self.shard);
        let host = &topology.hosts[index];
        let failed = |error: tokio_postgres::Error| Failure::of_statement(&host.name, &error);
        let statements = &self.writer.shared.statements;
        let next = connection.prepare(statements, Query::NextChunk).await.map_err(failed)?;
        let advance = connection.prepare(statements, Query::AdvanceImport).await.map_err(failed)?;
        let batch = random_batch().map_err(Failure::Final)?;
        let subjects = Subjects::of_edges(self.kind, chunk.edges.iter().map(|staged| staged.edge));
        let locked = self.writer.lock(connection, topology, index, &subjects).await?;
        let head = *locked.heads.get(&self.shard).ok_or(Failure::Moved)?;
        let shard = self.shard.0 as i16;
        let found = connection.client().query_opt(&next, &[&shard]).await.map_err(failed)?;
        if found.map(|row| row.get(0)) != Some(chunk.number) {
            return Err(Failure::Transient(unavailable(&host.name, "another attempt has applied the chunk")));
        }
        let plan = self.plan(&locked.before, head.floor, &chunk.edges);
        let mut rows = Rows::default();
        rows.add(&locked.before, head.newest, &plan.events);
        let last = chunk.edges.last().expect("a chunk is not empty");
        let (follower, followee) = (IdValue(last.edge.follower), IdValue(last.edge.followee));
        let added = plan.events.len() as i64;
        let newest = head.newest.sequence.0 + added as u64;
        let sequence = if added > 0 { newest as i64 } else { 0 };
        let parameters: [&(dyn ToSql + Sync); 9] = [
            &shard,
            &follower,
            &last.since,
            &followee,
            &last.line,
            &added,
            &plan.duplicates,
            &plan.over_limit,
            &sequence,
        ];
        connection.client().execute(&advance, &parameters).await.map_err(failed)?;
        let sent = self.writer.send(host, connection, &locked, &rows, batch).await;
        sent.map(|()| Sequence(newest).on(self.shard)).map_err(|sent| match sent {
            Sent::Nothing(failure) => failure,
            Sent::Unanswered => Failure::Transient(unavailable(&host.name, "a connection was lost")),
        })
    }

    /// Decides about each edge as about a follow, in order.
    fn plan(&self, before: &impl kinfolk_core::graph::EdgeView, at: Timestamp, edges: &[Staged]) -> Plan {
        let (mut planned, mut floor, mut events) = (PlannedEdges::default(), at, Vec::new());
        let mut planner =
            EdgePlanner { view: before, earlier: None, planned: &mut planned, floor: &mut floor };
        let mut plan = Plan::default();
        for &Staged { edge, since, .. } in edges {
            let request = WriteRequest {
                kind: self.kind,
                follower: edge.follower,
                commands: [FollowerCommand { action: EdgeAction::Follow, followee: edge.followee }].into(),
                following_limit: self.following_limit.unwrap_or(u32::MAX),
            };
            match planner.plan(&request, &mut events) {
                Err(_) => plan.over_limit += 1,
                Ok(_) => match events.pop() {
                    None => plan.duplicates += 1,
                    Some(event) => {
                        let since = (since != NO_SINCE).then(|| Timestamp::from_millis(since as u64));
                        let imported_since = since.filter(|&since| since != event.at);
                        plan.events.push(PlannedEvent { event, imported_since });
                    }
                },
            }
        }
        plan
    }
}
