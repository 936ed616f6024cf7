//! Overlaps and suggestions of a graph in memory, from their definitions alone: it shares no arithmetic and no order
//! with the code under test.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, HashMap, HashSet};

use kinfolk_core::Id;
use kinfolk_core::graph::{Side, UserSet};
use kinfolk_core::suggestions::{Ranking, Score, Suggestion};

/// A graph as its edges say it.
#[derive(Default)]
pub struct Brute {
    /// Whom each follows, the most recent first.
    pub following: HashMap<u64, Vec<u64>>,
    pub followers: HashMap<u64, Vec<u64>>,
    /// Who has dismissed whom.
    pub dismissed: HashSet<(u64, u64)>,
}

/// A candidate while it is counted.
#[derive(Default)]
struct Candidate {
    steps: u64,
    /// Who leads to it, with how many edges these have.
    in_between: Vec<(usize, u64)>,
}

impl Brute {
    /// A graph whose edges are all of one moment, so that the highest ids are the most recent.
    pub fn of_one_moment(edges: &[(u64, u64)]) -> Self {
        let mut brute = Self::default();
        for &(follower, followee) in edges {
            brute.following.entry(follower).or_default().push(followee);
            brute.followers.entry(followee).or_default().push(follower);
        }
        brute.following.values_mut().for_each(|list| list.sort_unstable_by(|a, b| b.cmp(a)));
        brute
    }

    pub fn follow(&mut self, follower: u64, followee: u64) {
        self.following.entry(follower).or_default().insert(0, followee);
        self.followers.entry(followee).or_default().push(follower);
    }

    pub fn unfollow(&mut self, follower: u64, followee: u64) {
        self.following.entry(follower).or_default().retain(|&id| id != followee);
        self.followers.entry(followee).or_default().retain(|&id| id != follower);
    }

    pub fn following(&self, of: u64) -> &[u64] {
        self.following.get(&of).map_or(&[], Vec::as_slice)
    }

    pub fn followers(&self, of: u64) -> &[u64] {
        self.followers.get(&of).map_or(&[], Vec::as_slice)
    }

    fn edges(&self, of: u64) -> usize {
        self.following(of).len() + self.followers(of).len()
    }

    /// Those who are in all of the sets, by id.
    pub fn overlap(&self, sets: &[UserSet]) -> Vec<u64> {
        let members = |set: &UserSet| -> BTreeSet<u64> {
            let of = integer(set.of);
            let list = match set.side {
                Side::Following => self.following(of),
                Side::Followers => self.followers(of),
            };
            list.iter().copied().collect()
        };
        let mut sets = sets.iter().map(members);
        let first = sets.next().unwrap_or_default();
        sets.fold(first, |all, set| all.intersection(&set).copied().collect()).into_iter().collect()
    }

    /// All whom the followees of `of` follow, in no order; of each only so many are looked at.
    pub fn candidates(&self, of: u64, per_node: Option<usize>) -> Vec<Suggestion> {
        let per_node = per_node.unwrap_or(usize::MAX);
        let known: HashSet<u64> = self.following(of).iter().copied().chain([of]).collect();
        let mut found: HashMap<u64, Candidate> = HashMap::new();
        for &followee in self.following(of).iter().take(per_node) {
            let edges = self.edges(followee);
            for &id in self.following(followee).iter().take(per_node) {
                if !known.contains(&id) && !self.dismissed.contains(&(of, id)) {
                    let candidate = found.entry(id).or_default();
                    candidate.steps += steps(edges);
                    candidate.in_between.push((edges, followee));
                }
            }
        }
        found.into_iter().map(|(id, candidate)| self.suggestion(of, id, candidate)).collect()
    }

    fn suggestion(&self, of: u64, id: u64, mut candidate: Candidate) -> Suggestion {
        let mutual = candidate.in_between.len();
        let all = self.following(of).len() + self.followers(id).len() - mutual;
        // The fewer edges, the more it says.
        candidate.in_between.sort_unstable_by_key(|&(edges, id)| (Reverse(steps(edges)), id));
        Suggestion {
            id: Id::Integer(id),
            mutual_count: u32::try_from(mutual).unwrap(),
            score: Score(candidate.steps),
            jaccard: mutual as f64 / all as f64,
            via: candidate.in_between.iter().take(3).map(|&(_, id)| Id::Integer(id)).collect(),
        }
    }
}

/// The best candidates, the best first.
pub fn best(mut candidates: Vec<Suggestion>, ranking: Ranking, results: usize) -> Vec<Suggestion> {
    candidates.sort_by(|one, other| order(ranking, one, other));
    candidates.truncate(results);
    candidates
}

/// One over the logarithm, in steps of 2^-32.
fn steps(edges: usize) -> u64 {
    (2f64.powi(32) / (edges as f64).ln()).round() as u64
}

fn order(ranking: Ranking, one: &Suggestion, other: &Suggestion) -> Ordering {
    let count = other.mutual_count.cmp(&one.mutual_count);
    let score = other.score.0.cmp(&one.score.0);
    let share = other.jaccard.partial_cmp(&one.jaccard).unwrap();
    let measures = match ranking {
        Ranking::Count => [count, score],
        Ranking::Jaccard => [share, score],
        Ranking::AdamicAdar => [score, count],
    };
    let by_measure = measures.into_iter().find(|order| order.is_ne());
    by_measure.unwrap_or_else(|| one.id.cmp(&other.id))
}

pub fn integer(id: Id) -> u64 {
    match id {
        Id::Integer(value) => value,
        Id::Uuid(_) => panic!("{id} is not an integer"),
    }
}
