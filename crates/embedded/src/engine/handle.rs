//! The handle of an open store, and what it does by itself. Ports are implemented in the rooms of what they are about.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use kinfolk_core::bulk::{BackupReport, ImportOptions, Progress, SuggestionRun};
use kinfolk_core::graph::{Edge, EdgeList, ListEntry, ListKey};
use kinfolk_core::histogram::HistogramSnapshot;
use kinfolk_core::{
    Clock, Deployment, EdgeKind, Epoch, Error, Frontier, Id, IdKind, Keyring, Position, Result, Sequence,
    Shard, Timestamp,
};
use tokio::sync::{mpsc, oneshot};

use super::batch::Batch;
use super::lifecycle::StoreThreads;
use super::request::{Outcome, PlannedBy};
use super::store::Store;
use super::writer::{Command, Queued, Writer};
use crate::background::compaction;
use crate::bulk::{self, Import};
use crate::disk::backup_file;
use crate::disk::format::Content;
use crate::edges::{Edges, Tree, imports};
use crate::lsm::RowStorage;
use crate::runtime::layers::{Layer, WriteTimes};
use crate::settings::Settings;
use crate::stats::Stats;

/// An open store; clones share it. The last one closes it when dropped.
#[derive(Clone)]
pub struct Embedded {
    // The order matters: the queue ends before the threads are waited for.
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) store: Arc<Store>,
    /// The same as the store's: a check follows one pointer fewer.
    pub(super) edges: Arc<Edges>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(super) threads: Arc<StoreThreads>,
}

impl Embedded {
    /// The handle of a store whose threads run.
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
        self.store.keys.clone()
    }

    /// Whether an edge exists. Never waits for a disk.
    #[inline]
    pub fn follows(&self, kind: EdgeKind, edge: Edge) -> bool {
        self.edges.index.of(kind).contains(edge)
    }

    /// As [`kinfolk_core::graph::EdgeStore::list`], for callers without an async runtime.
    pub fn list_page(&self, list: EdgeList, after: Option<ListKey>, limit: usize) -> Result<Vec<ListEntry>> {
        self.store.layers.rows(|| self.store.edges.rows.list_rows(list, after).take(limit).collect())
    }

    /// Waits until everything is visible that a frontier names, up to a second.
    #[inline]
    pub(crate) async fn reach(&self, at_least: &Frontier) -> Result<()> {
        if self.covers(at_least) { Ok(()) } else { Box::pin(self.wait_for(at_least)).await }
    }

    /// Whether everything is visible that a frontier names.
    #[inline]
    pub(crate) fn covers(&self, frontier: &Frontier) -> bool {
        frontier.is_empty() || self.first_missing(frontier).is_none()
    }

    /// The first position of a frontier that is not visible.
    fn first_missing(&self, frontier: &Frontier) -> Option<Position> {
        frontier.iter().find(|asked| asked.sequence > self.visible_of(asked.shard))
    }

    /// Up to where a shard is visible: there is only one.
    fn visible_of(&self, shard: Shard) -> Sequence {
        if shard == Shard::ONLY { self.store.position() } else { Sequence::START }
    }

    /// What is visible.
    pub(crate) fn frontier(&self) -> Frontier {
        self.store.position().on(Shard::ONLY).into()
    }

    async fn wait_for(&self, at_least: &Frontier) -> Result<()> {
        let visibility = &self.store.visibility;
        // There is no other shard: what a frontier names of one is refused below, without a wait.
        let asked = at_least.get(Shard::ONLY).unwrap_or_default();
        let waiting = visibility.wait_for(asked);
        // Maintenance keeps the time: a waiter that is not answered within a second is let go.
        self.store.flushing.wake();
        let _ = waiting.await;
        match (self.first_missing(at_least), self.store.health.death()) {
            (None, _) => Ok(()),
            (Some(_), Some(_)) => Err(self.store.health.gone()),
            (Some(asked), None) => {
                let current = self.visible_of(asked.shard).on(asked.shard);
                Err(Error::NotYetVisible { asked, current })
            }
        }
    }

    /// All edges of a kind by (follower, followee), as of now, whatever is written meanwhile.
    pub fn edges(
        &self,
        kind: EdgeKind,
    ) -> Result<impl Iterator<Item = Result<(Edge, Timestamp)>> + Send + 'static> {
        self.settle_rows()?;
        let _paused = self.store.edges.rows.pause();
        Ok(self.store.edges.rows.scan(Tree::Pairs, kind))
    }

    /// Hands a request to the writer and waits until it is durable and visible, or refused. A request has a weight in commands.
    pub(crate) async fn request<R: Outcome>(
        &self,
        weight: usize,
        plan: impl FnOnce(&mut Batch<'_>) -> R + Send + 'static,
    ) -> Result<R> {
        let (reply, result) = oneshot::channel();
        let gone = || self.store.health.gone();
        let request = Box::new(PlannedBy { plan: Some(plan), planned: None, reply });
        let (at, times) = (Instant::now(), WriteTimes::if_traced());
        let queued = Queued { request, weight, at, times: times.clone() };
        self.commands.send(Command::Request(queued)).await.map_err(|_| gone())?;
        let result = result.await.map_err(|_| gone())?;
        if let Some(times) = times {
            times.report(at);
        }
        result
    }

    /// As [`Embedded::run_on_writer`], waiting for the outcome.
    pub(crate) fn ask_writer<T: Send + 'static>(
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
    pub(crate) fn flush(&self) -> Result<()> {
        self.ask_writer(|writer| writer.store.flush_now())
    }

    /// Brings all that was written so far to where scans meet it.
    pub(crate) fn settle_rows(&self) -> Result<()> {
        self.ask_writer(|writer| writer.store.settle_rows())
    }

    /// How many users follow others, and how many are followed, together.
    pub fn set_count(&self, kind: EdgeKind) -> u64 {
        self.store.edges.index.of(kind).set_count()
    }

    /// Up to `limit` users by number, from one on: all that have, or had, an edge of a kind. Users keep their numbers until the
    /// store is closed, and a new one gets the next.
    pub fn users_from(&self, kind: EdgeKind, number: u32, limit: usize) -> Vec<Id> {
        self.store.edges.index.of(kind).users_from(number, limit)
    }

    /// Differs between stores, and between two times that one is opened, as the numbers of [`Embedded::users_from`] may.
    pub fn numbering(&self, kind: EdgeKind) -> u64 {
        self.store.edges.index.of(kind).numbering()
    }

    /// How many edges of a kind there are.
    pub fn edge_count(&self, kind: EdgeKind) -> u64 {
        self.store.edges.index.of(kind).edge_count()
    }

    /// The state of the store, for those who watch it.
    pub fn stats(&self) -> Stats {
        let store = &self.store;
        let backlog = store.edges.rows.backlog();
        let (trimmed, newest) = (store.log.trimmed(), store.position());
        let now = self.clock.now();
        let position = |at: &std::sync::atomic::AtomicU64| Sequence(at.load(Ordering::Acquire));
        Stats {
            queued: (self.commands.max_capacity() - self.commands.capacity()) as u64,
            users: EdgeKind::ALL.iter().map(|&kind| store.edges.index.of(kind).user_count()).sum(),
            edges: store.edge_count(),
            index_bytes: store.edges.index.memory(),
            cache_bytes_max: store.settings.cache_bytes,
            recent_rows: store.edges.rows.unsealed(),
            sealed_layers: backlog.sealed as u64,
            runs: backlog.runs as u64,
            log_bytes: store.log.bytes(),
            disk_bytes: store.log.bytes() + store.rows().map(RowStorage::disk_bytes).sum::<u64>(),
            newest,
            trimmed,
            flushed: position(&store.flushed),
            snapshotted: store.projections.snapshotted(),
            read_only: store.health.refusal().is_some(),
            failed: store.health.death().is_some(),
            flush_stalled: store.flushes.stalled(store.is_flush_waiting()),
            flush_failures: store.flushes.failures(),
            merge_stalled: store.compactions.stalled(compaction::is_waiting(store)),
            merge_failures: store.compactions.failures(),
            clock_ahead: self.clock.ahead(),
            clock_behind: store.clock_behind(now),
            suggest_users_done: store.suggestions.done.load(Ordering::Relaxed),
            suggest_users_total: store.suggestions.total.load(Ordering::Relaxed),
            purged_waiting: store.comments.unerased_count(),
            ..store.feeds.stats(now, store.workers.stats(store.counters.stats()))
        }
    }

    /// How long a layer took, since the store was opened.
    pub fn layer_times(&self, layer: Layer) -> HistogramSnapshot {
        self.store.layers.snapshot(layer)
    }

    /// Why the store can't go on, if one of its threads has died: reads still work, writes are refused until it is opened again.
    pub fn failure(&self) -> Option<&str> {
        self.store.health.death()
    }

    /// The newest run that computed suggestions for everyone, if there ever was one.
    pub fn suggestion_run(&self) -> Option<SuggestionRun> {
        let run = self.store.suggestions.newest()?;
        Some(SuggestionRun { started_at: run.started_at, finished_at: run.finished_at })
    }

    /// Starts an import, or continues one with the same options that was stopped.
    pub fn import(&self, options: &ImportOptions) -> Result<Import> {
        Import::start(self.clone(), options)
    }

    /// How many bytes a stopped import has left. Another import goes on with them or removes them.
    pub fn stopped_import_bytes(&self) -> u64 {
        imports::stopped_bytes(self.store.folder.path())
    }

    /// Writes a backup of the whole store, as of now, into a stream, as fast as that takes it. Reads and writes go on.
    pub fn backup(&self, out: &mut dyn Write, progress: &dyn Fn(Progress)) -> Result<BackupReport> {
        let snapshot = self.ask_writer(|writer| bulk::Snapshot::take(&writer.store))?;
        bulk::write_backup(self.store.identity, snapshot, out, progress)
    }

    /// What a backup holds; all of it is read and its checksums compared, so one that was cut short is noticed.
    pub fn inspect_backup(file: &Path) -> Result<BackupReport> {
        backup_file::inspect(file)
    }

    /// Makes a store from a backup, with a new epoch, in a folder that is missing, empty, or left by a stopped restore.
    /// No time is later than `latest`: those that are become it. That helps a store whose clock was ahead, which has given out
    /// times that it can't go back from.
    pub fn restore(
        file: &Path,
        folder: &Path,
        settings: &Settings,
        latest: Timestamp,
        progress: &dyn Fn(Progress),
    ) -> Result<BackupReport> {
        bulk::restore(file, folder, settings, latest, progress)
    }

    /// Merges all row files into one sorted run per tree, and erases the texts of comments that were purged; returns of how
    /// many.
    pub fn compact(&self) -> Result<u64> {
        self.flush()?;
        let erased = self.erase()?;
        for projection in self.store.projections.all() {
            // Erasing has compacted the comments.
            let is_done = erased > 0 && projection.content() == Content::Comments;
            if let Some(rows) = projection.rows().filter(|_| !is_done) {
                rows.compact_fully()?;
            }
        }
        Ok(erased)
    }
}

impl Deployment for Embedded {
    fn id_kind(&self) -> IdKind {
        self.store.identity.ids
    }

    fn epoch(&self) -> Epoch {
        self.store.identity.epoch
    }
}

impl kinfolk_core::Store for Embedded {
    type Suggestions = Self;
    type Content = Self;

    fn suggestions(self: &Arc<Self>) -> Option<Arc<Self>> {
        Some(Arc::clone(self))
    }

    fn content(self: &Arc<Self>) -> Option<Arc<Self>> {
        Some(Arc::clone(self))
    }
}
