//! Faults of overlaps: wrong members, wrong order, wrong counts. Right answers come from the [`Model`].

use std::collections::BTreeSet;

use kinfolk_core::changes::ChangeBody;
use kinfolk_core::graph::{Overlap, Side, UserSet};
use kinfolk_core::{EdgeKind, Error, Id, Result};

use crate::faults::{Fault, Planted};
use crate::model::Model;

impl Planted {
    pub(crate) fn overlap(
        &self,
        model: &Model,
        kind: EdgeKind,
        sets: &[UserSet],
        (after, limit): (Option<Id>, usize),
    ) -> Result<Overlap> {
        if self.fault == Fault::OverlapOfNothingFails && sets.is_empty() {
            return Err(Error::Storage { detail: "no sets".to_owned() });
        }
        let all = self.members(model, kind, &self.distort_sets(model, kind, sets));
        let rest = self.after(&all, after);
        let ids: Vec<Id> = rest.iter().copied().take(limit).collect();
        let count = match self.fault {
            Fault::OverlapCountsPage => ids.len(),
            Fault::OverlapCountsRest => rest.len(),
            _ => all.len(),
        };
        Ok(Overlap { count: count as u64, ids })
    }

    fn distort_sets(&self, model: &Model, kind: EdgeKind, sets: &[UserSet]) -> Vec<UserSet> {
        let mut sets = sets.to_vec();
        match self.fault {
            Fault::OverlapUnknownIsEveryone => {
                sets.retain(|set| !model.whole_list(kind, set.side, set.of).is_empty());
            }
            Fault::OverlapOfFirstTwo => sets.truncate(2),
            Fault::OverlapIgnoresSide => sets.iter_mut().for_each(|set| set.side = Side::Following),
            _ => {}
        }
        sets
    }

    /// All members, in the order that the fault has.
    fn members(&self, model: &Model, kind: EdgeKind, sets: &[UserSet]) -> Vec<Id> {
        let of_one = |set: &UserSet| -> Vec<Id> {
            let mut entries = model.whole_list(kind, set.side, set.of);
            if self.fault == Fault::OverlapScanIsBounded {
                entries.truncate(1_000);
            }
            entries.iter().map(|entry| entry.id).collect()
        };
        let lists: Vec<Vec<Id>> = sets.iter().map(of_one).collect();
        let Some((first, others)) = lists.split_first() else { return Vec::new() };
        let others: Vec<BTreeSet<Id>> = others.iter().map(|list| list.iter().copied().collect()).collect();
        let mut all = first.clone();
        all.retain(|id| others.iter().all(|other| other.contains(id)));
        match self.fault {
            Fault::OverlapOfRepeatedSetIsEmpty if repeats(sets) => Vec::new(),
            Fault::OverlapByTime => all,
            Fault::OverlapInOrderOfArrival => {
                all.sort_by_key(|&id| arrival(model, id));
                all
            }
            _ => {
                all.sort_unstable();
                all
            }
        }
    }

    fn after<'a>(&self, all: &'a [Id], after: Option<Id>) -> &'a [Id] {
        let Some(after) = after else { return all };
        let begins = match self.fault {
            // These go by the place of the last one, as an offset does.
            Fault::OverlapCursorNeedsMember | Fault::OverlapByTime | Fault::OverlapInOrderOfArrival => {
                all.iter().position(|&id| id == after).map_or(all.len(), |place| place + 1)
            }
            Fault::OverlapCursorInclusive => all.partition_point(|&id| id < after),
            _ => all.partition_point(|&id| id <= after),
        };
        &all[begins..]
    }
}

fn repeats(sets: &[UserSet]) -> bool {
    sets.iter().enumerate().any(|(index, set)| sets[..index].contains(set))
}

/// When an id was first heard of: the number that a store may give it inside.
fn arrival(model: &Model, id: Id) -> Option<usize> {
    model.changes.iter().position(|change| match change.body {
        ChangeBody::Followed { edge, .. } => edge.follower == id || edge.followee == id,
        _ => false,
    })
}
