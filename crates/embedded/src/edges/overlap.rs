//! Those who are in all of some sets: from the set that is cheapest to go through, filtered by the others.

use kinfolk_core::graph::{EdgeList, OVERLAP_WALK_MAX, Overlap, Side, UserSet};
use kinfolk_core::{EdgeKind, Error, Id, Result};

use super::{Edges, require_wanted};
use crate::edges::index;

/// How much dearer a row is to read than a number of the index: a set of followers is walked only if it is so much smaller.
const ROW_COST: u64 = 2;
/// About so many numbers are compared, or so many users looked up, in a third of a millisecond.
const COMPARED_MAX: u64 = 100_000;
const LOOKED_UP_MAX: u64 = 1_000;

/// An overlap, prepared: which set is gone through, and what the others are.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    kind: EdgeKind,
    walked: UserSet,
    walked_len: u64,
    others: Vec<UserSet>,
    others_len: u64,
}

impl Plan {
    /// How to compare sets; `None` where the overlap is known to be empty.
    pub(crate) fn new(edges: &Edges, kind: EdgeKind, sets: &[UserSet]) -> Option<Self> {
        let mut sized: Vec<(UserSet, u64)> = Vec::with_capacity(sets.len());
        for &set in sets {
            if !sized.iter().any(|&(known, _)| known == set) {
                sized.push((set, edges.index.of(kind).counts(set.of).on(set.side)));
            }
        }
        let cost =
            |&(set, len): &(UserSet, u64)| if set.side == Side::Followers { len * ROW_COST } else { len };
        sized.sort_by_key(cost);
        let ((walked, walked_len), others) = sized.split_first().map(|(&first, others)| (first, others))?;
        if sized.iter().any(|&(_, len)| len == 0) {
            return None;
        }
        let compared = others.iter().filter(|(set, _)| set.side == Side::Following);
        let others_len = compared.map(|&(_, len)| len).sum();
        let others = others.iter().map(|&(set, _)| set).collect();
        Some(Self { kind, walked, walked_len, others, others_len })
    }

    /// Whether it takes so little that the caller's thread may find it.
    pub(crate) fn is_short(&self) -> bool {
        let looks_up =
            self.walked.side == Side::Followers || self.others.iter().any(|set| set.side == Side::Followers);
        self.walked_len + self.others_len <= COMPARED_MAX && (!looks_up || self.walked_len <= LOOKED_UP_MAX)
    }

    /// The overlap: how many there are, and up to `limit` by id, after one if it is given.
    pub(crate) fn run(
        &self,
        edges: &Edges,
        (after, limit): (Option<Id>, usize),
        is_given_up: &dyn Fn() -> bool,
    ) -> Result<Overlap> {
        let mut numbers = self.walk(edges, is_given_up)?;
        for &other in &self.others {
            require_wanted(is_given_up)?;
            match other.side {
                Side::Following => {
                    index::retain_common(&mut numbers, &edges.index.of(self.kind).followee_numbers(other.of));
                }
                Side::Followers => edges.index.of(self.kind).retain_followers(&mut numbers, other.of),
            }
        }
        let ids = edges.index.of(self.kind).page(&numbers, after, limit);
        Ok(Overlap { count: numbers.len() as u64, ids })
    }

    fn walk(&self, edges: &Edges, is_given_up: &dyn Fn() -> bool) -> Result<Vec<u32>> {
        const ROWS_IN_A_TURN: usize = 1_000;
        let UserSet { side, of } = self.walked;
        if side == Side::Following {
            return Ok(edges.index.of(self.kind).followee_numbers(of));
        }
        let given = usize::try_from(self.walked_len).unwrap_or(usize::MAX);
        if given > OVERLAP_WALK_MAX {
            return Err(Error::TooMany {
                what: "followers of the smallest set",
                count: given,
                max: OVERLAP_WALK_MAX,
            });
        }
        let mut rows = edges.rows.list_rows(EdgeList { kind: self.kind, side, of }, None);
        let mut numbers = Vec::with_capacity(given);
        loop {
            let ids: Vec<Id> =
                rows.by_ref().take(ROWS_IN_A_TURN).map(|row| Ok(row?.id)).collect::<Result<_>>()?;
            if ids.is_empty() {
                break;
            }
            require_wanted(is_given_up)?;
            // A follower that the index does not know yet is not visible yet.
            numbers.extend(edges.index.of(self.kind).numbers(&ids));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }
}
