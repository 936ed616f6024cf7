//! Edges, compared with the pairs a few rows at a time: all pairs, all rows of both lists, all users of the index.

use std::sync::Arc;

use kinfolk_core::graph::{EdgeList, Side};
use kinfolk_core::{EdgeKind, Id, Result};

use super::faults::{EdgeFault, FollowerCount};
use super::{Edges, Row, Tree};
use crate::lsm::{first_key, read_part};
use crate::projection::{Findings, Reconcile, difference};

/// Lists up to this long are counted when they are met, together with rows that are not on disk yet.
const COUNTED_AT_ONCE: u64 = 5_000;

/// Where it is in its round.
enum Stage {
    /// In a tree of rows, at a key.
    Rows(Tree, Vec<u8>),
    /// At a user of the index, by number.
    Users(EdgeKind, u32),
}

/// Goes through all edges.
pub(crate) struct EdgeReconcile {
    edges: Arc<Edges>,
    stage: Stage,
    /// The list whose rows are being counted.
    counting: Option<CountedList>,
}

/// A list, and how many of its rows were met so far.
struct CountedList {
    kind: EdgeKind,
    of: Id,
    rows: u64,
}

impl EdgeReconcile {
    /// Begins with the first pair.
    pub(crate) fn new(edges: &Arc<Edges>) -> Self {
        Self { edges: Arc::clone(edges), stage: Self::start(), counting: None }
    }

    fn start() -> Stage {
        Stage::Rows(Tree::Pairs, first_key())
    }

    fn suspect(&self, fault: EdgeFault, findings: &mut Findings) {
        findings.suspected.push(difference(&self.edges, fault));
    }

    fn suspect_count(&self, kind: EdgeKind, id: Id, findings: &mut Findings) {
        let count = FollowerCount { kind, id, counted: 0, is: 0 };
        findings.suspected.push(difference(&self.edges, count));
    }

    fn compare_rows(&mut self, tree: Tree, from: &[u8], findings: &mut Findings) -> Option<Stage> {
        let edges = Arc::clone(&self.edges);
        let mut part = read_part(edges.rows.tree(tree).inner(), from, findings.rows_max);
        let is_broken = findings.note_part(&mut part);
        for row in &part.rows {
            let compared = edges.rows.decode(tree, row).and_then(|row| Ok((row, faults(&edges, tree, row)?)));
            if let Some((row, faults)) = findings.readable(compared) {
                faults.into_iter().for_each(|fault| self.suspect(fault, findings));
                self.count(tree, row, findings);
            }
        }
        if is_broken {
            // Who knows how many rows were passed over.
            self.counting = None;
        }
        if let Some(next) = part.next {
            return Some(Stage::Rows(tree, next));
        }
        self.finish_count(tree, findings);
        Some(match tree {
            Tree::Pairs => Stage::Rows(Tree::Following, first_key()),
            Tree::Following => Stage::Rows(Tree::Followers, first_key()),
            Tree::Followers => Stage::Users(EdgeKind::ALL[0], 0),
        })
    }

    /// Finds users that only the index knows: no row leads to them.
    fn compare_users(&mut self, kind: EdgeKind, first: u32, findings: &mut Findings) -> Option<Stage> {
        let edges = Arc::clone(&self.edges);
        let users = edges.index.of(kind).users_from(first, findings.rows_max);
        for &of in &users {
            let counts = edges.index.of(kind).counts(of);
            for (side, count) in [(Side::Following, counts.following), (Side::Followers, counts.followers)] {
                let first = |side| edges.rows.list_rows(EdgeList { kind, side, of }, None).next().transpose();
                if count > 0 && findings.readable(first(side)) == Some(None) {
                    match side {
                        Side::Following => self.compare_followees(kind, of, findings),
                        Side::Followers => self.suspect_count(kind, of, findings),
                    }
                }
            }
        }
        let next_kind = EdgeKind::ALL.into_iter().find(|&other| other > kind);
        match next_kind {
            _ if users.len() == findings.rows_max => Some(Stage::Users(kind, first + users.len() as u32)),
            Some(next) => Some(Stage::Users(next, 0)),
            None => None,
        }
    }

    /// Counts the rows of each list, which come owner by owner.
    fn count(&mut self, tree: Tree, Row { kind, edge, .. }: Row, findings: &mut Findings) {
        let owner = match tree {
            Tree::Pairs => return,
            Tree::Following => edge.follower,
            Tree::Followers => edge.followee,
        };
        match &mut self.counting {
            Some(list) if (list.kind, list.of) == (kind, owner) => list.rows += 1,
            _ => {
                self.finish_count(tree, findings);
                self.counting = Some(CountedList { kind, of: owner, rows: 1 });
            }
        }
    }

    /// A list whose rows on disk are not as many as the index has is looked at more closely, with those in memory.
    fn finish_count(&mut self, tree: Tree, findings: &mut Findings) {
        let Some(CountedList { kind, of, rows }) = self.counting.take() else { return };
        let counts = self.edges.index.of(kind).counts(of);
        if tree == Tree::Following && counts.following != rows {
            self.compare_followees(kind, of, findings);
        }
        if tree == Tree::Followers && counts.followers != rows {
            let list = self.edges.rows.list_rows(EdgeList { kind, side: Side::Followers, of }, None);
            let is_short = rows.max(counts.followers) <= COUNTED_AT_ONCE;
            let counted = is_short.then(|| list.into_iter().try_fold(0, |count, row| row.map(|_| count + 1)));
            let counted = counted.and_then(|counted| findings.readable(counted));
            if counted.is_none_or(|count| count != self.edges.index.of(kind).counts(of).followers) {
                self.suspect_count(kind, of, findings);
            }
        }
    }

    fn compare_followees(&self, kind: EdgeKind, follower: Id, findings: &mut Findings) {
        let current = EdgeFault::Followees { kind, follower }.current(&self.edges);
        if let Some(Some(fault)) = findings.readable(current) {
            self.suspect(fault, findings);
        }
    }
}

impl Reconcile for EdgeReconcile {
    fn step(&mut self, findings: &mut Findings) -> bool {
        let next = match std::mem::replace(&mut self.stage, Self::start()) {
            Stage::Rows(tree, from) => self.compare_rows(tree, &from, findings),
            Stage::Users(kind, number) => self.compare_users(kind, number, findings),
        };
        let is_complete = next.is_none();
        self.stage = next.unwrap_or_else(Self::start);
        is_complete
    }
}

/// Where projections say something else about a row than the truth: the row was found in `tree`.
fn faults(edges: &Edges, found_in: Tree, Row { kind, edge, since }: Row) -> Result<Vec<EdgeFault>> {
    let truth = edges.rows.since(kind, edge)?;
    if found_in == Tree::Pairs && truth != Some(since) {
        // It was removed, or made anew, since it was read.
        return Ok(Vec::new());
    }
    let expected = truth == Some(since);
    let mut faults = Vec::new();
    for tree in [Tree::Following, Tree::Followers] {
        if edges.rows.has(tree, Row { kind, edge, since })? != expected {
            faults.push(EdgeFault::Row { tree, kind, edge, since, missing: expected });
        }
    }
    if edges.index.of(kind).contains(edge) != truth.is_some() {
        faults.push(EdgeFault::Followees { kind, follower: edge.follower });
    }
    Ok(faults)
}
