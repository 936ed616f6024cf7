//! Applying changes to one host: lock the marks, drop what is applied already, apply what follows, move the marks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kinfolk_core::Shard;
use kinfolk_core::changes::ChangeBody;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;

use super::SourceBatch;
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::log::{LoggedChange, Mark};
use crate::postgres::{Failure, IdValue, Pooled, Query, unavailable};
use crate::write::{BEGIN, COMMIT, NetEdge, net_edges};

/// What a transaction has done.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// How many changes the marks have moved.
    pub(crate) changes: usize,
    /// Sources whose changes do not follow on their marks: what is missing must come from the log.
    pub(crate) gaps: Vec<Shard>,
}

/// Applies batches to a host, each source at most once.
pub(super) async fn apply(
    shared: &Shared,
    topology: &Topology,
    host: usize,
    batches: Vec<SourceBatch>,
) -> Result<Applied, Failure> {
    let target = &topology.hosts[host];
    let connection = target.writer().await?;
    let limit = shared.settings.timeouts.statement * 2 + Duration::from_secs(1);
    let outcome = timeout(limit, apply_with(shared, topology, (host, &connection), batches)).await;
    match outcome {
        Ok(Ok(applied)) => Ok(applied),
        Ok(Err(failure)) => {
            connection.discard();
            Err(failure)
        }
        Err(_) => {
            connection.discard();
            Err(Failure::Transient(unavailable(&target.name, "the host did not answer in time")))
        }
    }
}

/// Whether a lost commit has happened does not matter: the marks tell, the next time that they are locked.
async fn apply_with(
    shared: &Shared,
    topology: &Topology,
    (host, connection): (usize, &Pooled),
    batches: Vec<SourceBatch>,
) -> Result<Applied, Failure> {
    let failed = |error| Failure::of_statement(&topology.hosts[host].name, &error);
    let statements = &shared.statements;
    let lock = connection.prepare(statements, Query::LockMarks).await.map_err(failed)?;
    let held = connection.prepare(statements, Query::HeldShards).await.map_err(failed)?;
    let write = connection.prepare(statements, Query::Apply).await.map_err(failed)?;
    let advance = connection.prepare(statements, Query::AdvanceMarks).await.map_err(failed)?;
    let client = connection.client();
    let sources: Vec<i16> = batches.iter().map(|batch| batch.source.0 as i16).collect();
    let of_sources: [&(dyn ToSql + Sync); 1] = [&sources];
    let (begun, marks, held) = tokio::join!(
        biased;
        connection.begin(BEGIN),
        client.query(&lock, &of_sources),
        client.query_one(&held, &[]),
    );
    begun.map_err(failed)?;
    let marks = marks.map_err(failed)?;
    let marks: BTreeMap<Shard, Mark> = marks.iter().map(Mark::of).map(|mark| (mark.source, mark)).collect();
    // The host knows which shards it has, whatever the map of this process says: their rows come with the marks.
    let held: BTreeSet<i16> = held.map_err(failed)?.get::<_, Vec<i16>>(0).into_iter().collect();

    let mut step = Step::default();
    for batch in batches {
        // A mark that is not there is being moved by another owner.
        if let Some(mark) =
            marks.get(&batch.source).filter(|mark| mark.epoch == batch.epoch && mark.epoch == topology.epoch)
        {
            step.add(mark, batch.changes);
        }
    }
    let rows = ProjectedRows::new(topology, &held, &step.changes);
    let of_rows = rows.parameters();
    let of_marks: [&(dyn ToSql + Sync); 2] = [&step.sources, &step.sequences];
    let (written, advanced, committed) = tokio::join!(
        biased;
        client.execute(&write, &of_rows),
        client.execute(&advance, &of_marks),
        connection.end(COMMIT),
    );
    written.map_err(failed)?;
    advanced.map_err(failed)?;
    committed.map_err(failed)?;
    Ok(Applied { changes: step.changes.len(), gaps: step.gaps })
}

/// What follows on the marks.
#[derive(Default)]
struct Step {
    changes: Vec<LoggedChange>,
    /// The new marks.
    sources: Vec<i16>,
    sequences: Vec<i64>,
    gaps: Vec<Shard>,
}

impl Step {
    /// Takes the changes that follow on a mark, one after another: earlier ones are applied already.
    fn add(&mut self, mark: &Mark, mut changes: Vec<LoggedChange>) {
        changes.sort_by_key(|logged| logged.change.position.sequence);
        let mut reached = mark.sequence;
        for logged in changes {
            let sequence = logged.change.position.sequence;
            if sequence <= reached {
                continue;
            }
            if sequence != reached.next() {
                self.gaps.push(mark.source);
                break;
            }
            reached = sequence;
            self.changes.push(logged);
        }
        if reached > mark.sequence {
            self.sources.push(mark.source.0 as i16);
            self.sequences.push(reached.0 as i64);
        }
    }
}

/// Rows of the follower side, a column each.
#[derive(Default)]
struct Edges {
    shards: Vec<i16>,
    kinds: Vec<i16>,
    followees: Vec<IdValue>,
    followers: Vec<IdValue>,
    since: Vec<i64>,
    sources: Vec<i16>,
    sequences: Vec<i64>,
}

/// Changes of the follower side of one host.
pub(crate) struct ProjectedRows {
    gone: Edges,
    there: Edges,
}

impl ProjectedRows {
    /// The parameters of `Query::Apply`.
    pub(crate) fn parameters(&self) -> [&(dyn ToSql + Sync); 11] {
        let Self { gone, there } = self;
        [
            &gone.shards,
            &gone.kinds,
            &gone.followees,
            &gone.followers,
            &there.shards,
            &there.kinds,
            &there.followees,
            &there.followers,
            &there.since,
            &there.sources,
            &there.sequences,
        ]
    }

    /// What changes leave of the edges whose followees are in some shards.
    fn new(topology: &Topology, held: &BTreeSet<i16>, changes: &[LoggedChange]) -> Self {
        let is_here = |edge: &NetEdge| held.contains(&(topology.shard_of(edge.edge.followee).0 as i16));
        let edges = net_edges(changes.iter().filter_map(net_edge)).into_iter().filter(is_here).collect();
        Self::of_edges(topology, edges)
    }

    /// The rows of edges whose followees are on one host.
    pub(crate) fn of_edges(topology: &Topology, mut edges: Vec<NetEdge>) -> Self {
        // In the order of the key.
        edges.sort_by_key(|edge| {
            (topology.shard_of(edge.edge.followee), edge.kind, edge.edge.followee, edge.edge.follower)
        });
        let mut rows = Self { gone: Edges::default(), there: Edges::default() };
        for NetEdge { kind, edge, since, sequence } in edges {
            let side = if since.is_some() { &mut rows.there } else { &mut rows.gone };
            side.shards.push(topology.shard_of(edge.followee).0 as i16);
            side.kinds.push(kind.number().into());
            side.followees.push(IdValue(edge.followee));
            side.followers.push(IdValue(edge.follower));
            side.since.extend(since.map(|since| since.millis() as i64));
            side.sources.push(topology.shard_of(edge.follower).0 as i16);
            side.sequences.push(sequence.0 as i64);
        }
        rows
    }
}

/// What a change says about its edge, if it is about one.
pub(crate) fn net_edge(LoggedChange { change, imported_since }: &LoggedChange) -> Option<NetEdge> {
    let (kind, edge, since) = match change.body {
        ChangeBody::Followed { kind, edge } => (kind, edge, Some(imported_since.unwrap_or(change.at))),
        ChangeBody::Unfollowed { kind, edge, .. } => (kind, edge, None),
        ChangeBody::Imported { .. }
        | ChangeBody::Posted { .. }
        | ChangeBody::PostDeleted { .. }
        | ChangeBody::Comment(_) => {
            return None;
        }
    };
    Some(NetEdge { kind, edge, since, sequence: change.position.sequence })
}
