//! Compares both lists, the index and the counts of one kind of edge with the pairs.
//!
//! Rows are compared by sums of hashes over buckets of users first; only rows of users in buckets that differ are looked up
//! one by one. So a pass reads each tree once, in order, whatever its size.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Id, Result, Timestamp};

use super::faults::{EdgeFault, FollowerCount};
use super::{Edges, Tree};
use crate::projection::{Suspects, difference};

/// How many buckets users are hashed into.
const BUCKETS: usize = 1 << 16;
/// How many users of the index are looked at together.
const USERS_TOGETHER: usize = 4_096;

/// Sums of row hashes per bucket of users.
struct Sums(Vec<u64>);

impl Sums {
    fn new() -> Self {
        Self(vec![0; BUCKETS])
    }

    fn add(&mut self, user: Id, edge: Edge, since: Timestamp) {
        let bucket = bucket(user);
        self.0[bucket] = self.0[bucket].wrapping_add(FixedState::default().hash_one((edge, since)) | 1);
    }

    /// The buckets that differ.
    fn differing(&self, other: &Self) -> Bits {
        let mut differing = Bits::new(BUCKETS);
        (0..BUCKETS).filter(|&at| self.0[at] != other.0[at]).for_each(|at| differing.set(at));
        differing
    }
}

fn bucket(user: Id) -> usize {
    FixedState::default().hash_one(user) as usize % BUCKETS
}

/// A bit for each of some numbers.
struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    fn new(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// Sets the bit of a number; one that has none is left out.
    fn set(&mut self, number: usize) {
        if number < self.len {
            self.words[number / 64] |= 1 << (number % 64);
        }
    }

    fn has(&self, number: usize) -> bool {
        self.words.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }
}

/// Compares all edges of a kind.
pub(crate) fn compare(edges: &Arc<Edges>, kind: EdgeKind, suspects: &mut Suspects<'_>) -> Result<()> {
    let users = edges.index.of(kind).user_count() as usize;
    Pass { edges, kind, suspects, follow: Bits::new(users), followed: Bits::new(users) }.run()
}

/// A pass over the edges of one kind.
struct Pass<'a, 'b> {
    edges: &'a Arc<Edges>,
    kind: EdgeKind,
    suspects: &'a mut Suspects<'b>,
    /// Users of the index, by number, who have been met as followers.
    follow: Bits,
    /// Users of the index, by number, who have been met as followees.
    followed: Bits,
}

impl Pass<'_, '_> {
    fn run(mut self) -> Result<()> {
        let rows = &self.edges.rows;
        let paused = rows.pause();
        let scan = |tree: Tree| rows.scan(tree, self.kind);
        let (pairs, following, followers) = (scan(Tree::Pairs), scan(Tree::Following), scan(Tree::Followers));
        drop(paused);

        let (mut truth_by_follower, mut truth_by_followee) = (Sums::new(), Sums::new());
        let mut edges = 0;
        let mut group: Option<(Id, Vec<Id>)> = None;
        for row in pairs {
            let (edge, since) = row?;
            edges += 1;
            self.suspects.step("comparing pairs", edges);
            truth_by_follower.add(edge.follower, edge, since);
            truth_by_followee.add(edge.followee, edge, since);
            match &mut group {
                Some((follower, followees)) if *follower == edge.follower => followees.push(edge.followee),
                _ => self.compare_followees(group.replace((edge.follower, vec![edge.followee])))?,
            }
        }
        self.compare_followees(group)?;

        let mut list_by_follower = Sums::new();
        for (number, row) in (1..).zip(following) {
            let (edge, since) = row?;
            self.suspects.step("comparing following", number);
            list_by_follower.add(edge.follower, edge, since);
        }
        let mut list_by_followee = Sums::new();
        let mut counted: Option<(Id, u64)> = None;
        for (number, row) in (1..).zip(followers) {
            let (edge, since) = row?;
            self.suspects.step("comparing followers", number);
            list_by_followee.add(edge.followee, edge, since);
            match &mut counted {
                Some((followee, count)) if *followee == edge.followee => *count += 1,
                _ => self.compare_count(counted.replace((edge.followee, 1)))?,
            }
        }
        self.compare_count(counted)?;

        self.compare_rows(Tree::Following, &truth_by_follower.differing(&list_by_follower))?;
        self.compare_rows(Tree::Followers, &truth_by_followee.differing(&list_by_followee))?;
        self.compare_users()?;
        self.suspects.report.edges += edges;
        self.suspects.report.users += self.edges.index.of(self.kind).user_count();
        Ok(())
    }

    fn suspect(&mut self, fault: EdgeFault) -> Result<()> {
        self.suspects.add(difference(self.edges, fault))
    }

    fn compare_followees(&mut self, group: Option<(Id, Vec<Id>)>) -> Result<()> {
        let Some((follower, followees)) = group else { return Ok(()) };
        let (index, kind) = (&self.edges.index, self.kind);
        if let Some(number) = index.of(kind).number(follower) {
            self.follow.set(number as usize);
        }
        if index.of(kind).followees(follower) == followees {
            return Ok(());
        }
        self.suspect(EdgeFault::Followees { kind, follower })
    }

    fn compare_count(&mut self, group: Option<(Id, u64)>) -> Result<()> {
        let Some((id, is)) = group else { return Ok(()) };
        let (index, kind) = (&self.edges.index, self.kind);
        if let Some(number) = index.of(kind).number(id) {
            self.followed.set(number as usize);
        }
        let counted = index.of(kind).counts(id).followers;
        if counted == is {
            return Ok(());
        }
        self.suspects.add(difference(self.edges, FollowerCount { kind, id, counted, is }))
    }

    /// Compares a list with the truth row by row, for the users in some buckets. Each row is looked up, so that nothing but the
    /// buckets is held, however many rows they have.
    fn compare_rows(&mut self, tree: Tree, buckets: &Bits) -> Result<()> {
        if buckets.is_empty() {
            return Ok(());
        }
        let (rows, kind) = (&self.edges.rows, self.kind);
        let owner = |edge: Edge| if tree == Tree::Following { edge.follower } else { edge.followee };
        for (from, missing) in [(Tree::Pairs, true), (tree, false)] {
            let in_question = |row: &Result<(Edge, Timestamp)>| {
                row.as_ref().map_or(true, |&(edge, _)| buckets.has(bucket(owner(edge))))
            };
            let paused = rows.pause();
            let scanned = rows.scan(from, kind);
            drop(paused);
            for (number, row) in (1..).zip(scanned.filter(in_question)) {
                self.suspects.step("comparing rows", number);
                let (edge, since) = row?;
                let fault = EdgeFault::Row { tree, kind, edge, since, missing };
                // What is missing is met among the pairs, what is too much in the list.
                if fault.current(self.edges)? == Some(fault) {
                    self.suspect(fault)?;
                }
            }
        }
        Ok(())
    }

    /// Finds users that only the index knows: the passes over rows can't meet them. Those that it knows since the pass began
    /// were not to be met.
    fn compare_users(&mut self) -> Result<()> {
        let (index, kind) = (&self.edges.index, self.kind);
        for first in (0..self.follow.len).step_by(USERS_TOGETHER) {
            let most = USERS_TOGETHER.min(self.follow.len - first);
            for (number, id) in (first..).zip(index.of(kind).users_from(first as u32, most)) {
                self.suspects.step("comparing users", number as u64 + 1);
                let counts = index.of(kind).counts(id);
                if counts.following > 0 && !self.follow.has(number) {
                    self.suspect(EdgeFault::Followees { kind, follower: id })?;
                }
                if counts.followers > 0 && !self.followed.has(number) {
                    let count = FollowerCount { kind, id, counted: counts.followers, is: 0 };
                    self.suspects.add(difference(self.edges, count))?;
                }
            }
        }
        Ok(())
    }
}
