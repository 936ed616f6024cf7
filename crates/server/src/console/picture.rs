//! The neighbourhood of a user, for a picture: some of the users around it, and who of them follows whom.

use std::collections::{HashMap, HashSet};

use axum::Json;
use axum::http::header::CACHE_CONTROL;
use foldhash::quality::RandomState;
use kinfolk_api as api;
use kinfolk_core::Frontier;
use kinfolk_core::graph::Edge;
use serde::Serialize;

use super::prelude::*;
use crate::limits::RowCost;

/// How many users of each sort are around the one in the middle. Together with it, at most 150.
const FRIENDS: usize = 40;
const FOLLOWING: usize = 50;
const FOLLOWERS: usize = 44;
const SUGGESTIONS: usize = 15;
const _: () = assert!(1 + FRIENDS + FOLLOWING + FOLLOWERS + SUGGESTIONS <= 150);

pub(super) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let endpoint = Endpoint::read(Operation::Console).by(ActorRule::ViewerInPath).costing(Cost::Rows);
    let path = "/console/users/{id}/graph.json";
    routes.add_page(endpoint.abandonable().in_console(), path, get(picture::<S>))
}

/// What a user is to the one in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Center,
    Friend,
    Following,
    Follower,
    Suggestion,
}

#[derive(Serialize)]
struct Picture {
    center: api::Id,
    nodes: Vec<Node>,
    /// The first follows the second.
    edges: Vec<[api::Id; 2]>,
    /// Whether edges are missing because the visitor's key could not pay for all checks.
    is_partial: bool,
}

#[derive(Serialize)]
struct Node {
    id: api::Id,
    following: u64,
    followers: u64,
    kind: Kind,
}

async fn picture<S: Store>(visit: Visit<S>, Ids([center]): Ids<1>) -> RestResult {
    let (graph, seen) = (visit.graph(), &visit.seen);
    let page = |limit| PageRequest { limit, cursor: None };
    let mut nodes = Nodes::new(center);
    // Walks have limits that lists do not have: without them, the picture is of the lists.
    if let Ok(friends) = visit.service.friends(visit.reading(), center, page(FRIENDS)).await {
        nodes.add(friends.items.iter().map(|entry| entry.id), Kind::Friend, FRIENDS);
    }
    // Friends are among the others as well.
    let following = graph.following(EdgeKind::Follow, center, page(FOLLOWING + FRIENDS), seen).await?;
    nodes.add(following.items.iter().map(|entry| entry.id), Kind::Following, FOLLOWING);
    let followers = graph.followers(EdgeKind::Follow, center, page(FOLLOWERS + FRIENDS), seen).await?;
    nodes.add(followers.items.iter().map(|entry| entry.id), Kind::Follower, FOLLOWERS);
    if visit.has(Capability::Suggestions)
        && let Ok(suggestions) = visit.suggest(SUGGESTIONS).await
    {
        nodes.add(suggestions.items.iter().map(|found| found.id), Kind::Suggestion, SUGGESTIONS);
    }
    let (edges, is_partial) = edges(&visit, &nodes.ids, seen).await?;
    nodes.name_friends(center, &edges);
    let mut counts = Vec::with_capacity(nodes.ids.len());
    for ids in nodes.ids.chunks(visit.service.users_max()) {
        counts.extend(graph.counts(EdgeKind::Follow, ids, seen).await?);
    }
    let nodes = nodes.ids.iter().zip(counts).map(|(id, counts)| Node {
        id: api::Id(*id),
        following: counts.following,
        followers: counts.followers,
        kind: nodes.kinds.get(id).copied().unwrap_or(Kind::Center),
    });
    let picture = Picture {
        center: api::Id(center),
        nodes: nodes.collect(),
        edges: edges.iter().map(|edge| [api::Id(edge.follower), api::Id(edge.followee)]).collect(),
        is_partial,
    };
    Ok(([(CACHE_CONTROL, "no-store")], Json(picture)).into_response())
}

/// The users of a picture, in the order in which they were found.
struct Nodes {
    ids: Vec<Id>,
    kinds: HashMap<Id, Kind, RandomState>,
}

impl Nodes {
    fn new(center: Id) -> Self {
        Self { ids: vec![center], kinds: [(center, Kind::Center)].into_iter().collect() }
    }

    /// Adds up to `most` users that are not there yet.
    fn add(&mut self, found: impl Iterator<Item = Id>, kind: Kind, most: usize) {
        let mut added = 0;
        for id in found {
            if added < most && !self.kinds.contains_key(&id) {
                added += 1;
                self.kinds.insert(id, kind);
                self.ids.push(id);
            }
        }
    }

    /// A user that both follows and is followed is a friend, however it was found.
    fn name_friends(&mut self, center: Id, edges: &[Edge]) {
        let followers = edges.iter().filter(|edge| edge.followee == center).map(|edge| edge.follower);
        let followers: HashSet<Id, RandomState> = followers.collect();
        let followees = edges.iter().filter(|edge| edge.follower == center).map(|edge| edge.followee);
        for friend in followees.filter(|id| followers.contains(id)) {
            self.kinds.insert(friend, Kind::Friend);
        }
    }
}

/// The follows among some users: all pairs are checked, some at a time so that other requests get their turn. Also returns whether
/// the visitor's key could not pay for all of them.
async fn edges<S: Store>(visit: &Visit<S>, ids: &[Id], seen: &Frontier) -> Result<(Vec<Edge>, bool)> {
    let pair = |&follower: &Id| {
        let others = ids.iter().filter(move |&&followee| followee != follower);
        others.map(move |&followee| Edge { follower, followee })
    };
    let mut pairs: Vec<Edge> = ids.iter().flat_map(pair).collect();
    // Who is a friend of the user in the middle must not depend on the budget.
    pairs.sort_by_key(|pair| {
        !ids.first().is_some_and(|&center| [pair.follower, pair.followee].contains(&center))
    });
    let mut cost = RowCost::new(&visit.caller.budget);
    let mut found = Vec::new();
    for pairs in pairs.chunks(visit.service.checks_max()) {
        if cost.charge(pairs.len()).is_err() {
            return Ok((found, true));
        }
        let follows = visit.graph().check(EdgeKind::Follow, pairs, seen).await?;
        found.extend(pairs.iter().zip(follows).filter(|(_, follows)| *follows).map(|(edge, _)| *edge));
        tokio::task::yield_now().await;
    }
    Ok((found, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_is_there_once() {
        let ids = |ids: &[u64]| ids.iter().map(|&id| Id::Integer(id)).collect::<Vec<_>>().into_iter();
        let mut nodes = Nodes::new(Id::Integer(1));
        nodes.add(ids(&[2]), Kind::Friend, 5);
        nodes.add(ids(&[2, 3, 4, 5]), Kind::Following, 2);
        nodes.add(ids(&[1, 2, 4, 6]), Kind::Follower, 5);
        let edge = |[follower, followee]: [u64; 2]| Edge {
            follower: Id::Integer(follower),
            followee: Id::Integer(followee),
        };
        nodes.name_friends(Id::Integer(1), &[[1, 2], [2, 1], [1, 3], [4, 1], [1, 4], [6, 1]].map(edge));
        assert_eq!(nodes.ids, ids(&[1, 2, 3, 4, 6]).collect::<Vec<_>>());
        let kinds = nodes.ids.iter().map(|id| nodes.kinds[id]).collect::<Vec<_>>();
        let expected = [Kind::Center, Kind::Friend, Kind::Following, Kind::Friend, Kind::Follower];
        assert_eq!(kinds, expected);
    }
}
