//! Edges whose two sides seem to differ, looked at exactly: the row of the follower is the truth, and the row of the followee must
//! be the same, once the mark of the source has passed it.

use std::collections::{BTreeSet, HashMap, HashSet};

use kinfolk_core::changes::ChangeBody;
use kinfolk_core::graph::Side;
use kinfolk_core::{Sequence, Shard, Timestamp};

use super::Comparison;
use super::difference::{Difference, EdgeDifference, Key, State};
use super::ranges::states;
use crate::log::LogReader;
use crate::postgres::{Failure, Pooled, Query};
use crate::project::ProjectedRows;
use crate::write::{COMMIT, NetEdge};

/// Edges that are looked at again together, while the mark of their source is locked.
const SETTLED_TOGETHER: usize = 500;

/// Changes after a mark that are read to see which edges are about to change. With as many or more, the suspects of that source are
/// passed over.
const BEHIND_MAX: usize = 10_000;

/// Which differences are repaired.
pub(crate) type RepairIf<'a> = &'a (dyn Fn(&Difference) -> bool + Sync);

/// A difference that was looked at exactly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    pub(crate) difference: Difference,
    pub(crate) is_repaired: bool,
}

impl Comparison<'_> {
    /// Looks again at edges of one source whose rows on a host seem to differ, and repairs those that do, if asked to.
    pub(crate) async fn settle_edges(
        &self,
        source: Shard,
        target: usize,
        suspects: &[Key],
        repair_if: RepairIf<'_>,
    ) -> Result<Vec<Settled>, Failure> {
        let mut settled = Vec::new();
        for suspects in suspects.chunks(SETTLED_TOGETHER) {
            let connection = self.begin(&self.topology.hosts[target]).await?;
            let outcome = self.settle_locked(&connection, (source, target), suspects, repair_if).await;
            settled.extend(outcome.inspect_err(|_| connection.discard())?);
        }
        Ok(settled)
    }

    /// The mark first, then the truth, then the log after the mark: an edge that the log does not name is as it was at the mark.
    async fn settle_locked(
        &self,
        connection: &Pooled,
        (source, target): (Shard, usize),
        suspects: &[Key],
        repair_if: RepairIf<'_>,
    ) -> Result<Vec<Settled>, Failure> {
        let host = &self.topology.hosts[target];
        let held: BTreeSet<Shard> =
            suspects.iter().map(|(_, edge)| self.topology.shard_of(edge.followee)).collect();
        self.hold(connection, host, &held).await?;
        let number = source.0 as i16;
        let rows = self.query(connection, host, Query::LockMark, &[&number]).await?;
        let mark = rows.first().filter(|row| row.get::<_, i64>(0) == self.topology.epoch.0 as i64);
        let mark = Sequence(mark.ok_or(Failure::Moved)?.get::<_, i64>(1) as u64);
        let truth = self.truth(source, suspects).await?;
        let log = LogReader { shared: self.shared, topology: self.topology };
        let pending = log.durable_changes(&[mark.on(source)], BEHIND_MAX).await?;
        // A shard that has left its host has neither rows nor changes there.
        self.require_open(source).await?;
        if pending.len() == BEHIND_MAX {
            return self.finish(connection, host, "ROLLBACK").await.map(|()| Vec::new());
        }
        let pending: HashSet<Key> = pending.iter().filter_map(|logged| key_of(&logged.change.body)).collect();
        let columns = self.columns(Side::Followers, suspects);
        let rows = self.query(connection, host, Query::FollowersRows, &columns.parameters()).await?;
        let found = states(suspects, &rows);
        let settled = suspects.iter().filter(|key| !pending.contains(key)).filter_map(|key| {
            let (expected, found) = (truth.get(key).copied(), found.get(key).copied());
            let difference = Difference::Edge(EdgeDifference { key: *key, expected, found });
            (expected != found).then(|| Settled { difference, is_repaired: repair_if(&difference) })
        });
        let settled: Vec<Settled> = settled.collect();
        let repaired = settled.iter().filter(|settled| settled.is_repaired);
        let edges: Vec<NetEdge> = repaired.filter_map(|settled| expected_edge(&settled.difference)).collect();
        if edges.is_empty() {
            return self.finish(connection, host, "ROLLBACK").await.map(|()| settled);
        }
        let rows = ProjectedRows::of_edges(self.topology, edges);
        self.query(connection, host, Query::Apply, &rows.parameters()).await?;
        self.finish(connection, host, COMMIT).await.map(|()| settled)
    }

    /// What the shard of some followers has about their edges, and no promotion can take back: it is copied to other hosts.
    async fn truth(&self, source: Shard, keys: &[Key]) -> Result<HashMap<Key, State>, Failure> {
        let columns = self.columns(Side::Following, keys);
        let statements = &self.shared.statements;
        let host = self.host(source);
        let rows = host.query_durable(statements, Query::FollowingRows, &columns.parameters()).await?;
        Ok(states(keys, &rows))
    }
}

/// An edge as it should be.
fn expected_edge(difference: &Difference) -> Option<NetEdge> {
    let Difference::Edge(EdgeDifference { key: (kind, edge), expected, .. }) = *difference else {
        return None;
    };
    let since = expected.map(|state| Timestamp::from_millis(state.since as u64));
    let sequence = Sequence(expected.map_or(0, |state| state.sequence as u64));
    Some(NetEdge { kind, edge, since, sequence })
}

fn key_of(body: &ChangeBody) -> Option<Key> {
    match *body {
        ChangeBody::Followed { kind, edge } | ChangeBody::Unfollowed { kind, edge, .. } => Some((kind, edge)),
        _ => None,
    }
}
