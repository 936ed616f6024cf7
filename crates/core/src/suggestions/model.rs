//! The types of suggestions.

use std::cmp::Ordering;
use std::time::Duration;

use super::score::Score;
use crate::names::names;
use crate::{Id, Timestamp};

/// A candidate for a user to follow: followed by the user's followees, but not by the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// The candidate.
    pub id: Id,
    /// How many of the user's followees follow this candidate.
    pub mutual_count: u32,
    /// The Adamic-Adar score: the sum of [`super::weight`] over these followees.
    pub score: Score,
    /// The Jaccard similarity: see [`super::jaccard`].
    pub jaccard: f64,
    /// Up to [`Suggestion::VIA_MAX`] of these followees, by descending [`super::weight`], then by id.
    pub via: Vec<Id>,
}

impl Suggestion {
    /// The maximum number of users in `via`.
    pub const VIA_MAX: usize = 3;
}

/// The measures that a candidate is ranked by.
#[derive(Clone, Copy, Debug)]
pub struct RankKey<I> {
    /// See [`Suggestion::mutual_count`].
    pub mutual_count: u32,
    /// See [`Suggestion::score`].
    pub score: Score,
    /// See [`Suggestion::jaccard`].
    pub jaccard: f64,
    /// The id, or a value that sorts like it.
    pub id: I,
}

/// The order of suggestions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ranking {
    /// By mutual count, then by Adamic-Adar score.
    #[default]
    Count,
    /// By Jaccard similarity, then by Adamic-Adar score.
    Jaccard,
    /// By Adamic-Adar score, then by mutual count.
    AdamicAdar,
}

names! { Ranking { Count => "count", Jaccard => "jaccard", AdamicAdar => "adamic-adar" } }

impl Ranking {
    /// Orders two suggestions, the better one first; equal ones by id.
    pub fn compare(self, one: &Suggestion, other: &Suggestion) -> Ordering {
        let key = |of: &Suggestion| RankKey {
            mutual_count: of.mutual_count,
            score: of.score,
            jaccard: of.jaccard,
            id: of.id,
        };
        self.compare_keys(key(one), key(other))
    }

    /// As [`Ranking::compare`], for the keys of two candidates.
    pub fn compare_keys<I: Ord + Copy>(self, one: RankKey<I>, other: RankKey<I>) -> Ordering {
        let count = other.mutual_count.cmp(&one.mutual_count);
        let score = other.score.cmp(&one.score);
        let by_measure = match self {
            Self::Count => count.then(score),
            Self::Jaccard => other.jaccard.total_cmp(&one.jaccard).then(score),
            Self::AdamicAdar => score.then(count),
        };
        by_measure.then(one.id.cmp(&other.id))
    }
}

/// The bounds of a walk for suggestions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkBounds {
    /// The maximum number of followees per user that the walk visits, most recent first: of the user and of each of its
    /// followees. `None` for all.
    pub per_node: Option<usize>,
    /// The maximum number of suggestions.
    pub results: usize,
    /// Their order.
    pub ranking: Ranking,
}

impl WalkBounds {
    /// The largest useful number of results.
    pub const RESULTS_MAX: usize = 1_000;
}

/// Limits of suggestions that a deployment sets.
#[derive(Clone, Copy, Debug)]
pub struct SuggestionSettings {
    /// The maximum number of suggestions in one response.
    pub results_max: usize,
    /// The maximum number of followees per user that the walk of a request visits.
    pub per_node: usize,
    /// How long stored suggestions are served.
    pub fresh_for: Duration,
    /// The maximum number of suggestions that a user may dismiss.
    pub dismissed_max: u32,
}

impl Default for SuggestionSettings {
    fn default() -> Self {
        Self {
            results_max: WalkBounds::RESULTS_MAX,
            per_node: 500,
            fresh_for: Duration::from_secs(24 * 60 * 60),
            dismissed_max: 100_000,
        }
    }
}

/// The suggestions for a user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuggestionPage {
    /// The suggestions, the best first.
    pub items: Vec<Suggestion>,
    /// When they were computed, if they come from a run; `None` if this request computed them.
    pub computed_at: Option<Timestamp>,
}

/// The suggestions that a run computed for one user.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSuggestions {
    /// When they were computed.
    pub computed_at: Timestamp,
    /// The suggestions, the best first.
    pub items: Vec<Suggestion>,
}

/// A request to compute and store suggestions for all users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuggestionRunRequest {
    /// The bounds of each walk.
    pub bounds: WalkBounds,
    /// The number of threads.
    pub threads: usize,
    /// Start over, even if a stopped run with the same bounds could be resumed.
    pub afresh: bool,
}

/// The result of a suggestion run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuggestionRunReport {
    /// Users processed.
    pub users: u64,
    /// Users with stored suggestions.
    pub suggested: u64,
    /// Users that a stopped run had processed before this one resumed it.
    pub resumed: u64,
    /// Whether all users were processed; if not, the next run resumes here.
    pub complete: bool,
}
