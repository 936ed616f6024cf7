//! The words of suggestions at any place. Scores are as clients see them: a server tells no more.

use kinfolk_core::suggestions::{
    Ranking, Suggestion, SuggestionPage, SuggestionRunReport, SuggestionRunRequest, WalkBounds,
};
use kinfolk_core::{Id, Timestamp};

use crate::serve::StopSignal;
use crate::settings::bound;

/// Whom a user may know.
#[derive(Clone, Debug)]
pub struct Suggested {
    /// The best first.
    pub items: Vec<SuggestedUser>,
    /// When they were computed, if they were stored.
    pub computed_at: Option<Timestamp>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct SuggestedUser {
    /// Who.
    pub id: Id,
    /// How many are in between.
    pub mutual_count: u32,
    /// The Adamic-Adar score.
    pub score: f64,
    /// Their share of all neighbours.
    pub jaccard: f64,
    /// Some of those in between.
    pub via: Vec<Id>,
}

impl From<SuggestionPage> for Suggested {
    fn from(SuggestionPage { items, computed_at }: SuggestionPage) -> Self {
        Self { items: items.into_iter().map(SuggestedUser::from).collect(), computed_at }
    }
}

impl From<Suggestion> for SuggestedUser {
    fn from(Suggestion { id, mutual_count, score, jaccard, via }: Suggestion) -> Self {
        Self { id, mutual_count, score: score.value(), jaccard, via }
    }
}

/// What computing suggestions for everyone came to.
#[derive(Clone, Copy, Debug)]
pub struct SuggestDone {
    /// What was computed.
    pub report: SuggestionRunReport,
    /// The signal that has stopped it, if one has.
    pub stopped_by: Option<StopSignal>,
}

/// How to compute suggestions for everyone; what is left open is as the graph's settings say.
#[derive(Clone, Copy, Debug)]
pub struct SuggestWish {
    /// Which ones are the best.
    pub ranking: Option<Ranking>,
    /// How many of those whom a user follows count; 0 for all.
    pub per_node: Option<u32>,
    /// How many suggestions to store for each user.
    pub keep: Option<u16>,
    /// How many threads to use.
    pub threads: Option<u16>,
    /// Start over.
    pub afresh: bool,
}

impl SuggestWish {
    /// The request that it makes up with the settings.
    pub fn request(self, settings: SuggestionRunRequest) -> SuggestionRunRequest {
        let SuggestionRunRequest { bounds, threads, .. } = settings;
        SuggestionRunRequest {
            bounds: WalkBounds {
                per_node: self.per_node.map_or(bounds.per_node, bound),
                results: self.keep.map_or(bounds.results, usize::from),
                ranking: self.ranking.unwrap_or(bounds.ranking),
            },
            threads: self.threads.map_or(threads, usize::from),
            afresh: self.afresh,
        }
    }

    /// The query of a call that asks a server for the same.
    pub fn query(self) -> String {
        let parameter = |name: &str, value: Option<String>| value.map(|value| format!("{name}={value}"));
        let parameters = [
            parameter("ranking", self.ranking.map(|ranking| ranking.name().to_owned())),
            parameter("per_node", self.per_node.map(|count| count.to_string())),
            parameter("keep", self.keep.map(|count| count.to_string())),
            parameter("threads", self.threads.map(|count| count.to_string())),
            parameter("afresh", self.afresh.then(|| "true".to_owned())),
        ];
        parameters.into_iter().flatten().collect::<Vec<_>>().join("&")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_open_is_the_settings_business() {
        let open = SuggestWish { ranking: None, per_node: None, keep: None, threads: None, afresh: false };
        let bounds = WalkBounds { per_node: Some(5), results: 7, ranking: Ranking::Jaccard };
        let settings = SuggestionRunRequest { bounds, threads: 3, afresh: false };
        assert_eq!(open.request(settings), settings);
        assert_eq!(open.query(), "");

        let ranking = Some(Ranking::AdamicAdar);
        let all = SuggestWish { ranking, per_node: Some(0), keep: Some(9), threads: Some(2), afresh: true };
        let bounds = WalkBounds { per_node: None, results: 9, ranking: Ranking::AdamicAdar };
        assert_eq!(all.request(settings), SuggestionRunRequest { bounds, threads: 2, afresh: true });
        assert_eq!(all.query(), "ranking=adamic-adar&per_node=0&keep=9&threads=2&afresh=true");
    }
}
