//! The single writer: takes what waits, decides, syncs once, makes it visible, answers.
//!
//! Everything that changes the store goes through this thread, in order. Readers never wait for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use foldhash::fast::RandomState;
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand, Receipt, WriteRequest};
use kinfolk_core::{Clock, EdgeKind, Error, Id, Position, Result, Timestamp};
use tokio::sync::{mpsc, oneshot};

use crate::log::{Event, EventBody, FrameBuilder, LogWriter};
use crate::store::Store;

/// The most requests that share a sync.
const BATCH_REQUESTS_MAX: usize = 4_096;
/// The most commands in one request: a frame must stay readable in one piece.
const COMMANDS_MAX: usize = 100_000;
/// How many sealed memtables and un-compacted runs may pile up before writers wait for maintenance.
const SEALED_MAX: usize = 4;
const RUNS_MAX: usize = 24;

/// What the writer is asked to do.
pub enum Command {
    /// Apply a request and answer once it is durable and visible.
    Write(WriteRequest, oneshot::Sender<Result<Receipt>>),
    /// Run something between two batches, alone.
    Run(Box<dyn FnOnce(&mut Writer) + Send>),
}

/// The writer's state.
pub struct Writer {
    pub(crate) store: Arc<Store>,
    pub(crate) log: LogWriter,
    clock: Arc<dyn Clock>,
    /// The earliest `since` or `at` that may be given out.
    floor: Timestamp,
    scratch: Scratch,
}

/// State that differs from the index: what the current batch would do, kept between batches for its memory.
#[derive(Default)]
struct Scratch {
    edges: HashMap<(EdgeKind, Edge), Option<Timestamp>, RandomState>,
    following: HashMap<(EdgeKind, Id), i64, RandomState>,
}

type Waiting = (oneshot::Sender<Result<Receipt>>, Result<Receipt>);

impl Writer {
    /// A writer at the end of the log.
    pub fn new(store: Arc<Store>, log: LogWriter, clock: Arc<dyn Clock>, floor: Timestamp) -> Self {
        Self { store, log, clock, floor, scratch: Scratch::default() }
    }

    /// Works until nobody can send any more.
    pub fn run(mut self, mut commands: mpsc::Receiver<Command>) -> Self {
        let mut waiting = Vec::new();
        while commands.blocking_recv_many(&mut waiting, BATCH_REQUESTS_MAX) > 0 {
            let mut writes = Vec::new();
            for command in waiting.drain(..) {
                match command {
                    Command::Write(request, reply) => writes.push((request, reply)),
                    Command::Run(work) => {
                        self.commit(std::mem::take(&mut writes));
                        work(&mut self);
                    }
                }
            }
            self.commit(writes);
        }
        self
    }

    /// The time for a new event: the clock's, but never earlier than an older event's.
    pub fn now(&self) -> Timestamp {
        self.floor.max(self.clock.now())
    }

    fn commit(&mut self, requests: Vec<(WriteRequest, oneshot::Sender<Result<Receipt>>)>) {
        if requests.is_empty() {
            return;
        }
        if let Some(reason) = self.log.failure() {
            // Not even "nothing to change" is known any more: what failed may be found in the log by the next start.
            for (_, reply) in requests {
                let _ = reply.send(Err(Error::ReadOnly { reason: reason.to_owned() }));
            }
            return;
        }
        let first = self.log.next();
        let now = self.now();
        let mut batch = Batch {
            store: &self.store,
            scratch: &mut self.scratch,
            floor: now,
            first,
            events: Vec::with_capacity(requests.len()),
        };
        let decided: Vec<Waiting> =
            requests.into_iter().map(|(request, reply)| (reply, batch.decide(&request))).collect();
        let (events, floor) = (std::mem::take(&mut batch.events), batch.floor);
        self.scratch.edges.clear();
        self.scratch.following.clear();
        let appended = if events.is_empty() { Ok(()) } else { self.append(&events, floor) };
        for (reply, outcome) in decided {
            // What a request was told depends on those before it in the batch: if they failed, so does it.
            let answer = appended.clone().and(outcome);
            // A caller that went away does not want to know.
            let _ = reply.send(answer);
        }
    }

    /// Makes events durable, then visible.
    pub fn append(&mut self, events: &[Event], floor: Timestamp) -> Result<()> {
        self.wait_for_maintenance()?;
        self.log_durably(events, floor)?;
        self.store.publish(events);
        self.store.seal_if_large();
        Ok(())
    }

    /// Makes events durable. Making them visible is the caller's next step.
    pub fn log_durably(&mut self, events: &[Event], floor: Timestamp) -> Result<()> {
        let mut frame = FrameBuilder::new(self.log.next());
        events.iter().for_each(|event| frame.push(event));
        let newest_at = events.last().map_or(floor, |event| event.at);
        self.log.append(&frame.finish(floor), events.len() as u64, newest_at)?;
        self.floor = self.floor.max(floor);
        self.store.floor.store(self.floor.millis(), Ordering::Release);
        Ok(())
    }

    /// Lets maintenance catch up when rows come in faster than they can be written to disk.
    fn wait_for_maintenance(&self) -> Result<()> {
        loop {
            let (sealed, runs) = self.store.rows.backlog();
            if sealed < SEALED_MAX && runs < RUNS_MAX {
                return Ok(());
            }
            if let Some(error) = self.store.maintenance_failure() {
                return Err(error);
            }
            self.store.signal.wake();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Decides what requests change, one after another, before anything is written.
struct Batch<'a> {
    store: &'a Store,
    scratch: &'a mut Scratch,
    floor: Timestamp,
    first: Position,
    events: Vec<Event>,
}

/// What a command replaced, to take a refused request back.
struct Undo {
    key: (EdgeKind, Edge),
    edge: Option<Option<Timestamp>>,
    following: Option<i64>,
}

impl Batch<'_> {
    fn decide(&mut self, request: &WriteRequest) -> Result<Receipt> {
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
        Ok(Receipt { position: Position(self.next().0 - 1), changed })
    }

    fn next(&self) -> Position {
        Position(self.first.0 + self.events.len() as u64)
    }

    fn decide_one(
        &mut self,
        request: &WriteRequest,
        command: EdgeCommand,
        undo: &mut Vec<Undo>,
    ) -> Result<bool> {
        let (kind, edge) = (request.kind, command.edge);
        let pending = self.scratch.edges.get(&(kind, edge)).copied();
        let exists = match pending {
            Some(state) => state.is_some(),
            None => self.store.index.contains(kind, edge),
        };
        let body = match (command.action, exists) {
            (EdgeAction::Follow, true) | (EdgeAction::Unfollow, false) => return Ok(false),
            (EdgeAction::Follow, false) => {
                self.require_room(request, edge.follower)?;
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
        let following = self.scratch.following.get(&(kind, edge.follower)).copied();
        undo.push(Undo { key: (kind, edge), edge: pending, following });
        self.scratch.edges.insert((kind, edge), state);
        self.scratch.following.insert((kind, edge.follower), following.unwrap_or(0) + step);
        self.events.push(Event { position: self.next(), at: self.floor, kind, body });
        if let EventBody::Unfollowed(_, since) = body {
            // A later follow of this pair must be at least a millisecond newer.
            self.floor = self.floor.max(since.plus_millis(1));
        }
        Ok(true)
    }

    fn require_room(&self, request: &WriteRequest, follower: Id) -> Result<()> {
        let stored = self.store.index.counts(request.kind, follower).following as i64;
        let pending = self.scratch.following.get(&(request.kind, follower)).copied().unwrap_or(0);
        if stored + pending < i64::from(request.following_limit) {
            Ok(())
        } else {
            Err(Error::FollowingLimit { follower: follower.to_string(), limit: request.following_limit })
        }
    }

    fn take_back(&mut self, undo: Vec<Undo>) {
        for Undo { key, edge, following } in undo.into_iter().rev() {
            match edge {
                Some(state) => self.scratch.edges.insert(key, state),
                None => self.scratch.edges.remove(&key),
            };
            let user = (key.0, key.1.follower);
            match following {
                Some(count) => self.scratch.following.insert(user, count),
                None => self.scratch.following.remove(&user),
            };
        }
    }
}

impl Writer {
    /// Periodic work on the log: the mark, and retention.
    pub fn tend_log(&mut self) -> Result<()> {
        self.log.sync_mark()?;
        let settings = &self.store.settings;
        let keep_after = self.clock.now().millis().saturating_sub(settings.log_keep.as_millis() as u64);
        let needed_after = self.store.recoverable();
        self.log.trim(settings.log_keep_bytes, Timestamp::from_millis(keep_after), needed_after)
    }
}
