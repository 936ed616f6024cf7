//! The life of an open store: making and opening it, its threads, and its end.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use kinfolk_core::{Clock, Epoch, Error, IdKind, Result, Sequence, SystemClock};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::Embedded;
use super::open::Opened;
use super::store::Store;
use super::writer::{Command, Writer};
use crate::background::{compaction, maintenance, snapshots};
use crate::disk::files;
use crate::disk::folder_lock::FolderLock;
use crate::disk::format::{self, Content, Identity};
use crate::runtime::clock::GuardedClock;
use crate::settings::Settings;
use crate::{comments, feeds};

/// How many requests may wait for the writer before senders wait too.
const QUEUE_LEN: usize = 8_192;

/// The threads of an open store, ended and waited for with its last handle.
pub(crate) struct StoreThreads {
    store: Arc<Store>,
    running: Mutex<Option<Running>>,
}

struct Running {
    writer: JoinHandle<Writer>,
    background: Vec<JoinHandle<()>>,
}

impl StoreThreads {
    fn end(&self) -> Result<()> {
        let Some(Running { writer, background }) = self.running.lock().take() else { return Ok(()) };
        let store = &self.store;
        let writer = writer.join();
        store.flushing.stop();
        store.snapshotting.stop();
        store.compacting.stop();
        store.erasing.stop();
        store.workers.stop();
        store.feeds.deliveries.stop();
        let ended: Vec<_> = background.into_iter().map(JoinHandle::join).collect();
        let died =
            |_| Error::storage(store.health.death().unwrap_or("a thread of the store has died").to_owned());
        let mut writer = writer.map_err(died)?;
        ended.into_iter().try_for_each(|ended| ended.map_err(died))?;
        store.health.require_writable()?;
        let instead = "not everything could be stored at the end; the next start replays more of the log";
        files::unless_full(maintenance::settle(store), instead)?;
        for projection in store.projections.all() {
            files::unless_full(projection.close(), instead)?;
        }
        writer.log.sync_mark()
    }
}

impl Drop for StoreThreads {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::error!(%error, "the store could not be closed cleanly; the next start replays more of the log");
        }
    }
}

impl Embedded {
    /// Makes a new store in a folder that is missing or empty, and opens it. It goes by the system's clock, guarded.
    pub fn create(folder: &Path, ids: IdKind, settings: Settings) -> Result<Self> {
        let clock = GuardedClock::new(Arc::new(SystemClock), settings.clock);
        Self::create_with_clock(folder, ids, settings, Arc::new(clock))
    }

    /// As [`Embedded::create`], with a clock of the caller's.
    pub fn create_with_clock(
        folder: &Path,
        ids: IdKind,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        format::require_vacant(folder)?;
        let lock = FolderLock::take(folder)?;
        // Again, now that nobody else can be doing the same.
        format::require_vacant(folder)?;
        let epoch = Epoch(u64::from_le_bytes(format::random()?));
        format::write_identity(
            folder,
            Identity { ids, epoch, base: Sequence::START, content: Content::Edges },
        )?;
        Self::start(Store::open(settings, lock)?, clock)
    }

    /// Opens the store in a folder. It goes by the system's clock, guarded.
    pub fn open(folder: &Path, settings: Settings) -> Result<Self> {
        let clock = GuardedClock::new(Arc::new(SystemClock), settings.clock);
        Self::open_with_clock(folder, settings, Arc::new(clock))
    }

    /// As [`Embedded::open`], with a clock of the caller's.
    pub fn open_with_clock(folder: &Path, settings: Settings, clock: Arc<dyn Clock>) -> Result<Self> {
        format::read_identity(folder)?;
        Self::start(Store::open(settings, FolderLock::take(folder)?)?, clock)
    }

    /// Whether a folder holds a store.
    pub fn exists(folder: &Path) -> bool {
        format::exists(folder)
    }

    fn start(opened: Opened, clock: Arc<dyn Clock>) -> Result<Self> {
        let store = Arc::clone(&opened.store);
        clock.begin(opened.floor);
        let health = &store.health;
        let (commands, queue) = mpsc::channel(QUEUE_LEN);
        let writer = Writer::new(opened, Arc::clone(&clock));
        let writer = health.spawn("kinfolk-writer", move || writer.run(queue))?;
        let spawn = |name, work: fn(&Arc<Store>, &Arc<dyn Clock>, &mpsc::WeakSender<Command>)| {
            let (store, clock, commands) = (Arc::clone(&store), Arc::clone(&clock), commands.downgrade());
            health.spawn(name, move || work(&store, &clock, &commands))
        };
        let mut background = store.workers.start(health)?;
        background.extend([
            spawn("kinfolk-maintenance", |store, clock, commands| {
                maintenance::run(store, &**clock, commands);
            })?,
            spawn("kinfolk-snapshots", |store, clock, commands| snapshots::run(store, &**clock, commands))?,
            spawn("kinfolk-compaction", |store, _, commands| compaction::run(store, commands))?,
            spawn("kinfolk-erasing", |store, clock, commands| {
                comments::erase_when_due(store, &**clock, commands);
            })?,
            spawn("kinfolk-delivery", |store, clock, _| feeds::run(&store.feeds, clock))?,
        ]);
        let running = Mutex::new(Some(Running { writer, background }));
        let threads = StoreThreads { store: Arc::clone(&store), running };
        Ok(Self { edges: Arc::clone(&store.edges), commands, store, clock, threads: Arc::new(threads) })
    }

    /// Waits for the writes in flight, leaves little to replay, and releases the folder. Other clones must be gone.
    pub fn close(self) -> Result<()> {
        let Self { commands, store, threads, .. } = self;
        drop(commands);
        drop(store);
        match Arc::try_unwrap(threads) {
            Ok(threads) => threads.end(),
            Err(_) => Err(Error::in_use("the store is still in use and stays open")),
        }
    }
}
