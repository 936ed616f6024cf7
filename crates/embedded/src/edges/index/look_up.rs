//! Looks up many edges at once, so that the memory of one is on its way while others are looked at: a look-up of one edge
//! waits for memory three times, and does little else.

use std::collections::HashSet;

use kinfolk_core::graph::Edge;
use parking_lot::RwLockReadGuard;
use smallvec::SmallVec;

use super::KindIndex;
use super::graph::KindGraph;
use super::table::{Table, User};
use crate::disk::id_encoding::IdEncoding;

/// How many users are looked up at a time: as many reads of memory as a processor has under way.
const TOGETHER: usize = 32;

/// Looking up a user takes as long as reading the ids of so many followees, which share a lock and lie close together.
const LISTED_TIMES: usize = 4;

/// A few values, one for each user that is looked up.
type Few<T> = SmallVec<[T; TOGETHER]>;

impl<K: IdEncoding> KindGraph<K> {
    /// For each edge, whether it exists.
    pub(super) fn look_up_each(&self, edges: &[Edge], found: &mut Vec<bool>) {
        if let &[edge] = edges {
            return found.push(self.contains(edge));
        }
        for edges in edges.chunks(TOGETHER / 2) {
            let ends = edges.iter().flat_map(|edge| [edge.follower, edge.followee]);
            self.with_users(ends.map(K::from_id).collect(), |users| {
                let searches = users.chunks_exact(2).map(|ends| Search::new(list_of(ends[0]), ends[1]));
                search_all(searches.collect(), found);
            });
        }
    }

    /// For each edge of one follower, whether it exists. Looks up whatever costs less: the users who are asked for, or the ids of
    /// the follower's followees.
    pub(super) fn look_up_run(&self, edges: &[Edge], found: &mut Vec<bool>) {
        let Some(first) = edges.first() else { return };
        let follower = K::from_id(first.follower);
        let (shard, hash) = self.locate(follower);
        let table = shard.read();
        let following = list_of(table.find(follower, hash));
        if following.len() < LISTED_TIMES * edges.len() {
            let following = following.to_vec();
            drop(table);
            let mut followed = HashSet::with_capacity_and_hasher(following.len(), self.hashing());
            followed.extend(self.ids_of(&following));
            return found.extend(edges.iter().map(|edge| followed.contains(&K::from_id(edge.followee))));
        }
        for edges in edges.chunks(TOGETHER) {
            self.with_users(edges.iter().map(|edge| K::from_id(edge.followee)).collect(), |users| {
                search_all(users.iter().map(|&followee| Search::new(following, followee)).collect(), found);
            });
        }
    }

    /// Shows the users with some ids. The locks of all of them are held meanwhile: no writer waits for one while it holds
    /// another. They come first, because a lock waits for the reads before it, and reads then do not wait for each other.
    fn with_users(&self, ids: Few<K>, show: impl FnOnce(&[Option<&User<K>>])) {
        let places: Few<_> = ids.iter().map(|&id| self.locate(id)).collect();
        let tables: Few<RwLockReadGuard<'_, Table<K>>> =
            places.iter().map(|(shard, _)| shard.read_recursive()).collect();
        let searched = || tables.iter().zip(&places).map(|(table, &(_, hash))| (table, hash));
        searched().for_each(|(table, hash)| table.touch(hash));
        let users: Few<_> = searched().zip(ids).map(|((table, hash), id)| table.find(id, hash)).collect();
        show(&users);
    }
}

fn list_of<K>(user: Option<&User<K>>) -> &[u32] {
    user.map_or(&[], |user| &user.following)
}

/// A search for a number in a list.
#[derive(Clone, Copy)]
struct Search<'a> {
    /// What may still be it.
    list: &'a [u32],
    number: u32,
}

impl<'a> Search<'a> {
    /// A user that is not known is in no list.
    fn new<K>(list: &'a [u32], user: Option<&User<K>>) -> Self {
        Self { list: if user.is_some() { list } else { &[] }, number: user.map_or(0, |user| user.number) }
    }

    /// Looks at one number of the list; returns whether one is left.
    #[inline]
    fn step(&mut self) -> bool {
        let (low, high) = self.list.split_at(self.list.len() / 2);
        let is_high = high.first().is_some_and(|&middle| middle <= self.number);
        self.list = if is_high { high } else { low };
        self.list.len() > 1
    }
}

/// Makes a step of every search after the other, until all have ended.
fn search_all(mut searches: Few<Search<'_>>, found: &mut Vec<bool>) {
    while searches.iter_mut().fold(false, |is_left, search| search.step() | is_left) {}
    found.extend(searches.iter().map(|search| search.list == [search.number]));
}
