//! Users for tests: small numbers, spread over the whole range of a deployment's ids; and the shards that they are on.

use std::num::NonZeroU16;

use kinfolk_core::changes::{Change, ChangeLog};
use kinfolk_core::graph::Edge;
use kinfolk_core::{Id, IdKind, Position, Sequence, Shard};

use crate::threads::block_on;

/// The user with a small number. A higher number is a higher id, while the low halves of the ids run the other
/// way and the ids are sparse: a store that cuts ids short or counts on dense ones is found out.
///
/// Numbers are below 2^20.
pub fn user(kind: IdKind, number: u64) -> Id {
    const LOW_HALF: u64 = (1 << 40) - 1;
    assert!(number < 1 << 20, "user numbers are small");
    match kind {
        IdKind::Integer => Id::Integer(number << 40 | (LOW_HALF - number)),
        IdKind::Uuid => Id::Uuid(u128::from(number) << 64 | u128::from(u64::MAX - number)),
    }
}

/// The edge from one such user to another.
pub fn edge(kind: IdKind, from: u64, to: u64) -> Edge {
    Edge { follower: user(kind, from), followee: user(kind, to) }
}

/// The number of shards of a store: its span names every one of them.
pub(crate) fn shards_of<S: ChangeLog>(store: &S) -> NonZeroU16 {
    let newest = block_on(store.span()).expect("a store knows its span").newest;
    for (position, expected) in newest.iter().zip(0..) {
        assert_eq!(position.shard, Shard(expected), "a span names every shard: {newest}");
    }
    let count = u16::try_from(newest.iter().len()).ok().and_then(NonZeroU16::new);
    count.expect("a span names at least one shard, and no more than there can be")
}

/// Changes by shard, those of each in their order.
pub(crate) fn by_shard(mut changes: Vec<Change>) -> Vec<Change> {
    changes.sort_by_key(|change| change.position.shard);
    changes
}

/// Before the first event of a store that has one shard.
pub(crate) const START: Position = Position { shard: Shard::ONLY, sequence: Sequence::START };
