//! Frontiers: how much of each shard's log a reader has seen. Frontiers are joined and never shrink.

use std::fmt;

use crate::{Position, Sequence, Shard};

/// The last sequence seen, for some shards. It says nothing about a shard that it does not name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frontier {
    /// Sorted by shard, without duplicates.
    entries: Vec<(Shard, Sequence)>,
}

impl Frontier {
    /// The frontier that names no shard.
    pub const EMPTY: &'static Self = &Self { entries: Vec::new() };

    /// Whether it names no shard.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The last sequence seen of a shard.
    pub fn get(&self, shard: Shard) -> Option<Sequence> {
        let at = self.entries.binary_search_by_key(&shard, |&(shard, _)| shard).ok()?;
        self.entries.get(at).map(|&(_, sequence)| sequence)
    }

    /// The position in every shard that it names, in the order of shards.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Position> {
        self.entries.iter().map(|&(shard, sequence)| sequence.on(shard))
    }

    /// Adds a position. An older position of a shard changes nothing.
    pub fn advance(&mut self, to: Position) {
        match self.entries.binary_search_by_key(&to.shard, |&(shard, _)| shard) {
            Ok(at) => self.entries[at].1 = self.entries[at].1.max(to.sequence),
            Err(at) => self.entries.insert(at, (to.shard, to.sequence)),
        }
    }

    /// Adds all positions of another frontier.
    pub fn join(&mut self, other: &Self) {
        other.iter().for_each(|position| self.advance(position));
    }

    /// Whether the position has been seen.
    pub fn covers(&self, position: Position) -> bool {
        position.sequence == Sequence::START
            || self.get(position.shard).is_some_and(|seen| seen >= position.sequence)
    }

    /// Whether everything that `other` covers has been seen.
    pub fn covers_all(&self, other: &Self) -> bool {
        other.iter().all(|position| self.covers(position))
    }
}

impl From<Position> for Frontier {
    fn from(Position { shard, sequence }: Position) -> Self {
        Self { entries: vec![(shard, sequence)] }
    }
}

impl FromIterator<Position> for Frontier {
    fn from_iter<T: IntoIterator<Item = Position>>(positions: T) -> Self {
        let mut frontier = Self::default();
        positions.into_iter().for_each(|position| frontier.advance(position));
        frontier
    }
}

impl fmt::Display for Frontier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, position) in self.iter().enumerate() {
            let space = if at > 0 { " " } else { "" };
            write!(out, "{space}{position}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_frontier() -> impl Strategy<Value = Frontier> {
        let position = (0..6_u16, 0..9_u64).prop_map(|(shard, sequence)| Sequence(sequence).on(Shard(shard)));
        prop::collection::vec(position, 0..8).prop_map(|positions| positions.into_iter().collect())
    }

    fn joined(a: &Frontier, b: &Frontier) -> Frontier {
        let mut both = a.clone();
        both.join(b);
        both
    }

    proptest! {
        #[test]
        fn a_join_is_the_least_that_covers_both(a in any_frontier(), b in any_frontier(), c in any_frontier()) {
            let both = joined(&a, &b);
            prop_assert!(both.covers_all(&a) && both.covers_all(&b));
            prop_assert_eq!(&both, &joined(&b, &a));
            prop_assert_eq!(&joined(&both, &a), &both);
            prop_assert_eq!(joined(&both, &c), joined(&a, &joined(&b, &c)));
            if c.covers_all(&a) && c.covers_all(&b) {
                prop_assert!(c.covers_all(&both));
            }
        }

        #[test]
        fn a_position_is_covered_if_its_shard_was_seen_as_far(a in any_frontier(), shard in 0..6_u16, sequence in 0..9_u64) {
            let seen = a.get(Shard(shard)).unwrap_or(Sequence::START);
            prop_assert_eq!(a.covers(Sequence(sequence).on(Shard(shard))), sequence <= seen.0);
        }
    }

    #[test]
    fn entries_are_by_shard() {
        let frontier: Frontier = [(3, 1), (0, 9), (3, 5), (3, 2)]
            .map(|(shard, sequence)| Sequence(sequence).on(Shard(shard)))
            .into_iter()
            .collect();
        assert_eq!(frontier.to_string(), "0-9 3-5");
        assert!(Frontier::EMPTY.is_empty() && frontier.covers_all(Frontier::EMPTY));
    }
}
