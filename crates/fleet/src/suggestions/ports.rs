//! The port of suggestions. What was computed for everyone belongs to a later step: until then nothing is stored.

use std::time::Duration;

use kinfolk_core::suggestions::{
    StoredSuggestions, Suggestion, SuggestionRunReport, SuggestionRunRequest, SuggestionStore, WalkBounds,
};
use kinfolk_core::{Error, Frontier, Id, Result};

use crate::Fleet;

impl SuggestionStore for Fleet {
    async fn candidates(&self, of: Id, bounds: WalkBounds, at_least: &Frontier) -> Result<Vec<Suggestion>> {
        self.read(at_least, move |reader| async move { reader.candidates(of, bounds).await }).await
    }

    async fn stored_suggestions(
        &self,
        _of: Id,
        _max_age: Duration,
        _at_least: &Frontier,
    ) -> Result<Option<StoredSuggestions>> {
        Ok(None)
    }

    async fn store_suggestions(&self, _computed: Vec<(Id, StoredSuggestions)>) -> Result<()> {
        Err(Error::NotAvailable { what: "storing suggestions" })
    }

    fn compute_suggestions(
        &self,
        _request: SuggestionRunRequest,
        _watch: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<SuggestionRunReport> {
        Err(Error::NotAvailable { what: "computing suggestions for everyone" })
    }
}
