//! The open store: log, rows, posts, comments and index together, and how they are brought to one state at a start.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kinfolk_core::graph::{Edge, Side};
use kinfolk_core::suggestions::{Suggestion, WalkBounds};
use kinfolk_core::{EdgeKind, Error, Id, Keyring, Result, Sequence, Timestamp};
use parking_lot::{Mutex, RwLock};

use crate::checkpoint::Checkpoint;
use crate::feeds::{self, Feeds};
use crate::figures::Counters;
use crate::files;
use crate::folder_lock::FolderLock;
use crate::format::{self, Content, Identity};
use crate::health::Health;
use crate::index::{self, Index, Scratch, Walk};
use crate::layers::Layers;
use crate::log::{self, Event, EventBody, LogReader, LogWriter, Retention};
use crate::made::Made;
use crate::maintenance::{self, Signal};
use crate::newest::Newest;
use crate::posts::Posts;
use crate::projection::Projection;
use crate::pulse::Pulse;
use crate::replay::{Replay, apply_to_index, flush, rebuild_index};
use crate::rows::{Rows, Tree};
use crate::settings::Settings;
use crate::suggestions::Suggested;
use crate::threads::Threads;
use crate::visibility::Visibility;
use crate::walkers::Walkers;

/// What an open store shares between its writer, its maintenance and its readers.
pub struct Store {
    pub folder: PathBuf,
    pub identity: Identity,
    pub settings: Settings,
    pub index: Index,
    pub rows: Rows,
    pub posts: Posts,
    pub threads: Threads,
    /// What the log may have.
    content: AtomicU32,
    pub log: LogReader,
    pub keys: RwLock<Keyring>,
    /// The newest position that every read sees, and who waits for a later one.
    pub visibility: Visibility,
    /// Everything up to here is in flushed rows.
    pub flushed: AtomicU64,
    /// Everything up to here is in the index snapshot.
    pub snapshotted: AtomicU64,
    /// Everything up to here is in sealed or flushed rows.
    pub sealed: AtomicU64,
    /// The earliest `since` that may be given out, in milliseconds; the writer's, for the checkpoint.
    pub floor: AtomicU64,
    /// Held while the index snapshot must not be taken: while an import is half applied.
    pub snapshot_gate: Mutex<()>,
    /// Wakes the thread that erases purged texts.
    pub erasing: Signal,
    /// Held while purged texts are erased.
    pub erasing_gate: Mutex<()>,
    /// Held while the checkpoint is written.
    pub checkpointing: Mutex<()>,
    pub signal: Signal,
    /// How flushing, snapshots and retention are doing.
    pub flushes: Pulse,
    /// How merging is doing.
    pub merges: Pulse,
    opened: Instant,
    /// Wakes the thread that merges row files and reconciles.
    pub merging: Signal,
    /// What keeps maintenance from writing rows to disk.
    pub(crate) stalled: Mutex<Option<Error>>,
    /// What keeps row files from being merged.
    pub(crate) unmerged: Mutex<Option<Error>>,
    /// The index was repaired, which the log does not tell: a snapshot has to.
    pub index_repaired: AtomicBool,
    /// A batch could not be applied whole: rows in memory must not be stored.
    half_applied: AtomicBool,
    pub counters: Counters,
    /// How long what takes.
    pub layers: Layers,
    /// The newest followees of users who follow many.
    pub newest: Newest,
    /// Home feeds.
    pub feeds: Feeds,
    /// What was computed for everyone.
    pub suggested: Suggested,
    /// Threads for long work in requests.
    pub walkers: Arc<Walkers>,
    /// Why writes are refused, if they are, and whether a thread has died.
    pub health: Arc<Health>,
    lock: Arc<FolderLock>,
}

/// What becomes of the index snapshot at a start.
#[derive(Clone, Copy)]
enum Snapshot {
    Load,
    /// It is of no use: the index is rebuilt from the pairs.
    PassOver,
}

/// An open store and the writing end of its log.
pub struct Opened {
    pub store: Arc<Store>,
    pub log: LogWriter,
    pub floor: Timestamp,
    pub made: Made,
}

impl Store {
    /// Opens the store in a folder: loads the snapshot, opens the rows, replays the log's tail into both. A full disk is no
    /// obstacle: what has no room on it stays in memory, and is written when there is room again.
    pub fn open(settings: Settings, lock: FolderLock) -> Result<Opened> {
        let lock = Arc::new(lock);
        if let Some(opened) = Self::try_open(settings.clone(), &lock, Snapshot::Load)? {
            return Ok(opened);
        }
        let opened = Self::try_open(settings, &lock, Snapshot::PassOver)?;
        Ok(opened.expect("an index that is rebuilt from the pairs lacks no import that these have"))
    }

    /// As [`Store::open`]; nothing if the snapshot is older than an import that can't be applied to it any more.
    fn try_open(settings: Settings, lock: &Arc<FolderLock>, snapshot: Snapshot) -> Result<Option<Opened>> {
        let folder = lock.path();
        let identity = format::read_identity(folder)?;
        // What a process has left that was stopped while it erased texts holds others.
        files::remove_file(&folder.join(log::ERASING_FILE))?;
        let keys = format::read_keys(folder)?;
        let checkpoint = Checkpoint::read(folder);
        let rows = Rows::open(&folder.join("rows"), identity.ids, settings.cache_bytes)?;
        let mut applied = [Sequence::START; 3];
        for tree in Tree::ALL {
            applied[tree as usize] = rows.applied(tree)?.max(identity.base);
        }
        let posts = Posts::open(&folder.join("posts"), identity.ids, rows.shared(), settings.post_key_keep)?;
        let threads =
            Threads::open(&folder.join("comments"), identity.ids, rows.shared(), settings.comment_key_keep)?;
        let mut flushed = applied.into_iter().min().unwrap_or_default();
        // A log without posts says nothing to them, and so with comments.
        let mut projected = [Sequence(u64::MAX); 2];
        for (at, (content, tree)) in projected.iter_mut().zip(projections(&posts, &threads)) {
            if identity.content >= content {
                *at = tree.applied()?.max(identity.base);
                flushed = flushed.min(*at);
            }
        }
        if flushed < checkpoint.rows {
            return Err(Error::Corrupt {
                detail: format!(
                    "the rows, posts or comments in {} end at position {flushed}, but they had been stored up to {}: restore from a backup",
                    folder.display(),
                    checkpoint.rows
                ),
            });
        }
        let loaded = match snapshot {
            Snapshot::Load => index::load(folder, identity.ids, identity.epoch)?,
            Snapshot::PassOver => None,
        };
        let snapshotted = loaded.as_ref().map(|&(_, position)| position);
        let (index, indexed) = match loaded {
            Some(loaded) => loaded,
            None => (rebuild_index(&rows, identity)?, applied[Tree::Pairs as usize]),
        };
        let mut replay = Replay {
            folder,
            rows: &rows,
            posts: &posts,
            threads: &threads,
            index: &index,
            settings: &settings,
            applied,
            projected,
            indexed,
            rebuilt: snapshotted.is_none(),
            imported: false,
            lost: false,
        };
        let from = snapshotted.map_or(flushed, |snapshotted| snapshotted.min(flushed));
        let health = Arc::new(Health::default());
        let recovered = log::recover((lock, &health), identity, settings.log_sizes(), from, &mut |frame| {
            replay.apply(&frame.events)
        })?;
        if replay.lost {
            return Ok(None);
        }
        let newest = Sequence(recovered.writer.next().0 - 1);
        let resnapshot = (replay.rebuilt || replay.imported) && newest > identity.base;
        let floor = recovered.floor.max(checkpoint.floor);
        let made = Made::new(identity.ids, posts.newest_made()?, threads.newest_made()?);
        let store = Self {
            folder: folder.to_path_buf(),
            identity,
            index,
            rows,
            posts,
            threads,
            content: (identity.content as u32).into(),
            log: recovered.reader,
            keys: RwLock::new(keys),
            visibility: Visibility::new(newest),
            flushed: flushed.0.into(),
            snapshotted: snapshotted.unwrap_or(identity.base).0.into(),
            sealed: flushed.0.into(),
            floor: floor.millis().into(),
            snapshot_gate: Mutex::new(()),
            erasing: Signal::default(),
            erasing_gate: Mutex::new(()),
            checkpointing: Mutex::new(()),
            signal: Signal::default(),
            flushes: Pulse::default(),
            merges: Pulse::default(),
            opened: Instant::now(),
            merging: Signal::default(),
            stalled: Mutex::new(None),
            unmerged: Mutex::new(None),
            index_repaired: AtomicBool::new(false),
            half_applied: AtomicBool::new(false),
            counters: Counters::default(),
            layers: Layers::default(),
            newest: Newest::new(),
            feeds: Feeds::new(identity.ids, &settings, newest),
            suggested: Suggested::open(folder, identity.ids)?,
            walkers: Walkers::new(),
            health,
            settings,
            lock: Arc::clone(lock),
        };
        if store.has_sealed() {
            // A full disk has kept rows in memory: all of them wait for maintenance now, up to one position.
            store.seal();
        }
        if resnapshot {
            let instead = "the index can't be stored; if the process is killed, the next start takes longer";
            files::unless_full(maintenance::snapshot(&store), instead)?;
        }
        feeds::restore(&store)?;
        Ok(Some(Opened { store: Arc::new(store), log: recovered.writer, floor, made }))
    }

    /// Makes durable events visible: rows first, so that a check never knows more than a list.
    pub fn publish(&self, events: &[Event]) -> Result<()> {
        let Some(last) = events.last() else { return Ok(()) };
        self.rows.apply(events, [Sequence::START; 3]);
        self.posts.apply(events, Sequence::START);
        self.threads.apply(events, Sequence::START).inspect_err(|_| {
            self.half_applied.store(true, Ordering::Release);
        })?;
        for event in events {
            apply_to_index(&self.index, event);
            self.forget_newest(event);
        }
        // Last: whoever begins to read a feed later finds the index as it is now.
        self.feeds.take_note(events);
        self.visibility.publish(last.position);
        Ok(())
    }

    /// What is kept of lists that an event changes is not true any more.
    pub fn forget_newest(&self, event: &Event) {
        match event.body {
            EventBody::Followed(edge) | EventBody::Unfollowed(edge, _) => {
                if event.kind == EdgeKind::Follow {
                    self.newest.changed(edge.follower);
                }
            }
            EventBody::Imported { .. } => self.newest.all_changed(),
            EventBody::Posted(_) | EventBody::PostDeleted { .. } | EventBody::Thread(_) => {}
        }
    }

    /// What may be in it.
    pub fn content(&self) -> Content {
        Content::from_number(self.content.load(Ordering::Acquire)).unwrap_or(Content::NEWEST)
    }

    /// Whether there may be such content.
    pub fn has(&self, content: Content) -> bool {
        self.content.load(Ordering::Acquire) >= content as u32
    }

    /// Makes the store ready for its first post, comment or moderator. Called by the writer.
    pub fn begin(&self, content: Content) -> Result<()> {
        self.require_folder()?;
        // Before the format says that there are posts, their rows say up to where the log has none; so with comments.
        for (_, tree) in projections(&self.posts, &self.threads) {
            // What could not be flushed before does not pile up.
            tree.flush()?;
            tree.seal(self.position());
            tree.flush()?;
        }
        format::write_identity(&self.folder, Identity { content, ..self.identity })?;
        self.content.store(content as u32, Ordering::Release);
        Ok(())
    }

    /// The trees of posts and comments, as far as there may be any.
    pub fn projections(&self) -> impl Iterator<Item = &Projection> {
        let all = projections(&self.posts, &self.threads).into_iter();
        all.filter(|&(content, _)| self.has(content)).map(|(_, tree)| tree)
    }

    /// Whether rows, posts or comments are handed over for flushing.
    pub fn has_sealed(&self) -> bool {
        self.rows.backlog().0 > 0 || self.projections().any(|tree| tree.backlog().0 > 0)
    }

    /// Those that are merged in the background. Not comments while purged texts are erased: that merges all of them, and others
    /// would have to wait for it.
    pub fn merged_projections(&self) -> impl Iterator<Item = &Projection> {
        let erasing = self.erasing_gate.is_locked();
        self.projections().filter(move |tree| !(erasing && std::ptr::eq(*tree, &self.threads.tree)))
    }

    /// The newest position that every read sees.
    pub fn position(&self) -> Sequence {
        self.visibility.position()
    }

    /// No event that is visible is later than this.
    pub fn newest_time(&self) -> Timestamp {
        Timestamp::from_millis(self.floor.load(Ordering::Acquire))
    }

    /// Hands rows in memory over for flushing when there are many. Called by the writer, between batches.
    pub fn seal_if_large(&self) {
        let is_large = |tree: &Projection| tree.unsealed() >= self.settings.flush_post_bytes;
        if self.rows.unsealed() >= self.settings.flush_rows || self.projections().any(is_large) {
            self.seal();
        }
    }

    /// Hands all rows in memory over for flushing, unless they have a part of a batch. Called by the writer, between batches.
    pub fn seal(&self) {
        if self.require_whole().is_err() {
            return;
        }
        let position = self.position();
        self.rows.seal();
        self.projections().for_each(|tree| tree.seal(position));
        self.sealed.store(position.0, Ordering::Release);
        self.signal.wake();
    }

    /// Brings all rows to where a scan meets them: to disk or, where that is full, into sealed layers. Called by the writer,
    /// between batches.
    pub fn settle_rows(&self) -> Result<()> {
        match self.flush_now() {
            Err(Error::StorageFull { .. }) => {
                self.seal();
                Ok(())
            }
            other => other,
        }
    }

    /// Brings all rows into the trees. Called by the writer, between batches.
    pub fn flush_now(&self) -> Result<()> {
        self.require_whole()?;
        self.require_folder()?;
        let position = self.position();
        flush(&self.rows)?;
        self.flush_projections(position)?;
        self.sealed.fetch_max(position.0, Ordering::AcqRel);
        maintenance::record_flushed(self, position)
    }

    /// Refuses to store rows that have a part of a batch: their position would say that all of it is in. The log has the whole
    /// batch, and the next start applies it.
    pub fn require_whole(&self) -> Result<()> {
        match self.health.refusal().filter(|_| self.half_applied.load(Ordering::Acquire)) {
            Some(reason) => Err(Error::ReadOnly { reason: reason.to_owned() }),
            None => Ok(()),
        }
    }

    /// Brings all posts and comments into files, with the position that everything is applied up to. Called by the writer,
    /// between batches.
    pub fn flush_projections(&self, position: Sequence) -> Result<()> {
        self.projections().try_for_each(|tree| {
            tree.seal(position);
            tree.flush()
        })
    }

    /// A start needs the log only after this position.
    pub fn recoverable(&self) -> Sequence {
        let flushed = self.flushed.load(Ordering::Acquire);
        Sequence(flushed.min(self.snapshotted.load(Ordering::Acquire)))
    }

    /// What is kept of the log.
    pub fn retention(&self, now: Timestamp) -> Retention {
        let Settings { log_keep, log_keep_at_start, log_keep_bytes, .. } = self.settings;
        let age_counts = self.opened.elapsed() >= log_keep.min(log_keep_at_start);
        let keep_millis = u64::try_from(log_keep.as_millis()).unwrap_or(u64::MAX);
        let keep_after = if age_counts { now.millis().saturating_sub(keep_millis) } else { 0 };
        Retention {
            keep_bytes: log_keep_bytes,
            keep_after: Timestamp::from_millis(keep_after),
            needed_after: self.recoverable(),
        }
    }

    /// How long until the clock reaches the newest time that was given out.
    pub fn clock_behind(&self, now: Timestamp) -> Duration {
        Duration::from_millis(self.floor.load(Ordering::Acquire).saturating_sub(now.millis()))
    }

    /// Whether rows wait to be written to disk.
    pub fn is_flush_waiting(&self) -> bool {
        self.sealed.load(Ordering::Acquire) > self.flushed.load(Ordering::Acquire)
    }

    /// Refuses to write into a folder that is not this store's any more, now and from now on.
    pub fn require_folder(&self) -> Result<()> {
        self.lock.check().map_err(|reason| {
            if self.health.refusal().is_none() {
                tracing::error!(%reason, "writes are refused from now on");
            }
            self.health.refuse_writes(&reason);
            Error::ReadOnly { reason }
        })
    }

    /// Why rows can't be written to disk, if that is so.
    pub fn maintenance_failure(&self) -> Option<Error> {
        self.stalled.lock().clone().or_else(|| self.unmerged.lock().clone())
    }

    /// Since when an edge exists that the index knows of.
    pub fn stored_since(&self, kind: EdgeKind, edge: Edge) -> Result<Timestamp> {
        self.rows.since(kind, edge)?.ok_or_else(|| Error::Corrupt {
            detail: format!(
                "the index knows the edge {} to {} but the rows don't; run verify",
                edge.follower, edge.followee
            ),
        })
    }

    /// Whom a user may know, by a walk of two steps.
    pub fn candidates(
        &self,
        of: Id,
        bounds: WalkBounds,
        scratch: &mut Scratch,
        is_given_up: &dyn Fn() -> bool,
    ) -> Result<Vec<Suggestion>> {
        let most = bounds.per_node.unwrap_or(usize::MAX);
        let newest = |of: Id| self.newest.get(of, most, || self.read_newest(of, most));
        let dismissed = self.index.followees(EdgeKind::Dismissal, of);
        let walk = Walk { bounds, dismissed: &dismissed, newest: &newest, is_given_up };
        self.index.walk(EdgeKind::Follow, of, &walk, scratch)
    }

    fn read_newest(&self, of: Id, most: usize) -> Result<Vec<u32>> {
        let rows = self.rows.list_rows((EdgeKind::Follow, Side::Following, of), None);
        let ids: Vec<Id> = rows.take(most).map(|row| Ok(row?.id)).collect::<Result<_>>()?;
        let mut numbers = self.index.numbers(EdgeKind::Follow, &ids);
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// The trees of posts and comments, and from which content on they are used.
pub fn projections<'a>(posts: &'a Posts, threads: &'a Threads) -> [(Content, &'a Projection); 2] {
    [(Content::Posts, &posts.tree), (Content::Comments, &threads.tree)]
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::block_on;
    use kinfolk_core::feeds::{NewPost, PostStore};
    use kinfolk_core::{Frontier, IdKind};

    use super::*;
    use crate::Embedded;

    /// Clocks of machines that have just started may be wrong, and consumers come back with the server.
    #[test]
    fn nothing_goes_for_its_age_just_after_a_start() {
        let week = Duration::from_secs(7 * 24 * 3_600);
        for (log_keep, log_keep_at_start, kept_after) in [
            (week, Duration::from_secs(3_600), Timestamp::MIN),
            (week, Duration::ZERO, Timestamp::from_millis(1)),
            (Duration::ZERO, Duration::from_secs(3_600), Timestamp::from_millis(week.as_millis() as u64 + 1)),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let settings = Settings { log_keep, log_keep_at_start, ..Settings::default() };
            let store = Embedded::create(folder.path(), IdKind::Integer, settings).unwrap();
            let now = Timestamp::from_millis(week.as_millis() as u64 + 1);
            assert_eq!(store.store.retention(now).keep_after, kept_after);
        }
    }

    /// Segments go as soon as nothing needs them; posts must not.
    #[test]
    fn the_log_is_kept_for_as_long_as_posts_need_it() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { segment_bytes: 1 << 10, log_keep_bytes: 0, ..Settings::default() };
        let mut store = Embedded::create(folder.path(), IdKind::Integer, settings.clone()).unwrap();
        let author = Id::Integer(1);
        let wish = NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None };
        for round in 1..=3 {
            for _ in 0..100 {
                block_on(store.register(wish.clone())).unwrap();
            }
            let tend = |store: &Embedded| {
                store
                    .ask_writer(|writer| {
                        maintenance::snapshot(&writer.store)?;
                        writer.tend_log()?;
                        Ok(writer.store.log.trimmed())
                    })
                    .unwrap()
            };
            let unflushed = tend(&store);
            assert!(unflushed <= Sequence(store.store.flushed.load(Ordering::Acquire)));
            if round == 2 {
                store.flush().unwrap();
                assert!(tend(&store) > unflushed);
            }
            drop(store);
            store = Embedded::open(folder.path(), settings.clone()).unwrap();
            assert_eq!(
                block_on(store.posts_by(author, None, 1_000, Frontier::EMPTY)).unwrap().len(),
                round * 100
            );
            assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
        }
    }

    /// What a batch has left that was not applied to its end is brought to no file, on no path.
    #[test]
    fn half_of_a_batch_is_never_stored() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::create(folder.path(), IdKind::Integer, Settings::default()).unwrap();
        let author = Id::Integer(1);
        let post = NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None };
        block_on(store.register(post)).unwrap();
        let shared = Arc::clone(store.shared());
        let flushed = || shared.flushed.load(Ordering::Acquire);
        let before = flushed();
        shared.half_applied.store(true, Ordering::Release);
        shared.health.refuse_writes("a batch is applied in part");
        let seal = |writer: &mut crate::writer::Writer| {
            writer.store.seal();
            Ok(())
        };
        store.ask_writer(seal).unwrap();
        assert!(!shared.has_sealed() && shared.sealed.load(Ordering::Acquire) == before);
        assert!(matches!(shared.flush_now(), Err(Error::ReadOnly { .. })));
        assert!(matches!(shared.require_whole(), Err(Error::ReadOnly { .. })));
        drop(store);
        assert_eq!(flushed(), before);
    }
}
