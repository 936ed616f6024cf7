//! The check index: who follows whom, in memory, compact enough for hundreds of millions of edges.
//!
//! A projection of the log like any other: it can be dropped and rebuilt from the rows. It serves checks and
//! counts without touching a disk, and shows the writer what would change.

mod graph;
mod look_up;
mod old_snapshot;
mod overlap;
mod parts;
mod snapshot;
mod table;
mod walk;

use kinfolk_core::graph::{Counts, Edge};
use kinfolk_core::suggestions::Suggestion;
use kinfolk_core::{EdgeKind, Id, IdKind, Result};

use crate::disk::checksummed::ChecksumWriter;
use graph::KindGraph;
use old_snapshot::ListSource;
pub(crate) use overlap::retain_common;
use parts::{PartSource, SavedKind};
pub(crate) use snapshot::{is_saved, load, save};
pub(crate) use walk::{Scratch, Walk};

/// The edges of all kinds.
pub(crate) struct Index {
    ids: IdKind,
    kinds: Vec<Box<dyn KindIndex>>,
}

/// Users in the order of their ids, as compact as the ids are.
pub(crate) struct UsersById {
    pub len: usize,
    pub get: Box<dyn Fn(usize) -> Id + Send + Sync>,
}

/// The edges of one kind, with the type of id hidden.
pub(crate) trait KindIndex: Send + Sync {
    /// Whether an edge exists.
    fn contains(&self, edge: Edge) -> bool;
    /// For each edge, whether it exists.
    fn contains_each(&self, edges: &[Edge], found: &mut Vec<bool>);
    /// For each edge of one follower, whether it exists.
    fn contains_run(&self, edges: &[Edge], found: &mut Vec<bool>);
    /// Whether an edge exists, and how many edges its follower has.
    fn examine(&self, edge: Edge) -> (bool, u64);
    /// Adds an edge; returns whether that changed anything. Both users' counts follow.
    fn insert(&self, edge: Edge) -> bool;
    /// Removes an edge; returns whether that changed anything. Both users' counts follow.
    fn remove(&self, edge: Edge) -> bool;
    /// Adds many edges of one follower at once; those that exist already stay as they are.
    fn extend(&self, follower: Id, followees: &[Id]);
    /// How many edges a user has on each side.
    fn counts(&self, of: Id) -> Counts;
    /// The followees of a user, by id.
    fn followees(&self, of: Id) -> Vec<Id>;
    /// The numbers of a user's followees, ascending.
    fn followee_numbers(&self, of: Id) -> Vec<u32>;
    /// The number of a user, if it has one.
    fn number(&self, of: Id) -> Option<u32>;
    /// The numbers of users, in the same order, without those that have none.
    fn numbers(&self, ids: &[Id]) -> Vec<u32>;
    /// Keeps the numbers of those who follow a user; ascending afterwards.
    fn retain_followers(&self, numbers: &mut Vec<u32>, of: Id);
    /// Up to `limit` of the users with these numbers by id, after one if it is given.
    fn page(&self, numbers: &[u32], after: Option<Id>, limit: usize) -> Vec<Id>;
    /// The best candidates of a user, by a walk of two steps.
    fn walk(&self, of: Id, walk: &Walk<'_>, scratch: &mut Scratch) -> Result<Vec<Suggestion>>;
    /// How many edges of a kind there are.
    fn edge_count(&self) -> u64;
    /// How many users follow others, and how many are followed, together.
    fn set_count(&self) -> u64;
    /// Which numbering of users this is: another index may give them other numbers.
    fn numbering(&self) -> u64;
    /// How many users have, or had, an edge of a kind.
    fn user_count(&self) -> u64;
    /// Up to `limit` users by number, from one on.
    fn users_from(&self, number: u32, limit: usize) -> Vec<Id>;
    /// All users by id, after one if it is given, as of now.
    fn users_by_id(&self, after: Option<Id>) -> UsersById;
    /// How many bytes of memory they take.
    fn memory(&self) -> u64;
    /// Sets a count that was found to differ from the truth.
    fn set_follower_count(&self, of: Id, count: u32);
    /// Sets a list that was found to differ from the truth; follower counts are left to
    /// [`Index::set_follower_count`].
    fn replace_followees(&self, of: Id, followees: &[Id]);
    /// Writes them into a snapshot; returns what a start must know to read them.
    fn save(&self, out: &mut ChecksumWriter) -> std::io::Result<SavedKind>;
    /// Reads them from a snapshot; returns the checksum of each part.
    fn load(&mut self, saved: &SavedKind, source: &PartSource<'_>) -> std::io::Result<Vec<u32>>;
    /// Reads them from a snapshot of an earlier version.
    fn load_lists(&mut self, input: &mut ListSource<'_>) -> std::io::Result<()>;
}

impl Index {
    /// An empty index.
    pub(crate) fn new(ids: IdKind) -> Self {
        let empty = |_| -> Box<dyn KindIndex> {
            match ids {
                IdKind::Integer => Box::new(KindGraph::<u64>::new()),
                IdKind::Uuid => Box::new(KindGraph::<u128>::new()),
            }
        };
        Self { ids, kinds: EdgeKind::ALL.map(empty).into() }
    }

    /// The edges of one kind.
    #[inline]
    pub(crate) fn of(&self, kind: EdgeKind) -> &dyn KindIndex {
        &*self.kinds[usize::from(kind.number()) - 1]
    }

    /// For each edge, whether it exists.
    pub(crate) fn contains_all(&self, kind: EdgeKind, edges: &[Edge]) -> Vec<bool> {
        /// From so many edges of one follower on, its list is looked at once for all of them.
        const RUN_MIN: usize = 8;
        let graph = self.of(kind);
        let mut found = Vec::with_capacity(edges.len());
        let mut at = 0;
        for run in edges.chunk_by(|one, next| one.follower == next.follower) {
            at += run.len();
            if run.len() >= RUN_MIN {
                graph.contains_each(&edges[found.len()..at - run.len()], &mut found);
                graph.contains_run(run, &mut found);
            }
        }
        graph.contains_each(&edges[found.len()..], &mut found);
        found
    }

    /// How many bytes all of it takes in memory, without what the allocator adds.
    pub(crate) fn memory(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.memory()).sum()
    }
}
