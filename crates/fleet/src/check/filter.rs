//! The filter of one shard: which edges the shard certainly does not have.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastbloom::AtomicBloomFilter;
use kinfolk_core::changes::ChangeBody;
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Id, Sequence};
use xxhash_rust::xxh3::Xxh3;

use super::saved::made_before;
use crate::log::LoggedChange;

/// With seven hashes, about one of a hundred edges that do not exist is let through.
const BITS_PER_EDGE: u64 = 10;
const HASHES: u32 = 7;

/// A filter has room for a quarter more edges than there are, and for so many at least.
const EDGES_MIN: u64 = 1_024;

/// However it is, a filter is made again after so long.
const AGE_MAX: Duration = Duration::from_secs(6 * 60 * 60);

/// Knows the edges of a shard up to a position.
pub(super) struct Filter {
    bits: AtomicBloomFilter,
    capacity: u64,
    /// It has every edge that was made up to here.
    position: AtomicU64,
    edges: AtomicU64,
    /// Removals since it was made; these edges still look as if they existed.
    removed: AtomicU64,
    made: Instant,
}

/// What a filter is made of, as it is saved.
pub(super) struct FilterParts {
    pub(super) position: Sequence,
    pub(super) capacity: u64,
    pub(super) edges: u64,
    pub(super) removed: u64,
    /// How long ago it was made.
    pub(super) age: Duration,
    pub(super) bits: Vec<u64>,
}

/// What became of changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// The filter has moved by so many.
    Changes(usize),
    /// The changes after the first so many do not follow on it.
    Gap(usize),
    /// One of them does not say which edges it has changed.
    Unknown,
}

impl Filter {
    /// An empty filter for so many edges, at a position.
    pub(super) fn new(edges: u64, position: Sequence) -> Self {
        let capacity = capacity_for(edges);
        let bits = (capacity * BITS_PER_EDGE) as usize;
        Self {
            bits: AtomicBloomFilter::with_num_bits(bits).seed(&0).hashes(HASHES),
            capacity,
            position: AtomicU64::new(position.0),
            edges: AtomicU64::new(0),
            removed: AtomicU64::new(0),
            made: Instant::now(),
        }
    }

    /// What it is made of. The position is taken first: the bits are at least as new.
    pub(super) fn parts(&self) -> FilterParts {
        FilterParts {
            position: self.position(),
            capacity: self.capacity,
            edges: self.edges.load(Ordering::Relaxed),
            removed: self.removed.load(Ordering::Relaxed),
            age: self.made.elapsed(),
            bits: self.bits.iter().collect(),
        }
    }

    /// The filter that is made of some parts.
    pub(super) fn of_parts(parts: FilterParts) -> Self {
        Self {
            bits: AtomicBloomFilter::from_vec(parts.bits).seed(&0).hashes(HASHES),
            capacity: parts.capacity,
            position: AtomicU64::new(parts.position.0),
            edges: AtomicU64::new(parts.edges),
            removed: AtomicU64::new(parts.removed),
            made: made_before(parts.age),
        }
    }

    /// The memory of a filter for so many edges.
    pub(super) fn bytes_for(edges: u64) -> u64 {
        capacity_for(edges) * BITS_PER_EDGE / 8
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bits.num_bits() as u64 / 8
    }

    /// What it says of edges is true up to here.
    pub(super) fn position(&self) -> Sequence {
        // Who reads this reads the bits of every edge before it, too.
        Sequence(self.position.load(Ordering::Acquire))
    }

    pub(super) fn insert(&self, kind: EdgeKind, edge: Edge) {
        self.bits.insert_hash(hash(kind, edge));
        self.edges.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the edge may exist.
    pub(super) fn may_have(&self, kind: EdgeKind, edge: Edge) -> bool {
        self.bits.contains_hash(hash(kind, edge))
    }

    /// Takes the changes that follow on its position. Those before it are known already. One caller at a time.
    pub(super) fn follow(&self, changes: &[LoggedChange]) -> Followed {
        let (mut reached, mut moved) = (self.position(), 0);
        let mut outcome = None;
        for LoggedChange { change, .. } in changes {
            let sequence = change.position.sequence;
            if sequence <= reached {
                continue;
            }
            if sequence != reached.next() {
                outcome = Some(Followed::Gap(moved));
                break;
            }
            match change.body {
                ChangeBody::Followed { kind, edge } => self.insert(kind, edge),
                ChangeBody::Unfollowed { .. } => _ = self.removed.fetch_add(1, Ordering::Relaxed),
                _ => return Followed::Unknown,
            }
            (reached, moved) = (sequence, moved + 1);
        }
        self.position.store(reached.0, Ordering::Release);
        outcome.unwrap_or(Followed::Changes(moved))
    }

    /// Whether a new one would be better: this one lets too many through, or is old.
    pub(super) fn is_worn(&self) -> bool {
        let edges = self.edges.load(Ordering::Relaxed);
        let removed = self.removed.load(Ordering::Relaxed);
        edges > self.capacity || removed > self.capacity / 10 || self.made.elapsed() > AGE_MAX
    }
}

fn capacity_for(edges: u64) -> u64 {
    (edges + edges / 4).max(EDGES_MIN)
}

fn hash(kind: EdgeKind, edge: Edge) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&[kind.number()]);
    for id in [edge.follower, edge.followee] {
        match id {
            Id::Integer(value) => hasher.update(&value.to_be_bytes()),
            Id::Uuid(value) => hasher.update(&value.to_be_bytes()),
        }
    }
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use kinfolk_core::changes::Change;
    use kinfolk_core::{Shard, Timestamp};

    use super::*;

    const KIND: EdgeKind = EdgeKind::Follow;

    fn edge(follower: u64, followee: u64) -> Edge {
        Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) }
    }

    fn change(number: u64, body: ChangeBody) -> LoggedChange {
        let change = Change { position: Sequence(number).on(Shard(0)), at: Timestamp::MIN, body };
        LoggedChange { change, imported_since: None }
    }

    fn followed(number: u64) -> LoggedChange {
        change(number, ChangeBody::Followed { kind: KIND, edge: edge(1, number) })
    }

    fn unfollowed(number: u64, followee: u64) -> LoggedChange {
        let body = ChangeBody::Unfollowed { kind: KIND, edge: edge(1, followee), since: Timestamp::MIN };
        change(number, body)
    }

    #[test]
    fn it_has_what_was_inserted_and_little_else() {
        let filter = Filter::new(10_000, Sequence(5));
        (0..10_000).for_each(|number| filter.insert(KIND, edge(number, number + 1)));
        assert!((0..10_000).all(|number| filter.may_have(KIND, edge(number, number + 1))));
        let through = (0..10_000).filter(|&number| filter.may_have(KIND, edge(number + 1, number))).count();
        assert!(through < 200, "{through} of 10,000 edges that do not exist are let through");
        assert_eq!(filter.position(), Sequence(5));
        assert!(!filter.is_worn());
    }

    #[test]
    fn it_follows_changes_once_and_never_over_a_gap() {
        let filter = Filter::new(0, Sequence(2));
        assert_eq!(
            filter.follow(&[followed(1), followed(2), followed(3), followed(4)]),
            Followed::Changes(2)
        );
        assert_eq!(filter.position(), Sequence(4));
        assert!(!filter.may_have(KIND, edge(1, 2)), "what is before its position it has already, or never");
        assert!(filter.may_have(KIND, edge(1, 3)));
        assert_eq!(filter.follow(&[unfollowed(5, 3), followed(7)]), Followed::Gap(1));
        assert_eq!(filter.position(), Sequence(5));
        assert!(filter.may_have(KIND, edge(1, 3)), "it can't forget");
        assert!(!filter.may_have(KIND, edge(1, 7)));
        let lost = change(6, ChangeBody::Imported { kind: KIND, edges: 0 });
        assert_eq!(filter.follow(&[lost]), Followed::Unknown);
        assert_eq!(filter.position(), Sequence(5));
    }

    #[test]
    fn it_wears_out() {
        let filter = Filter::new(0, Sequence::START);
        let changes: Vec<_> = (1..=EDGES_MIN).map(followed).collect();
        filter.follow(&changes);
        assert!(!filter.is_worn());
        filter.follow(&[followed(EDGES_MIN + 1)]);
        assert!(filter.is_worn(), "it has more edges than it was made for");
        let filter = Filter::new(0, Sequence::START);
        filter.follow(&(1..=EDGES_MIN / 10 + 1).map(|number| unfollowed(number, 1)).collect::<Vec<_>>());
        assert!(filter.is_worn(), "it has many edges that are gone");
    }
}
