//! Checks: the primary key of `following`, on the shard of the follower. They never wait for a projection.

use futures_util::future::try_join_all;
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Timestamp};

use super::freshness::{GUARD_COLUMNS, Guard, HostPart, Reader};
use crate::postgres::{Failure, IdValue, Query};

impl Reader {
    /// For each edge, since when it exists, if it does: one statement for each host.
    pub(crate) async fn since(
        &self,
        kind: EdgeKind,
        edges: &[Edge],
    ) -> Result<Vec<Option<Timestamp>>, Failure> {
        let parts = self.by_host(edges, |edge| edge.follower);
        let found = try_join_all(parts.into_iter().map(|part| self.since_on(kind, part))).await?;
        let mut since = vec![None; edges.len()];
        found.into_iter().flatten().for_each(|(index, at)| since[index] = Some(at));
        Ok(since)
    }

    async fn since_on(
        &self,
        kind: EdgeKind,
        part: HostPart<Edge>,
    ) -> Result<Vec<(usize, Timestamp)>, Failure> {
        let guard = Guard::of_truth(&self.topology, part.shards.iter().copied(), &self.at_least);
        let kind = i16::from(kind.number());
        let shards = part.shard_numbers();
        let followers: Vec<IdValue> = part.asked.iter().map(|edge| IdValue(edge.follower)).collect();
        let followees: Vec<IdValue> = part.asked.iter().map(|edge| IdValue(edge.followee)).collect();
        let rows =
            self.ask(part.host, Query::Since, &guard, &[&kind, &shards, &followers, &followees]).await?;
        let since = |row: &tokio_postgres::Row| {
            let at: i64 = row.get(GUARD_COLUMNS + 1);
            Timestamp::from_millis(at as u64)
        };
        Ok(rows.iter().filter_map(|row| Some((part.index_of(row)?, since(row)))).collect())
    }
}
