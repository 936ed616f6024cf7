//! Following: changes that were made since the copy began are applied to it, those of the shard itself and those of all sources that
//! concern its users.

use std::collections::BTreeMap;

use kinfolk_core::{Error, Frontier, Position, Sequence, Shard, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{Mover, TRANSACTION_MAX};
use crate::log::{Entry, LogReader, LoggedChange, rotated};
use crate::postgres::{Failure, IdValue, Pooled, Query};
use crate::project::net_edge;
use crate::write::{NetEdge, net_edges};

/// Changes that are applied at once.
const PAGE: i64 = 2_000;

/// Entries of the shard's log, a column each.
#[derive(Default)]
struct LogRows {
    sequences: Vec<i64>,
    batches: Vec<IdValue>,
    at: Vec<i64>,
    kinds: Vec<i16>,
    bodies: Vec<Vec<u8>>,
}

impl LogRows {
    fn of(rows: &[Row]) -> Self {
        let mut columns = Self::default();
        for row in rows {
            columns.sequences.push(row.get(0));
            columns.batches.push(row.get(1));
            columns.at.push(row.get(2));
            columns.kinds.push(row.get(3));
            columns.bodies.push(row.get(4));
        }
        columns
    }

    /// Whether each follows on the one before.
    fn are_contiguous(&self) -> bool {
        self.sequences.windows(2).all(|pair| pair[0] + 1 == pair[1])
    }
}

impl Mover<'_> {
    /// Applies the next changes of the shard itself. Returns how many there were.
    pub(super) async fn follow_log(&self) -> Result<usize, Failure> {
        let (started, applied) = self.log_position().await?;
        let number = self.number_of_shard();
        let parameters: [&(dyn ToSql + Sync); 3] = [&number, &applied, &PAGE];
        let page = self.from.query_durable(&self.shared.statements, Query::MovedLogPage, &parameters).await?;
        let rows = LogRows::of(&page);
        let (Some(&first), Some(&last)) = (rows.sequences.first(), rows.sequences.last()) else {
            return Ok(0);
        };
        // Before the move was known, trimming may have gone on for a moment.
        let is_trimmed = first > applied + 1 && first <= started + 1;
        if (first != applied + 1 && !is_trimmed) || !rows.are_contiguous() {
            let detail =
                format!("the log of shard {number} has a gap after {applied}: run 'kinfolk verify --repair'");
            return Err(Failure::Final(Error::Corrupt { detail }));
        }
        let later = page.iter().filter(|row| row.get::<_, i64>(0) > started);
        let changes: Vec<LoggedChange> = later.map(|row| self.change(row)).collect::<Result<_, _>>()?;
        let edges = net_edges(changes.iter().filter_map(net_edge));
        let written = self.to.transaction(TRANSACTION_MAX, async |connection: &Pooled| {
            if is_trimmed {
                let clear = "DELETE FROM log WHERE shard = $1";
                let cleared = connection.client().execute(clear, &[&number]).await;
                cleared.map_err(|error| Failure::of_statement(&self.to.name, &error))?;
            }
            let of_log: [&(dyn ToSql + Sync); 6] =
                [&number, &rows.sequences, &rows.batches, &rows.at, &rows.kinds, &rows.bodies];
            self.execute(connection, Query::MovedLogRows, &of_log).await?;
            self.receive_following(connection, edges).await?;
            self.note(connection, "applied = $3", &[&last]).await
        });
        written.await?;
        Ok(page.len())
    }

    /// The newest change before the copy began, and the last one that the copy's log has.
    pub(super) async fn log_position(&self) -> Result<(i64, i64), Failure> {
        let ask = format!(
            "SELECT started, applied FROM incoming WHERE shard = {} AND mover = {}",
            self.moved.shard.0,
            self.number.get()
        );
        let rows = self.to.ask_durable(&ask).await?;
        rows.first().map(|row| (row.get(0), row.get(1))).ok_or_else(|| self.replaced())
    }

    fn change(&self, row: &Row) -> Result<LoggedChange, Failure> {
        let position = Sequence(row.get::<_, i64>(0) as u64).on(self.moved.shard);
        let at = Timestamp::from_millis(row.get::<_, i64>(2) as u64);
        let entry = Entry { at, kind: row.get(3), body: row.get(4) };
        entry.decode(position, self.topology.id_kind).map_err(Failure::Final)
    }

    /// Applies the next changes of all sources that concern the shard's users. Returns how many changes there were in all.
    pub(super) async fn follow_sources(&self) -> Result<usize, Failure> {
        let marks = self.incoming_marks().await?;
        let step = self.next_of_sources(&marks.iter().collect::<Vec<_>>()).await?;
        if step.count == 0 {
            return Ok(0);
        }
        let count = step.count;
        let written = self.to.transaction(TRANSACTION_MAX, async |connection: &Pooled| {
            self.note(connection, "mover = $2", &[]).await?;
            self.apply_sources(connection, step).await
        });
        written.await.map(|()| count)
    }

    /// How far the follower side of the copy shows each source.
    pub(super) async fn incoming_marks(&self) -> Result<Frontier, Failure> {
        let ask = format!("SELECT source, sequence FROM incoming_marks WHERE shard = {}", self.moved.shard.0);
        let rows = self.to.ask_durable(&ask).await?;
        let mark = |row: &Row| Sequence(row.get::<_, i64>(1) as u64).on(Shard(row.get::<_, i16>(0) as u16));
        Ok(rows.iter().map(mark).collect())
    }

    /// What follows on some marks in the logs of their sources.
    pub(super) async fn next_of_sources(&self, after: &[Position]) -> Result<SourceStep, Failure> {
        // The map as it is now: a source may have been moved, too.
        let topology = self.shared.topology();
        let log = LogReader { shared: self.shared, topology: &topology };
        let changes = log.durable_changes(&rotated(after), PAGE as usize).await?;
        let mut step = SourceStep { count: changes.len(), ..SourceStep::default() };
        let mut reached: BTreeMap<Shard, Sequence> =
            after.iter().map(|position| (position.shard, position.sequence)).collect();
        for logged in &changes {
            let Position { shard, sequence } = logged.change.position;
            let known = reached.entry(shard).or_default();
            if sequence != known.next() {
                let detail = format!("the log of shard {} has a gap after {known}: abort the move", shard.0);
                return Err(Failure::Final(Error::Corrupt { detail }));
            }
            *known = sequence;
            step.marks.insert(shard, sequence);
        }
        let is_here = |edge: &NetEdge| topology.shard_of(edge.edge.followee) == self.moved.shard;
        step.edges = net_edges(changes.iter().filter_map(net_edge)).into_iter().filter(is_here).collect();
        Ok(step)
    }

    /// Applies changes of sources, in a transaction on the new host.
    pub(super) async fn apply_sources(
        &self,
        connection: &Pooled,
        SourceStep { edges, marks, .. }: SourceStep,
    ) -> Result<(), Failure> {
        self.receive_followers(connection, edges).await?;
        let (sources, sequences): (Vec<i16>, Vec<i64>) =
            marks.into_iter().map(|(source, mark)| (source.0 as i16, mark.0 as i64)).unzip();
        let number = self.number_of_shard();
        let of_marks: [&(dyn ToSql + Sync); 3] = [&number, &sources, &sequences];
        self.execute(connection, Query::SetIncomingMarks, &of_marks).await.map(drop)
    }
}

/// Changes of sources that are applied together.
#[derive(Default)]
pub(super) struct SourceStep {
    /// How many changes there are, those of other shards' users included.
    pub(super) count: usize,
    /// What they leave of the edges to the shard's users.
    edges: Vec<NetEdge>,
    /// How far they go.
    pub(super) marks: BTreeMap<Shard, Sequence>,
}
