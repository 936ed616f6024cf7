//! Sets of users as ascending numbers: comparing them, and naming the users behind them.
//!
//! Lists are copied out of the index before they are compared, so that no lock is held for longer than a copy.

use kinfolk_core::Id;

use super::graph::{KindGraph, SHARDS};
use crate::disk::id_encoding::IdEncoding;

/// From this ratio of lengths on it is cheaper to leap through the longer list than to go through both.
const LEAP_RATIO: usize = 16;

/// Keeps those of `numbers` that are in `others`. Both ascend.
pub(crate) fn retain_common(numbers: &mut Vec<u32>, others: &[u32]) {
    let kept = if others.len() / LEAP_RATIO > numbers.len() {
        leap(numbers, others)
    } else if numbers.len() / LEAP_RATIO > others.len() {
        let mut common = others.to_vec();
        let kept = leap(&mut common, numbers);
        numbers[..kept].copy_from_slice(&common[..kept]);
        kept
    } else {
        merge(numbers, others)
    };
    numbers.truncate(kept);
}

/// Goes through both lists without a branch on what is equal: that would be guessed wrongly half of the time.
fn merge(numbers: &mut [u32], others: &[u32]) -> usize {
    let (mut at, mut other_at, mut kept) = (0, 0, 0);
    while let (Some(&number), Some(&other)) = (numbers.get(at), others.get(other_at)) {
        // At most as far as was read.
        numbers[kept] = number;
        kept += usize::from(number == other);
        at += usize::from(number <= other);
        other_at += usize::from(other <= number);
    }
    kept
}

/// Looks each number up, in a stretch that doubles until it reaches that far.
fn leap(numbers: &mut [u32], others: &[u32]) -> usize {
    let (mut rest, mut kept) = (others, 0);
    for at in 0..numbers.len() {
        let number = numbers[at];
        let mut step = 1;
        while rest.get(step).is_some_and(|&other| other < number) {
            step *= 2;
        }
        let stretch = &rest[..rest.len().min(step + 1)];
        let found = stretch.partition_point(|&other| other < number);
        rest = &rest[found..];
        if rest.first() == Some(&number) {
            numbers[kept] = number;
            kept += 1;
        }
    }
    kept
}

impl<K: IdEncoding> KindGraph<K> {
    /// The numbers of a user's followees, ascending.
    pub(super) fn followee_numbers_of(&self, of: K) -> Vec<u32> {
        let (shard, hash) = self.locate(of);
        shard.read().find(of, hash).map(|user| user.following.to_vec()).unwrap_or_default()
    }

    /// The ids behind numbers, in the same order, looked up in short turns: the writer adds to them.
    pub(super) fn ids_of(&self, numbers: &[u32]) -> Vec<K> {
        const IDS_IN_A_TURN: usize = 1 << 12;
        let mut found = Vec::with_capacity(numbers.len());
        for turn in numbers.chunks(IDS_IN_A_TURN) {
            let ids = self.ids.read();
            found.extend(turn.iter().map(|&number| ids[number as usize]));
        }
        found
    }

    /// Keeps those who follow a user. Shard by shard: one lock for all users in a shard, and look-ups that don't wait
    /// for each other.
    pub(super) fn retain_followers_of(&self, numbers: &mut Vec<u32>, of: K) {
        let Some(target) = self.number(of) else { return numbers.clear() };
        let located = numbers.iter().zip(self.ids_of(numbers)).map(|(&number, id)| {
            let (shard, hash) = self.shard_and_hash(id);
            (shard as u32, number, hash, id)
        });
        let mut located: Vec<(u32, u32, u32, K)> = located.collect();
        located.sort_unstable_by_key(|&(shard, ..)| shard);
        debug_assert!(located.iter().all(|&(shard, ..)| (shard as usize) < SHARDS));
        numbers.clear();
        for group in located.chunk_by(|one, next| one.0 == next.0) {
            let table = self.shard(group[0].0 as usize).read();
            let follows = |&&(_, _, hash, id): &&(u32, u32, u32, K)| {
                table.find(id, hash).is_some_and(|user| user.following.binary_search(&target).is_ok())
            };
            numbers.extend(group.iter().filter(follows).map(|&(_, number, ..)| number));
        }
        numbers.sort_unstable();
    }

    /// Up to `limit` of the users with these numbers by id, after one if it is given.
    pub(super) fn page_of(&self, numbers: &[u32], after: Option<K>, limit: usize) -> Vec<Id> {
        let mut found = self.ids_of(numbers);
        found.retain(|&id| after.is_none_or(|after| id > after));
        if limit < found.len() {
            found.select_nth_unstable(limit);
            found.truncate(limit);
        }
        found.sort_unstable();
        found.into_iter().map(K::to_id).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn sorted(numbers: &BTreeSet<u32>) -> Vec<u32> {
        numbers.iter().copied().collect()
    }

    proptest! {
        #[test]
        fn agrees_with_sets(
            few in proptest::collection::btree_set(0u32..400, 0..60),
            many in proptest::collection::btree_set(0u32..3_000, 0..900),
            dense in proptest::collection::btree_set(0u32..500, 0..400),
        ) {
            for (one, other) in [(&few, &many), (&many, &few), (&few, &dense), (&dense, &many), (&many, &many)] {
                let mut common = sorted(one);
                retain_common(&mut common, &sorted(other));
                prop_assert_eq!(common, one.intersection(other).copied().collect::<Vec<_>>());
            }
        }
    }
}
