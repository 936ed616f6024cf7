//! The two sides of every edge: the row of its follower is the truth, and the row of its followee must be the same, once the
//! mark of the source has passed it.

use std::collections::{BTreeMap, HashMap, HashSet};

use kinfolk_core::changes::ChangeBody;
use kinfolk_core::graph::{Edge, Side};
use kinfolk_core::{EdgeKind, Sequence, Shard, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{Owner, PAGE, Pass, new_owners, transaction};
use crate::log::{LogReader, marks};
use crate::postgres::{Failure, IdValue, Pooled, Query, id_min};
use crate::project::{ProjectedRows, by_target, edge_of_row, kind_of};
use crate::write::{COMMIT, NetEdge};

/// Edges that are looked at again together, while the mark of their source is locked.
const SETTLED_TOGETHER: usize = 500;

/// Changes after a mark that are read to see which edges are about to change. With as many or more, the suspects of that source are
/// passed over.
const BEHIND_MAX: usize = 10_000;

/// An edge of a kind.
type Key = (EdgeKind, Edge);

/// What a row says about its edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    since: i64,
    sequence: i64,
}

/// Edges as parameters, a column each.
#[derive(Default)]
struct Columns {
    shards: Vec<i16>,
    kinds: Vec<i16>,
    followers: Vec<IdValue>,
    followees: Vec<IdValue>,
}

impl Columns {
    fn parameters(&self) -> [&(dyn ToSql + Sync); 4] {
        [&self.shards, &self.kinds, &self.followers, &self.followees]
    }
}

impl Pass<'_> {
    /// Walks the truth of a shard: every edge must be on the follower side, and every count must be right.
    pub(super) async fn compare_following(&mut self, source: Shard) -> Result<(), Failure> {
        let (number, first) = (source.0 as i16, IdValue(id_min(self.topology.id_kind)));
        let (mut after, mut last_owner) = ((0_i16, first, first), None);
        loop {
            let parameters: [&(dyn ToSql + Sync); 5] = [&number, &after.0, &after.1, &after.2, &PAGE];
            let statements = &self.shared.statements;
            let rows = self.host(source).query(statements, Query::EdgesOfShard, &parameters).await?;
            self.looked_at(rows.len());
            let edges: Vec<NetEdge> = rows.iter().map(edge_of_row).collect::<Result<_, _>>()?;
            let owners =
                new_owners(edges.iter().map(|edge| (edge.kind, edge.edge.follower)), &mut last_owner);
            self.report.edges += edges.len() as u64;
            self.report.users += owners.len() as u64;
            self.check_counts(Side::Following, source, &owners).await?;
            for (target, edges) in by_target(self.topology, &edges) {
                self.compare_with_target(source, target, &edges).await?;
            }
            let Some(last) = rows.last().filter(|_| rows.len() as i64 == PAGE) else { return Ok(()) };
            after = (last.get(0), last.get(1), last.get(2));
        }
    }

    async fn compare_with_target(
        &mut self,
        source: Shard,
        target: usize,
        edges: &[NetEdge],
    ) -> Result<(), Failure> {
        let host = &self.topology.hosts[target];
        // The mark before the rows: what it covers is in them, or was changed since.
        let mark = marks(self.shared, host, self.topology.epoch, &[source]).await?;
        let mark = mark.get(source).unwrap_or_default();
        let covered = edges.iter().filter(|edge| edge.sequence <= mark);
        let keys: Vec<Key> = covered.clone().map(|edge| (edge.kind, edge.edge)).collect();
        let columns = self.columns(&keys, |edge| edge.followee);
        let rows = host.query(&self.shared.statements, Query::FollowersRows, &columns.parameters()).await?;
        let found = states(&keys, &rows);
        let differs = |edge: &&NetEdge| found.get(&(edge.kind, edge.edge)) != state_of(edge).as_ref();
        let suspects: Vec<Key> = covered.filter(differs).map(|edge| (edge.kind, edge.edge)).collect();
        self.settle(source, target, &suspects).await
    }

    /// Walks the follower side of a shard: every row must be an edge, and every count must be right.
    pub(super) async fn compare_followers(&mut self, shard: Shard) -> Result<(), Failure> {
        let (number, first) = (shard.0 as i16, IdValue(id_min(self.topology.id_kind)));
        let (mut after, mut last_owner) = ((0_i16, first, first), None);
        loop {
            let parameters: [&(dyn ToSql + Sync); 5] = [&number, &after.0, &after.1, &after.2, &PAGE];
            let statements = &self.shared.statements;
            let rows = self.host(shard).query(statements, Query::FollowersOfShard, &parameters).await?;
            self.looked_at(rows.len());
            let mut by_source: BTreeMap<Shard, HashMap<Key, State>> = BTreeMap::new();
            let mut owners: Vec<Owner> = Vec::new();
            for row in &rows {
                let (kind, IdValue(followee), IdValue(follower)) = (kind_of(row)?, row.get(1), row.get(2));
                let state = State { since: row.get(3), sequence: row.get(5) };
                owners.push((kind, followee));
                let source = self.topology.shard_of(follower);
                by_source.entry(source).or_default().insert((kind, Edge { follower, followee }), state);
            }
            let owners = new_owners(owners.into_iter(), &mut last_owner);
            self.check_counts(Side::Followers, shard, &owners).await?;
            for (source, rows) in by_source {
                self.compare_with_source(source, self.topology.host_of(shard), rows).await?;
            }
            let Some(last) = rows.last().filter(|_| rows.len() as i64 == PAGE) else { return Ok(()) };
            after = (last.get(0), last.get(1), last.get(2));
        }
    }

    async fn compare_with_source(
        &mut self,
        source: Shard,
        target: usize,
        rows: HashMap<Key, State>,
    ) -> Result<(), Failure> {
        let keys: Vec<Key> = rows.keys().copied().collect();
        let truth = self.truth(source, &keys).await?;
        let suspects: Vec<Key> = keys.into_iter().filter(|key| rows.get(key) != truth.get(key)).collect();
        self.settle(source, target, &suspects).await
    }

    /// Looks again at edges of one source whose rows on a host seem to differ, and repairs those that do.
    async fn settle(&mut self, source: Shard, target: usize, suspects: &[Key]) -> Result<(), Failure> {
        for suspects in suspects.chunks(SETTLED_TOGETHER) {
            let host = &self.topology.hosts[target];
            let wrong = transaction(host, async |connection: &Pooled| {
                self.settle_locked(connection, source, target, suspects).await
            });
            for (edge, before) in wrong.await? {
                let Edge { follower, followee } = edge.edge;
                let (kind, expected) = (edge.kind.name(), state_of(&edge));
                self.differs(|| {
                    format!(
                        "{kind} of {follower} to {followee}: the follower side has {before:?}, the truth {expected:?}"
                    )
                });
            }
        }
        Ok(())
    }

    /// The mark first, then the truth, then the log after the mark: an edge that the log does not name is as it was at the
    /// mark. Returns what differs, as it should be, with what was found.
    async fn settle_locked(
        &self,
        connection: &Pooled,
        source: Shard,
        target: usize,
        suspects: &[Key],
    ) -> Result<Vec<(NetEdge, Option<State>)>, Failure> {
        let some_shard = self.topology.shards_on(target).next().ok_or(Failure::Moved)?;
        let number = source.0 as i16;
        let rows = self.query(connection, some_shard, Query::LockMark, &[&number]).await?;
        let mark = rows.first().filter(|row| row.get::<_, i64>(0) == self.topology.epoch.0 as i64);
        let mark = Sequence(mark.ok_or(Failure::Moved)?.get::<_, i64>(1) as u64);
        let truth = self.truth(source, suspects).await?;
        let log = LogReader { shared: self.shared, topology: self.topology };
        let pending = log.durable_changes(&[mark.on(source)], BEHIND_MAX).await?;
        if pending.len() == BEHIND_MAX {
            return self.finish(connection, "ROLLBACK", some_shard).await.map(|()| Vec::new());
        }
        let pending: HashSet<Key> = pending.iter().filter_map(|logged| key_of(&logged.change.body)).collect();
        let columns = self.columns(suspects, |edge| edge.followee);
        let rows = self.query(connection, some_shard, Query::FollowersRows, &columns.parameters()).await?;
        let found = states(suspects, &rows);
        let mut wrong = Vec::new();
        for &(kind, edge) in suspects.iter().filter(|key| !pending.contains(key)) {
            let (expected, found) = (truth.get(&(kind, edge)), found.get(&(kind, edge)));
            if expected != found {
                let since = expected.map(|state| Timestamp::from_millis(state.since as u64));
                let sequence = Sequence(expected.map_or(0, |state| state.sequence as u64));
                wrong.push((NetEdge { kind, edge, since, sequence }, found.copied()));
            }
        }
        if !self.repair || wrong.is_empty() {
            return self.finish(connection, "ROLLBACK", some_shard).await.map(|()| wrong);
        }
        let edges = wrong.iter().map(|&(edge, _)| edge).collect();
        let rows = ProjectedRows::of_edges(self.topology, edges);
        self.query(connection, some_shard, Query::Apply, &rows.parameters()).await?;
        self.finish(connection, COMMIT, some_shard).await.map(|()| wrong)
    }

    /// What the shard of some followers has about their edges, and no promotion can take back: it is copied to other hosts.
    async fn truth(&self, source: Shard, keys: &[Key]) -> Result<HashMap<Key, State>, Failure> {
        let columns = self.columns(keys, |edge| edge.follower);
        let host = self.host(source);
        let statements = &self.shared.statements;
        let rows = host.query_durable(statements, Query::FollowingRows, &columns.parameters()).await?;
        Ok(states(keys, &rows))
    }

    /// Edges as parameters; the shard is that of the user who holds the row.
    fn columns(&self, keys: &[Key], held_by: impl Fn(Edge) -> kinfolk_core::Id) -> Columns {
        let mut columns = Columns::default();
        for &(kind, edge) in keys {
            columns.shards.push(self.topology.shard_of(held_by(edge)).0 as i16);
            columns.kinds.push(kind.number().into());
            columns.followers.push(IdValue(edge.follower));
            columns.followees.push(IdValue(edge.followee));
        }
        columns
    }
}

fn states(keys: &[Key], rows: &[Row]) -> HashMap<Key, State> {
    let state = |row: &Row| {
        let key = keys[row.get::<_, i64>(0) as usize - 1];
        (key, State { since: row.get(1), sequence: row.get(2) })
    };
    rows.iter().map(state).collect()
}

fn state_of(edge: &NetEdge) -> Option<State> {
    let since = edge.since?.millis() as i64;
    Some(State { since, sequence: edge.sequence.0 as i64 })
}

fn key_of(body: &ChangeBody) -> Option<Key> {
    match *body {
        ChangeBody::Followed { kind, edge } | ChangeBody::Unfollowed { kind, edge, .. } => Some((kind, edge)),
        _ => None,
    }
}
