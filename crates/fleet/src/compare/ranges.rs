//! A range of edges on the other side: a checksum first, rows only where it differs.

use std::collections::HashMap;

use kinfolk_core::Id;
use kinfolk_core::graph::{Edge, Side};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::Comparison;
use super::difference::{Key, State};
use crate::postgres::{Failure, Host, IdValue, Query};

/// Edges as parameters, a column each.
#[derive(Default)]
pub(super) struct Columns {
    shards: Vec<i16>,
    kinds: Vec<i16>,
    followers: Vec<IdValue>,
    followees: Vec<IdValue>,
}

impl Columns {
    pub(super) fn parameters(&self) -> [&(dyn ToSql + Sync); 4] {
        [&self.shards, &self.kinds, &self.followers, &self.followees]
    }
}

/// A row of one side.
pub(super) type EdgeRow = (Key, State);

/// The edges of a range that seem to differ.
#[derive(Default)]
pub(super) struct Suspects {
    pub(super) keys: Vec<Key>,
    /// Whether rows were read.
    pub(super) differed: bool,
}

/// How many rows there are, and the sums of what they say, each times the weight of its edge.
///
/// Weights are random: sums of two ranges that differ are the same with a chance of one in two billion, whatever differs, and in
/// the next pass the weights are others. A row that is missing or too many shows in the number of rows.
#[derive(Debug, PartialEq, Eq)]
struct Checksum {
    rows: i64,
    since: i128,
    sequence: i128,
}

impl Checksum {
    fn of(rows: &[EdgeRow], weights: &[i64]) -> Self {
        let sum = |value: fn(&State) -> i64| {
            let weighted = rows.iter().zip(weights);
            weighted.map(|((_, state), &weight)| i128::from(value(state)) * i128::from(weight)).sum()
        };
        Self {
            rows: rows.len() as i64,
            since: sum(|state| state.since),
            sequence: sum(|state| state.sequence),
        }
    }

    /// A row of the statement. A value that is not a sum equals no other.
    fn of_row(row: &Row) -> Option<Self> {
        let sum = |column| row.get::<_, &str>(column).parse().ok();
        Some(Self { rows: row.get(0), since: sum(1)?, sequence: sum(2)? })
    }
}

/// A weight for each row, from 1 to 2^31.
fn weights(count: usize) -> Result<Vec<i64>, Failure> {
    let mut bytes = vec![0_u8; count * 4];
    getrandom::fill(&mut bytes).map_err(|error| {
        let detail = format!("the system has no randomness: {error}");
        Failure::Final(kinfolk_core::Error::Storage { detail })
    })?;
    let weight = |bytes: &[u8; 4]| i64::from(u32::from_le_bytes(*bytes) >> 1) + 1;
    Ok(bytes.as_chunks().0.iter().map(weight).collect())
}

impl Comparison<'_> {
    /// Compares rows of one side with what a host has on the other.
    pub(super) async fn suspects(
        &self,
        other: Side,
        host: &Host,
        rows: &[EdgeRow],
    ) -> Result<Suspects, Failure> {
        if rows.is_empty() {
            return Ok(Suspects::default());
        }
        let (checksum, read) = match other {
            Side::Following => (Query::FollowingChecksum, Query::FollowingRows),
            Side::Followers => (Query::FollowersChecksum, Query::FollowersRows),
        };
        let keys: Vec<Key> = rows.iter().map(|&(key, _)| key).collect();
        let (columns, weights) = (self.columns(other, &keys), weights(rows.len())?);
        let [shards, kinds, followers, followees] = columns.parameters();
        let weighted: [&(dyn ToSql + Sync); 5] = [shards, kinds, followers, followees, &weights];
        let statements = &self.shared.statements;
        let found = host.query(statements, checksum, &weighted).await?;
        if found.first().and_then(Checksum::of_row) == Some(Checksum::of(rows, &weights)) {
            return Ok(Suspects::default());
        }
        let found = host.query(statements, read, &columns.parameters()).await?;
        let found = states(&keys, &found);
        let differs = |&&(key, state): &&EdgeRow| found.get(&key) != Some(&state);
        Ok(Suspects { keys: rows.iter().filter(differs).map(|&(key, _)| key).collect(), differed: true })
    }

    /// Edges as parameters; the shard is that of the user who holds the row.
    pub(super) fn columns(&self, side: Side, keys: &[Key]) -> Columns {
        let holder = |Edge { follower, followee }: Edge| -> Id {
            match side {
                Side::Following => follower,
                Side::Followers => followee,
            }
        };
        let mut columns = Columns::default();
        for &(kind, edge) in keys {
            columns.shards.push(self.topology.shard_of(holder(edge)).0 as i16);
            columns.kinds.push(kind.number().into());
            columns.followers.push(IdValue(edge.follower));
            columns.followees.push(IdValue(edge.followee));
        }
        columns
    }
}

/// What rows of `Query::FollowingRows` or `Query::FollowersRows` say.
pub(super) fn states(keys: &[Key], rows: &[Row]) -> HashMap<Key, State> {
    let state = |row: &Row| {
        let key = keys[row.get::<_, i64>(0) as usize - 1];
        (key, State { since: row.get(1), sequence: row.get(2) })
    };
    rows.iter().map(state).collect()
}

#[cfg(test)]
mod tests {
    use kinfolk_core::EdgeKind;

    use super::*;

    fn row(number: u64, since: i64, sequence: i64) -> EdgeRow {
        let edge = Edge { follower: Id::Integer(number), followee: Id::Integer(0) };
        ((EdgeKind::Follow, edge), State { since, sequence })
    }

    #[test]
    fn every_sort_of_difference_has_another_checksum() {
        let weights = weights(3).unwrap();
        assert!(weights.iter().all(|weight| (1..=1 << 31).contains(weight)), "{weights:?}");
        let checksum = |rows: &[EdgeRow]| Checksum::of(rows, &weights);
        let whole = [row(1, 10, 1), row(2, 20, 2), row(3, 30, 3)];
        let others: [&[EdgeRow]; 5] = [
            &whole[..2],
            &[row(1, 10, 1), row(2, 21, 2), row(3, 30, 3)],
            &[row(1, 10, 1), row(2, 20, 7), row(3, 30, 3)],
            &[row(1, 20, 1), row(2, 10, 2), row(3, 30, 3)],
            &[row(1, i64::MIN, 1), row(2, i64::MAX, 2), row(3, 30, 3)],
        ];
        assert!(others.iter().all(|rows| checksum(rows) != checksum(&whole)));
    }
}
