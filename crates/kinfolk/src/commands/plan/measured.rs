//! What was measured, and is not a flag of `plan`: bytes on disk, in memory and in messages, processor time, rates of one process.

use kinfolk_core::IdKind;

/// Bytes that one row takes with its part of all indexes.
///
/// PostgreSQL 15 with the schema of a host (`crates/fleet/src/sql/schema/host_1.sql`): two million edges between 5,000 users on 32
/// shards, a change of the log for each, and a million users, all inserted in random order, as a graph grows; then `VACUUM`, and
/// `pg_total_relation_size` divided by the rows. Index pages are then two thirds full. After `REINDEX`, as after an import in the
/// order of the key, an edge takes about a quarter less.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowBytes {
    pub(super) following: u64,
    pub(super) followers: u64,
    /// The primary key of `following` alone, which answers checks. It is part of `following`.
    pub(super) key: u64,
    pub(super) user: u64,
    pub(super) follower_count: u64,
    pub(super) change: u64,
}

impl RowBytes {
    pub(super) fn of(ids: IdKind) -> Self {
        match ids {
            IdKind::Integer => {
                Self { following: 214, followers: 223, key: 66, user: 117, follower_count: 128, change: 125 }
            }
            IdKind::Uuid => {
                Self { following: 283, followers: 292, key: 88, user: 139, follower_count: 130, change: 141 }
            }
        }
    }

    /// An edge in both directions.
    pub(super) fn edge(self) -> u64 {
        self.following + self.followers
    }

    /// Both counts of a user.
    pub(super) fn counts(self) -> u64 {
        self.user + self.follower_count
    }
}

/// Bytes of a message with ids of full length: the JSON, the key, and 12 bytes of the record. Relays compress with lz4; small
/// batches gain little from it.
pub(super) fn message_bytes(ids: IdKind) -> u64 {
    match ids {
        IdKind::Integer => 265,
        IdKind::Uuid => 316,
    }
}

/// Bytes of an edge in a set of Redis with `set-max-intset-entries 10000` (docs/operating/fleet.md#redis).
pub(super) fn cached_edge_bytes(ids: IdKind) -> u64 {
    match ids {
        IdKind::Integer => 8,
        IdKind::Uuid => 75,
    }
}

/// Bytes of a user in Redis, without the edges.
pub(super) const CACHED_USER_BYTES: u64 = 400;

/// A filter has ten bits for each edge that it has room for, which is a quarter more than there are, and 1,024 at least
/// (`crates/fleet/src/check/filter.rs`).
pub(super) fn filter_bytes(edges: u64) -> u64 {
    edges.saturating_add(edges / 4).max(1_024).saturating_mul(10) / 8
}

/// The share of negative checks that a fresh filter answers.
pub(super) const FILTER_ANSWERS: f64 = 0.997;

/// Bits for an edge in a filter that lets one of a thousand through: ln 1000 / (ln 2)².
pub(super) const STRICT_FILTER_BITS: f64 = 14.378;

/// A filter is made again after six hours at the latest.
pub(super) const FILTER_AGE_SECONDS_MAX: u64 = 6 * 60 * 60;

/// Processor time of an api process for a check over RESP in pipelines of 16: 3.4 µs where the filter answers 80 % and Redis the
/// others (docs/benchmarks.md). How that divides was not measured: if one from the filter takes 0.7 µs, as is assumed here, one that is
/// passed on takes 14.2 µs.
pub(super) const FILTERED_CHECK_MICROS: f64 = 0.7;
pub(super) const PASSED_CHECK_MICROS: f64 = 14.2;

/// Changes a second that one process relays, and that one projects (docs/benchmarks.md).
pub(super) const RELAYED_PER_SECOND: u64 = 178_000;
pub(super) const PROJECTED_PER_SECOND: u64 = 27_600;

#[cfg(test)]
mod tests {
    use kinfolk_api::Event;
    use kinfolk_core::{Id, Timestamp};

    use super::*;

    /// A message of a user with the longest id.
    fn message(id: Id) -> u64 {
        let at = Timestamp::from_millis(1_794_851_064_584);
        let event = Event {
            version: Event::VERSION,
            epoch: at.millis(),
            shard: 255,
            sequence: 1_000_000_000,
            r#type: "follow".into(),
            at: at.into(),
            follower: Some(id.into()),
            followee: Some(id.into()),
            since: Some(at.into()),
            previous: None,
        };
        (serde_json::to_vec(&event).unwrap().len() + id.to_string().len() + 12) as u64
    }

    #[test]
    fn messages_are_as_long_as_their_json() {
        assert_eq!(message(Id::Integer(i64::MAX as u64)), message_bytes(IdKind::Integer));
        assert_eq!(message(Id::Uuid(u128::MAX)), message_bytes(IdKind::Uuid));
    }

    #[test]
    fn a_filter_is_sized_as_the_fleet_sizes_it() {
        assert_eq!(filter_bytes(0), 1_280);
        assert_eq!(filter_bytes(1_000_000), 1_562_500);
    }
}
