//! The single writer: takes what waits, syncs once, makes it visible, answers. What a request changes is decided elsewhere.
//!
//! Everything that changes the store goes through this thread, in order. Readers never wait for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kinfolk_core::comments::{
    CommentEdit, CommentId, CommentWritten, Moderator, NewComment, Parent, Withdrawal,
};
use kinfolk_core::feeds::{NewPost, PostWritten, WriteOutcome};
use kinfolk_core::graph::{Receipt, WriteRequest};
use kinfolk_core::{Clock, Error, Id, Result, Timestamp};
use tokio::sync::{mpsc, oneshot};

use super::batch::{Batch, Beginning, Decided, Pending};
use super::open::Opened;
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
/// So many bytes of a payload count as a command.
const COMMAND_BYTES: usize = 32;
/// How many sealed layers and un-merged runs may pile up before writers wait for background work.
const SEALED_MAX: usize = 3;
const RUNS_MAX: usize = 40;

/// What the writer is asked to do.
pub enum Command {
    /// Decide a request and answer once it is durable and visible.
    Request(Queued),
    /// Run something between two batches, alone.
    Run(Box<dyn FnOnce(&mut Writer) + Send>),
}

/// A request that waits for the writer.
pub struct Queued {
    pub request: Request,
    /// Since when it waits.
    pub at: Instant,
    /// Where to note what happens when, if somebody wants to know.
    pub times: Option<Arc<WriteTimes>>,
}

/// Where an answer goes.
pub type Reply<T> = oneshot::Sender<Result<T>>;

/// What is to be changed, and where the answer goes.
pub enum Request {
    /// Make or remove edges, each request by itself.
    Write(Vec<WriteRequest>, Reply<Vec<Result<Receipt>>>),
    /// Register a post.
    Register(Box<NewPost>, Reply<PostWritten>),
    /// Delete a post.
    DeletePost(Id, Reply<WriteOutcome>),
    /// Write a comment.
    Comment(Box<NewComment>, Reply<CommentWritten>),
    /// Edit a comment.
    EditComment(Box<CommentEdit>, Reply<CommentWritten>),
    /// Take a comment back, and record the moderator if there is one.
    WithdrawComment(Box<(CommentId, Withdrawal, Option<Moderator>)>, Reply<WriteOutcome>),
    /// Lock a thread, or unlock it.
    LockThread(Parent, bool, Reply<WriteOutcome>),
}

impl Request {
    /// How much it adds to a batch, in commands.
    fn weight(&self) -> usize {
        match self {
            Self::Write(requests, _) => requests.iter().map(|request| request.commands.len().max(1)).sum(),
            Self::Register(post, _) => {
                1 + post.payload.as_ref().map_or(0, |payload| payload.len() / COMMAND_BYTES)
            }
            Self::Comment(request, _) => 1 + request.body.len() / COMMAND_BYTES,
            Self::EditComment(edit, _) => 1 + edit.body.len() / COMMAND_BYTES,
            Self::WithdrawComment(request, _) => match &request.1 {
                Withdrawal::Remove(reason) => 1 + reason.len() / COMMAND_BYTES,
                Withdrawal::Delete | Withdrawal::Purge => 1,
            },
            Self::DeletePost(..) | Self::LockThread(..) => 1,
        }
    }

    fn decide(self, batch: &mut Batch<'_>) -> Answer {
        match self {
            Self::Write(requests, reply) => Answer::Written(reply, batch.decide_all(&requests)),
            Self::Register(post, reply) => Answer::Posted(reply, batch.register(*post).map(Box::new)),
            Self::DeletePost(id, reply) => Answer::Removed(reply, batch.delete_post(id)),
            Self::Comment(request, reply) => Answer::Commented(reply, batch.comment(*request).map(Box::new)),
            Self::EditComment(edit, reply) => {
                Answer::Commented(reply, batch.edit_comment(*edit).map(Box::new))
            }
            Self::WithdrawComment(request, reply) => {
                let (id, withdrawal, by) = *request;
                Answer::Removed(reply, batch.withdraw_comment(id, withdrawal, by))
            }
            Self::LockThread(parent, locked, reply) => {
                Answer::Removed(reply, batch.lock_comment_thread(parent, locked))
            }
        }
    }

    fn refuse(self, error: Error) {
        match self {
            Self::Write(_, reply) => drop(reply.send(Err(error))),
            Self::Register(_, reply) => drop(reply.send(Err(error))),
            Self::Comment(_, reply) | Self::EditComment(_, reply) => drop(reply.send(Err(error))),
            Self::DeletePost(_, reply) | Self::WithdrawComment(_, reply) | Self::LockThread(_, _, reply) => {
                drop(reply.send(Err(error)));
            }
        }
    }
}

/// The reply to a request, sent when its batch is durable and visible.
enum Answer {
    Written(Reply<Vec<Result<Receipt>>>, Vec<Result<Receipt>>),
    Posted(Reply<PostWritten>, Result<Box<PostWritten>>),
    Removed(Reply<WriteOutcome>, Result<WriteOutcome>),
    Commented(Reply<CommentWritten>, Result<Box<CommentWritten>>),
}

impl Answer {
    /// The caller may have disconnected; dropping the reply is fine.
    fn send(self) {
        match self {
            Self::Written(reply, answers) => drop(reply.send(Ok(answers))),
            Self::Posted(reply, answer) => drop(reply.send(answer.map(|posted| *posted))),
            Self::Removed(reply, answer) => drop(reply.send(answer)),
            Self::Commented(reply, answer) => drop(reply.send(answer.map(|commented| *commented))),
        }
    }

    /// Replies that the batch failed.
    fn refuse(self, error: &Error) {
        match self {
            Self::Written(reply, answers) => {
                let refused = answers.into_iter().map(|answer| answer.and(Err(error.clone())));
                drop(reply.send(Ok(refused.collect())));
            }
            Self::Posted(reply, answer) => drop(reply.send(answer.and(Err(error.clone())))),
            Self::Removed(reply, answer) => drop(reply.send(answer.and(Err(error.clone())))),
            Self::Commented(reply, answer) => drop(reply.send(answer.and(Err(error.clone())))),
        }
    }
}

/// The writer's state.
pub struct Writer {
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

/// A batch that is in the log: it becomes visible, and its requests are answered, when it is synced.
struct Logged {
    decided: Decided,
    answers: Vec<Answer>,
    /// Of those of its requests that are traced.
    times: Vec<Arc<WriteTimes>>,
}

impl Writer {
    /// A writer at the end of the log.
    pub fn new(Opened { store, log, floor, ids }: Opened, clock: Arc<dyn Clock>) -> Self {
        Self { store, log, clock, floor, ids, logged: None, spare: Pending::default() }
    }

    /// Works until nobody can send any more.
    pub fn run(mut self, mut queue: mpsc::Receiver<Command>) -> Self {
        let mut waiting = Vec::new();
        while self.receive(&mut queue, &mut waiting) {
            let (mut writes, mut commands) = (Vec::new(), 0);
            for command in waiting.drain(..) {
                match command {
                    Command::Request(queued) => {
                        commands += queued.request.weight();
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
    pub fn now(&self) -> Timestamp {
        self.floor.max(self.clock.now())
    }

    /// Decides requests and brings what they change into the log. They are answered later.
    fn commit(&mut self, requests: Vec<Queued>) {
        if requests.is_empty() {
            return;
        }
        let times = self.note_taken(&requests);
        if let Some(reason) = self.log.failure() {
            // Not even "nothing to change" is known any more: what failed may be found in the log by the next start.
            let reason = reason.to_owned();
            requests
                .into_iter()
                .for_each(|queued| queued.request.refuse(Error::ReadOnly { reason: reason.clone() }));
            return;
        }
        let earlier = self.logged.as_ref().map(|logged| &logged.decided);
        let beginning = Beginning {
            pending: std::mem::take(&mut self.spare),
            ids: &mut self.ids,
            first: self.log.next(),
            now: self.clock.now(),
            earliest: self.floor,
        };
        let mut batch = Batch::new(&self.store, earlier, beginning);
        batch.events.reserve(requests.len());
        let answers = requests.into_iter().map(|queued| queued.request.decide(&mut batch)).collect();
        let (decided, floor) = batch.finish();
        let written = self.write(&decided.events, floor);
        let batch = Logged { decided, answers, times };
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
            Err(error) => self.refuse(logged, &error.into()),
        }
    }

    /// Makes the logged batch, which is durable, visible, and answers its requests.
    fn publish(&mut self) {
        let Some(Logged { decided: Decided { events, pending }, answers, times }) = self.logged.take() else {
            return;
        };
        if let Err(error) = self.store.publish(&events) {
            // It is in the log: the next start applies it.
            let error = self.refuse_from_now_on(&error.to_string());
            return self.refuse(Logged { decided: Decided { events, pending }, answers, times }, &error);
        }
        self.store.seal_if_large();
        self.store.counters.batch(answers.len(), events.len());
        answers.into_iter().for_each(Answer::send);
        self.reuse(pending);
    }

    /// Makes everything that was taken durable and visible.
    fn settle(&mut self) {
        self.finish_sync();
        self.publish();
    }

    /// Answers all requests of a batch with an error: each reply depends on the requests before it.
    fn refuse(&mut self, batch: Logged, error: &Error) {
        batch.answers.into_iter().for_each(|answer| answer.refuse(error));
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
    pub fn refuse_from_now_on(&mut self, reason: &str) -> Error {
        self.store.health.refuse_writes(reason);
        Error::ReadOnly { reason: reason.to_owned() }
    }

    /// Makes events durable. Making them visible is the caller's next step. For work between two batches.
    pub fn log_durably(&mut self, events: &[Event], floor: Timestamp) -> Result<()> {
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
            if let Some(reason) = self.store.health.refusal() {
                return Err(Error::ReadOnly { reason: reason.to_owned() });
            }
            self.store.signal.wake();
            self.store.compacting.wake();
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Writer {
    /// Periodic work on the log: the mark, and retention.
    pub fn tend_log(&mut self) -> Result<()> {
        self.log.sync_mark()?;
        self.log.trim(&self.store.retention(self.clock.now()))
    }
}
