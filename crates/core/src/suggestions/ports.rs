//! The port of suggestions. Its documentation is the contract; `kinfolk-conformance` tests every sentence of it.

use std::future::Future;
use std::time::Duration;

use super::{StoredSuggestions, Suggestion, SuggestionRunReport, SuggestionRunRequest, WalkBounds};
use crate::{Deployment, Frontier, Id, Result};

/// Finds suggestions, and keeps those that were computed for all users.
///
/// Suggestions are based on edges of the kind [`crate::EdgeKind::Follow`]. A dismissal is an edge of the kind
/// [`crate::EdgeKind::Dismissal`] from the user to the candidate.
///
/// # Contract
/// - **Exact**: the candidates of a user are all followees of its followees, counted once for each followee. With
///   [`WalkBounds::per_node`], only that many most recent followees of the user and of each followee are visited, in the
///   order of [`crate::graph::ListKey`]. Counts, scores, similarities, `via` and order are as [`Suggestion`] and
///   [`super::Ranking`] define them, with the store's current counts of edges, regardless of the bounds.
/// - **Never** the user itself, nor anyone it follows (regardless of `per_node`), nor anyone it has dismissed.
/// - **Visible**: a visible follow, unfollow or dismissal is reflected in every walk that starts later.
/// - **Bounded**: walks share workers and never delay checks, lists or writes. A walk whose caller is gone is cancelled.
pub trait SuggestionStore: Deployment {
    /// The best candidates of a user, found by a walk of two hops.
    fn candidates(
        &self,
        of: Id,
        bounds: WalkBounds,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Vec<Suggestion>>> + Send;

    /// The stored suggestions of a user, unless they are older than `max_age` by the store's clock. A user without candidates
    /// has none. They survive restarts, but may be lost where they can be recomputed.
    ///
    /// The items are as computed: they may include users that were followed or dismissed since.
    fn stored_suggestions(
        &self,
        of: Id,
        max_age: Duration,
        at_least: &Frontier,
    ) -> impl Future<Output = Result<Option<StoredSuggestions>>> + Send;

    /// Replaces the stored suggestions of some users, each named once, by results that were computed elsewhere. No items
    /// remove the user's suggestions. Suggestions of other users and a stopped run stay as they are. The result is as durable
    /// as that of [`SuggestionStore::compute_suggestions`].
    fn store_suggestions(
        &self,
        computed: Vec<(Id, StoredSuggestions)>,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Computes the suggestions of every user that has ever followed anyone, and replaces the stored ones. Blocks, and takes
    /// long.
    ///
    /// `watch` receives the number of processed users and of all users, and returns whether to continue. A run that was
    /// stopped, also by a crash, is resumed by the next run with the same bounds, unless that run starts over or the stopped
    /// run started more than a day ago. A resumed run skips processed users, but may process a few of them again.
    fn compute_suggestions(
        &self,
        request: SuggestionRunRequest,
        watch: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<SuggestionRunReport>;
}
