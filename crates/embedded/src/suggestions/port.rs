//! The port of suggestions, for the embedded store.

use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::suggestions::{
    StoredSuggestions, Suggestion, SuggestionRunReport, SuggestionRunRequest, SuggestionStore, WalkBounds,
};
use kinfolk_core::{Frontier, Id, Result, Timestamp};

use crate::Embedded;
use crate::edges::index::Scratch;

impl SuggestionStore for Embedded {
    async fn candidates(&self, of: Id, bounds: WalkBounds, at_least: &Frontier) -> Result<Vec<Suggestion>> {
        self.reach(at_least).await?;
        let edges = Arc::clone(&self.store.edges);
        let work = move |scratch: &mut Scratch, is_given_up: &dyn Fn() -> bool| {
            edges.candidates(of, bounds, scratch, is_given_up)
        };
        self.store.workers.run(of, work).await
    }

    async fn stored_suggestions(
        &self,
        of: Id,
        max_age: Duration,
        at_least: &Frontier,
    ) -> Result<Option<StoredSuggestions>> {
        self.reach(at_least).await?;
        let age =
            |at: Timestamp| Duration::from_millis(self.clock.now().millis().saturating_sub(at.millis()));
        Ok(self.store.suggestions.get(of).filter(|stored| age(stored.computed_at) <= max_age))
    }

    async fn store_suggestions(&self, computed: Vec<(Id, StoredSuggestions)>) -> Result<()> {
        let store = Arc::clone(&self.store);
        let about = computed.first().map_or(Id::Integer(0), |&(of, _)| of);
        // It waits for the disk.
        let work =
            move |_: &mut Scratch, _: &dyn Fn() -> bool| super::store_computed(&store.suggestions, &computed);
        self.store.workers.run(about, work).await
    }

    fn compute_suggestions(
        &self,
        request: SuggestionRunRequest,
        watch: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<SuggestionRunReport> {
        super::compute(&self.store.suggestions, &*self.clock, request, watch)
    }
}
