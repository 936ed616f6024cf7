//! The operations on suggestions: the rules that hold whatever store is below and whatever protocol is above.

use super::{Ranking, Suggestion, SuggestionStore, Suggestions, WalkBounds};
use crate::graph::{ChangeLog, Edge, EdgeAction, EdgeCommand, Freshness, Graph, WriteRequest, Written};
use crate::{EdgeKind, Error, Id, Result};

impl<S: SuggestionStore + ChangeLog> Graph<S> {
    /// Whom `of` may know, the best first: what was stored while it is fresh, without those whom `of` has followed
    /// or dismissed since; found by a bounded walk otherwise.
    pub async fn suggestions(&self, of: Id, limit: usize, fresh: Freshness<'_>) -> Result<Suggestions> {
        self.require_ids(&[of])?;
        let settings = self.settings.suggest;
        if !(1..=settings.results_max).contains(&limit) {
            return Err(Error::LimitOutOfRange { given: limit, max: settings.results_max });
        }
        self.await_freshness(fresh).await?;
        if let Some(stored) = self.store().stored_suggestions(of, settings.fresh_for).await? {
            let mut items = self.still_unknown(of, stored.items).await?;
            if !items.is_empty() {
                items.truncate(limit);
                return Ok(Suggestions { items, computed_at: Some(stored.computed_at) });
            }
        }
        let per_node = Some(settings.per_node);
        let bounds = WalkBounds { per_node, results: limit, ranking: Ranking::Count };
        Ok(Suggestions { items: self.store().candidates(of, bounds).await?, computed_at: None })
    }

    async fn still_unknown(&self, of: Id, mut items: Vec<Suggestion>) -> Result<Vec<Suggestion>> {
        let edges: Vec<Edge> = items.iter().map(|item| Edge { follower: of, followee: item.id }).collect();
        for kind in [EdgeKind::Follow, EdgeKind::Dismissal] {
            let known = self.store().contains(kind, &edges).await?;
            let known: std::collections::HashSet<Id> =
                edges.iter().zip(known).filter(|&(_, known)| known).map(|(edge, _)| edge.followee).collect();
            items.retain(|item| !known.contains(&item.id));
        }
        Ok(items)
    }

    /// `actor` does not want `target` to be suggested again.
    pub async fn dismiss(&self, actor: Id, target: Id) -> Result<Written> {
        self.require_ids(&[actor, target])?;
        if actor == target {
            return Err(Error::InvalidRequest { detail: "a user is never suggested to itself".into() });
        }
        let edge = Edge { follower: actor, followee: target };
        let limit = self.settings.suggest.dismissed_max;
        let request = WriteRequest {
            kind: EdgeKind::Dismissal,
            commands: vec![EdgeCommand { action: EdgeAction::Follow, edge }],
            following_limit: limit,
        };
        let receipt = self.store().write(request).await.map_err(|error| match error {
            Error::FollowingLimit { .. } => Error::InvalidRequest {
                detail: format!("user {actor} has dismissed {limit} suggestions, the most that is allowed"),
            },
            other => other,
        })?;
        Ok(Written { token: self.token(receipt.position), changed: receipt.changed })
    }
}
