//! Suggestions of users to follow.

use kinfolk_core::suggestions;
use serde::{Deserialize, Serialize};

use crate::{Id, Time};

/// Suggestions to a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SuggestedUsers))]
pub struct Suggestions {
    /// The suggestions, the best first.
    pub items: Vec<SuggestedUser>,
    /// When they were computed; missing if they were computed for this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub computed_at: Option<Time>,
}

impl From<suggestions::SuggestionPage> for Suggestions {
    fn from(suggestions::SuggestionPage { items, computed_at }: suggestions::SuggestionPage) -> Self {
        Self {
            items: items.into_iter().map(SuggestedUser::from).collect(),
            computed_at: computed_at.map(Time),
        }
    }
}

/// A suggested user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SuggestedUser {
    /// The candidate.
    pub id: Id,
    /// How many of the user's followees follow this candidate.
    pub mutual_count: u32,
    /// The Adamic-Adar score: followees with few edges weigh more.
    pub score: f64,
    /// The Jaccard index of the user's followees and the candidate's followers.
    pub jaccard: f64,
    /// Up to three of the user's followees who follow this candidate.
    #[cfg_attr(feature = "openapi", schema(max_items = 3))]
    pub via: Vec<Id>,
}

impl From<suggestions::Suggestion> for SuggestedUser {
    fn from(found: suggestions::Suggestion) -> Self {
        let suggestions::Suggestion { id, mutual_count, score, jaccard, via } = found;
        let via = via.into_iter().map(Id).collect();
        Self { id: id.into(), mutual_count, score: score.value(), jaccard, via }
    }
}
