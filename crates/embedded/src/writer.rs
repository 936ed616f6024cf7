//! The single writer: takes what waits, decides, syncs once, makes it visible, answers.
//!
//! Everything that changes the store goes through this thread, in order. Readers never wait for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

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
/// The most commands that share a sync: a frame must stay readable in one piece.
const BATCH_COMMANDS_MAX: usize = 1_000_000;
/// How many sealed layers and un-merged runs may pile up before writers wait for background work.
const SEALED_MAX: usize = 3;
const RUNS_MAX: usize = 40;

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
    /// The batch that is logged, but not visible yet.
    logged: Option<Logged>,
    /// Emptied, kept for its memory.
    spare: Pending,
}

/// Where the graph after a batch differs from the index.
#[derive(Default)]
struct Pending {
    edges: HashMap<(EdgeKind, Edge), Option<Timestamp>, RandomState>,
    following: HashMap<(EdgeKind, Id), i64, RandomState>,
}

/// A batch that is in the log: it becomes visible, and its requests are answered, when it is synced.
struct Logged {
    events: Vec<Event>,
    answers: Vec<Answer>,
    pending: Pending,
}

type Reply = oneshot::Sender<Result<Receipt>>;
type Answer = (Reply, Result<Receipt>);

impl Writer {
    /// A writer at the end of the log.
    pub fn new(store: Arc<Store>, log: LogWriter, clock: Arc<dyn Clock>, floor: Timestamp) -> Self {
        Self { store, log, clock, floor, logged: None, spare: Pending::default() }
    }

    /// Works until nobody can send any more.
    pub fn run(mut self, mut queue: mpsc::Receiver<Command>) -> Self {
        let mut waiting = Vec::new();
        while self.receive(&mut queue, &mut waiting) {
            let (mut writes, mut commands) = (Vec::new(), 0);
            for command in waiting.drain(..) {
                match command {
                    Command::Write(request, reply) => {
                        commands += request.commands.len();
                        writes.push((request, reply));
                        if commands >= BATCH_COMMANDS_MAX {
                            self.commit(std::mem::take(&mut writes));
                            self.settle();
                            commands = 0;
                        }
                    }
                    Command::Run(work) => {
                        self.commit(std::mem::take(&mut writes));
                        self.settle();
                        work(&mut self);
                    }
                }
            }
            self.commit(writes);
        }
        self
    }

    /// Waits for commands. After a sync it takes those that wait already, so that the next sync is under way while
    /// the batch before it is made visible.
    fn receive(&mut self, commands: &mut mpsc::Receiver<Command>, waiting: &mut Vec<Command>) -> bool {
        if self.logged.is_some() {
            self.finish_sync();
            while waiting.len() < BATCH_REQUESTS_MAX
                && let Ok(command) = commands.try_recv()
            {
                waiting.push(command);
            }
            if !waiting.is_empty() {
                return true;
            }
            self.publish();
        }
        commands.blocking_recv_many(waiting, BATCH_REQUESTS_MAX) > 0
    }

    /// The time for a new event: the clock's, but never earlier than an older event's.
    pub fn now(&self) -> Timestamp {
        self.floor.max(self.clock.now())
    }

    /// Decides requests and brings what they change into the log. They are answered later.
    fn commit(&mut self, requests: Vec<(WriteRequest, Reply)>) {
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
        let mut batch = Batch {
            store: &self.store,
            earlier: self.logged.as_ref().map(|logged| &logged.pending),
            pending: std::mem::take(&mut self.spare),
            floor: self.now(),
            first: self.log.next(),
            events: Vec::with_capacity(requests.len()),
        };
        let answers: Vec<Answer> =
            requests.into_iter().map(|(request, reply)| (reply, batch.decide(&request))).collect();
        let Batch { pending, floor, events, .. } = batch;
        let decided = Logged { events, answers, pending };
        if let Err(error) = self.write(&decided.events, floor) {
            return self.refuse(decided, &error);
        }
        if self.logged.is_some() {
            self.log.begin_sync();
            self.publish();
        }
        self.logged = Some(decided);
    }

    /// Makes the logged batch durable, if there is one.
    fn finish_sync(&mut self) {
        let Some(logged) = self.logged.take_if(|logged| !logged.events.is_empty()) else { return };
        let started = Instant::now();
        let synced = self.log.finish_sync();
        self.store.counters.synced(started.elapsed());
        match synced {
            Ok(()) => self.logged = Some(logged),
            Err(error) => {
                let error = Error::from(error);
                self.store.fail(&error.to_string());
                self.refuse(logged, &error);
            }
        }
    }

    /// Makes the logged batch, which is durable, visible, and answers its requests.
    fn publish(&mut self) {
        let Some(Logged { events, answers, pending }) = self.logged.take() else { return };
        self.store.publish(&events);
        self.store.seal_if_large();
        self.store.counters.batch(answers.len(), events.len());
        for (reply, answer) in answers {
            // A caller that went away does not want to know.
            let _ = reply.send(answer);
        }
        self.reuse(pending);
    }

    /// Makes everything that was taken durable and visible.
    fn settle(&mut self) {
        self.finish_sync();
        self.publish();
    }

    /// Answers all requests of a batch with an error: what each was told depends on those before it.
    fn refuse(&mut self, batch: Logged, error: &Error) {
        for (reply, answer) in batch.answers {
            let _ = reply.send(answer.and(Err(error.clone())));
        }
        self.reuse(batch.pending);
    }

    fn reuse(&mut self, mut pending: Pending) {
        pending.edges.clear();
        pending.following.clear();
        self.spare = pending;
    }

    fn write(&mut self, events: &[Event], floor: Timestamp) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        if self.is_behind() {
            // What is durable must not wait for maintenance as well.
            self.publish();
            self.wait_for_maintenance()?;
        }
        let mut frame = FrameBuilder::new(self.log.next());
        events.iter().for_each(|event| frame.push(event));
        let newest_at = events.last().map_or(floor, |event| event.at);
        self.log.write(&frame.finish(floor), events.len() as u64, newest_at)?;
        self.floor = self.floor.max(floor);
        self.store.floor.store(self.floor.millis(), Ordering::Release);
        Ok(())
    }

    /// Refuses every later write until the store is opened again.
    pub fn refuse_from_now_on(&mut self, reason: &str) -> Error {
        self.log.refuse_from_now_on(reason);
        self.store.fail(reason);
        Error::ReadOnly { reason: reason.to_owned() }
    }

    /// Makes events durable. Making them visible is the caller's next step. For work between two batches.
    pub fn log_durably(&mut self, events: &[Event], floor: Timestamp) -> Result<()> {
        self.write(events, floor)?;
        self.log.finish_sync().map_err(|error| {
            let error = Error::from(error);
            self.store.fail(&error.to_string());
            error
        })
    }

    /// Whether rows come in faster than they can be written to disk.
    fn is_behind(&self) -> bool {
        let (sealed, runs) = self.store.rows.backlog();
        sealed >= SEALED_MAX || runs >= RUNS_MAX
    }

    /// Lets maintenance catch up.
    fn wait_for_maintenance(&self) -> Result<()> {
        while self.is_behind() {
            if let Some(error) = self.store.maintenance_failure() {
                return Err(error);
            }
            self.store.signal.wake();
            self.store.merging.wake();
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// Decides what requests change, one after another, before anything is written.
struct Batch<'a> {
    store: &'a Store,
    /// What the batch before this one changes, where it is not visible yet.
    earlier: Option<&'a Pending>,
    pending: Pending,
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
        let own = self.pending.edges.get(&(kind, edge)).copied();
        let pending = own.or_else(|| self.earlier?.edges.get(&(kind, edge)).copied());
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
        self.events.push(Event { position: self.next(), at: self.floor, kind, body });
        if let EventBody::Unfollowed(_, since) = body {
            // A later follow of this pair must be at least a millisecond newer.
            self.floor = self.floor.max(since.plus_millis(1));
        }
        Ok(true)
    }

    fn require_room(&self, request: &WriteRequest, follower: Id, stored: u64) -> Result<()> {
        let user = (request.kind, follower);
        let change = |pending: &Pending| pending.following.get(&user).copied().unwrap_or(0);
        let pending = change(&self.pending) + self.earlier.map_or(0, change);
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
