//! The port of suggestions. Its documentation is the contract; `kinfolk-conformance` tests every sentence.

use std::future::Future;
use std::time::Duration;

use super::{StoredSuggestions, Suggestion, SuggestionRunReport, SuggestionRunRequest, WalkBounds};
use crate::{Deployment, Frontier, Id, Result};

/// Finds those whom users may know, and keeps what was found for everyone.
///
/// Suggestions are about edges of the kind [`crate::EdgeKind::Follow`]; what was dismissed is an edge of the kind
/// [`crate::EdgeKind::Dismissal`] from the user to whom it was suggested.
///
/// # Contract
/// - **Exact**: the candidates of a user are all whom its followees follow, counted once for each followee; with
///   [`WalkBounds::per_node`], only the so many most recent followees count, of the user and of each of its followees,
///   in the order of [`crate::graph::ListKey`]. Counts, scores, shares, `via` and order are those that
///   [`Suggestion`] and [`super::Ranking`] define, with the counts of edges that the store has then, whatever the bounds.
/// - **Never** the user itself, nor anyone it follows (all of them, whatever `per_node` says), nor anyone it
///   has dismissed.
/// - **Visible**: a follow, unfollow or dismissal that is visible counts in every walk that begins later.
/// - **Bounded**: walks take turns; they never hold up checks, lists or writes. One whose caller has gone is given up.
pub trait SuggestionStore: Deployment {
    /// The best candidates of a user, found by a walk of two steps.
    fn candidates(
        &self,
        of: Id,
        bounds: WalkBounds,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Suggestion>>> + Send;

    /// What was stored for a user, unless that is longer ago than `max_age` by the store's clock. Nothing is stored
    /// for whom there was nothing to suggest. It survives restarts, but may be lost where it can be computed again.
    ///
    /// The items are as they were then: what the user has followed or dismissed since may be among them.
    fn stored_suggestions(
        &self,
        of: Id,
        max_age: Duration,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Option<StoredSuggestions>>> + Send;

    /// Stores what a run elsewhere has computed for some users, each of whom is named once, replacing what was stored for them.
    /// Where there are no items, nothing is stored for the user afterwards. What is stored for others stays, and so does a
    /// stopped run. It survives restarts as what [`SuggestionStore::compute_suggestions`] stores does.
    fn store_suggestions(
        &self,
        computed: Vec<(Id, StoredSuggestions)>,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Walks for every user that has ever followed anyone, and stores what it finds, replacing what was stored
    /// before. Blocks, and takes long.
    ///
    /// `watch` is told how many users are done of how many, and says whether to go on. A run that was stopped, also by
    /// a crash, is continued by the next one with the same bounds, unless that is to start afresh or the stopped one
    /// has begun longer than a day ago. A user that was looked at is not looked at again by it; some users may be.
    fn compute_suggestions(
        &self,
        request: SuggestionRunRequest,
        watch: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<SuggestionRunReport>;
}
