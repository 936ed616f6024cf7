//! Counts: the user's own side is truth, the other one is projected beside it, on the same shard.

use futures_util::future::try_join_all;
use kinfolk_core::graph::Counts;
use kinfolk_core::{EdgeKind, Id};

use super::freshness::{GUARD_COLUMNS, Guard, HostPart, Reader};
use crate::postgres::{Failure, IdValue, Query};

/// Which counts the caller uses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Needed {
    OwnSide,
    BothSides,
}

impl Reader {
    /// For each user, how many edges it has on each side: one statement for each host.
    pub(crate) async fn counts(&self, kind: EdgeKind, of: &[Id]) -> Result<Vec<Counts>, Failure> {
        self.counts_as_of(kind, of, Needed::BothSides).await
    }

    /// As [`Reader::counts`], where only the needed side has to be as fresh as the read.
    pub(super) async fn counts_as_of(
        &self,
        kind: EdgeKind,
        of: &[Id],
        needed: Needed,
    ) -> Result<Vec<Counts>, Failure> {
        let parts = self.by_host(of, |id| id);
        let found = try_join_all(parts.into_iter().map(|part| self.counts_on(kind, part, needed))).await?;
        let mut counts = vec![Counts::default(); of.len()];
        found.into_iter().flatten().for_each(|(index, counted)| counts[index] = counted);
        Ok(counts)
    }

    async fn counts_on(
        &self,
        kind: EdgeKind,
        part: HostPart<Id>,
        needed: Needed,
    ) -> Result<Vec<(usize, Counts)>, Failure> {
        let truth = Guard::of_truth(&self.topology, part.shards.iter().copied(), &self.at_least);
        let guard = match needed {
            Needed::OwnSide => truth,
            Needed::BothSides => truth.and_followers(&self.at_least),
        };
        let kind = i16::from(kind.number());
        let shards = part.shard_numbers();
        let ids: Vec<IdValue> = part.asked.iter().copied().map(IdValue).collect();
        let rows = self.ask(part.host, Query::Counts, &guard, &[&kind, &shards, &ids]).await?;
        let counts = |row: &tokio_postgres::Row| {
            let (following, followers): (i64, i64) = (row.get(GUARD_COLUMNS + 1), row.get(GUARD_COLUMNS + 2));
            Counts { following: following as u64, followers: followers as u64 }
        };
        Ok(rows.iter().filter_map(|row| Some((part.index_of(row)?, counts(row)))).collect())
    }
}
