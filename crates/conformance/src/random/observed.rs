//! A checker of lists and counts that were read while others wrote, by the log that came of it.
//!
//! What a read shows of a shard is the shard at one moment, not before what its reader had seen. A list that is walked in pages, or
//! that has edges of several shards, may show each edge at a moment of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::Side;
use kinfolk_core::{EdgeKind, Frontier, Id, Position, Sequence, Shard};

use crate::model::suggestions::locked;
use crate::random::compare::Verdict;

/// What a read showed of one side of a user's edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    List { side: Side, ids: BTreeSet<Id> },
    Count { side: Side, count: u64 },
}

/// What some reads of a user's edges showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observation {
    /// What the reader had seen when they began.
    pub seen: Frontier,
    pub shown: Vec<Shown>,
}

/// What several reads showed, as they did.
#[derive(Default)]
pub(crate) struct Observations(Mutex<BTreeMap<(EdgeKind, Id), Vec<Observation>>>);

impl Observations {
    /// Keeps what was shown of a user's edges of one kind, unless it says nothing new.
    pub(crate) fn record(&self, of: (EdgeKind, Id), observation: Observation) {
        let mut observed = locked(&self.0);
        let known = observed.entry(of).or_default();
        // A reader alternates between two frontiers.
        if !known.iter().rev().take(2).any(|one| *one == observation) {
            known.push(observation);
        }
    }

    /// Whether the log explains everything that was shown.
    pub(crate) fn check(&self, log: &[Change]) -> Verdict {
        for (&(kind, of), observations) in &*locked(&self.0) {
            let sides = [Side::Following, Side::Followers].map(|side| History::new(log, kind, side, of));
            for Observation { seen, shown } in observations {
                for shown in shown {
                    let (side, is_explained) = match shown {
                        Shown::List { side, ids } => (*side, history(&sides, *side).shows(ids, seen)),
                        Shown::Count { side, count } => (*side, history(&sides, *side).counts(*count, seen)),
                    };
                    if !is_explained {
                        let edges = history(&sides, side);
                        return Err(format!("{kind:?} of {of}: {shown:?} after {seen} is not in {edges:?}"));
                    }
                }
            }
        }
        Ok(())
    }
}

fn history(sides: &[History; 2], side: Side) -> &History {
    match side {
        Side::Following => &sides[0],
        Side::Followers => &sides[1],
    }
}

/// How one side of a user's edges changed on each shard: which one came, or went.
#[derive(Debug)]
struct History(BTreeMap<Shard, Vec<Step>>);

#[derive(Clone, Copy, Debug)]
struct Step {
    sequence: Sequence,
    other: Id,
    exists: bool,
}

impl History {
    fn new(log: &[Change], kind: EdgeKind, side: Side, of: Id) -> Self {
        let mut shards: BTreeMap<Shard, Vec<Step>> = BTreeMap::new();
        for &Change { position: Position { shard, sequence }, ref body, .. } in log {
            let (edge, exists) = match *body {
                ChangeBody::Followed { kind: of_kind, edge } if of_kind == kind => (edge, true),
                ChangeBody::Unfollowed { kind: of_kind, edge, .. } if of_kind == kind => (edge, false),
                _ => continue,
            };
            let (user, other) = match side {
                Side::Following => (edge.follower, edge.followee),
                Side::Followers => (edge.followee, edge.follower),
            };
            if user == of {
                shards.entry(shard).or_default().push(Step { sequence, other, exists });
            }
        }
        Self(shards)
    }

    /// The steps of a shard that a read certainly shows, and those that it may show.
    fn split<'a>(shard: Shard, steps: &'a [Step], seen: &Frontier) -> (&'a [Step], &'a [Step]) {
        let seen = seen.get(shard).unwrap_or_default();
        steps.split_at(steps.partition_point(|step| step.sequence <= seen))
    }

    /// Whether each edge was in, or was not in, the list at some moment.
    fn shows(&self, ids: &BTreeSet<Id>, seen: &Frontier) -> bool {
        let mut others: BTreeSet<Id> = BTreeSet::new();
        for (&shard, steps) in &self.0 {
            let (certain, possible) = Self::split(shard, steps, seen);
            for other in steps.iter().map(|step| step.other) {
                others.insert(other);
                let of_other = |step: &&Step| step.other == other;
                let at_first = certain.iter().rfind(of_other).is_some_and(|step| step.exists);
                let later = possible.iter().filter(of_other).map(|step| step.exists);
                if ![at_first].into_iter().chain(later).any(|exists| exists == ids.contains(&other)) {
                    return false;
                }
            }
        }
        ids.is_subset(&others)
    }

    /// Whether there were so many at some moments of the shards. One step changes a count by one, so that every number
    /// between the lowest and the highest is possible.
    fn counts(&self, count: u64, seen: &Frontier) -> bool {
        let (mut lowest, mut highest) = (0, 0);
        for (&shard, steps) in &self.0 {
            let (certain, possible) = Self::split(shard, steps, seen);
            let change = |step: &Step| if step.exists { 1_i64 } else { -1 };
            let at_first: i64 = certain.iter().map(change).sum();
            let (mut now, mut least, mut most) = (at_first, at_first, at_first);
            for step in possible {
                now += change(step);
                least = least.min(now);
                most = most.max(now);
            }
            lowest += least;
            highest += most;
        }
        (lowest..=highest).contains(&(count as i64))
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::{IdKind, Timestamp};

    use super::*;
    use crate::users::{edge, user};

    const KIND: EdgeKind = EdgeKind::Follow;

    fn id(number: u64) -> Id {
        user(IdKind::Integer, number)
    }

    /// Users 1 and 2, each on a shard of its own, follow user 0; user 1 then unfollows it.
    fn log() -> Vec<Change> {
        let at = Timestamp::MIN;
        let edges = [1, 2].map(|number| edge(IdKind::Integer, number, 0));
        let position = |shard, sequence| Sequence(sequence).on(Shard(shard));
        let gone = ChangeBody::Unfollowed { kind: KIND, edge: edges[0], since: at };
        vec![
            Change {
                position: position(1, 1),
                at,
                body: ChangeBody::Followed { kind: KIND, edge: edges[0] },
            },
            Change { position: position(1, 2), at, body: gone },
            Change {
                position: position(2, 1),
                at,
                body: ChangeBody::Followed { kind: KIND, edge: edges[1] },
            },
        ]
    }

    fn check(shown: Shown, seen: &[(u16, u64)]) -> Verdict {
        let observations = Observations::default();
        let seen = seen.iter().map(|&(shard, sequence)| Sequence(sequence).on(Shard(shard))).collect();
        observations.record((KIND, id(0)), Observation { seen, shown: vec![shown] });
        observations.check(&log())
    }

    fn list(numbers: &[u64]) -> Shown {
        Shown::List { side: Side::Followers, ids: numbers.iter().map(|&number| id(number)).collect() }
    }

    fn count(count: u64) -> Shown {
        Shown::Count { side: Side::Followers, count }
    }

    #[test]
    fn one_who_has_seen_nothing_may_be_shown_any_moment() {
        for numbers in [&[][..], &[1], &[2], &[1, 2]] {
            check(list(numbers), &[]).expect("some moment of each shard");
            check(count(numbers.len() as u64), &[]).expect("some moment of each shard");
        }
        check(list(&[3]), &[]).expect_err("user 3 never followed");
        check(count(3), &[]).expect_err("never so many");
    }

    #[test]
    fn what_was_seen_is_shown() {
        check(list(&[2]), &[(2, 1)]).expect("user 2 was seen");
        check(list(&[1]), &[(2, 1)]).expect_err("user 2 was seen");
        check(count(0), &[(2, 1)]).expect_err("user 2 was seen");
        check(list(&[1, 2]), &[(1, 2)]).expect_err("the unfollow of user 1 was seen");
        check(count(2), &[(1, 2)]).expect_err("the unfollow of user 1 was seen");
        check(count(1), &[(1, 2)]).expect("user 2 may be shown");
    }
}
