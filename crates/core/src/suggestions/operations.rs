//! The operations on suggestions: the rules that hold for every store and every protocol.

use super::SuggestionSettings;
use super::{Ranking, Suggestion, SuggestionPage, SuggestionStore, WalkBounds};
use crate::graph::{CheckStore, Edge, EdgeAction, EdgeStore, FollowerCommand, Receipt, WriteRequest};
use crate::{EdgeKind, Error, Frontier, Id, Operations, Result};

/// Operations on suggestions: people you may know.
pub type Suggestions<S> = Operations<S, SuggestionSettings>;

impl<S: SuggestionStore + CheckStore + EdgeStore> Suggestions<S> {
    /// Suggestions for `of`, best first: stored ones while they are fresh, without candidates that `of` has followed or
    /// dismissed since; otherwise the result of a bounded walk.
    pub async fn read(&self, of: Id, limit: usize, at_least: &Frontier) -> Result<SuggestionPage> {
        self.context.require_ids(&[of])?;
        let settings = self.settings;
        if !(1..=settings.results_max).contains(&limit) {
            return Err(Error::LimitOutOfRange { limit, max: settings.results_max });
        }
        if let Some(stored) = self.store().stored_suggestions(of, settings.fresh_for, at_least).await? {
            let mut items = self.without_known(of, stored.items, at_least).await?;
            if !items.is_empty() {
                items.truncate(limit);
                return Ok(SuggestionPage { items, computed_at: Some(stored.computed_at) });
            }
        }
        let per_node = Some(settings.per_node);
        let bounds = WalkBounds { per_node, results: limit, ranking: Ranking::Count };
        Ok(SuggestionPage { items: self.store().candidates(of, bounds, at_least).await?, computed_at: None })
    }

    async fn without_known(
        &self,
        of: Id,
        mut items: Vec<Suggestion>,
        at_least: &Frontier,
    ) -> Result<Vec<Suggestion>> {
        let edges: Vec<Edge> = items.iter().map(|item| Edge { follower: of, followee: item.id }).collect();
        for kind in [EdgeKind::Follow, EdgeKind::Dismissal] {
            let known = self.store().contains(kind, &edges, at_least).await?;
            let known: std::collections::HashSet<Id> =
                edges.iter().zip(known).filter(|&(_, known)| known).map(|(edge, _)| edge.followee).collect();
            items.retain(|item| !known.contains(&item.id));
        }
        Ok(items)
    }

    /// Makes sure that `target` is not suggested to `actor` again.
    pub async fn dismiss(&self, actor: Id, target: Id) -> Result<Receipt> {
        self.context.require_ids(&[actor, target])?;
        if actor == target {
            return Err(Error::InvalidRequest { detail: "a user is never suggested to itself".into() });
        }
        let limit = self.settings.dismissed_max;
        let request = WriteRequest {
            kind: EdgeKind::Dismissal,
            follower: actor,
            commands: [FollowerCommand { action: EdgeAction::Follow, followee: target }].into(),
            following_limit: limit,
        };
        self.store().write_one(request).await.map_err(|error| match error {
            Error::FollowingLimit { .. } => Error::InvalidRequest {
                detail: format!("user {actor} has dismissed {limit} suggestions, the maximum"),
            },
            other => other,
        })
    }
}
