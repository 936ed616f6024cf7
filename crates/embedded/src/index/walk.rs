//! The walk of two steps: whom a user's followees follow, counted, weighed and ranked.
//!
//! It reads one list at a time and holds no lock while it counts. Where only the most recent followees count, they come
//! from the rows, which know when; the lists here don't.

use kinfolk_core::suggest::{Ranking, Score, Suggestion, WalkBounds, jaccard, weight};
use kinfolk_core::{Error, Id, Result};

use super::graph::KindGraph;
use super::tally::{Tallied, Tally};
use crate::raw::RawId;

/// What a walk is given.
pub struct Walk<'a> {
    /// How far it goes, and what it keeps.
    pub bounds: WalkBounds,
    /// Whom not to suggest, beside the user and those whom it follows.
    pub dismissed: &'a [Id],
    /// The most recent followees of a user, as many as the bounds say, by number.
    pub newest: &'a dyn Fn(Id) -> Result<std::sync::Arc<[u32]>>,
    /// Whether nobody waits for the result any more.
    pub is_given_up: &'a dyn Fn() -> bool,
}

/// Somebody in between.
struct Between<K> {
    id: K,
    weight: Score,
}

/// A candidate with all that it is ranked by.
struct Candidate<K> {
    id: K,
    number: u32,
    count: u32,
    score: Score,
    jaccard: f64,
    via: Vec<Id>,
}

impl<K: RawId> Candidate<K> {
    fn key(&self) -> (u32, Score, f64, K) {
        (self.count, self.score, self.jaccard, self.id)
    }
}

/// What a walk works in; kept for the next one.
#[derive(Debug, Default)]
pub struct Scratch {
    tally: Tally,
    list: Vec<u32>,
}

impl<K: RawId> KindGraph<K> {
    /// The best candidates of a user.
    pub(super) fn walk_from(&self, of: K, walk: &Walk<'_>, scratch: &mut Scratch) -> Result<Vec<Suggestion>> {
        let followed = self.followee_numbers_of(of);
        if followed.is_empty() || walk.bounds.results == 0 {
            return Ok(Vec::new());
        }
        let mut between = self.tally_paths(of, &followed, walk, scratch)?;
        self.strike_out(of, &followed, walk.dismissed, &mut scratch.tally);
        let mut best = self.best(&scratch.tally, walk.bounds, followed.len() as u64);
        between.sort_unstable_by(|one, other| other.weight.cmp(&one.weight).then(one.id.cmp(&other.id)));
        self.name_between(&between, &mut best, walk, scratch)?;
        let suggestion = |candidate: Candidate<K>| Suggestion {
            id: candidate.id.to_id(),
            mutual_count: candidate.count,
            score: candidate.score,
            jaccard: candidate.jaccard,
            via: candidate.via,
        };
        Ok(best.into_iter().map(suggestion).collect())
    }

    /// Counts every path of two steps; returns those in between.
    fn tally_paths(
        &self,
        of: K,
        followed: &[u32],
        walk: &Walk<'_>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Between<K>>> {
        scratch.tally.clear();
        let is_bounded = walk.bounds.per_node.is_some_and(|most| followed.len() > most);
        let newest = if is_bounded { Some((walk.newest)(of.to_id())?) } else { None };
        let numbers = newest.as_deref().unwrap_or(followed);
        let mut between = Vec::with_capacity(numbers.len());
        for id in self.ids_of(numbers) {
            let edges = self.load_list(id, walk, &mut scratch.list)?;
            let weight = weight(edges);
            for &candidate in &scratch.list {
                scratch.tally.add(candidate, weight);
            }
            between.push(Between { id, weight });
        }
        Ok(between)
    }

    fn ids_of(&self, numbers: &[u32]) -> Vec<K> {
        let ids = self.ids.read();
        numbers.iter().map(|&number| ids[number as usize]).collect()
    }

    /// Copies the list of one in between, within the bounds; returns how many edges it has on both sides.
    fn load_list(&self, id: K, walk: &Walk<'_>, list: &mut Vec<u32>) -> Result<u64> {
        if (walk.is_given_up)() {
            return Err(Error::Closed);
        }
        list.clear();
        let (shard, hash) = self.locate(id);
        let table = shard.read();
        let Some(user) = table.find(id, hash) else { return Ok(0) };
        let edges = user.following.len() as u64 + u64::from(user.followers);
        if walk.bounds.per_node.is_some_and(|most| user.following.len() > most) {
            drop(table);
            list.extend_from_slice(&(walk.newest)(id.to_id())?);
        } else {
            list.extend_from_slice(&user.following);
        }
        Ok(edges)
    }

    /// Takes out whom the user must never see.
    fn strike_out(&self, of: K, followed: &[u32], dismissed: &[Id], tally: &mut Tally) {
        let others = dismissed.iter().map(|&id| K::from_id(id)).chain([of]);
        let others: Vec<u32> = others.filter_map(|id| self.number(id)).collect();
        for &number in followed.iter().chain(&others) {
            if let Some(entry) = tally.get_mut(number) {
                entry.count = 0;
            }
        }
    }

    /// The best candidates, ranked. What ranks equal up to the id is told apart only near the end of the ranking.
    fn best(&self, tally: &Tally, bounds: WalkBounds, following: u64) -> Vec<Candidate<K>> {
        let candidates = tally.entries().iter().filter(|entry| entry.count > 0);
        let mut found: Vec<Tallied> = candidates.copied().collect();
        if bounds.ranking != Ranking::Jaccard && found.len() > bounds.results {
            let rank = |one: &Tallied, other: &Tallied| {
                let key = |of: &Tallied| (of.count, of.score, 0.0, 0);
                bounds.ranking.compare_keys(key(one), key(other))
            };
            let (_, last, _) = found.select_nth_unstable_by(bounds.results - 1, rank);
            let last = *last;
            found.retain(|entry| rank(entry, &last).is_le());
        }
        let mut best: Vec<Candidate<K>> = Vec::with_capacity(found.len());
        let ids = self.ids.read();
        best.extend(found.iter().map(|entry| Candidate {
            id: ids[entry.number as usize],
            number: entry.number,
            count: entry.count,
            score: entry.score,
            jaccard: 0.0,
            via: Vec::new(),
        }));
        drop(ids);
        let share = |candidate: &mut Candidate<K>| {
            let (shard, hash) = self.locate(candidate.id);
            let followers = shard.read().find(candidate.id, hash).map_or(0, |user| user.followers);
            candidate.jaccard = jaccard(u64::from(candidate.count), following, u64::from(followers));
        };
        if bounds.ranking == Ranking::Jaccard {
            best.iter_mut().for_each(share);
        }
        let rank =
            |one: &Candidate<K>, other: &Candidate<K>| bounds.ranking.compare_keys(one.key(), other.key());
        if best.len() > bounds.results {
            best.select_nth_unstable_by(bounds.results - 1, rank);
            best.truncate(bounds.results);
        }
        best.sort_unstable_by(rank);
        if bounds.ranking != Ranking::Jaccard {
            best.iter_mut().for_each(share);
        }
        best
    }

    /// Says through whom each of the best is known, going once more through the lists until all are said.
    fn name_between(
        &self,
        between: &[Between<K>],
        best: &mut [Candidate<K>],
        walk: &Walk<'_>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut missing: usize = best.iter().map(|one| Suggestion::VIA_MAX.min(one.count as usize)).sum();
        // The places of the best, in the table that counted all candidates: it is not needed any more.
        let Scratch { tally, list } = scratch;
        tally.clear();
        for candidate in best.iter() {
            tally.add(candidate.number, Score::default());
        }
        for one in between {
            if missing == 0 {
                break;
            }
            self.load_list(one.id, walk, list)?;
            for &number in list.iter() {
                if let Some(place) = tally.place(number)
                    && let Some(candidate) = best.get_mut(place)
                    && candidate.via.len() < Suggestion::VIA_MAX
                {
                    debug_assert_eq!(candidate.number, number, "places are in the order of adding");
                    candidate.via.push(one.id.to_id());
                    missing = missing.saturating_sub(1);
                }
            }
        }
        Ok(())
    }
}
