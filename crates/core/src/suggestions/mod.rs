//! People you may know: suggestions, their scoring and ranking, their port, and the operations on it.

mod model;
mod operations;
mod ports;
mod score;

pub use model::{
    RankKey, Ranking, StoredSuggestions, Suggestion, SuggestionPage, SuggestionRunReport,
    SuggestionRunRequest, SuggestionSettings, WalkBounds,
};
pub use operations::Suggestions;
pub use ports::SuggestionStore;
pub use score::{Score, jaccard, weight};
