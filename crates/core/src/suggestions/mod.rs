//! People you may know: what a suggestion is, how suggestions are scored and ranked, the port that finds and keeps
//! them, and the operations on it.

mod model;
mod operations;
mod ports;
mod score;

pub use model::{
    Ranking, StoredSuggestions, Suggestion, SuggestionPage, SuggestionRunReport, SuggestionRunRequest,
    SuggestionSettings, WalkBounds,
};
pub use operations::Suggestions;
pub use ports::SuggestionStore;
pub use score::{Score, jaccard, weight};
