//! The default store: one process, an own change log, rows in LSM trees, a check index in memory.
//!
//! A write is an event in the log first; rows and index are projections of it. See `docs/architecture.md`.

mod batch;
mod bulk;
mod changes;
mod checkpoint;
mod clock;
mod feeds;
mod figures;
mod files;
mod folder_lock;
mod format;
mod friends;
mod health;
mod index;
mod layers;
mod life;
mod log;
mod made;
mod maintenance;
mod merging;
mod newest;
mod overlap;
mod posts;
mod projection;
mod pulse;
mod raw;
mod recent;
mod reconcile;
mod remembered;
mod replay;
mod room;
mod rows;
mod settings;
mod store;
mod suggestions;
mod threads;
mod unfinished;
mod verify;
mod visibility;
mod walkers;
mod writer;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kinfolk_core::feed::{FeedStore, NewPost, Post, PostKey, PostState, PostStore, Posted, Removed};
use kinfolk_core::graph::{
    ChangeLog, Counts, Edge, EdgeStore, ListEntry, ListKey, LogSpan, Overlap, Receipt, Side, UserSet,
    WriteRequest,
};
use kinfolk_core::histogram::Snapshot;
use kinfolk_core::suggest::{
    EveryoneReport, EveryoneRequest, StoredSuggestions, Suggestion, SuggestionStore, WalkBounds,
};
use kinfolk_core::{Clock, EdgeKind, Epoch, Error, Id, IdKind, Keyring, Position, Result, Timestamp};
use tokio::sync::{mpsc, oneshot};

pub use bulk::backup::BackupReport;
pub use bulk::import::{Import, ImportOptions, ImportReport};
pub use clock::{ClockLimits, GuardedClock};
pub use figures::{Figures, SuggestionRun};
pub use layers::{LAYER_TARGET, Layer};
pub use settings::Settings;
pub use verify::VerifyReport;

use crate::feeds::Wanted;
use crate::friends::Search;
use crate::index::Scratch;
use crate::layers::WriteTimes;
use crate::life::Threads;
use crate::overlap::Plan;
use crate::rows::Tree;
use crate::store::Store;
use crate::writer::{Command, Queued, Reply, Request, Writer};

/// How far a long operation has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What is being done.
    pub stage: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// How much there is, if that is known.
    pub total: Option<u64>,
}

/// An open store; clones share it. The last one closes it when dropped.
#[derive(Clone)]
pub struct Embedded {
    // The order matters: the queue ends before the threads are waited for.
    commands: mpsc::Sender<Command>,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    threads: Arc<Threads>,
}

impl Embedded {
    pub(crate) fn shared(&self) -> &Arc<Store> {
        &self.store
    }

    /// Runs something on the writer's thread, between two batches.
    pub(crate) fn run_on_writer(&self, work: impl FnOnce(&mut Writer) + Send + 'static) -> Result<()> {
        self.commands.blocking_send(Command::Run(Box::new(work))).map_err(|_| self.store.health.gone())
    }

    /// The time that the store goes by.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The keys that sign tokens and cursors.
    pub fn keyring(&self) -> Keyring {
        self.store.keys.read().clone()
    }

    /// Puts a new signing key in front; tokens and cursors of the last few keys stay valid.
    pub fn rotate_keys(&self) -> Result<()> {
        self.store.require_folder()?;
        let mut keys = self.store.keys.write();
        *keys = format::rotate_keys(&self.store.folder, &keys)?;
        Ok(())
    }

    /// Whether an edge exists. Never waits for a disk.
    #[inline]
    pub fn follows(&self, kind: EdgeKind, edge: Edge) -> bool {
        self.store.index.contains(kind, edge)
    }

    /// As [`EdgeStore::write`], for callers without an async runtime.
    pub fn write_blocking(&self, request: WriteRequest) -> Result<Receipt> {
        let (reply, answer) = oneshot::channel();
        let queued = Queued { request: Request::Write(request, reply), at: Instant::now(), times: None };
        self.commands.blocking_send(Command::Request(queued)).map_err(|_| self.store.health.gone())?;
        answer.blocking_recv().map_err(|_| self.store.health.gone())?
    }

    /// As [`EdgeStore::list`], for callers without an async runtime.
    pub fn list_page(
        &self,
        kind: EdgeKind,
        side: Side,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> Result<Vec<ListEntry>> {
        self.store.layers.rows(|| self.store.rows.list((kind, side, of), after, limit))
    }

    /// All edges of a kind by (follower, followee), as of now, whatever is written meanwhile.
    pub fn edges(
        &self,
        kind: EdgeKind,
    ) -> Result<impl Iterator<Item = Result<(Edge, Timestamp)>> + Send + 'static> {
        self.settle_rows()?;
        let _paused = self.store.rows.pause();
        Ok(self.store.rows.scan(Tree::Pairs, kind))
    }

    /// Hands a request to the writer and waits until it is durable and visible, or refused.
    async fn request<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let gone = || self.store.health.gone();
        let (request, at, times) = (request(reply), Instant::now(), WriteTimes::if_traced());
        let queued = Queued { request, at, times: times.clone() };
        self.commands.send(Command::Request(queued)).await.map_err(|_| gone())?;
        let answered = answer.await.map_err(|_| gone())?;
        if let Some(times) = times {
            times.report(at);
        }
        answered
    }

    /// As [`Embedded::run_on_writer`], waiting for the outcome.
    fn ask_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.run_on_writer(move |writer| {
            let _ = reply.send(work(writer));
        })?;
        answer.blocking_recv().map_err(|_| self.store.health.gone())?
    }

    /// Brings all that was written so far into the row files.
    fn flush(&self) -> Result<()> {
        self.ask_writer(|writer| writer.store.flush_now())
    }

    /// Brings all that was written so far to where scans meet it.
    fn settle_rows(&self) -> Result<()> {
        self.ask_writer(|writer| writer.store.settle_rows())
    }

    /// How many edges of a kind there are.
    pub fn edge_count(&self, kind: EdgeKind) -> u64 {
        self.store.index.edge_count(kind)
    }

    /// The state of the store, for those who watch it.
    pub fn figures(&self) -> Figures {
        let store = &self.store;
        let (sealed_layers, runs) = store.rows.backlog();
        let LogSpan { trimmed, newest, .. } = self.span();
        let walkers = store.walkers.figures();
        let now = self.clock.now();
        let feeds = store.feeds.figures(now);
        let position = |at: &std::sync::atomic::AtomicU64| Position(at.load(Ordering::Acquire));
        Figures {
            queued: (self.commands.max_capacity() - self.commands.capacity()) as u64,
            users: EdgeKind::ALL.iter().map(|&kind| store.index.user_count(kind)).sum(),
            edges: EdgeKind::ALL.iter().map(|&kind| store.index.edge_count(kind)).sum(),
            index_bytes: store.index.memory(),
            cache_bytes_max: store.settings.cache_bytes,
            recent_rows: store.rows.unsealed(),
            sealed_layers: sealed_layers as u64,
            runs: runs as u64,
            log_bytes: store.log.bytes(),
            newest,
            trimmed,
            flushed: position(&store.flushed),
            snapshotted: position(&store.snapshotted),
            read_only: store.health.refusal().is_some(),
            failed: store.health.death().is_some(),
            flush_stalled: store.flushes.stalled(store.is_flush_waiting()),
            flush_failures: store.flushes.failures(),
            merge_stalled: store.merges.stalled(merging::is_waiting(store)),
            merge_failures: store.merges.failures(),
            clock_ahead: self.clock.ahead(),
            clock_behind: store.clock_behind(now),
            walks_running: walkers.running,
            walks_waiting: walkers.waiting,
            walks: walkers.done,
            walks_given_up: walkers.given_up,
            suggest_users_done: store.suggested.done.load(Ordering::Relaxed),
            suggest_users_total: store.suggested.total.load(Ordering::Relaxed),
            fan_out_lag_events: feeds.lag_events,
            fan_out_lag: feeds.lag,
            fan_out_entries: feeds.entries,
            inboxes: feeds.inboxes,
            inbox_bytes: feeds.inbox_bytes,
            purged_waiting: store.threads.unerased_count(),
            ..store.counters.figures()
        }
    }

    /// How long a layer took, since the store was opened.
    pub fn layer_times(&self, layer: Layer) -> Snapshot {
        self.store.layers.snapshot(layer)
    }

    /// Why the store can't go on, if one of its threads has died: reads still work, writes are refused until it is opened again.
    pub fn failure(&self) -> Option<&str> {
        self.store.health.death()
    }

    /// The newest run that computed suggestions for everyone, if there ever was one.
    pub fn suggestion_run(&self) -> Option<SuggestionRun> {
        let run = self.store.suggested.newest()?;
        Some(SuggestionRun { started_at: run.started_at, finished_at: run.finished_at })
    }

    /// Starts an import, or continues one with the same options that was stopped.
    pub fn import(&self, options: &ImportOptions) -> Result<Import> {
        Import::start(self.clone(), options)
    }

    /// How many bytes a stopped import has left. Another import goes on with them or removes them.
    pub fn stopped_import_bytes(&self) -> u64 {
        bulk::import::stopped_bytes(&self.store.folder)
    }

    /// Writes a backup of the whole store, as of now, into a stream, as fast as that takes it. Reads and writes go on.
    pub fn backup(&self, out: &mut dyn Write, progress: &dyn Fn(Progress)) -> Result<BackupReport> {
        let snapshot = self.ask_writer(|writer| bulk::backup::Snapshot::take(&writer.store))?;
        bulk::backup::write(self.store.identity, snapshot, out, progress)
    }

    /// What a backup holds; all of it is read and its checksums compared, so one that was cut short is noticed.
    pub fn inspect_backup(file: &Path) -> Result<BackupReport> {
        bulk::backup::inspect(file)
    }

    /// Makes a store from a backup, with a new epoch, in a folder that is missing, empty, or left by a stopped restore.
    pub fn restore(
        file: &Path,
        folder: &Path,
        settings: &Settings,
        progress: &dyn Fn(Progress),
    ) -> Result<BackupReport> {
        bulk::restore::restore(file, folder, (settings, Timestamp::MAX), progress)
    }

    /// As [`Embedded::restore`], with no time later than `latest`: those that are become it. For a store whose clock was ahead,
    /// which has given out times that it can't go back from.
    pub fn restore_clamped(
        file: &Path,
        folder: &Path,
        (settings, latest): (&Settings, Timestamp),
        progress: &dyn Fn(Progress),
    ) -> Result<BackupReport> {
        bulk::restore::restore(file, folder, (settings, latest), progress)
    }

    /// Merges all row files into one sorted run per tree, and erases the texts of comments that were purged; returns of how
    /// many.
    pub fn compact(&self) -> Result<u64> {
        self.flush()?;
        self.store.rows.compact_fully()?;
        self.store.posts.tree.compact_fully()?;
        // Erasing merges them too.
        let erased = self.erase()?;
        if erased == 0 {
            self.store.threads.tree.compact_fully()?;
        }
        Ok(erased)
    }
}

impl EdgeStore for Embedded {
    fn id_kind(&self) -> IdKind {
        self.store.identity.ids
    }

    fn epoch(&self) -> Epoch {
        self.store.identity.epoch
    }

    async fn write(&self, request: WriteRequest) -> Result<Receipt> {
        self.request(|reply| Request::Write(request, reply)).await
    }

    async fn visible(&self, position: Position) -> Result<()> {
        let visibility = &self.store.visibility;
        if position <= visibility.position() {
            return Ok(());
        }
        let waiting = visibility.wait_for(position);
        // Maintenance keeps the time: a waiter that is not answered within a second is told so.
        self.store.signal.wake();
        let reached = waiting.await.is_ok();
        let current = visibility.position();
        match self.store.health.death() {
            _ if reached => Ok(()),
            Some(_) => Err(self.store.health.gone()),
            None => Err(Error::NotYetVisible { asked: position, current }),
        }
    }

    async fn contains(&self, kind: EdgeKind, edges: &[Edge]) -> Result<Vec<bool>> {
        Ok(self.store.layers.index(edges.len(), || self.store.index.contains_all(kind, edges)))
    }

    async fn contains_one(&self, kind: EdgeKind, edge: Edge) -> Result<bool> {
        Ok(self.follows(kind, edge))
    }

    async fn since(&self, kind: EdgeKind, edges: &[Edge]) -> Result<Vec<Option<Timestamp>>> {
        let exist = self.store.index.contains_all(kind, edges);
        if !exist.contains(&true) {
            return Ok(vec![None; edges.len()]);
        }
        let since = |(&edge, exists)| if exists { self.store.rows.since(kind, edge) } else { Ok(None) };
        self.store.layers.rows(|| edges.iter().zip(exist).map(since).collect())
    }

    async fn list(
        &self,
        kind: EdgeKind,
        side: Side,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> Result<Vec<ListEntry>> {
        self.list_page(kind, side, of, after, limit)
    }

    async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> Result<Vec<ListEntry>> {
        let mut search = Search::new(&self.store, (kind, of), after, limit);
        if self.store.layers.rows(|| search.run_shortly(&self.store))? {
            return Ok(search.into_page());
        }
        let store = Arc::clone(&self.store);
        let work = move |_: &mut Scratch, is_given_up: &dyn Fn() -> bool| {
            search.run(&store, is_given_up)?;
            Ok(search.into_page())
        };
        self.store.walkers.run(of, work).await
    }

    async fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        after: Option<Id>,
        limit: usize,
    ) -> Result<Overlap> {
        let Some(plan) = Plan::new(&self.store, kind, sets) else { return Ok(Overlap::default()) };
        if plan.is_short() {
            return plan.run(&self.store, (after, limit), &|| false);
        }
        let store = Arc::clone(&self.store);
        let work = move |_: &mut Scratch, is_given_up: &dyn Fn() -> bool| {
            plan.run(&store, (after, limit), is_given_up)
        };
        let about = sets.first().map_or(Id::Integer(0), |set| set.of);
        self.store.walkers.run(about, work).await
    }

    async fn counts(&self, kind: EdgeKind, of: &[Id]) -> Result<Vec<Counts>> {
        Ok(of.iter().map(|&id| self.store.index.counts(kind, id)).collect())
    }
}

impl SuggestionStore for Embedded {
    async fn candidates(&self, of: Id, bounds: WalkBounds) -> Result<Vec<Suggestion>> {
        let store = Arc::clone(&self.store);
        let work = move |scratch: &mut Scratch, is_given_up: &dyn Fn() -> bool| {
            store.candidates(of, bounds, scratch, is_given_up)
        };
        self.store.walkers.run(of, work).await
    }

    async fn stored_suggestions(&self, of: Id, max_age: Duration) -> Result<Option<StoredSuggestions>> {
        let age =
            |at: Timestamp| Duration::from_millis(self.clock.now().millis().saturating_sub(at.millis()));
        Ok(self.store.suggested.get(of).filter(|stored| age(stored.computed_at) <= max_age))
    }

    fn suggest_for_everyone(
        &self,
        request: EveryoneRequest,
        watch: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<EveryoneReport> {
        suggestions::compute(&self.store, &*self.clock, request, watch)
    }
}

impl PostStore for Embedded {
    async fn register(&self, post: NewPost) -> Result<Posted> {
        self.request(|reply| Request::Register(Box::new(post), reply)).await
    }

    async fn delete_post(&self, id: Id) -> Result<Removed> {
        self.request(|reply| Request::DeletePost(id, reply)).await
    }

    async fn posts(&self, ids: &[Id]) -> Result<Vec<Option<PostState>>> {
        self.store.layers.rows(|| ids.iter().map(|&id| self.store.posts.state(id)).collect())
    }

    async fn posts_by(&self, author: Id, after: Option<PostKey>, limit: usize) -> Result<Vec<Post>> {
        /// More than this take longer than a protocol's thread may wait.
        const SHORT_PAGE: usize = 100;
        if limit <= SHORT_PAGE {
            return self.store.layers.rows(|| self.store.posts.page(author, after, limit));
        }
        let store = Arc::clone(&self.store);
        let work = move |_: &mut Scratch, _: &dyn Fn() -> bool| {
            store.layers.rows(|| store.posts.page(author, after, limit))
        };
        self.store.walkers.run(author, work).await
    }
}

impl FeedStore for Embedded {
    async fn feed(&self, of: Id, after: Option<PostKey>, limit: usize) -> Result<Vec<Post>> {
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        let work = move |_: &mut Scratch, is_given_up: &dyn Fn() -> bool| {
            feeds::page(&store, &clock, Wanted { of, after, limit }, is_given_up)
        };
        self.store.walkers.run(of, work).await
    }
}
