//! Faults of suggestions: of the walk, of what is stored for everyone, and of the run that stores it.

pub(super) mod declared;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kinfolk_core::changes::ChangeBody;
use kinfolk_core::graph::{Edge, ListEntry, Side};
use kinfolk_core::suggestions::{
    Ranking, Score, StoredSuggestions, Suggestion, SuggestionRunReport, SuggestionRunRequest, WalkBounds,
    jaccard, weight,
};
use kinfolk_core::{EdgeKind, Id, Timestamp};

use super::{Fault, Planted};
use crate::faults::graph::reads::low_bits;
use crate::model::Model;
use crate::model::suggestions::{Everyone, Kept, locked};

/// Those who lead to a candidate, with their weights.
type InBetween = Vec<(Id, Score)>;

impl Planted {
    pub(crate) fn candidates(&self, model: &Model, of: Id, bounds: WalkBounds) -> Vec<Suggestion> {
        if self.fault == Fault::SuggestLagsBehind {
            let heard = model.changes.len().saturating_sub(1);
            return Model::replay(model.changes[..heard].iter().cloned()).candidates(of, bounds);
        }
        let recent = self.followees(model, of, bounds.per_node);
        let mut found: Vec<Suggestion> = self
            .walk(model, &recent, bounds)
            .into_iter()
            .map(|(id, in_between)| self.suggestion(model, of, id, &in_between))
            .collect();
        if self.fault == Fault::SuggestFiltersTheBest {
            found.sort_by(|one, other| bounds.ranking.compare(one, other));
            found.truncate(bounds.results);
        }
        found.retain(|one| self.may_be_suggested(model, (of, &recent), one.id));
        self.sort(&mut found, bounds.ranking);
        found.truncate(bounds.results);
        found
    }

    fn walk(&self, model: &Model, recent: &[Id], bounds: WalkBounds) -> BTreeMap<Id, InBetween> {
        let second_bound =
            if self.fault == Fault::SuggestBoundsFirstStepOnly { None } else { bounds.per_node };
        let mut found: BTreeMap<Id, InBetween> = BTreeMap::new();
        for &followee in recent {
            let weight = self.weight_of(model, followee, bounds.per_node);
            for mut id in self.followees(model, followee, second_bound) {
                if self.fault == Fault::SuggestCountsByLowBits {
                    id = found.keys().copied().find(|&seen| low_bits(seen) == low_bits(id)).unwrap_or(id);
                }
                found.entry(id).or_default().push((followee, weight));
            }
        }
        found
    }

    fn followees(&self, model: &Model, of: Id, at_most: Option<usize>) -> Vec<Id> {
        let mut list = model.whole_list(EdgeKind::Follow, Side::Following, of);
        match self.fault {
            Fault::SuggestIgnoresRecency => list.sort_by_key(|entry| entry.id),
            Fault::SuggestForgetsRefollow => {
                for entry in &mut list {
                    entry.since = first_follow(model, Edge { follower: of, followee: entry.id });
                }
                list.sort();
            }
            Fault::SuggestMixesKinds => {
                let of_kind = |kind| model.whole_list(kind, Side::Following, of);
                let kinds = EdgeKind::ALL.into_iter().filter(|&kind| kind != EdgeKind::Dismissal);
                let all: BTreeSet<ListEntry> = kinds.flat_map(of_kind).collect();
                list = all.into_iter().collect();
            }
            _ => {}
        }
        list.into_iter().take(at_most.unwrap_or(usize::MAX)).map(|entry| entry.id).collect()
    }

    fn weight_of(&self, model: &Model, id: Id, bound: Option<usize>) -> Score {
        let counts = model.counts(EdgeKind::Follow, id);
        let bound = bound.map_or(u64::MAX, |bound| bound as u64);
        match self.fault {
            Fault::SuggestWeighsFollowersOnly => weight(counts.followers),
            Fault::SuggestWeighsWithinBounds => weight(counts.following.min(bound) + counts.followers),
            _ => model.weight_of(id),
        }
    }

    fn may_be_suggested(&self, model: &Model, (of, recent): (Id, &[Id]), id: Id) -> bool {
        let edge = Edge { follower: of, followee: id };
        let dismissed = model.contains(EdgeKind::Dismissal, edge);
        let followed = model.contains(EdgeKind::Follow, edge);
        match self.fault {
            Fault::SuggestsOneself => !followed && !dismissed,
            Fault::SuggestsDismissed => !followed && id != of,
            Fault::SuggestsFollowedLongAgo => !recent.contains(&id) && id != of && !dismissed,
            _ => model.may_be_suggested(of, id),
        }
    }

    fn suggestion(&self, model: &Model, of: Id, id: Id, in_between: &[(Id, Score)]) -> Suggestion {
        let mut one = model.suggestion(of, id, in_between.to_vec());
        let mut via: Vec<Id> = in_between.iter().map(|&(id, _)| id).collect();
        match self.fault {
            Fault::SuggestViaStrangers => {
                let followers = model.whole_list(EdgeKind::Follow, Side::Followers, id);
                via = followers.iter().map(|entry| entry.id).collect();
                via.sort_by_key(|&id| (Reverse(model.weight_of(id)), id));
                via.truncate(Suggestion::VIA_MAX);
                one.via = via;
            }
            Fault::SuggestViaById => {
                via.sort_unstable();
                via.truncate(Suggestion::VIA_MAX);
                one.via = via;
            }
            Fault::SuggestViaAll => {
                via.sort_by_key(|&id| (Reverse(model.weight_of(id)), id));
                one.via = via;
            }
            Fault::SuggestShareOfFollowees => {
                let following = |id| model.counts(EdgeKind::Follow, id).following;
                one.jaccard = jaccard(u64::from(one.mutual_count), following(of), following(id));
            }
            _ => {}
        }
        one
    }

    fn sort(&self, found: &mut [Suggestion], ranking: Ranking) {
        match self.fault {
            Fault::SuggestTiesById => found.sort_by_key(|one| (Reverse(one.mutual_count), one.id)),
            Fault::SuggestTiesFromHighIds => {
                found.sort_by_key(|one| Reverse((one.mutual_count, one.score, one.id)));
            }
            Fault::SuggestIgnoresRanking => {
                found.sort_by(|one, other| Ranking::Count.compare(one, other));
            }
            _ => found.sort_by(|one, other| ranking.compare(one, other)),
        }
    }

    pub(crate) fn stored(
        &self,
        kept: &Kept,
        of: Id,
        max_age: Duration,
        now: Timestamp,
    ) -> Option<StoredSuggestions> {
        let stored = match self.fault {
            Fault::StoredServedWhenStale => kept.stored(of, Duration::MAX, now),
            _ => kept.stored(of, max_age, now),
        };
        match self.fault {
            Fault::StoredForNobody => stored.or(Some(StoredSuggestions { computed_at: now, items: vec![] })),
            Fault::StoredOfFutureIsStale => stored.filter(|stored| stored.computed_at <= now),
            _ => stored,
        }
    }

    /// Stores what was computed elsewhere.
    pub(crate) fn store_suggestions(&self, kept: &mut Kept, computed: Vec<(Id, StoredSuggestions)>) {
        if self.fault == Fault::ComputedReplacesAll {
            kept.stored.clear();
        }
        for (of, mut found) in computed {
            match self.fault {
                Fault::ComputedIsAdded => {
                    let before = kept.stored.get(&of).map(|before| before.items.clone());
                    found.items.extend(before.unwrap_or_default());
                }
                Fault::ComputedIsNow => found.computed_at = found.computed_at.plus_millis(1_000),
                Fault::ComputedEmptyIsSkipped if found.items.is_empty() => continue,
                _ => {}
            }
            kept.replace(of, found.computed_at, found.items);
        }
    }

    /// A suggestion run with changed arguments or a corrupted result.
    pub(crate) fn everyone(
        &self,
        everyone: &Everyone<'_>,
        mut request: SuggestionRunRequest,
        watch: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> SuggestionRunReport {
        let before = locked(everyone.kept).clone();
        match self.fault {
            Fault::EveryoneForgetsStopped => request.afresh = true,
            Fault::EveryoneNeverAfresh => request.afresh = false,
            Fault::EveryoneIsBounded => _ = request.bounds.per_node.get_or_insert(500),
            _ => {}
        }
        if let Some(stopped) = &mut locked(everyone.kept).stopped {
            match self.fault {
                Fault::EveryoneMixesBounds => stopped.bounds = request.bounds,
                Fault::EveryoneGoesOnForever => stopped.began = everyone.clock.now(),
                _ => {}
            }
        }
        let ignored = |done, all| watch(done, all) || self.fault == Fault::EveryoneCannotBeStopped;
        let report = everyone.run(request, &ignored);
        let mut kept = locked(everyone.kept);
        match self.fault {
            Fault::StoredOutlivesItsReason => {
                for (of, stored) in before.stored {
                    kept.stored.entry(of).or_insert(stored);
                }
            }
            Fault::EveryoneMissesTheUnfollowed => {
                let model = locked(everyone.model);
                kept.stored.retain(|&of, _| model.counts(EdgeKind::Follow, of).followers > 0);
            }
            _ => {}
        }
        report
    }
}

/// When an edge was made for the first time, however often since.
fn first_follow(model: &Model, edge: Edge) -> Timestamp {
    let followed = ChangeBody::Followed { kind: EdgeKind::Follow, edge };
    let first = model.changes.iter().find(|change| change.body == followed);
    first.map_or(Timestamp::MIN, |change| change.at)
}
