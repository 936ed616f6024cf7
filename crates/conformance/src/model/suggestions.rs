//! Suggestions by brute force: what a store must find, and what it must keep of it. Like [`Model`], so plain that it
//! is right by reading it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::{Edge, Side};
use kinfolk_core::suggestions::{
    Score, StoredSuggestions, Suggestion, SuggestionRunReport, SuggestionRunRequest, WalkBounds, jaccard,
    weight,
};
use kinfolk_core::{Clock, EdgeKind, Id, Timestamp};

use crate::model::Model;

/// A run for everyone that was stopped is continued for so long.
const CONTINUED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

impl Model {
    /// The best candidates among the followees of the followees of `of`.
    pub fn candidates(&self, of: Id, bounds: WalkBounds) -> Vec<Suggestion> {
        let mut in_between: BTreeMap<Id, Vec<(Id, Score)>> = BTreeMap::new();
        for followee in self.most_recent(of, bounds.per_node) {
            let weight = self.weight_of(followee);
            for candidate in self.most_recent(followee, bounds.per_node) {
                in_between.entry(candidate).or_default().push((followee, weight));
            }
        }
        let mut found: Vec<Suggestion> = in_between
            .into_iter()
            .filter(|&(candidate, _)| self.may_be_suggested(of, candidate))
            .map(|(candidate, via)| self.suggestion(of, candidate, via))
            .collect();
        found.sort_by(|one, other| bounds.ranking.compare(one, other));
        found.truncate(bounds.results);
        found
    }

    /// What a way through this one says, with all edges that it has.
    pub(crate) fn weight_of(&self, id: Id) -> Score {
        let counts = self.counts(EdgeKind::Follow, id);
        weight(counts.following + counts.followers)
    }

    /// A user's most recent followees, or all of them.
    pub(crate) fn most_recent(&self, of: Id, at_most: Option<usize>) -> Vec<Id> {
        let list = self.whole_list(EdgeKind::Follow, Side::Following, of);
        list.into_iter().take(at_most.unwrap_or(usize::MAX)).map(|entry| entry.id).collect()
    }

    pub(crate) fn may_be_suggested(&self, of: Id, candidate: Id) -> bool {
        let edge = Edge { follower: of, followee: candidate };
        let known = self.contains(EdgeKind::Follow, edge) || self.contains(EdgeKind::Dismissal, edge);
        candidate != of && !known
    }

    /// A candidate with its scores; `in_between` are all who lead to it, with their weights.
    pub(crate) fn suggestion(&self, of: Id, id: Id, mut in_between: Vec<(Id, Score)>) -> Suggestion {
        let mutual_count = in_between.len() as u32;
        let score = in_between.iter().map(|&(_, weight)| weight).sum();
        let following = self.counts(EdgeKind::Follow, of).following;
        let followers = self.counts(EdgeKind::Follow, id).followers;
        let jaccard = jaccard(u64::from(mutual_count), following, followers);
        in_between.sort_by_key(|&(id, weight)| (Reverse(weight), id));
        let via = in_between.into_iter().map(|(id, _)| id).take(Suggestion::VIA_MAX).collect();
        Suggestion { id, mutual_count, score, jaccard, via }
    }

    /// Every user that has ever followed anyone.
    fn ever_followed(&self) -> BTreeSet<Id> {
        let follower = |change: &Change| match change.body {
            ChangeBody::Followed { kind: EdgeKind::Follow, edge } => Some(edge.follower),
            _ => None,
        };
        self.changes.iter().filter_map(follower).collect()
    }
}

/// What was found for everyone, and how far a run got that was stopped. Not part of the log: it survives a restart
/// by itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    pub stored: BTreeMap<Id, StoredSuggestions>,
    pub stopped: Option<Run>,
}

/// A run for everyone that is not complete.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub bounds: WalkBounds,
    pub began: Timestamp,
    pub done: BTreeSet<Id>,
}

impl Kept {
    /// What is stored for a user, if it is not older than `max_age`.
    pub(crate) fn stored(&self, of: Id, max_age: Duration, now: Timestamp) -> Option<StoredSuggestions> {
        self.stored.get(&of).filter(|stored| age(stored.computed_at, now) <= max_age).cloned()
    }

    /// Replaces what is stored for a user; nothing is stored where there is nothing to suggest.
    pub(crate) fn replace(&mut self, of: Id, computed_at: Timestamp, items: Vec<Suggestion>) {
        self.stored.remove(&of);
        if !items.is_empty() {
            self.stored.insert(of, StoredSuggestions { computed_at, items });
        }
    }

    /// The run to go on with, or a new one.
    fn begin(&mut self, request: SuggestionRunRequest, now: Timestamp) -> Run {
        let stopped = self.stopped.take().filter(|run| {
            !request.afresh && run.bounds == request.bounds && age(run.began, now) <= CONTINUED_FOR
        });
        stopped.unwrap_or(Run { bounds: request.bounds, began: now, done: BTreeSet::new() })
    }
}

/// How long ago a moment is; a clock that was turned back makes nothing older.
fn age(of: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(now.millis().saturating_sub(of.millis()))
}

/// A graph and its stored suggestions.
pub(crate) struct Everyone<'a> {
    pub model: &'a Mutex<Model>,
    pub kept: &'a Mutex<Kept>,
    pub clock: &'a dyn Clock,
}

impl Everyone<'_> {
    /// Walks for all users, one after the other, and records its progress after each. Nothing is locked while
    /// `watch` is asked, which may write.
    pub(crate) fn run(
        &self,
        request: SuggestionRunRequest,
        watch: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> SuggestionRunReport {
        let mut run = locked(self.kept).begin(request, self.clock.now());
        let everyone = locked(self.model).ever_followed();
        let mut report =
            SuggestionRunReport { resumed: run.done.len() as u64, ..SuggestionRunReport::default() };
        let left: Vec<Id> = everyone.difference(&run.done).copied().collect();
        for (of, done) in left.iter().copied().zip(report.resumed + 1..) {
            let items = locked(self.model).candidates(of, request.bounds);
            report.users += 1;
            report.suggested += u64::from(!items.is_empty());
            run.done.insert(of);
            let mut kept = locked(self.kept);
            kept.replace(of, self.clock.now(), items);
            kept.stopped = Some(run.clone());
            drop(kept);
            if !watch(done, everyone.len() as u64) && report.users < left.len() as u64 {
                return report;
            }
        }
        locked(self.kept).stopped = None;
        SuggestionRunReport { complete: true, ..report }
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no call panics inside the model")
}

#[cfg(test)]
mod tests {
    use kinfolk_core::graph::{EdgeAction, FollowerCommand, WriteRequest};
    use kinfolk_core::suggestions::Ranking;

    use super::*;
    use crate::clock::SimulatedClock;

    const BOUNDS: WalkBounds = WalkBounds { per_node: None, results: 10, ranking: Ranking::Count };

    /// 1 follows 2 and 3; both lead to 4, 2 to 5 and 3 to 6.
    fn model() -> Model {
        let mut model = Model::default();
        for (from, to) in [(1, 2), (1, 3), (2, 4), (3, 4), (2, 5), (3, 6), (3, 1), (2, 3)] {
            let commands = vec![FollowerCommand { action: EdgeAction::Follow, followee: Id::Integer(to) }];
            let follower = Id::Integer(from);
            let request = WriteRequest {
                kind: EdgeKind::Follow,
                follower,
                commands: commands.into(),
                following_limit: 9,
            };
            model.write(&request, Timestamp::from_millis(from * 10 + to)).unwrap();
        }
        model
    }

    #[test]
    fn candidates_of_a_small_graph() {
        let found = model().candidates(Id::Integer(1), BOUNDS);
        let ids: Vec<Id> = found.iter().map(|one| one.id).collect();
        assert_eq!(ids, [4, 5, 6].map(Id::Integer));
        let first = Suggestion {
            id: Id::Integer(4),
            mutual_count: 2,
            // 2 has 4 edges, 3 has 5.
            score: Score(weight(4).0 + weight(5).0),
            jaccard: 1.0,
            via: [2, 3].map(Id::Integer).to_vec(),
        };
        assert_eq!(found[0], first);
        let nearer = model().candidates(Id::Integer(1), WalkBounds { per_node: Some(1), ..BOUNDS });
        assert_eq!((nearer.len(), nearer[0].id), (1, Id::Integer(6)), "1 followed 3 last, and 3 followed 6");
    }

    #[test]
    fn a_stopped_run_goes_on() {
        let (model, kept, clock) = (Mutex::new(model()), Mutex::default(), SimulatedClock::default());
        let everyone = Everyone { model: &model, kept: &kept, clock: &clock };
        let request = SuggestionRunRequest { bounds: BOUNDS, threads: 1, afresh: false };
        let stopped = SuggestionRunReport { users: 1, suggested: 1, resumed: 0, complete: false };
        assert_eq!(everyone.run(request, &|_, _| false), stopped);
        let rest = SuggestionRunReport { users: 2, suggested: 2, resumed: 1, complete: true };
        assert_eq!(everyone.run(request, &|_, _| true), rest);
        let stored = kept.lock().unwrap().stored(Id::Integer(1), Duration::ZERO, clock.now()).unwrap();
        assert_eq!(stored.items.len(), 3);
        clock.advance(1);
        assert_eq!(kept.lock().unwrap().stored(Id::Integer(1), Duration::ZERO, clock.now()), None);
    }
}
