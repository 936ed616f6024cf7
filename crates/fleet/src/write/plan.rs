//! A batch between its reads and its writes: what was read, what the requests make of it, what each caller is answered.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use kinfolk_core::graph::{Edge, EdgePlanner, EdgeView, PlannedEdges, Receipt, WriteRequest};
use kinfolk_core::{EdgeKind, Error, Id, Position, Result, Sequence, Shard, Timestamp};
use tokio_postgres::Row;

use crate::catalog::Topology;
use crate::log::PlannedEvent;

/// What a batch is about: every edge and every follower that its requests name, each once.
#[derive(Default)]
pub(crate) struct Subjects {
    pub(super) edges: Vec<(EdgeKind, Edge)>,
    pub(super) users: Vec<(EdgeKind, Id)>,
}

impl Subjects {
    pub(super) fn of(requests: &[&WriteRequest]) -> Self {
        let users = requests.iter().map(|request| (request.kind, request.follower));
        let edges = requests
            .iter()
            .flat_map(|request| request.edge_commands().map(|command| (request.kind, command.edge)));
        Self::new(edges.collect(), users.collect())
    }

    /// Edges of one kind, with their followers.
    pub(crate) fn of_edges(kind: EdgeKind, edges: impl Iterator<Item = Edge>) -> Self {
        let edges: Vec<_> = edges.map(|edge| (kind, edge)).collect();
        let users = edges.iter().map(|&(kind, edge)| (kind, edge.follower)).collect();
        Self::new(edges, users)
    }

    fn new(edges: Vec<(EdgeKind, Edge)>, users: Vec<(EdgeKind, Id)>) -> Self {
        let mut subjects = Self { edges, users };
        subjects.edges.sort_unstable();
        subjects.edges.dedup();
        subjects.users.sort_unstable();
        subjects.users.dedup();
        subjects
    }

    /// What the statements `Edges` and `Users` have found of them.
    pub(super) fn before(&self, edges: &Row, users: &Row) -> Before {
        let mut before = Before::default();
        let (ordinals, since): (Vec<i64>, Vec<i64>) = (edges.get(0), edges.get(1));
        for (ordinal, since) in ordinals.into_iter().zip(since) {
            let key = self.edges[ordinal as usize - 1];
            before.since.insert(key, Timestamp::from_millis(since as u64));
        }
        let following: Vec<i64> = users.get(0);
        before
            .following
            .extend(self.users.iter().copied().zip(following.into_iter().map(|count| count as u64)));
        before
    }
}

/// The rows of a batch as they are before it.
#[derive(Default)]
pub(crate) struct Before {
    pub(super) since: HashMap<(EdgeKind, Edge), Timestamp, RandomState>,
    pub(super) following: HashMap<(EdgeKind, Id), u64, RandomState>,
}

impl EdgeView for Before {
    fn examine(&self, kind: EdgeKind, edge: Edge) -> (bool, u64) {
        let following = self.following.get(&(kind, edge.follower)).copied().unwrap_or(0);
        (self.since.contains_key(&(kind, edge)), following)
    }

    fn since(&self, kind: EdgeKind, edge: Edge) -> Result<Timestamp> {
        let since = self.since.get(&(kind, edge)).copied();
        since.ok_or_else(|| Error::Corrupt { detail: format!("an edge that exists has no time: {edge:?}") })
    }
}

/// The end of a shard's log.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) newest: Position,
    /// The earliest time of the next change.
    pub(crate) floor: Timestamp,
}

/// What a batch will do: a plan for each of its shards that is open.
pub(super) struct BatchPlan {
    pub(super) shards: BTreeMap<Shard, Plan>,
    /// The shard of each request.
    order: Vec<Shard>,
}

impl BatchPlan {
    /// Plans requests in their order, each by itself. Nothing is planned for a shard that has no head.
    pub(super) fn new(
        topology: &Topology,
        before: &Before,
        heads: &BTreeMap<Shard, Head>,
        requests: &[&WriteRequest],
    ) -> Self {
        let order: Vec<Shard> = requests.iter().map(|request| topology.shard_of(request.follower)).collect();
        let mut by_shard: BTreeMap<Shard, Vec<&WriteRequest>> = BTreeMap::new();
        for (&shard, request) in order.iter().zip(requests) {
            by_shard.entry(shard).or_default().push(request);
        }
        let plan = |(shard, requests): (Shard, Vec<&WriteRequest>)| {
            heads.get(&shard).map(|&head| (shard, Plan::new(before, &requests, head)))
        };
        Self { shards: by_shard.into_iter().filter_map(plan).collect(), order }
    }

    /// The plans that change something.
    pub(super) fn changing(&self) -> impl Iterator<Item = &Plan> {
        self.shards.values().filter(|plan| !plan.events.is_empty())
    }

    /// The results, if nobody knows whether the batch was committed.
    pub(super) fn into_unknown(self) -> Vec<Option<Result<Receipt>>> {
        self.into_results().into_iter().map(|planned| planned.map(|_| Err(Error::TimedOut))).collect()
    }

    /// One result for each request, in their order. None for a request of a shard without a plan.
    pub(super) fn into_results(self) -> Vec<Option<Result<Receipt>>> {
        let results = |(shard, plan): (Shard, Plan)| (shard, plan.results.into_iter());
        let mut by_shard: BTreeMap<Shard, _> = self.shards.into_iter().map(results).collect();
        self.order.iter().map(|shard| by_shard.get_mut(shard).and_then(Iterator::next)).collect()
    }
}

/// What a batch will do to one shard.
pub(super) struct Plan {
    /// The newest change before it.
    pub(super) newest: Position,
    pub(super) events: Vec<PlannedEvent>,
    /// One for each request.
    pub(super) results: Vec<Result<Receipt>>,
}

impl Plan {
    /// Plans requests in their order, each by itself, after the newest change of the shard. No event is earlier than `floor`.
    fn new(before: &Before, requests: &[&WriteRequest], Head { newest, mut floor }: Head) -> Self {
        let (mut planned, mut events) = (PlannedEdges::default(), Vec::new());
        let mut planner =
            EdgePlanner { view: before, earlier: None, planned: &mut planned, floor: &mut floor };
        let mut results = Vec::with_capacity(requests.len());
        for request in requests {
            let changed = planner.plan(request, &mut events);
            // Whether or not it changes anything: everything up to here is what the request has found or done.
            let position = Sequence(newest.sequence.0 + events.len() as u64).on(newest.shard);
            results.push(changed.map(|changed| Receipt { position, changed }));
        }
        let events = events.into_iter().map(PlannedEvent::from).collect();
        Self { newest, events, results }
    }

    /// The newest change once the batch is committed.
    pub(super) fn last(&self) -> Position {
        Sequence(self.newest.sequence.0 + self.events.len() as u64).on(self.newest.shard)
    }
}
