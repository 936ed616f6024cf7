//! A walk over everything that a shard has, in pages: its edges, the followers of its users, and recorded counts.

use std::collections::BTreeMap;

use kinfolk_core::graph::{Edge, Side};
use kinfolk_core::{Id, IdKind, Sequence, Shard};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::difference::{Key, State};
use super::ranges::{EdgeRow, Suspects};
use super::settle::{RepairIf, Settled};
use super::{Comparison, Owner};
use crate::log::marks;
use crate::postgres::{Failure, IdValue, Query, id_min};
use crate::project::kind_of;

/// Where a walk is.
pub(crate) struct Walk {
    part: Part,
    /// The key of the last row.
    after: (i16, IdValue, IdValue),
    last_owner: Option<Owner>,
}

/// What is walked, one after another.
#[derive(Clone, Copy)]
enum Part {
    /// Every edge must be on the follower side, and every count of followees must be right.
    Following,
    /// Every row of the follower side must be an edge, and every count of followers must be right.
    Followers,
    /// A recorded count of followees without rows must be 0.
    FollowingCounts,
    /// The same of followers.
    FollowerCounts,
}

impl Part {
    fn next(self) -> Option<Self> {
        match self {
            Self::Following => Some(Self::Followers),
            Self::Followers => Some(Self::FollowingCounts),
            Self::FollowingCounts => Some(Self::FollowerCounts),
            Self::FollowerCounts => None,
        }
    }
}

impl Walk {
    /// The beginning of a shard.
    pub(crate) fn new(id_kind: IdKind) -> Self {
        Self::of(Part::Following, id_kind)
    }

    fn of(part: Part, id_kind: IdKind) -> Self {
        let first = IdValue(id_min(id_kind));
        Self { part, after: (0, first, first), last_owner: None }
    }
}

/// What a page has shown.
#[derive(Default)]
pub(crate) struct Step {
    /// Rows of the page.
    pub(crate) rows: u64,
    /// Rows that were counted for recorded counts.
    pub(crate) counted: u64,
    /// Edges of the truth among the rows, and users whose first edge is among them.
    pub(crate) edges: u64,
    pub(crate) users: u64,
    /// Ranges whose rows were read, because their checksums differed.
    pub(crate) ranges_differed: u64,
    pub(crate) settled: Vec<Settled>,
    /// Where it goes on.
    pub(crate) next: Option<Walk>,
}

impl Step {
    fn add_counts(&mut self, (settled, counted): (Vec<Settled>, u64)) {
        self.settled.extend(settled);
        self.counted += counted;
    }

    fn add_range(&mut self, (settled, differed): (Vec<Settled>, bool)) {
        self.settled.extend(settled);
        self.ranges_differed += u64::from(differed);
    }
}

impl Comparison<'_> {
    /// Compares the next page of a shard, and repairs what differs in it if asked to.
    pub(crate) async fn step(
        &self,
        shard: Shard,
        walk: Walk,
        page: i64,
        repair_if: RepairIf<'_>,
    ) -> Result<Step, Failure> {
        let rows = self.page(shard, &walk, page).await?;
        let Walk { part, after: _, mut last_owner } = walk;
        let mut step = Step { rows: rows.len() as u64, ..Step::default() };
        match part {
            Part::Following => {
                let edges = edges(&rows, Side::Following)?;
                let owners = new_owners(&edges, |edge| edge.follower, &mut last_owner);
                (step.edges, step.users) = (edges.len() as u64, owners.len() as u64);
                step.add_counts(self.compare_counts(Side::Following, shard, &owners, repair_if).await?);
                for (target, edges) in self.by_host(&edges, |edge| edge.followee) {
                    let compare = self.compare_with_target(shard, target, &edges, repair_if);
                    step.add_range(self.at_host(&self.topology.hosts[target], compare).await?);
                }
            }
            Part::Followers => {
                let edges = edges(&rows, Side::Followers)?;
                let owners = new_owners(&edges, |edge| edge.followee, &mut last_owner);
                step.add_counts(self.compare_counts(Side::Followers, shard, &owners, repair_if).await?);
                for (host, edges) in self.by_host(&edges, |edge| edge.follower) {
                    let compare = self.compare_with_sources(shard, host, &edges, repair_if);
                    step.add_range(self.at_host(&self.topology.hosts[host], compare).await?);
                }
            }
            Part::FollowingCounts => {
                step.settled =
                    self.compare_counts_without_rows(Side::Following, shard, &rows, repair_if).await?;
            }
            Part::FollowerCounts => {
                step.settled =
                    self.compare_counts_without_rows(Side::Followers, shard, &rows, repair_if).await?;
            }
        }
        let last = rows.last().filter(|_| rows.len() as i64 == page);
        step.next = match last {
            Some(last) => Some(Walk { part, after: key_of_last(part, last), last_owner }),
            None => part.next().map(|part| Walk::of(part, self.topology.id_kind)),
        };
        Ok(step)
    }

    async fn page(&self, shard: Shard, walk: &Walk, page: i64) -> Result<Vec<Row>, Failure> {
        let (number, (kind, first, second)) = (shard.0 as i16, &walk.after);
        let (query, parameters): (Query, &[&(dyn ToSql + Sync)]) = match walk.part {
            Part::Following => (Query::EdgesOfShard, &[&number, kind, first, second, &page]),
            Part::Followers => (Query::FollowersOfShard, &[&number, kind, first, second, &page]),
            Part::FollowingCounts => (Query::UsersOfShard, &[&number, kind, first, &page]),
            Part::FollowerCounts => (Query::FollowerCountsOfShard, &[&number, kind, first, &page]),
        };
        self.host(shard).query(&self.shared.statements, query, parameters).await
    }

    /// Edges of a source against their rows on a host, as far as its mark covers them.
    async fn compare_with_target(
        &self,
        source: Shard,
        target: usize,
        edges: &[EdgeRow],
        repair_if: RepairIf<'_>,
    ) -> Result<(Vec<Settled>, bool), Failure> {
        let host = &self.topology.hosts[target];
        // The mark before the rows: what it covers is in them, or was changed since.
        let mark = marks(self.shared, host, self.topology.epoch, &[source]).await?;
        let mark = mark.get(source).unwrap_or_default();
        let is_covered = |(_, state): &&EdgeRow| Sequence(state.sequence as u64) <= mark;
        let covered: Vec<EdgeRow> = edges.iter().filter(is_covered).copied().collect();
        let Suspects { keys, differed } = self.suspects(Side::Followers, host, &covered).await?;
        Ok((self.settle_edges(source, target, &keys, repair_if).await?, differed))
    }

    /// Rows of the follower side of a shard against the edges of sources that are on one host.
    async fn compare_with_sources(
        &self,
        shard: Shard,
        host: usize,
        rows: &[EdgeRow],
        repair_if: RepairIf<'_>,
    ) -> Result<(Vec<Settled>, bool), Failure> {
        let Suspects { keys, differed } =
            self.suspects(Side::Following, &self.topology.hosts[host], rows).await?;
        let mut by_source: BTreeMap<Shard, Vec<Key>> = BTreeMap::new();
        for key in keys {
            by_source.entry(self.topology.shard_of(key.1.follower)).or_default().push(key);
        }
        let (target, mut settled) = (self.topology.host_of(shard), Vec::new());
        for (source, keys) in by_source {
            settled.extend(self.settle_edges(source, target, &keys, repair_if).await?);
        }
        Ok((settled, differed))
    }

    /// Recorded counts of users that have no rows.
    async fn compare_counts_without_rows(
        &self,
        side: Side,
        shard: Shard,
        rows: &[Row],
        repair_if: RepairIf<'_>,
    ) -> Result<Vec<Settled>, Failure> {
        let mut settled = Vec::new();
        for row in rows {
            let (recorded, has_rows): (i64, bool) = (row.get(2), row.get(3));
            if recorded != 0 && !has_rows {
                let owner = (kind_of(row)?, row.get::<_, IdValue>(1).0);
                settled.extend(self.settle_count(side, shard, owner, repair_if).await?);
            }
        }
        Ok(settled)
    }

    /// Edges by the host of one of their users.
    fn by_host(&self, edges: &[EdgeRow], user: impl Fn(&Edge) -> Id) -> BTreeMap<usize, Vec<EdgeRow>> {
        let mut by_host: BTreeMap<usize, Vec<EdgeRow>> = BTreeMap::new();
        for &row in edges {
            let host = self.topology.host_of(self.topology.shard_of(user(&row.0.1)));
            by_host.entry(host).or_default().push(row);
        }
        by_host
    }
}

/// Rows of `Query::EdgesOfShard` or `Query::FollowersOfShard`.
fn edges(rows: &[Row], side: Side) -> Result<Vec<EdgeRow>, Failure> {
    let edge = |row: &Row| {
        let (IdValue(user), IdValue(member)) = (row.get(1), row.get(2));
        let (edge, sequence) = match side {
            Side::Following => (Edge { follower: user, followee: member }, row.get(4)),
            Side::Followers => (Edge { follower: member, followee: user }, row.get(5)),
        };
        Ok(((kind_of(row)?, edge), State { since: row.get(3), sequence }))
    };
    rows.iter().map(edge).collect()
}

/// The key that the next page begins after.
fn key_of_last(part: Part, last: &Row) -> (i16, IdValue, IdValue) {
    match part {
        Part::Following | Part::Followers => (last.get(0), last.get(1), last.get(2)),
        Part::FollowingCounts | Part::FollowerCounts => (last.get(0), last.get(1), last.get(1)),
    }
}

/// The users of rows that come in the order of their users, without the last one of the rows before.
fn new_owners(edges: &[EdgeRow], user: impl Fn(&Edge) -> Id, last: &mut Option<Owner>) -> Vec<Owner> {
    let mut new: Vec<Owner> = edges.iter().map(|((kind, edge), _)| (*kind, user(edge))).collect();
    new.dedup();
    let before = std::mem::replace(last, new.last().copied().or(*last));
    if new.first().copied() == before && before.is_some() {
        new.remove(0);
    }
    new
}
