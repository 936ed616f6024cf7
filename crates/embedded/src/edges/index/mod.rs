//! The check index: who follows whom, in memory, compact enough for hundreds of millions of edges.
//!
//! A projection of the log like any other: it can be dropped and rebuilt from the rows. It answers checks and
//! counts without touching a disk, and shows the writer what would change.

mod graph;
mod overlap;
mod snapshot;
mod table;
mod walk;

use kinfolk_core::graph::{Counts, Edge};
use kinfolk_core::suggestions::Suggestion;
use kinfolk_core::{EdgeKind, Id, IdKind, Result};

use graph::KindGraph;
pub use overlap::retain_common;
pub use snapshot::{is_saved, load, save};
pub use walk::{Scratch, Walk};

/// The edges of all kinds.
pub struct Index {
    ids: IdKind,
    kinds: Vec<Box<dyn AnyGraph>>,
}

/// Users in the order of their ids, as compact as the ids are.
pub struct UsersById {
    len: usize,
    get: Box<dyn Fn(usize) -> Id + Send + Sync>,
}

impl UsersById {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The user at a place below [`UsersById::len`].
    pub fn get(&self, place: usize) -> Id {
        (self.get)(place)
    }
}

/// The edges of one kind, with the type of id hidden.
trait AnyGraph: Send + Sync {
    fn contains(&self, edge: Edge) -> bool;
    fn contains_all(&self, edges: &[Edge], answers: &mut Vec<bool>);
    fn examine(&self, edge: Edge) -> (bool, u64);
    fn insert(&self, edge: Edge) -> bool;
    fn remove(&self, edge: Edge) -> bool;
    fn extend(&self, follower: Id, followees: &[Id]);
    fn counts(&self, of: Id) -> Counts;
    fn followees(&self, of: Id) -> Vec<Id>;
    fn followee_numbers(&self, of: Id) -> Vec<u32>;
    fn number(&self, of: Id) -> Option<u32>;
    fn numbers(&self, ids: &[Id]) -> Vec<u32>;
    fn retain_followers(&self, numbers: &mut Vec<u32>, of: Id);
    fn page(&self, numbers: &[u32], after: Option<Id>, limit: usize) -> Vec<Id>;
    fn walk(&self, of: Id, walk: &Walk<'_>, scratch: &mut Scratch) -> Result<Vec<Suggestion>>;
    fn edge_count(&self) -> u64;
    fn user_count(&self) -> u64;
    fn users_from(&self, number: u32, limit: usize) -> Vec<Id>;
    fn users_by_id(&self, after: Option<Id>) -> UsersById;
    fn memory(&self) -> u64;
    fn set_follower_count(&self, of: Id, count: u32);
    fn replace_followees(&self, of: Id, followees: &[Id]);
    fn save(&self, out: &mut snapshot::Sink<'_>) -> std::io::Result<()>;
    fn load(&mut self, input: &mut snapshot::Source<'_>) -> std::io::Result<()>;
}

impl Index {
    /// An empty index.
    pub fn new(ids: IdKind) -> Self {
        let empty = |_| -> Box<dyn AnyGraph> {
            match ids {
                IdKind::Integer => Box::new(KindGraph::<u64>::new()),
                IdKind::Uuid => Box::new(KindGraph::<u128>::new()),
            }
        };
        Self { ids, kinds: EdgeKind::ALL.map(empty).into() }
    }

    fn kind(&self, kind: EdgeKind) -> &dyn AnyGraph {
        &*self.kinds[usize::from(kind.number()) - 1]
    }

    /// Whether an edge exists.
    pub fn contains(&self, kind: EdgeKind, edge: Edge) -> bool {
        self.kind(kind).contains(edge)
    }

    /// For each edge, whether it exists. Edges of one follower that stand together are answered together.
    pub fn contains_all(&self, kind: EdgeKind, edges: &[Edge]) -> Vec<bool> {
        let mut answers = Vec::with_capacity(edges.len());
        for run in edges.chunk_by(|one, next| one.follower == next.follower) {
            self.kind(kind).contains_all(run, &mut answers);
        }
        answers
    }

    /// Whether an edge exists, and how many edges its follower has.
    pub fn examine(&self, kind: EdgeKind, edge: Edge) -> (bool, u64) {
        self.kind(kind).examine(edge)
    }

    /// Adds an edge; returns whether that changed anything. Both users' counts follow.
    pub fn insert(&self, kind: EdgeKind, edge: Edge) -> bool {
        self.kind(kind).insert(edge)
    }

    /// Removes an edge; returns whether that changed anything. Both users' counts follow.
    pub fn remove(&self, kind: EdgeKind, edge: Edge) -> bool {
        self.kind(kind).remove(edge)
    }

    /// Adds many edges of one follower at once; those that exist already stay as they are.
    pub fn extend(&self, kind: EdgeKind, follower: Id, followees: &[Id]) {
        self.kind(kind).extend(follower, followees);
    }

    /// How many edges a user has on each side.
    pub fn counts(&self, kind: EdgeKind, of: Id) -> Counts {
        self.kind(kind).counts(of)
    }

    /// The followees of a user, by id.
    pub fn followees(&self, kind: EdgeKind, of: Id) -> Vec<Id> {
        self.kind(kind).followees(of)
    }

    /// The numbers of a user's followees, ascending.
    pub fn followee_numbers(&self, kind: EdgeKind, of: Id) -> Vec<u32> {
        self.kind(kind).followee_numbers(of)
    }

    /// The number of a user, if it has one.
    pub fn number(&self, kind: EdgeKind, of: Id) -> Option<u32> {
        self.kind(kind).number(of)
    }

    /// The numbers of users, in the same order, without those that have none.
    pub fn numbers(&self, kind: EdgeKind, ids: &[Id]) -> Vec<u32> {
        self.kind(kind).numbers(ids)
    }

    /// Keeps the numbers of those who follow a user; ascending afterwards.
    pub fn retain_followers(&self, kind: EdgeKind, numbers: &mut Vec<u32>, of: Id) {
        self.kind(kind).retain_followers(numbers, of);
    }

    /// Up to `limit` of the users with these numbers by id, after one if it is given.
    pub fn page(&self, kind: EdgeKind, numbers: &[u32], after: Option<Id>, limit: usize) -> Vec<Id> {
        self.kind(kind).page(numbers, after, limit)
    }

    /// The best candidates of a user, by a walk of two steps.
    pub fn walk(
        &self,
        kind: EdgeKind,
        of: Id,
        walk: &Walk<'_>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Suggestion>> {
        self.kind(kind).walk(of, walk, scratch)
    }

    /// How many edges of a kind there are.
    pub fn edge_count(&self, kind: EdgeKind) -> u64 {
        self.kind(kind).edge_count()
    }

    /// How many users have, or had, an edge of a kind.
    pub fn user_count(&self, kind: EdgeKind) -> u64 {
        self.kind(kind).user_count()
    }

    /// Up to `limit` users by number, from one on.
    pub fn users_from(&self, kind: EdgeKind, number: u32, limit: usize) -> Vec<Id> {
        self.kind(kind).users_from(number, limit)
    }

    /// All users by id, after one if it is given, as of now.
    pub fn users_by_id(&self, kind: EdgeKind, after: Option<Id>) -> UsersById {
        self.kind(kind).users_by_id(after)
    }

    /// How many bytes all of it takes in memory, without what the allocator adds.
    pub fn memory(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.memory()).sum()
    }

    /// Sets a count that was found to differ from the truth.
    pub fn set_follower_count(&self, kind: EdgeKind, of: Id, count: u32) {
        self.kind(kind).set_follower_count(of, count);
    }

    /// Sets a list that was found to differ from the truth; follower counts are left to
    /// [`Index::set_follower_count`].
    pub fn replace_followees(&self, kind: EdgeKind, of: Id, followees: &[Id]) {
        self.kind(kind).replace_followees(of, followees);
    }
}
