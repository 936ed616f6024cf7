//! The single writer: takes what waits, syncs once, makes it visible, replies. What a request changes is planned elsewhere.
//!
//! Everything that changes the store goes through this thread, in order. Readers never wait for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kinfolk_core::{Clock, Error, Result, Timestamp};
use tokio::sync::mpsc;

use super::batch::{Batch, Decided, Pending};
use super::open::Opened;
use super::request::Request;
use super::store::Store;
use crate::disk::format::Content;
use crate::engine::id_generator::IdGenerators;
use crate::log::{Event, EventBody, FrameBuilder, LogWriter};
use crate::lsm::Backlog;
use crate::runtime::layers::{Layer, SyncTime, WriteTimes};

/// The most requests that share a sync.
const BATCH_REQUESTS_MAX: usize = 4_096;
/// The most commands that share a sync: a frame must stay readable in one piece.
const BATCH_COMMANDS_MAX: usize = 1_000_000;
/// How many sealed layers and un-merged runs may pile up before writers wait for background work.
const SEALED_MAX: usize = 3;
const RUNS_MAX: usize = 40;

/// What the writer is asked to do.
pub(crate) enum Command {
    /// Plan a request and reply once it is durable and visible.
    Request(Queued),
    /// Run something between two batches, alone.
    Run(Box<dyn FnOnce(&mut Writer) + Send>),
}

/// A request that waits for the writer.
pub(crate) struct Queued {
    pub request: Box<dyn Request>,
    /// How much it adds to a batch, in commands.
    pub weight: usize,
    /// Since when it waits.
    pub at: Instant,
    /// Where to note what happens when, if somebody wants to know.
    pub times: Option<Arc<WriteTimes>>,
}

/// The writer's state.
pub(crate) struct Writer {
    pub(crate) store: Arc<Store>,
    pub(crate) log: LogWriter,
    clock: Arc<dyn Clock>,
    /// The earliest `since` or `at` that may be given out.
    floor: Timestamp,
    /// Makes ids for posts and comments.
    ids: IdGenerators,
    /// The batch that is logged, but not visible yet.
    logged: Option<Logged>,
    /// Emptied, kept for its memory.
    spare: Pending,
}

/// A batch that is in the log: it becomes visible, and its callers get their results, when it is synced.
struct Logged {
    decided: Decided,
    requests: Vec<Box<dyn Request>>,
    /// Of those of its requests that are traced.
    times: Vec<Arc<WriteTimes>>,
}

impl Writer {
    /// A writer at the end of the log.
    pub(crate) fn new(Opened { store, log, floor, ids }: Opened, clock: Arc<dyn Clock>) -> Self {
        Self { store, log, clock, floor, ids, logged: None, spare: Pending::default() }
    }

    /// Works until nobody can send any more.
    pub(crate) fn run(mut self, mut queue: mpsc::Receiver<Command>) -> Self {
        let mut waiting = Vec::new();
        while self.receive(&mut queue, &mut waiting) {
            let (mut writes, mut commands) = (Vec::new(), 0);
            for command in waiting.drain(..) {
                match command {
                    Command::Request(queued) => {
                        commands += queued.weight;
                        writes.push(queued);
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
    pub(crate) fn now(&self) -> Timestamp {
        self.floor.max(self.clock.now())
    }

    /// Plans requests and brings what they change into the log. Their callers get the results later.
    fn commit(&mut self, requests: Vec<Queued>) {
        if requests.is_empty() {
            return;
        }
        let times = self.note_taken(&requests);
        if let Err(error) = self.log.require_writable() {
            // Not even "nothing to change" is known any more: what failed may be found in the log by the next start.
            return requests.into_iter().for_each(|queued| queued.request.reply(Some(&error)));
        }
        let earlier = self.logged.as_ref().map(|logged| &logged.decided);
        let now = self.clock.now();
        let mut batch = Batch {
            store: &self.store,
            earlier,
            pending: std::mem::take(&mut self.spare),
            ids: &mut self.ids,
            now,
            floor: self.floor.max(now),
            first: self.log.next(),
            events: Vec::with_capacity(requests.len()),
            edge_events: Vec::new(),
        };
        let mut requests: Vec<_> = requests.into_iter().map(|queued| queued.request).collect();
        requests.iter_mut().for_each(|request| request.plan(&mut batch));
        let Batch { events, pending, floor, .. } = batch;
        let written = self.write(&events, floor);
        let batch = Logged { decided: Decided { events, pending }, requests, times };
        if let Err(error) = written {
            return self.refuse(batch, &error);
        }
        if self.logged.is_some() {
            self.log.begin_sync();
            self.publish();
        }
        self.logged = Some(batch);
    }

    /// Counts how long requests have waited; returns where those that are traced note more.
    fn note_taken(&self, requests: &[Queued]) -> Vec<Arc<WriteTimes>> {
        let taken = Instant::now();
        for queued in requests {
            self.store.layers.observe(Layer::WriterQueue, taken - queued.at);
        }
        let traced = requests.iter().filter_map(|queued| queued.times.clone());
        traced.inspect(|times| times.taken(taken)).collect()
    }

    /// Makes the logged batch durable, if there is one.
    fn finish_sync(&mut self) {
        let Some(logged) = self.logged.take_if(|logged| !logged.decided.events.is_empty()) else { return };
        let started = Instant::now();
        let synced = self.log.finish_sync();
        self.store.counters.synced(started.elapsed());
        match synced {
            Ok(took) => {
                self.store.layers.observe(Layer::LogSync, took);
                let sync = SyncTime { at: Instant::now(), took };
                logged.times.iter().for_each(|times| times.synced(sync));
                self.logged = Some(logged);
            }
            Err(error) => self.refuse(logged, &error),
        }
    }

    /// Makes the logged batch, which is durable, visible, and sends the results.
    fn publish(&mut self) {
        let Some(Logged { decided: Decided { events, pending }, requests, times }) = self.logged.take()
        else {
            return;
        };
        if let Err(error) = self.store.publish(&events) {
            // It is in the log: the next start applies it.
            let error = self.refuse_from_now_on(&error.to_string());
            return self.refuse(Logged { decided: Decided { events, pending }, requests, times }, &error);
        }
        self.store.seal_if_large();
        self.store.counters.batch(requests.len(), events.len());
        requests.into_iter().for_each(|request| request.reply(None));
        self.reuse(pending);
    }

    /// Makes everything that was taken durable and visible.
    fn settle(&mut self) {
        self.finish_sync();
        self.publish();
    }

    /// Refuses all requests of a batch: each result depends on the requests before it.
    fn refuse(&mut self, batch: Logged, error: &Error) {
        batch.requests.into_iter().for_each(|request| request.reply(Some(error)));
        self.reuse(batch.decided.pending);
    }

    fn reuse(&mut self, mut pending: Pending) {
        pending.clear();
        self.spare = pending;
    }

    fn write(&mut self, events: &[Event], floor: Timestamp) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        // Asked for each batch, most of which are of edges: a store that has everything is not asked more.
        let content = |event: &Event| match &event.body {
            EventBody::Posted(_) => Content::Posts,
            EventBody::Comment(event) if event.has_moderator() => Content::Moderators,
            EventBody::Comment(_) => Content::Comments,
            _ => Content::Edges,
        };
        if !self.store.has(Content::NEWEST)
            && let Some(content) =
                events.iter().map(content).max().filter(|&content| !self.store.has(content))
        {
            self.store.begin(content)?;
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
    pub(crate) fn refuse_from_now_on(&mut self, reason: &str) -> Error {
        self.store.health.refuse_writes(reason);
        Error::ReadOnly { reason: reason.to_owned() }
    }

    /// Makes events durable. Making them visible is the caller's next step. For work between two batches.
    pub(crate) fn log_durably(&mut self, events: &[Event], floor: Timestamp) -> Result<()> {
        self.write(events, floor)?;
        let took = self.log.finish_sync()?;
        self.store.layers.observe(Layer::LogSync, took);
        Ok(())
    }

    /// Whether rows come in faster than they can be written to disk.
    fn is_behind(&self) -> bool {
        self.store.compactable_rows().any(|rows| {
            let Backlog { sealed, runs } = rows.backlog();
            sealed >= SEALED_MAX || runs >= RUNS_MAX
        })
    }

    /// Lets maintenance catch up.
    fn wait_for_maintenance(&self) -> Result<()> {
        while self.is_behind() {
            if let Some(error) = self.store.maintenance_failure() {
                return Err(error);
            }
            // Nobody may be left to catch up.
            self.store.health.require_writable()?;
            self.store.flushing.wake();
            self.store.compacting.wake();
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Writer {
    /// Periodic work on the log: the mark, and retention.
    pub(crate) fn tend_log(&mut self) -> Result<()> {
        self.log.sync_mark()?;
        self.log.trim(&self.store.retention(self.clock.now()))
    }
}
