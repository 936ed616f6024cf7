//! The edges of one kind: users in shards, each with the sorted numbers of its followees.
//!
//! Readers take shard locks for the length of a look-up; the writer holds one shard at a time for the length of
//! one change. Nothing here waits for a disk. No code path waits for a second lock for writing while it holds one,
//! so two readers' locks can be held together.

use std::hash::BuildHasher;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::SharedSeed;
use foldhash::quality::{FoldHasher, RandomState};
use kinfolk_core::graph::{Counts, Edge};
use kinfolk_core::suggestions::Suggestion;
use kinfolk_core::{Id, Result};
use parking_lot::RwLock;

use super::old_snapshot::ListSource;
use super::parts::{PartSource, SavedKind};
use super::table::{Table, User};
use super::walk::{Scratch, Walk};
use super::{KindIndex, UsersById};
use crate::disk::checksummed::ChecksumWriter;
use crate::disk::id_encoding::IdEncoding;
use crate::runtime::signal;

/// More shards make waiting for a writer rarer; each costs a cache line and some slack.
pub(super) const SHARDS: usize = 256;

/// A shard on cache lines of its own, so that locks of neighbours don't disturb each other.
#[repr(align(64))]
pub(super) struct Shard<K>(pub RwLock<Table<K>>);

/// The edges of one kind.
pub(crate) struct KindGraph<K> {
    pub(super) shards: Box<[Shard<K>]>,
    /// The id behind each number. Only the writer adds to it.
    pub(super) ids: RwLock<Vec<K>>,
    pub(super) edges: AtomicU64,
    /// How many users follow others, and how many are followed, together.
    pub(super) sets: AtomicU64,
    /// The hasher is made of it. A snapshot keeps it, so that users find their places in the order in which they are stored.
    pub(super) seed: u64,
    /// Made of the seed as well. With the one that foldhash has for everybody, ids can be chosen that collide under every seed.
    shared_seed: SharedSeed,
    /// Which numbering of users this is.
    numbering: u64,
}

/// A hash of ids that nobody outside can foresee.
#[derive(Clone, Copy)]
pub(super) struct Hashing<'a> {
    seed: u64,
    shared: &'a SharedSeed,
}

impl<'a> BuildHasher for Hashing<'a> {
    type Hasher = FoldHasher<'a>;

    #[inline]
    fn build_hasher(&self) -> FoldHasher<'a> {
        FoldHasher::with_seed(self.seed, self.shared)
    }
}

impl<K: IdEncoding> KindGraph<K> {
    /// No users, no edges.
    pub(crate) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Shard(RwLock::new(Table::default()))).collect();
        let [seed, numbering] = [0, 1].map(|number| RandomState::default().hash_one(number));
        let (ids, shared_seed) = (RwLock::default(), SharedSeed::from_u64(seed));
        Self { shards, ids, edges: AtomicU64::new(0), sets: AtomicU64::new(0), seed, shared_seed, numbering }
    }

    /// Makes places depend on another seed. Nobody has one yet.
    pub(super) fn set_seed(&mut self, seed: u64) {
        (self.seed, self.shared_seed) = (seed, SharedSeed::from_u64(seed));
    }

    #[inline]
    pub(super) fn locate(&self, id: K) -> (&RwLock<Table<K>>, u32) {
        let (shard, hash) = self.shard_and_hash(id);
        (self.shard(shard), hash)
    }

    #[inline]
    fn hash(&self, id: K) -> u64 {
        self.hashing().hash_one(id)
    }

    /// How ids are hashed.
    #[inline]
    pub(super) fn hashing(&self) -> Hashing<'_> {
        Hashing { seed: self.seed, shared: &self.shared_seed }
    }

    /// The number of a user's shard, and the hash within it.
    #[inline]
    pub(super) fn shard_and_hash(&self, id: K) -> (usize, u32) {
        let hash = self.hash(id);
        // The shard comes from other bits than the slot.
        ((hash >> 56) as usize % SHARDS, hash as u32)
    }

    #[inline]
    pub(super) fn shard(&self, number: usize) -> &RwLock<Table<K>> {
        &self.shards[number].0
    }

    pub(super) fn slot_hash(&self) -> impl Fn(K) -> u32 + '_ {
        |id| self.hash(id) as u32
    }

    pub(super) fn number(&self, id: K) -> Option<u32> {
        let (shard, hash) = self.locate(id);
        shard.read().find(id, hash).map(|user| user.number)
    }

    /// The number of a user, given one if it is new.
    fn intern(&self, id: K) -> u32 {
        if let Some(number) = self.number(id) {
            return number;
        }
        let mut ids = self.ids.write();
        let number = u32::try_from(ids.len()).expect("a store has fewer than 2^32 users");
        ids.push(id);
        drop(ids);
        let user = User { id, number, followers: 0, following: Box::default() };
        self.locate(id).0.write().insert(user, self.slot_hash());
        number
    }

    /// The number of a user who has one more follower: [`KindGraph::intern`] and the count in one look-up.
    fn intern_followed(&self, id: K) -> u32 {
        let (shard, hash) = self.locate(id);
        if let Some(user) = shard.write().find_mut(id, hash) {
            self.change(user, |user| user.followers += 1);
            return user.number;
        }
        let number = self.intern(id);
        self.with_user(id, |user| user.followers = 1);
        number
    }

    /// All ids by number, copied in short turns with pauses: the writer adds to them.
    pub(super) fn copied_ids(&self) -> Vec<K> {
        const IDS_IN_A_TURN: usize = 1 << 15;
        // With room for those that come meanwhile: it must not grow under the lock.
        let known = self.ids.read().len();
        let mut copied = Vec::with_capacity(known + known / 64 + IDS_IN_A_TURN);
        loop {
            signal::pause_between_locks();
            let ids = self.ids.read();
            let rest = &ids[copied.len()..];
            if rest.is_empty() {
                return copied;
            }
            copied.extend_from_slice(&rest[..rest.len().min(IDS_IN_A_TURN)]);
        }
    }

    pub(super) fn with_user<T>(&self, id: K, change: impl FnOnce(&mut User<K>) -> T) -> T {
        let (shard, hash) = self.locate(id);
        let mut table = shard.write();
        self.change(table.find_mut(id, hash).expect("an interned user is in the table"), change)
    }

    /// Changes a user, and counts the sets that this fills or empties.
    fn change<T>(&self, user: &mut User<K>, change: impl FnOnce(&mut User<K>) -> T) -> T {
        let before = set_count_of(user);
        let changed = change(user);
        let after = set_count_of(user);
        if after != before {
            // Only the writer changes users, so that this never goes below 0.
            self.sets.fetch_add(after, Ordering::Relaxed);
            self.sets.fetch_sub(before, Ordering::Relaxed);
        }
        changed
    }
}

fn counts_of<K>(user: &User<K>) -> Counts {
    Counts { following: user.following.len() as u64, followers: u64::from(user.followers) }
}

/// How many of a user's two sets are not empty.
pub(super) fn set_count_of<K>(user: &User<K>) -> u64 {
    u64::from(!user.following.is_empty()) + u64::from(user.followers > 0)
}

/// A list with one more number. Lists have no slack: their slots then fit a cache line in pairs, which every check
/// gains from, and copying a list costs a follow little beside its sync.
fn inserted(list: &[u32], at: usize, number: u32) -> Box<[u32]> {
    let mut longer = Vec::with_capacity(list.len() + 1);
    longer.extend_from_slice(&list[..at]);
    longer.push(number);
    longer.extend_from_slice(&list[at..]);
    longer.into_boxed_slice()
}

fn removed(list: &[u32], at: usize) -> Box<[u32]> {
    [&list[..at], &list[at + 1..]].concat().into_boxed_slice()
}

impl<K: IdEncoding> KindIndex for KindGraph<K> {
    #[inline]
    fn contains(&self, edge: Edge) -> bool {
        let (follower, followee) = (K::from_id(edge.follower), K::from_id(edge.followee));
        let (follower_shard, follower_hash) = self.locate(follower);
        let (followee_shard, followee_hash) = self.locate(followee);
        // Both locks first, then both look-ups: a lock waits for the loads before it, and these two can overlap.
        let follower_table = follower_shard.read();
        let followee_table = followee_shard.read_recursive();
        let (Some(user), Some(target)) =
            (follower_table.find(follower, follower_hash), followee_table.find(followee, followee_hash))
        else {
            return false;
        };
        user.following.binary_search(&target.number).is_ok()
    }

    fn contains_each(&self, edges: &[Edge], found: &mut Vec<bool>) {
        self.look_up_each(edges, found);
    }

    fn contains_run(&self, edges: &[Edge], found: &mut Vec<bool>) {
        self.look_up_run(edges, found);
    }

    fn examine(&self, edge: Edge) -> (bool, u64) {
        let (follower, followee) = (K::from_id(edge.follower), K::from_id(edge.followee));
        let target = self.number(followee);
        let (shard, hash) = self.locate(follower);
        shard.read().find(follower, hash).map_or((false, 0), |user| {
            let exists = target.is_some_and(|number| user.following.binary_search(&number).is_ok());
            (exists, user.following.len() as u64)
        })
    }

    fn insert(&self, edge: Edge) -> bool {
        let followee = K::from_id(edge.followee);
        let number = self.intern(followee);
        let follower = K::from_id(edge.follower);
        let add = |user: &mut User<K>| match user.following.binary_search(&number) {
            Ok(_) => false,
            Err(at) => {
                user.following = inserted(&user.following, at, number);
                true
            }
        };
        let (shard, hash) = self.locate(follower);
        let known = shard.write().find_mut(follower, hash).map(|user| self.change(user, add));
        let inserted = known.unwrap_or_else(|| {
            self.intern(follower);
            self.with_user(follower, add)
        });
        if inserted {
            self.with_user(followee, |user| user.followers += 1);
            self.edges.fetch_add(1, Ordering::Relaxed);
        }
        inserted
    }

    fn remove(&self, edge: Edge) -> bool {
        let (follower, followee) = (K::from_id(edge.follower), K::from_id(edge.followee));
        let (Some(number), Some(_)) = (self.number(followee), self.number(follower)) else { return false };
        let removed = self.with_user(follower, |user| match user.following.binary_search(&number) {
            Ok(at) => {
                user.following = removed(&user.following, at);
                true
            }
            Err(_) => false,
        });
        if removed {
            self.with_user(followee, |user| user.followers = user.followers.saturating_sub(1));
            self.edges.fetch_sub(1, Ordering::Relaxed);
        }
        removed
    }

    fn extend(&self, follower: Id, followees: &[Id]) {
        let follower = K::from_id(follower);
        self.intern(follower);
        if self.counts(follower.to_id()).following == 0 {
            let mut numbers: Vec<u32> =
                followees.iter().map(|&id| self.intern_followed(K::from_id(id))).collect();
            numbers.sort_unstable();
            self.with_user(follower, |user| user.following = numbers.into_boxed_slice());
            self.edges.fetch_add(followees.len() as u64, Ordering::Relaxed);
            return;
        }
        let mut added: Vec<(u32, K)> =
            followees.iter().map(|&id| K::from_id(id)).map(|id| (self.intern(id), id)).collect();
        added.sort_unstable();
        self.with_user(follower, |user| {
            // An import that is replayed after a crash may offer edges that are there already.
            added.retain(|(number, _)| user.following.binary_search(number).is_err());
            let all = user.following.iter().copied().chain(added.iter().map(|&(number, _)| number));
            user.following = all.collect();
            user.following.sort_unstable();
        });
        self.edges.fetch_add(added.len() as u64, Ordering::Relaxed);
        for (_, followee) in added {
            self.with_user(followee, |user| user.followers += 1);
        }
    }

    fn counts(&self, of: Id) -> Counts {
        let id = K::from_id(of);
        let (shard, hash) = self.locate(id);
        shard.read().find(id, hash).map_or(Counts::default(), counts_of)
    }

    fn followees(&self, of: Id) -> Vec<Id> {
        let mut followees = self.ids_of(&self.followee_numbers_of(K::from_id(of)));
        followees.sort_unstable();
        followees.into_iter().map(K::to_id).collect()
    }

    fn followee_numbers(&self, of: Id) -> Vec<u32> {
        self.followee_numbers_of(K::from_id(of))
    }

    fn number(&self, of: Id) -> Option<u32> {
        KindGraph::number(self, K::from_id(of))
    }

    fn numbers(&self, ids: &[Id]) -> Vec<u32> {
        ids.iter().filter_map(|&id| self.number(K::from_id(id))).collect()
    }

    fn retain_followers(&self, numbers: &mut Vec<u32>, of: Id) {
        self.retain_followers_of(numbers, K::from_id(of));
    }

    fn page(&self, numbers: &[u32], after: Option<Id>, limit: usize) -> Vec<Id> {
        self.page_of(numbers, after.map(K::from_id), limit)
    }

    fn walk(&self, of: Id, walk: &Walk<'_>, scratch: &mut Scratch) -> Result<Vec<Suggestion>> {
        self.walk_from(K::from_id(of), walk, scratch)
    }

    fn edge_count(&self) -> u64 {
        self.edges.load(Ordering::Relaxed)
    }

    fn set_count(&self) -> u64 {
        self.sets.load(Ordering::Relaxed)
    }

    fn numbering(&self) -> u64 {
        self.numbering
    }

    fn user_count(&self) -> u64 {
        self.ids.read().len() as u64
    }

    fn users_from(&self, number: u32, limit: usize) -> Vec<Id> {
        self.ids.read().iter().skip(number as usize).take(limit).map(|id| id.to_id()).collect()
    }

    fn users_by_id(&self, after: Option<Id>) -> UsersById {
        let after = after.map(K::from_id);
        let mut ids = self.copied_ids();
        ids.retain(|&id| after.is_none_or(|after| id > after));
        ids.sort_unstable();
        UsersById { len: ids.len(), get: Box::new(move |at| ids[at].to_id()) }
    }

    fn memory(&self) -> u64 {
        let tables: usize = self.shards.iter().map(|shard| shard.0.read().memory()).sum();
        let numbers = self.edges.load(Ordering::Relaxed) * size_of::<u32>() as u64;
        (tables + self.ids.read().capacity() * size_of::<K>()) as u64 + numbers
    }

    fn set_follower_count(&self, of: Id, count: u32) {
        let id = K::from_id(of);
        self.intern(id);
        self.with_user(id, |user| user.followers = count);
    }

    fn replace_followees(&self, of: Id, followees: &[Id]) {
        let id = K::from_id(of);
        self.intern(id);
        let mut numbers: Vec<u32> = followees.iter().map(|&id| self.intern(K::from_id(id))).collect();
        numbers.sort_unstable();
        let (before, after) = self.with_user(id, |user| {
            let before = user.following.len() as u64;
            user.following = numbers.into_boxed_slice();
            (before, user.following.len() as u64)
        });
        self.edges.fetch_add(after, Ordering::Relaxed);
        self.edges.fetch_sub(before, Ordering::Relaxed);
    }

    fn save(&self, out: &mut ChecksumWriter) -> io::Result<SavedKind> {
        self.save_parts(out)
    }

    fn load(&mut self, saved: &SavedKind, source: &PartSource<'_>) -> io::Result<Vec<u32>> {
        self.load_parts(saved, source)
    }

    fn load_lists(&mut self, input: &mut ListSource<'_>) -> io::Result<()> {
        self.load_lists_from(input)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn edge(follower: u64, followee: u64) -> Edge {
        Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) }
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(steps in proptest::collection::vec((any::<bool>(), 0u64..12, 0u64..12), 0..400)) {
            let graph = KindGraph::<u64>::new();
            let mut model = BTreeSet::new();
            for (follow, a, b) in steps {
                if follow {
                    prop_assert_eq!(graph.insert(edge(a, b)), model.insert((a, b)));
                } else {
                    prop_assert_eq!(graph.remove(edge(a, b)), model.remove(&(a, b)));
                }
            }
            prop_assert_eq!(graph.edge_count(), model.len() as u64);
            let followers: BTreeSet<u64> = model.iter().map(|&(follower, _)| follower).collect();
            let followees: BTreeSet<u64> = model.iter().map(|&(_, followee)| followee).collect();
            prop_assert_eq!(graph.set_count(), (followers.len() + followees.len()) as u64);
            for a in 0..12 {
                let followees: Vec<Id> = (0..12).filter(|&b| model.contains(&(a, b))).map(Id::Integer).collect();
                let followers = (0..12).filter(|&b| model.contains(&(b, a))).count() as u64;
                prop_assert_eq!(graph.counts(Id::Integer(a)), Counts { following: followees.len() as u64, followers });
                prop_assert_eq!(graph.followees(Id::Integer(a)), followees);
                for b in 0..12 {
                    prop_assert_eq!(graph.contains(edge(a, b)), model.contains(&(a, b)));
                }
                for asked in [1, 3, 12] {
                    let edges: Vec<Edge> = (0..asked).map(|b| edge(a, b)).collect();
                    let expected: Vec<bool> = (0..asked).map(|b| model.contains(&(a, b))).collect();
                    let mut answers = Vec::new();
                    graph.contains_run(&edges, &mut answers);
                    prop_assert_eq!(answers, expected);
                }
            }
        }
    }

    /// With the seed that foldhash has for everybody, half of a product can be made 0, whatever else is secret.
    #[test]
    fn no_ids_are_known_to_collide() {
        let graph = KindGraph::<u128>::new();
        let ids = (0..1_000_u128).map(|low| 0xc0ac_29b7_c97c_50dd << 64 | low << 7);
        let hashes: std::collections::HashSet<u64> = ids.map(|id| graph.hash(id)).collect();
        assert_eq!(hashes.len(), 1_000);
    }

    #[test]
    fn extend_adds_to_what_is_there() {
        let graph = KindGraph::<u64>::new();
        graph.insert(edge(1, 5));
        graph.extend(Id::Integer(1), &[Id::Integer(9), Id::Integer(3)]);
        graph.extend(Id::Integer(1), &[Id::Integer(9)]);
        assert_eq!(graph.followees(Id::Integer(1)), [3, 5, 9].map(Id::Integer));
        assert_eq!(graph.counts(Id::Integer(9)).followers, 1);
        assert_eq!(graph.edge_count(), 3);
        assert_eq!(graph.set_count(), 4);
        graph.extend(Id::Integer(2), &[Id::Integer(9), Id::Integer(4)]);
        assert_eq!(graph.set_count(), 6);
        graph.replace_followees(Id::Integer(2), &[]);
        graph.set_follower_count(Id::Integer(4), 0);
        assert_eq!(graph.set_count(), 4);
    }

    #[test]
    fn checks_go_on_beside_a_writer() {
        let graph = KindGraph::<u64>::new();
        graph.insert(edge(1, 2));
        std::thread::scope(|scope| {
            let writer = scope
                .spawn(|| (0..20_000).for_each(|id| assert!(graph.insert(edge(id % 100 + 10, id + 1_000)))));
            while !writer.is_finished() {
                assert!(graph.contains(edge(1, 2)));
                assert!(!graph.contains(edge(2, 1)));
            }
        });
        assert_eq!(graph.edge_count(), 20_001);
    }
}
