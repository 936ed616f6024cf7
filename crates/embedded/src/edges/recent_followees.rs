//! The newest followees of users who follow many, by number: read from the rows once, then kept until they change.
//!
//! A cache that is never wrong: a change takes a list out before it becomes visible, and a list that was read while its
//! user changed is not put in.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use kinfolk_core::{Id, Result};
use parking_lot::Mutex;

use std::hash::BuildHasher;

const SHARDS: usize = 64;
/// How many numbers are kept in all: 32 MiB.
const NUMBERS_MAX: usize = 8 << 20;

/// The cache.
#[derive(Debug)]
pub(crate) struct RecentFollowees {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Shard {
    /// How often a user of this shard has changed.
    changes: u64,
    /// How many numbers there are in the lists.
    numbers: usize,
    lists: HashMap<Id, List, RandomState>,
}

#[derive(Clone, Debug)]
struct List {
    /// How many were asked for: there are no more where the list is shorter.
    asked: usize,
    numbers: Arc<[u32]>,
}

impl RecentFollowees {
    /// Nothing kept yet.
    pub(crate) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, hasher: RandomState::default() }
    }

    fn shard(&self, of: Id) -> &Mutex<Shard> {
        &self.shards[self.hasher.hash_one(of) as usize % SHARDS]
    }

    /// The numbers of the `most` newest followees of a user, ascending, read by `load` unless they are kept.
    pub(crate) fn get(
        &self,
        of: Id,
        most: usize,
        load: impl FnOnce() -> Result<Vec<u32>>,
    ) -> Result<Arc<[u32]>> {
        let shard = self.shard(of);
        let changes = {
            let shard = shard.lock();
            if let Some(list) = shard.lists.get(&of).filter(|list| list.asked == most) {
                return Ok(Arc::clone(&list.numbers));
            }
            shard.changes
        };
        let numbers: Arc<[u32]> = load()?.into();
        let mut shard = shard.lock();
        if shard.changes == changes {
            shard.keep(of, List { asked: most, numbers: Arc::clone(&numbers) });
        }
        Ok(numbers)
    }

    /// A user's followees have changed. Called when the rows have it, before it is visible.
    pub(crate) fn changed(&self, of: Id) {
        let mut shard = self.shard(of).lock();
        shard.changes += 1;
        shard.forget(of);
    }

    /// Anybody may have changed.
    pub(crate) fn all_changed(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            *shard = Shard { changes: shard.changes + 1, ..Shard::default() };
        }
    }
}

impl Shard {
    fn keep(&mut self, of: Id, list: List) {
        self.forget(of);
        self.numbers += list.numbers.len();
        while self.numbers > NUMBERS_MAX / SHARDS
            && let Some(&other) = self.lists.keys().next()
        {
            self.forget(other);
        }
        self.lists.insert(of, list);
    }

    fn forget(&mut self, of: Id) {
        if let Some(list) = self.lists.remove(&of) {
            self.numbers -= list.numbers.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Id = Id::Integer(1);

    #[test]
    fn a_change_takes_the_list_out() {
        let newest = RecentFollowees::new();
        let read = |numbers: &[u32], most| newest.get(A, most, || Ok(numbers.to_vec())).unwrap().to_vec();
        assert_eq!(read(&[1, 2], 2), [1, 2]);
        assert_eq!(read(&[3, 4], 2), [1, 2]);
        assert_eq!(read(&[3, 4, 5], 3), [3, 4, 5]);
        newest.changed(A);
        assert_eq!(read(&[5, 6, 7], 3), [5, 6, 7]);
        newest.all_changed();
        assert_eq!(read(&[8], 3), [8]);
    }

    #[test]
    fn a_list_that_changed_while_it_was_read_is_not_kept() {
        let newest = RecentFollowees::new();
        let stale = newest.get(A, 1, || {
            newest.changed(A);
            Ok(vec![1])
        });
        assert_eq!(*stale.unwrap(), [1]);
        assert_eq!(*newest.get(A, 1, || Ok(vec![2])).unwrap(), [2]);
    }

    #[test]
    fn it_stays_within_its_size() {
        let newest = RecentFollowees::new();
        for id in 0..200 {
            newest.get(Id::Integer(id), 100_000, || Ok(vec![1; 100_000])).unwrap();
        }
        for shard in &newest.shards {
            let shard = shard.lock();
            let kept: usize = shard.lists.values().map(|list| list.numbers.len()).sum();
            assert_eq!(kept, shard.numbers);
            assert!(kept <= NUMBERS_MAX / SHARDS || shard.lists.len() == 1);
        }
    }
}
