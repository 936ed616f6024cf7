//! What a batch of requests changes, decided one after another before anything is written. Nothing is written here.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand, Receipt, WriteRequest};
use kinfolk_core::{EdgeKind, Error, Id, Position, Result, Timestamp};

use crate::log::{Event, EventBody};
use crate::made::Made;
use crate::posts::{FollowerSteps, PendingPosts};
use crate::store::Store;
use crate::threads::PendingThreads;

/// The most commands in one request: a frame must stay readable in one piece.
const COMMANDS_MAX: usize = 100_000;

/// Where the store after a batch differs from what is visible.
#[derive(Default)]
pub struct Pending {
    edges: HashMap<(EdgeKind, Edge), Option<Timestamp>, RandomState>,
    following: HashMap<(EdgeKind, Id), i64, RandomState>,
    pub posts: PendingPosts,
    pub threads: PendingThreads,
}

impl Pending {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.edges.clear();
        self.following.clear();
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
    first: Position,
    pub events: Vec<Event>,
}

/// What a command replaced, to take a refused request back.
struct Undo {
    key: (EdgeKind, Edge),
    edge: Option<Option<Timestamp>>,
    following: Option<i64>,
}

impl<'a> Batch<'a> {
    /// A batch whose first event will have the position `first`, at the time that the clock shows or, if it is later, the
    /// earliest that may be given out.
    pub fn new(
        store: &'a Store,
        earlier: Option<&'a Decided>,
        (pending, made): (Pending, &'a mut Made),
        first: Position,
        (now, earliest): (Timestamp, Timestamp),
    ) -> Self {
        let (follower_steps, floor, events) = (FollowerSteps::default(), earliest.max(now), Vec::new());
        Self { store, earlier, pending, made, follower_steps, now, floor, first, events }
    }

    /// What was decided, and the earliest time that may be given out afterwards.
    pub fn finish(self) -> (Decided, Timestamp) {
        (Decided { events: self.events, pending: self.pending }, self.floor)
    }

    /// Decides a request about edges.
    pub fn decide(&mut self, request: &WriteRequest) -> Result<Receipt> {
        let given = request.commands.len();
        if given > COMMANDS_MAX {
            return Err(Error::TooMany { what: "commands", given, max: COMMANDS_MAX });
        }
        let (events, floor) = (self.events.len(), self.floor);
        let mut undo = Vec::with_capacity(given);
        let mut changed = Vec::with_capacity(given);
        for command in &request.commands {
            match self.decide_one(request, *command, &mut undo) {
                Ok(change) => changed.push(change),
                Err(error) => {
                    self.take_back(undo);
                    self.events.truncate(events);
                    self.floor = floor;
                    return Err(error);
                }
            }
        }
        Ok(Receipt { position: self.position(), changed })
    }

    /// The position after everything that was decided so far.
    pub fn position(&self) -> Position {
        Position(self.next().0 - 1)
    }

    fn next(&self) -> Position {
        Position(self.first.0 + self.events.len() as u64)
    }

    /// Adds an event.
    pub fn push(&mut self, kind: EdgeKind, body: EventBody) {
        self.events.push(Event { position: self.next(), at: self.floor, kind, body });
    }

    fn decide_one(
        &mut self,
        request: &WriteRequest,
        command: EdgeCommand,
        undo: &mut Vec<Undo>,
    ) -> Result<bool> {
        let (kind, edge) = (request.kind, command.edge);
        let own = self.pending.edges.get(&(kind, edge)).copied();
        let pending = own.or_else(|| self.earlier?.pending.edges.get(&(kind, edge)).copied());
        let (stored, following) = self.store.index.examine(kind, edge);
        let exists = pending.map_or(stored, |state| state.is_some());
        let body = match (command.action, exists) {
            (EdgeAction::Follow, true) | (EdgeAction::Unfollow, false) => return Ok(false),
            (EdgeAction::Follow, false) => {
                self.require_room(request, edge.follower, following)?;
                EventBody::Followed(edge)
            }
            (EdgeAction::Unfollow, true) => {
                let since = match pending.flatten() {
                    Some(since) => since,
                    None => self.store.stored_since(kind, edge)?,
                };
                EventBody::Unfollowed(edge, since)
            }
        };
        let (state, step) = match body {
            EventBody::Followed(_) => (Some(self.floor), 1),
            _ => (None, -1),
        };
        let following = self.pending.following.get(&(kind, edge.follower)).copied();
        undo.push(Undo { key: (kind, edge), edge: own, following });
        self.pending.edges.insert((kind, edge), state);
        self.pending.following.insert((kind, edge.follower), following.unwrap_or(0) + step);
        // A later follow of this pair must be at least a millisecond newer.
        let floor = match body {
            EventBody::Unfollowed(_, since) => self.floor.max(since.plus_millis(1)),
            _ => self.floor,
        };
        self.push(kind, body);
        self.floor = floor;
        Ok(true)
    }

    fn require_room(&self, request: &WriteRequest, follower: Id, stored: u64) -> Result<()> {
        let user = (request.kind, follower);
        let change = |pending: &Pending| pending.following.get(&user).copied().unwrap_or(0);
        let pending = change(&self.pending) + self.earlier.map_or(0, |earlier| change(&earlier.pending));
        if stored as i64 + pending < i64::from(request.following_limit) {
            Ok(())
        } else {
            Err(Error::FollowingLimit { follower: follower.to_string(), limit: request.following_limit })
        }
    }

    fn take_back(&mut self, undo: Vec<Undo>) {
        for Undo { key, edge, following } in undo.into_iter().rev() {
            match edge {
                Some(state) => self.pending.edges.insert(key, state),
                None => self.pending.edges.remove(&key),
            };
            let user = (key.0, key.1.follower);
            match following {
                Some(count) => self.pending.following.insert(user, count),
                None => self.pending.following.remove(&user),
            };
        }
    }
}
