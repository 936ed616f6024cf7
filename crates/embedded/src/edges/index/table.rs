//! A hash table from ids to users, made for one purpose: a look-up touches one cache line.
//!
//! Open addressing with linear probing; users are never removed. Not a general map.

use std::hint::black_box;

use crate::disk::id_encoding::IdEncoding;

/// What is known of a user.
#[derive(Clone, Debug)]
pub(crate) struct User<K> {
    /// The user's id.
    pub id: K,
    /// The dense number that stands for the user in lists.
    pub number: u32,
    /// How many follow the user.
    pub followers: u32,
    /// The numbers of the user's followees, ascending.
    pub following: Box<[u32]>,
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Table<K> {
    slots: Vec<Option<User<K>>>,
    len: usize,
}

/// A table is grown when more than 4 of 5 slots are taken.
fn slots_for(users: usize) -> usize {
    users + users / 4 + 2
}

impl<K: IdEncoding> Table<K> {
    /// All users, in no order.
    pub(crate) fn users_mut(&mut self) -> impl Iterator<Item = &mut User<K>> {
        self.slots.iter_mut().flatten()
    }

    /// The slots, taken or not. They move only when there are more of them.
    pub(crate) fn slots(&self) -> &[Option<User<K>>] {
        &self.slots
    }

    /// How many bytes the slots take.
    pub(crate) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Option<User<K>>>()
    }

    /// Makes room for so many users in all.
    pub(crate) fn reserve(&mut self, users: usize, hash: impl Fn(K) -> u32) {
        if slots_for(users) > self.slots.len() {
            self.rebuild(slots_for(users), hash);
        }
    }

    /// Reads where the search for an id begins and tells nothing of it: the memory is on its way then.
    #[inline]
    pub(crate) fn touch(&self, hash: u32) {
        black_box(self.slots.get(self.start(hash)).is_some_and(Option::is_some));
    }

    /// The user with an id.
    #[inline]
    pub(crate) fn find(&self, id: K, hash: u32) -> Option<&User<K>> {
        self.slots.get(self.probe(id, hash)?)?.as_ref()
    }

    /// The user with an id.
    pub(crate) fn find_mut(&mut self, id: K, hash: u32) -> Option<&mut User<K>> {
        let at = self.probe(id, hash)?;
        self.slots.get_mut(at)?.as_mut()
    }

    /// Adds a user that is not there yet.
    pub(crate) fn insert(&mut self, user: User<K>, hash: impl Fn(K) -> u32) -> &mut User<K> {
        if slots_for(self.len + 1) > self.slots.len() {
            self.rebuild(slots_for((self.len + 1) * 3 / 2 + 4), &hash);
        }
        self.len += 1;
        let at = self.vacant(hash(user.id));
        self.slots[at].insert(user)
    }

    fn start(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.slots.len() as u64) >> 32) as usize
    }

    #[inline]
    fn probe(&self, id: K, hash: u32) -> Option<usize> {
        let mut at = self.start(hash);
        loop {
            match self.slots.get(at) {
                Some(Some(user)) if user.id == id => return Some(at),
                Some(Some(_)) => at += 1,
                Some(None) => return None,
                None if self.slots.is_empty() => return None,
                None => at = 0,
            }
        }
    }

    fn vacant(&self, hash: u32) -> usize {
        let mut at = self.start(hash);
        while self.slots[at].is_some() {
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
        at
    }

    fn rebuild(&mut self, slots: usize, hash: impl Fn(K) -> u32) {
        let mut larger = Vec::with_capacity(slots);
        larger.resize_with(slots, || None);
        let old = std::mem::replace(&mut self.slots, larger);
        for user in old.into_iter().flatten() {
            let at = self.vacant(hash(user.id));
            self.slots[at] = Some(user);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn user(id: u64) -> User<u64> {
        User { id, number: id as u32 * 2, followers: 0, following: Box::default() }
    }

    #[test]
    fn two_slots_of_integer_ids_fit_a_cache_line() {
        assert_eq!(size_of::<Option<User<u64>>>() * 2, 64);
    }

    proptest! {
        #[test]
        fn agrees_with_a_map(ids in proptest::collection::vec(0u64..200, 0..300), spread in 0u32..4) {
            // A bad hash on purpose: long probe sequences and wrap-around.
            let hash = |id: u64| (id as u32).wrapping_mul([0, 1, 1 << 24, 0x9e37_79b9][spread as usize]);
            let mut table = Table::default();
            let mut model = HashMap::new();
            for id in ids {
                let known = table.find(id, hash(id)).map(|found| found.number);
                prop_assert_eq!(known, model.get(&id).copied());
                if known.is_none() {
                    table.insert(user(id), hash);
                    model.insert(id, id as u32 * 2);
                }
            }
            prop_assert_eq!(table.slots().iter().flatten().count(), model.len());
            table.reserve(1_000, hash);
            for (&id, &number) in &model {
                prop_assert_eq!(table.find(id, hash(id)).unwrap().number, number);
            }
        }
    }
}
