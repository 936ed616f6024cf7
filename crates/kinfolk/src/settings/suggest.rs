//! Converts the settings of suggestions to those of `kinfolk-core`.

use std::thread::available_parallelism;

use kinfolk_core::suggestions::{SuggestionRunRequest, SuggestionSettings, WalkBounds};

use super::Suggest;

impl Suggest {
    /// The settings of requests.
    pub(crate) fn in_requests(&self) -> SuggestionSettings {
        SuggestionSettings {
            per_node: self.per_node.0,
            fresh_for: self.fresh.0,
            ..SuggestionSettings::default()
        }
    }

    /// The default computation for all users.
    pub(crate) fn for_everyone(&self) -> SuggestionRunRequest {
        let cores = || available_parallelism().map_or(1, std::num::NonZero::get);
        SuggestionRunRequest {
            bounds: WalkBounds {
                per_node: bound(self.batch_per_node),
                results: self.keep.0.min(WalkBounds::RESULTS_MAX),
                ranking: self.ranking,
            },
            threads: self.threads.map_or_else(cores, |threads| threads.0),
            afresh: false,
        }
    }
}

/// A bound: 0 for none.
pub(crate) fn bound(number: u32) -> Option<usize> {
    (number > 0).then_some(number as usize)
}
