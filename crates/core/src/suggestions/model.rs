//! The words of suggestions.

use std::cmp::Ordering;
use std::time::Duration;

use super::score::Score;
use crate::{Id, Timestamp};

/// How many of those in between a suggestion names.
pub(super) const VIA_MAX: usize = 3;

/// Somebody whom a user may know: followed by those whom the user follows, but not by the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// Who.
    pub id: Id,
    /// How many of those whom the user follows follow them.
    pub mutual_count: u32,
    /// The Adamic-Adar score: the sum of [`super::weight`] over these.
    pub score: Score,
    /// What share of all neighbours these are: see [`super::jaccard`].
    pub jaccard: f64,
    /// Up to [`Suggestion::VIA_MAX`] of these: those with the highest [`super::weight`] first, then by id.
    pub via: Vec<Id>,
}

impl Suggestion {
    /// The most users in `via`.
    pub const VIA_MAX: usize = VIA_MAX;
}

/// What suggestions are ranked by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ranking {
    /// How many are in between; then the Adamic-Adar score.
    #[default]
    Count,
    /// The share of neighbours; then the Adamic-Adar score.
    Jaccard,
    /// The Adamic-Adar score; then how many are in between.
    AdamicAdar,
}

impl Ranking {
    /// All rankings.
    pub const ALL: [Self; 3] = [Self::Count, Self::Jaccard, Self::AdamicAdar];

    /// The name in settings and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Jaccard => "jaccard",
            Self::AdamicAdar => "adamic-adar",
        }
    }

    /// The ranking of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ranking| ranking.name() == name)
    }

    /// The order of two suggestions, the better one first; those that are equal otherwise by id.
    pub fn compare(self, one: &Suggestion, other: &Suggestion) -> Ordering {
        let key = |of: &Suggestion| (of.mutual_count, of.score, of.jaccard, of.id);
        self.compare_keys(key(one), key(other))
    }

    /// As [`Ranking::compare`], for what is known of two candidates: mutual count, score, share, and something that
    /// orders like the id.
    pub fn compare_keys<I: Ord + Copy>(
        self,
        one: (u32, Score, f64, I),
        other: (u32, Score, f64, I),
    ) -> Ordering {
        let count = other.0.cmp(&one.0);
        let score = other.1.cmp(&one.1);
        let by_measure = match self {
            Self::Count => count.then(score),
            Self::Jaccard => other.2.total_cmp(&one.2).then(score),
            Self::AdamicAdar => score.then(count),
        };
        by_measure.then(one.3.cmp(&other.3))
    }
}

/// How far a walk goes, and what it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkBounds {
    /// Only so many of those whom a user follows are looked at, the most recent ones: of the one who asks as of
    /// those in between. All of them without it.
    pub per_node: Option<usize>,
    /// How many suggestions are kept, the best.
    pub results: usize,
    /// Which are the best.
    pub ranking: Ranking,
}

impl WalkBounds {
    /// The most results that make sense: more than anybody reads.
    pub const RESULTS_MAX: usize = 1_000;
}

/// What a deployment sets about suggestions.
#[derive(Clone, Copy, Debug)]
pub struct SuggestionSettings {
    /// The most suggestions in one answer.
    pub results_max: usize,
    /// A walk in a request looks at so many of those whom a user follows.
    pub per_node: usize,
    /// Stored suggestions are served for so long.
    pub fresh_for: Duration,
    /// How many suggestions one user may dismiss.
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

/// The answer to who may be known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuggestionPage {
    /// The suggestions, the best first.
    pub items: Vec<Suggestion>,
    /// When they were computed, where they were stored and not found just now.
    pub computed_at: Option<Timestamp>,
}

/// Suggestions that were computed for everyone, of one user.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSuggestions {
    /// When.
    pub computed_at: Timestamp,
    /// The suggestions, the best first.
    pub items: Vec<Suggestion>,
}

/// A wish to compute and store suggestions for everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuggestionRunRequest {
    /// How far each walk goes, and what is stored of it.
    pub bounds: WalkBounds,
    /// How many threads work at it.
    pub threads: usize,
    /// Start over, even if a run with the same bounds was stopped half-way.
    pub afresh: bool,
}

/// What was computed for everyone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuggestionRunReport {
    /// Users that were looked at.
    pub users: u64,
    /// Users for whom suggestions were stored.
    pub suggested: u64,
    /// How many were looked at before, by a run that was stopped and that this one went on with.
    pub resumed: u64,
    /// Whether all users were looked at; if not, the next call goes on.
    pub complete: bool,
}
