//! The walk of two steps: the followees of a user's followees, counted, weighed and ranked.
//!
//! Lists are copied first, so that no lock is held while they are counted. Counting goes through all lists together,
//! one block of numbers after another: the counts of a block fit the processor's cache, however many users there
//! are. Where only the most recent followees count, they come from the rows, which know when; the lists here don't.

use std::ops::Range;
use std::sync::Arc;

use kinfolk_core::suggestions::{RankKey, Ranking, Score, Suggestion, WalkBounds, jaccard, weight};
use kinfolk_core::{Id, Result};

use super::graph::KindGraph;
use crate::disk::id_encoding::IdEncoding;
use crate::edges::require_wanted;

/// How many numbers are counted at a time.
const BLOCK: usize = 1 << 14;
/// How many numbers are copied at a time. A walk of more paths copies its lists in several parts.
const COPIED_MAX: usize = 8 << 20;
/// Candidates that can't be among the best are dropped when there are so many times more than are wanted.
const SLACK: usize = 4;

/// What a walk is given.
pub(crate) struct Walk<'a> {
    /// How far it goes, and what it keeps.
    pub bounds: WalkBounds,
    /// Dismissed candidates, which are not suggested; neither are the user and its followees.
    pub dismissed: &'a [Id],
    /// The most recent followees of a user, as many as the bounds say, as ascending numbers.
    pub newest: &'a dyn Fn(Id) -> Result<Arc<[u32]>>,
    /// Whether nobody waits for the result any more.
    pub is_given_up: &'a dyn Fn() -> bool,
}

/// Somebody in between.
struct Between<K> {
    id: K,
    weight: Score,
    /// To how many candidates it leads.
    leads_to: usize,
    /// Where the copy of its list is, as far as it is not counted yet.
    list: Range<usize>,
}

/// The followees through which a candidate was met first, by their places. The last place takes all later ones.
type Via = [u32; Suggestion::VIA_MAX + 1];

/// How often a number was met, what that weighs, and through which followees it was met first.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    score: Score,
    count: u32,
    via: Via,
}

/// A candidate with what was counted.
#[derive(Clone, Copy)]
struct Counted {
    number: u32,
    tally: Tally,
    /// The share of neighbours, where that is what candidates are ranked by.
    jaccard: f64,
}

/// A candidate with all that it is ranked by.
struct Candidate<K> {
    id: K,
    counted: Counted,
}

impl Counted {
    /// What it is ranked by, with an id.
    fn key<I>(&self, id: I) -> RankKey<I> {
        let Tally { count: mutual_count, score, .. } = self.tally;
        RankKey { mutual_count, score, jaccard: self.jaccard, id }
    }
}

impl<K: IdEncoding> Candidate<K> {
    fn suggestion(self, between: &[Between<K>]) -> Suggestion {
        let Tally { score, count, via } = self.counted.tally;
        let via = via.iter().take(Suggestion::VIA_MAX.min(count as usize));
        Suggestion {
            id: self.id.to_id(),
            mutual_count: count,
            score,
            jaccard: self.counted.jaccard,
            via: via.map(|&place| between[place as usize].id.to_id()).collect(),
        }
    }
}

/// What a walk works in; kept for the next one.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// The counts of one block. All zero between two blocks.
    tallies: Box<[Tally; BLOCK]>,
    /// Which of them are not zero; one more than there can be, since it is written to before it is known.
    met: Box<[u32; BLOCK + 1]>,
    /// Copies of lists, one after another.
    numbers: Vec<u32>,
    /// How many of them there may be at a time.
    copied_max: usize,
}

impl Default for Scratch {
    fn default() -> Self {
        let tallies = vec![Tally::default(); BLOCK].into_boxed_slice();
        let met = vec![0; BLOCK + 1].into_boxed_slice();
        Self {
            tallies: tallies.try_into().expect("it has the length of a block"),
            met: met.try_into().expect("it has one more than a block"),
            numbers: Vec::new(),
            copied_max: COPIED_MAX,
        }
    }
}

impl<K: IdEncoding> KindGraph<K> {
    /// The best candidates of a user.
    pub(super) fn walk_from(&self, of: K, walk: &Walk<'_>, scratch: &mut Scratch) -> Result<Vec<Suggestion>> {
        let followed = self.followee_numbers_of(of);
        if followed.is_empty() || walk.bounds.results == 0 {
            return Ok(Vec::new());
        }
        let excluded = self.excluded(of, &followed, walk.dismissed);
        let (mut between, are_copied) = self.between(of, &followed, walk, scratch)?;
        let share = |number: u32, count: u32| self.share(number, count, followed.len() as u64);
        let mut found = Found { bounds: walk.bounds, share: &share, candidates: Vec::new(), count_min: 1 };
        if are_copied {
            scratch.count(&mut between, &excluded, &mut found);
        } else {
            for part in self.parts(&between, scratch.copied_max) {
                self.copy_part(&mut between, &part, walk, &mut scratch.numbers)?;
                scratch.count(&mut between, &excluded, &mut found);
            }
        }
        // One with very many paths must not keep its memory for good.
        scratch.numbers.shrink_to(scratch.copied_max);
        let best = self.best(found);
        Ok(best.into_iter().map(|candidate| candidate.suggestion(&between)).collect())
    }

    /// Users that are never suggested, ascending.
    fn excluded(&self, of: K, followed: &[u32], dismissed: &[Id]) -> Vec<u32> {
        let others = dismissed.iter().map(|&id| K::from_id(id)).chain([of]);
        let mut excluded: Vec<u32> = others.filter_map(|id| self.number(id)).collect();
        excluded.extend_from_slice(followed);
        excluded.sort_unstable();
        excluded
    }

    /// Those in between, in the order in which a suggestion names them, with copies of their lists unless these are too
    /// much at once; returns whether they are not.
    fn between(
        &self,
        of: K,
        followed: &[u32],
        walk: &Walk<'_>,
        Scratch { numbers, copied_max, .. }: &mut Scratch,
    ) -> Result<(Vec<Between<K>>, bool)> {
        let newest = if followed.len() > walk.most() { Some((walk.newest)(of.to_id())?) } else { None };
        let mut between = Vec::with_capacity(newest.as_deref().unwrap_or(followed).len());
        let ids = self.ids_of(newest.as_deref().unwrap_or(followed));
        between.extend(ids.into_iter().map(|id| Between {
            id,
            weight: Score::default(),
            leads_to: 0,
            list: 0..0,
        }));
        numbers.clear();
        let mut are_copied = true;
        for one in &mut between {
            require_wanted(walk.is_given_up)?;
            self.with_list(one.id, walk, |edges, list| {
                one.weight = weight(edges);
                one.leads_to = list.len();
                are_copied &= numbers.len() + list.len() <= *copied_max;
                if are_copied {
                    one.list = append(numbers, list);
                }
            })?;
        }
        between.sort_unstable_by(|one, other| other.weight.cmp(&one.weight).then(one.id.cmp(&other.id)));
        Ok((between, are_copied))
    }

    /// Shows how many edges one in between has on both sides, and its followees within the bounds, ascending.
    fn with_list(&self, id: K, walk: &Walk<'_>, show: impl FnOnce(u64, &[u32])) -> Result<()> {
        let (shard, hash) = self.locate(id);
        let table = shard.read();
        let Some(user) = table.find(id, hash) else { return Ok(()) };
        let edges = user.following.len() as u64 + u64::from(user.followers);
        if user.following.len() > walk.most() {
            drop(table);
            show(edges, &(walk.newest)(id.to_id())?);
        } else {
            show(edges, &user.following);
        }
        Ok(())
    }

    /// Parts of all numbers, so that copies of the lists within one stay within bounds, roughly.
    fn parts(&self, between: &[Between<K>], copied_max: usize) -> Vec<Range<u32>> {
        let paths: usize = between.iter().map(|one| one.leads_to).sum();
        let count = paths.div_ceil(copied_max).clamp(1, BLOCK) as u32;
        let width = (self.ids.read().len() as u32 / count).max(1);
        let end = |part: u32| if part + 1 == count { u32::MAX } else { (part + 1) * width };
        (0..count).map(|part| part * width..end(part)).collect()
    }

    /// Copies what is within a range of numbers from all lists.
    fn copy_part(
        &self,
        between: &mut [Between<K>],
        part: &Range<u32>,
        walk: &Walk<'_>,
        numbers: &mut Vec<u32>,
    ) -> Result<()> {
        numbers.clear();
        for one in between {
            require_wanted(walk.is_given_up)?;
            one.list = 0..0;
            self.with_list(one.id, walk, |_, list| {
                let start = list.partition_point(|&number| number < part.start);
                let end = list.partition_point(|&number| number < part.end);
                one.list = append(numbers, &list[start..end]);
            })?;
        }
        Ok(())
    }

    /// The share of neighbours that user and candidate have in common.
    fn share(&self, number: u32, count: u32, following: u64) -> f64 {
        let id = self.ids.read()[number as usize];
        let (shard, hash) = self.locate(id);
        let followers = shard.read().find(id, hash).map_or(0, |user| user.followers);
        jaccard(u64::from(count), following, u64::from(followers))
    }

    /// The best candidates, ranked.
    fn best(&self, mut found: Found<'_>) -> Vec<Candidate<K>> {
        found.drop_hopeless();
        let Found { bounds, share, candidates, .. } = found;
        let ids = self.ids_of(&candidates.iter().map(|candidate| candidate.number).collect::<Vec<_>>());
        let candidates = candidates.into_iter().zip(ids);
        let mut best: Vec<Candidate<K>> = candidates.map(|(counted, id)| Candidate { id, counted }).collect();
        let key = |of: &Candidate<K>| of.counted.key(of.id);
        let rank = |one: &_, other: &_| bounds.ranking.compare_keys(key(one), key(other));
        if best.len() > bounds.results {
            best.select_nth_unstable_by(bounds.results - 1, rank);
            best.truncate(bounds.results);
        }
        best.sort_unstable_by(rank);
        if bounds.ranking != Ranking::Jaccard {
            for Candidate { counted, .. } in &mut best {
                counted.jaccard = share(counted.number, counted.tally.count);
            }
        }
        best
    }
}

impl Walk<'_> {
    fn most(&self) -> usize {
        self.bounds.per_node.unwrap_or(usize::MAX)
    }
}

fn append(numbers: &mut Vec<u32>, list: &[u32]) -> Range<usize> {
    let start = numbers.len();
    numbers.extend_from_slice(list);
    start..numbers.len()
}

/// The candidates so far that may be among the best.
struct Found<'a> {
    bounds: WalkBounds,
    /// The share of neighbours of a candidate that was met so often.
    share: &'a dyn Fn(u32, u32) -> f64,
    candidates: Vec<Counted>,
    /// Those that were met less often than this can't be.
    count_min: u32,
}

impl Found<'_> {
    #[inline]
    fn push(&mut self, number: u32, tally: Tally) {
        if tally.count >= self.count_min {
            let is_shown = self.bounds.ranking == Ranking::Jaccard;
            let jaccard = if is_shown { (self.share)(number, tally.count) } else { 0.0 };
            self.candidates.push(Counted { number, tally, jaccard });
        }
    }

    fn drop_hopeless_if_many(&mut self) {
        if self.candidates.len() > self.bounds.results.saturating_mul(SLACK) {
            self.drop_hopeless();
        }
    }

    /// Drops candidates that can't be among the best. Those that rank equal to the last of the best up to the id stay.
    fn drop_hopeless(&mut self) {
        let Self { bounds, candidates, count_min, .. } = self;
        if candidates.len() <= bounds.results {
            return;
        }
        if bounds.ranking == Ranking::Count {
            *count_min = count_of_last(candidates, bounds.results);
            candidates.retain(|candidate| candidate.tally.count >= *count_min);
        }
        let rank = |one: &Counted, other: &Counted| bounds.ranking.compare_keys(one.key(0), other.key(0));
        let last = *candidates.select_nth_unstable_by(bounds.results - 1, rank).1;
        candidates.retain(|candidate| rank(candidate, &last).is_le());
    }
}

/// How often the last of the `most` that were met most often was met, or less where that is often. There are more than
/// `most` candidates. Counting them is much faster than sorting.
fn count_of_last(candidates: &[Counted], most: usize) -> u32 {
    const OFTEN: usize = 256;
    let mut frequencies = [0usize; OFTEN];
    for candidate in candidates {
        frequencies[(candidate.tally.count as usize).min(OFTEN - 1)] += 1;
    }
    let mut better = 0;
    let is_last = |&count: &usize| {
        better += frequencies[count];
        better >= most
    };
    (0..OFTEN).rev().find(is_last).unwrap_or(0) as u32
}

impl Scratch {
    /// Counts all numbers in the lists, block by block.
    fn count<K>(&mut self, between: &mut [Between<K>], mut excluded: &[u32], found: &mut Found<'_>) {
        while let Some(block) = self.next_block(between) {
            let met = self.count_block(between, block);
            excluded = self.strike_out(excluded, block);
            for &place in &self.met[..met] {
                found.push(block + place, std::mem::take(&mut self.tallies[place as usize % BLOCK]));
            }
            found.drop_hopeless_if_many();
        }
    }

    /// The first number of the first block that is not counted yet.
    fn next_block<K>(&self, between: &[Between<K>]) -> Option<u32> {
        let first = |one: &Between<K>| self.numbers[one.list.clone()].first().copied();
        between.iter().filter_map(first).min().map(|first| first - first % BLOCK as u32)
    }

    /// Counts the numbers of a block; returns how many different ones there were.
    fn count_block<K>(&mut self, between: &mut [Between<K>], block: u32) -> usize {
        let mut met = 0;
        for (place, one) in (0..).zip(between) {
            let rest = &self.numbers[one.list.clone()];
            let end = rest.partition_point(|&number| number - block < BLOCK as u32);
            one.list.start += end;
            for &number in &rest[..end] {
                let within = (number - block) as usize % BLOCK;
                let tally = &mut self.tallies[within];
                // Written every time and kept the first times: branches would often be guessed wrongly.
                self.met[met] = within as u32;
                met += usize::from(tally.count == 0);
                tally.via[Suggestion::VIA_MAX.min(tally.count as usize)] = place;
                tally.count += 1;
                tally.score += one.weight;
            }
        }
        met
    }

    /// Takes those of the block out who are excluded; returns the excluded ones after it.
    fn strike_out<'a>(&mut self, excluded: &'a [u32], block: u32) -> &'a [u32] {
        let excluded = &excluded[excluded.partition_point(|&number| number < block)..];
        let end = excluded.partition_point(|&number| number - block < BLOCK as u32);
        for &number in &excluded[..end] {
            self.tallies[(number - block) as usize % BLOCK].count = 0;
        }
        &excluded[end..]
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::graph::Edge;
    use proptest::prelude::*;

    use super::super::KindIndex;
    use super::*;

    fn walk(graph: &KindGraph<u64>, ranking: Ranking, copied_max: usize) -> Vec<Vec<Suggestion>> {
        let bounds = WalkBounds { per_node: None, results: 4, ranking };
        let newest = |_| Ok(Arc::default());
        let walk = Walk { bounds, dismissed: &[Id::Integer(2)], newest: &newest, is_given_up: &|| false };
        let mut scratch = Scratch { copied_max, ..Scratch::default() };
        (0..30).map(|of| graph.walk(Id::Integer(of), &walk, &mut scratch).unwrap()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn lists_may_be_copied_in_parts(edges in proptest::collection::vec((0u64..30, 0u64..30), 0..400)) {
            let graph = KindGraph::<u64>::new();
            for (follower, followee) in edges.into_iter().filter(|(one, other)| one != other) {
                graph.insert(Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) });
            }
            for ranking in Ranking::ALL {
                let whole = walk(&graph, ranking, COPIED_MAX);
                for copied_max in [1, 7, 50] {
                    prop_assert_eq!(&walk(&graph, ranking, copied_max), &whole);
                }
            }
        }
    }

    #[test]
    fn far_blocks_are_counted_too() {
        let graph = KindGraph::<u64>::new();
        let edge =
            |follower, followee| Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) };
        // Gives the candidates numbers in several blocks.
        let far = 3 * BLOCK as u64;
        for user in 0..far {
            graph.set_follower_count(Id::Integer(user), 0);
        }
        for candidate in [5, BLOCK as u64 + 7, far - 1] {
            graph.insert(edge(2, candidate));
        }
        graph.insert(edge(1, 2));
        let bounds = WalkBounds { per_node: None, results: 9, ranking: Ranking::Count };
        let newest = |_| Ok(Arc::default());
        let walk = Walk { bounds, dismissed: &[], newest: &newest, is_given_up: &|| false };
        let found = graph.walk(Id::Integer(1), &walk, &mut Scratch::default()).unwrap();
        let ids: Vec<Id> = found.iter().map(|one| one.id).collect();
        assert_eq!(ids, [5, BLOCK as u64 + 7, far - 1].map(Id::Integer));
    }
}
