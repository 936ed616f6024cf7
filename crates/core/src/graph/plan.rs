//! Plans writes of edges: from the current edges and a request to the resulting events. Planning writes nothing and does not
//! know how a store reads or logs: every profile plans with this code, in its own transaction.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{Edge, EdgeAction, EdgeCommand, Effects, WriteRequest};
use crate::{EdgeKind, Error, Id, Result, Timestamp};

/// The input of a plan: the edges of the affected followers before it.
pub trait EdgeView {
    /// Whether an edge exists, and how many edges its follower has.
    fn examine(&self, kind: EdgeKind, edge: Edge) -> (bool, u64);

    /// When an existing edge was created.
    fn since(&self, kind: EdgeKind, edge: Edge) -> Result<Timestamp>;
}

/// A planned change of one edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeEvent {
    /// The kind of edge.
    pub kind: EdgeKind,
    /// The edge.
    pub edge: Edge,
    /// The time of the change.
    pub at: Timestamp,
    /// For a removal, when the edge had been created; `None` for a creation.
    pub removed_since: Option<Timestamp>,
}

/// The effects of planned requests on edges.
#[derive(Debug, Default)]
pub struct PlannedEdges {
    /// When each edge was created; `None` if it does not exist.
    edges: HashMap<(EdgeKind, Edge), Option<Timestamp>, RandomState>,
    /// The change of each follower's number of edges.
    following: HashMap<(EdgeKind, Id), i64, RandomState>,
    /// What the commands of the current request replaced; the memory serves the next request too.
    undo: Vec<Undo>,
}

impl PlannedEdges {
    /// Removes everything and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.edges.clear();
        self.following.clear();
    }
}

/// The state that a command replaced, to undo a refused request.
#[derive(Debug)]
struct Undo {
    key: (EdgeKind, Edge),
    edge: Option<Option<Timestamp>>,
    following: Option<i64>,
}

/// Plans requests about edges, in order.
pub struct EdgePlanner<'a, V> {
    /// The edges before the plan.
    pub view: &'a V,
    /// Earlier plans that are not in the view yet.
    pub earlier: Option<&'a PlannedEdges>,
    /// The current plan, which requests extend.
    pub planned: &'a mut PlannedEdges,
    /// The time of the next event; it advances where a later follow has to be newer.
    pub floor: &'a mut Timestamp,
}

impl<V: EdgeView> EdgePlanner<'_, V> {
    /// Plans one request: appends its events, and returns for each command whether it changes anything. A refused request has
    /// no effect.
    pub fn plan(&mut self, request: &WriteRequest, events: &mut Vec<EdgeEvent>) -> Result<Effects> {
        let (before, floor) = (events.len(), *self.floor);
        self.planned.undo.clear();
        let mut changed = Effects::with_capacity(request.commands.len());
        for command in request.edge_commands() {
            match self.plan_one(request, command) {
                Ok(event) => {
                    changed.push(event.is_some());
                    events.extend(event);
                }
                Err(error) => {
                    self.undo();
                    events.truncate(before);
                    *self.floor = floor;
                    return Err(error);
                }
            }
        }
        Ok(changed)
    }

    fn plan_one(
        &mut self,
        request: &WriteRequest,
        EdgeCommand { action, edge }: EdgeCommand,
    ) -> Result<Option<EdgeEvent>> {
        let key = (request.kind, edge);
        let own = self.planned.edges.get(&key).copied();
        let planned = own.or_else(|| self.earlier?.edges.get(&key).copied());
        let (stored, following) = self.view.examine(request.kind, edge);
        let exists = planned.map_or(stored, |state| state.is_some());
        let removed_since = match (action, exists) {
            (EdgeAction::Follow, true) | (EdgeAction::Unfollow, false) => return Ok(None),
            (EdgeAction::Follow, false) => {
                self.require_room(request, following)?;
                None
            }
            (EdgeAction::Unfollow, true) => match planned.flatten() {
                Some(since) => Some(since),
                None => Some(self.view.since(request.kind, edge)?),
            },
        };
        let event = EdgeEvent { kind: request.kind, edge, at: *self.floor, removed_since };
        let (state, step) = if removed_since.is_none() { (Some(event.at), 1) } else { (None, -1) };
        let user = (request.kind, edge.follower);
        let following = self.planned.following.get(&user).copied();
        self.planned.undo.push(Undo { key, edge: own, following });
        self.planned.edges.insert(key, state);
        self.planned.following.insert(user, following.unwrap_or(0) + step);
        if let Some(since) = removed_since {
            // A later follow of this pair must be at least a millisecond newer.
            *self.floor = (*self.floor).max(since.plus_millis(1));
        }
        Ok(Some(event))
    }

    fn require_room(&self, request: &WriteRequest, stored: u64) -> Result<()> {
        let user = (request.kind, request.follower);
        let change = |planned: &PlannedEdges| planned.following.get(&user).copied().unwrap_or(0);
        let planned = change(self.planned) + self.earlier.map_or(0, change);
        let limit = request.following_limit;
        if stored as i64 + planned < i64::from(limit) {
            Ok(())
        } else {
            Err(Error::FollowingLimit { follower: request.follower.to_string(), limit })
        }
    }

    fn undo(&mut self) {
        while let Some(Undo { key, edge, following }) = self.planned.undo.pop() {
            match edge {
                Some(state) => self.planned.edges.insert(key, state),
                None => self.planned.edges.remove(&key),
            };
            let user = (key.0, key.1.follower);
            match following {
                Some(count) => self.planned.following.insert(user, count),
                None => self.planned.following.remove(&user),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::graph::FollowerCommand;

    const KIND: EdgeKind = EdgeKind::Follow;

    fn edge(followee: u64) -> Edge {
        Edge { follower: Id::Integer(1), followee: Id::Integer(followee) }
    }

    fn request(limit: u32, commands: &[i64]) -> WriteRequest {
        let command = |&number: &i64| FollowerCommand {
            action: if number > 0 { EdgeAction::Follow } else { EdgeAction::Unfollow },
            followee: Id::Integer(number.unsigned_abs()),
        };
        let commands = commands.iter().map(command).collect();
        WriteRequest { kind: KIND, follower: Id::Integer(1), commands, following_limit: limit }
    }

    /// The edges of user 1.
    #[derive(Default)]
    struct Edges(BTreeMap<Edge, Timestamp>);

    impl EdgeView for Edges {
        fn examine(&self, _: EdgeKind, edge: Edge) -> (bool, u64) {
            (self.0.contains_key(&edge), self.0.len() as u64)
        }

        fn since(&self, _: EdgeKind, edge: Edge) -> Result<Timestamp> {
            self.0.get(&edge).copied().ok_or(Error::Closed)
        }
    }

    struct Scene {
        view: Edges,
        earlier: PlannedEdges,
        planned: PlannedEdges,
        floor: Timestamp,
        events: Vec<EdgeEvent>,
    }

    impl Scene {
        fn new(edges: &[(u64, u64)], floor: u64) -> Self {
            let since = |&(followee, at)| (edge(followee), Timestamp::from_millis(at));
            Self {
                view: Edges(edges.iter().map(since).collect()),
                earlier: PlannedEdges::default(),
                planned: PlannedEdges::default(),
                floor: Timestamp::from_millis(floor),
                events: Vec::new(),
            }
        }

        fn plan(&mut self, limit: u32, commands: &[i64]) -> Result<Effects> {
            let Self { view, earlier, planned, floor, events } = self;
            let mut planner = EdgePlanner { view, earlier: Some(earlier), planned, floor };
            planner.plan(&request(limit, commands), events)
        }

        /// What was planned so far is on its way, and not in the view yet.
        fn next_batch(&mut self) {
            self.earlier = std::mem::take(&mut self.planned);
        }

        fn told(&self) -> Vec<(i64, u64)> {
            let number = |event: &EdgeEvent| match event.edge.followee {
                Id::Integer(id) if event.removed_since.is_none() => id as i64,
                Id::Integer(id) => -(id as i64),
                Id::Uuid(_) => 0,
            };
            self.events.iter().map(|event| (number(event), event.at.millis())).collect()
        }
    }

    #[test]
    fn repeating_changes_nothing() {
        let mut scene = Scene::new(&[(2, 5)], 10);
        assert_eq!(
            scene.plan(9, &[2, 3, 3, -4, -3, -3]).unwrap()[..],
            [false, true, false, false, true, false]
        );
        assert_eq!(scene.told(), [(3, 10), (-3, 10)]);
        assert_eq!(scene.events[1].removed_since, Some(Timestamp::from_millis(10)));
    }

    #[test]
    fn a_follow_after_an_unfollow_is_newer_than_the_follow_before() {
        let mut scene = Scene::new(&[(2, 20)], 10);
        assert_eq!(scene.plan(9, &[-2]).unwrap()[..], [true]);
        scene.next_batch();
        assert_eq!(scene.plan(9, &[2, -2, 2]).unwrap()[..], [true; 3]);
        assert_eq!(scene.told(), [(-2, 10), (2, 21), (-2, 21), (2, 22)]);
    }

    #[test]
    fn the_limit_counts_what_is_stored_on_its_way_and_planned() {
        let mut scene = Scene::new(&[(2, 1)], 10);
        scene.plan(3, &[3]).unwrap();
        scene.next_batch();
        scene.plan(3, &[4]).unwrap();
        assert!(matches!(scene.plan(3, &[5]), Err(Error::FollowingLimit { limit: 3, .. })));
        assert_eq!(scene.plan(3, &[-2, 5]).unwrap()[..], [true, true]);
    }

    #[test]
    fn a_refused_request_leaves_nothing_behind() {
        let mut scene = Scene::new(&[(2, 50)], 10);
        scene.plan(3, &[3]).unwrap();
        let before = (scene.told(), scene.floor);
        assert!(scene.plan(3, &[-2, -3, 3, 4, 5, 6]).is_err());
        assert_eq!((scene.told(), scene.floor), before);
        assert_eq!(scene.plan(3, &[2, 3, 4]).unwrap()[..], [false, false, true], "as if it had not been");
        assert!(scene.plan(3, &[5]).is_err(), "the limit counts as before");
    }
}
