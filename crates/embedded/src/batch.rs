//! What a batch of requests changes, decided one after another before anything is written. Nothing is written here.

use kinfolk_core::graph::{Edge, EdgeEvent, EdgePlanner, EdgeView, PlannedEdges, Receipt, WriteRequest};
use kinfolk_core::{EdgeKind, Error, Position, Result, Sequence, Shard, Timestamp};

use crate::log::{Event, EventBody};
use crate::made::Made;
use crate::posts::{FollowerSteps, PendingPosts};
use crate::store::Store;
use crate::threads::PendingThreads;

/// The most commands that are submitted together: a frame must stay readable in one piece.
const COMMANDS_MAX: usize = 100_000;

/// Where the store after a batch differs from what is visible.
#[derive(Default)]
pub struct Pending {
    edges: PlannedEdges,
    pub posts: PendingPosts,
    pub threads: PendingThreads,
}

impl Pending {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.edges.clear();
        self.posts.clear();
        self.threads.clear();
    }
}

/// What a batch changes.
pub struct Decided {
    pub events: Vec<Event>,
    pub pending: Pending,
}

/// Decides what requests change, one after another, before anything is written.
pub struct Batch<'a> {
    pub store: &'a Store,
    /// What the batch before this one changes, where it is not visible yet.
    pub earlier: Option<&'a Decided>,
    pub pending: Pending,
    /// Makes ids for posts and comments.
    pub made: &'a mut Made,
    pub follower_steps: FollowerSteps,
    /// What the clock shows.
    pub now: Timestamp,
    /// The time of the next event.
    pub floor: Timestamp,
    first: Sequence,
    pub events: Vec<Event>,
    /// What the request at hand changes.
    edge_events: Vec<EdgeEvent>,
}

impl EdgeView for Store {
    fn examine(&self, kind: EdgeKind, edge: Edge) -> (bool, u64) {
        self.index.examine(kind, edge)
    }

    fn since(&self, kind: EdgeKind, edge: Edge) -> Result<Timestamp> {
        self.stored_since(kind, edge)
    }
}

impl<'a> Batch<'a> {
    /// A batch whose first event will have the position `first`, at the time that the clock shows or, if it is later, the
    /// earliest that may be given out.
    pub fn new(
        store: &'a Store,
        earlier: Option<&'a Decided>,
        (pending, made): (Pending, &'a mut Made),
        first: Sequence,
        (now, earliest): (Timestamp, Timestamp),
    ) -> Self {
        Self {
            store,
            earlier,
            pending,
            made,
            follower_steps: FollowerSteps::default(),
            now,
            floor: earliest.max(now),
            first,
            events: Vec::new(),
            edge_events: Vec::new(),
        }
    }

    /// What was decided, and the earliest time that may be given out afterwards.
    pub fn finish(self) -> (Decided, Timestamp) {
        (Decided { events: self.events, pending: self.pending }, self.floor)
    }

    /// Decides requests about edges, each by itself.
    pub fn decide_all(&mut self, requests: &[WriteRequest]) -> Vec<Result<Receipt>> {
        let given = requests.iter().map(|request| request.commands.len()).sum();
        if given > COMMANDS_MAX {
            return vec![Err(Error::TooMany { what: "commands", given, max: COMMANDS_MAX }); requests.len()];
        }
        requests.iter().map(|request| self.decide(request)).collect()
    }

    /// Decides a request about edges.
    pub fn decide(&mut self, request: &WriteRequest) -> Result<Receipt> {
        let mut planner = EdgePlanner {
            view: self.store,
            earlier: self.earlier.map(|earlier| &earlier.pending.edges),
            planned: &mut self.pending.edges,
            floor: &mut self.floor,
        };
        let changed = planner.plan(request, &mut self.edge_events)?;
        let first = self.next().0;
        let events = self.edge_events.drain(..).zip(first..).map(|(event, sequence)| Event {
            position: Sequence(sequence),
            at: event.at,
            kind: event.kind,
            body: match event.removed_since {
                None => EventBody::Followed(event.edge),
                Some(since) => EventBody::Unfollowed(event.edge, since),
            },
        });
        self.events.extend(events);
        Ok(Receipt { position: self.position(), changed })
    }

    /// The position after everything that was decided so far.
    pub fn position(&self) -> Position {
        Sequence(self.next().0 - 1).on(Shard::ONLY)
    }

    /// The sequence of the next event.
    pub fn next(&self) -> Sequence {
        Sequence(self.first.0 + self.events.len() as u64)
    }

    /// Adds an event.
    pub fn push(&mut self, kind: EdgeKind, body: EventBody) {
        self.events.push(Event { position: self.next(), at: self.floor, kind, body });
    }
}
