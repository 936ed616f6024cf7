//! Opening a store: which projections it has, and how a start brings all of them to the end of the log.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use kinfolk_core::{Error, Result, Sequence, Timestamp};
use parking_lot::Mutex;

use super::id_generator::IdGenerators;
use super::replay::Replay;
use super::store::Store;
use super::visibility::Visibility;
use super::worker_pool::WorkerPool;
use crate::comments::Comments;
use crate::disk::checkpoint::Checkpoint;
use crate::disk::files;
use crate::disk::folder_lock::FolderLock;
use crate::disk::format::{self, Content, Identity};
use crate::edges::{EdgeIndex, Edges, LoadedIndex, Rows};
use crate::feeds::Feeds;
use crate::log::{self, LogWriter};
use crate::lsm::{RowStorage, Shared};
use crate::posts::Posts;
use crate::projection::{Projection, Projections};
use crate::runtime::folder::StoreFolder;
use crate::runtime::health::Health;
use crate::runtime::layers::Layers;
use crate::runtime::pulse::Pulse;
use crate::runtime::signal::Signal;
use crate::settings::Settings;
use crate::stats::Counters;
use crate::suggestions::ComputedSuggestions;

/// What becomes of the index snapshot at a start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IndexSnapshot {
    Load,
    /// It is of no use: the index is rebuilt from the pairs.
    PassOver,
}

/// An open store and the writing end of its log.
pub(crate) struct Opened {
    pub store: Arc<Store>,
    pub log: LogWriter,
    pub floor: Timestamp,
    pub ids: IdGenerators,
}

/// The projections of a store, as they are on disk.
struct Stored {
    shared: Shared,
    edges: Arc<Edges>,
    posts: Arc<Posts>,
    comments: Arc<Comments>,
    feeds: Arc<Feeds>,
    all: Projections,
    /// Up to where the index has the log.
    indexed: Sequence,
    /// Whether the index was rebuilt from the pairs.
    is_index_rebuilt: bool,
}

impl Stored {
    fn open(
        folder: &StoreFolder,
        identity: Identity,
        settings: &Settings,
        snapshot: IndexSnapshot,
        health: &Arc<Health>,
    ) -> Result<Self> {
        let path = folder.path();
        let shared = Shared::new(settings.cache_bytes, identity.base, health);
        let rows = Rows::open(&path.join("rows"), identity.ids, shared.clone())?;
        let posts = Posts::open(&path.join("posts"), identity.ids, &shared, settings.post_key_keep)?;
        let comments =
            Comments::open(&path.join("comments"), identity.ids, &shared, settings.comment_key_keep)?;
        let LoadedIndex { index, applied, snapshotted } =
            LoadedIndex::open(path, identity, &rows, snapshot == IndexSnapshot::Load)?;
        let (edges, posts, comments) =
            (Arc::new(Edges::new(rows, index)), Arc::new(posts), Arc::new(comments));
        let index = EdgeIndex {
            edges: Arc::clone(&edges),
            folder: folder.clone(),
            epoch: identity.epoch,
            applied,
            snapshotted: snapshotted.unwrap_or(identity.base).0.into(),
        };
        let feeds =
            Feeds::new(Arc::clone(&edges), Arc::clone(&posts), folder.clone(), identity, settings.clone());
        let feeds = Arc::new(feeds);
        let all = Projections(vec![
            // Rows first, so that a check never knows more than a list.
            Box::new(Arc::clone(&edges)),
            Box::new(Arc::clone(&posts)),
            Box::new(Arc::clone(&comments)),
            Box::new(index),
            // Last: a feed that is read from now on finds the index up to date.
            Box::new(Arc::clone(&feeds)),
        ]);
        let is_index_rebuilt = snapshotted.is_none();
        Ok(Self { shared, edges, posts, comments, feeds, all, indexed: applied, is_index_rebuilt })
    }

    /// Up to where all row files have the log; refused if they once had more.
    fn flushed(&self, folder: &StoreFolder, content: Content, checkpoint: Checkpoint) -> Result<Sequence> {
        let positions = self.all.rows(content).map(RowStorage::applied).collect::<Result<Vec<_>>>()?;
        let flushed = positions.into_iter().min().unwrap_or_default();
        if flushed >= checkpoint.rows {
            return Ok(flushed);
        }
        Err(Error::corrupt(format!(
            "the rows, posts or comments in {} end at position {flushed}, but they had been stored up to {}: restore from a backup",
            folder.path().display(),
            checkpoint.rows
        )))
    }

    /// Refuses rows of events that the log does not have: new events would get their positions.
    fn require_logged(&self, content: Content, newest: Sequence) -> Result<()> {
        for rows in self.all.rows(content) {
            let stored = rows.applied()?;
            if stored > newest {
                let detail = format!(
                    "the change log ends at position {newest} but stored rows are at {stored}: the end of the log \
                     is missing; restore from a backup"
                );
                return Err(Error::Corrupt { detail });
            }
        }
        Ok(())
    }

    /// Up to where every projection has the log.
    fn applied(&self, content: Content) -> Result<Sequence> {
        let positions = self.all.used(content).map(Projection::applied).collect::<Result<Vec<_>>>()?;
        Ok(positions.into_iter().min().unwrap_or_default())
    }
}

impl Store {
    /// Opens the store in a folder: opens all projections and replays the log's tail into them. A full disk is no obstacle: what has
    /// no room on it stays in memory, and is written when there is room again.
    pub(crate) fn open(settings: Settings, lock: FolderLock) -> Result<Opened> {
        let lock = Arc::new(lock);
        if let Some(opened) = Self::try_open(settings.clone(), &lock, IndexSnapshot::Load)? {
            return Ok(opened);
        }
        let opened = Self::try_open(settings, &lock, IndexSnapshot::PassOver)?;
        Ok(opened.expect("an index that is rebuilt from the pairs lacks no import that these have"))
    }

    /// As [`Store::open`]; nothing if the snapshot is older than an import that can't be applied to it any more.
    fn try_open(
        settings: Settings,
        lock: &Arc<FolderLock>,
        snapshot: IndexSnapshot,
    ) -> Result<Option<Opened>> {
        let health = Arc::new(Health::default());
        let folder = StoreFolder { lock: Arc::clone(lock), health: Arc::clone(&health) };
        let identity = format::read_identity(folder.path())?;
        // The file that an interrupted erase leaves behind still contains other comments' bodies.
        files::remove_file(&folder.path().join(log::ERASING_FILE))?;
        let keys = format::read_keys(folder.path())?;
        let checkpoint = Checkpoint::read(folder.path());
        let stored = Stored::open(&folder, identity, &settings, snapshot, &health)?;
        let flushed = stored.flushed(&folder, identity.content, checkpoint)?;
        let from = stored.applied(identity.content)?;
        let mut replay = Replay {
            folder: folder.path(),
            projections: &stored.all,
            edges: &stored.edges,
            settings: &settings,
            indexed: stored.indexed,
            is_index_rebuilt: stored.is_index_rebuilt,
            imported: false,
            lost: false,
        };
        let recovered = log::recover(&folder, identity, settings.log_sizes(), from, &mut |frame| {
            replay.apply(&frame.events)
        })?;
        if replay.lost {
            return Ok(None);
        }
        let newest = Sequence(recovered.writer.next().0 - 1);
        stored.require_logged(identity.content, newest)?;
        let resnapshot = (stored.is_index_rebuilt || replay.imported) && newest > identity.base;
        let floor = recovered.floor.max(checkpoint.floor);
        let Stored { shared, edges, posts, comments, feeds, all, .. } = stored;
        let ids =
            IdGenerators::new(identity.ids, posts.newest_generated_id()?, comments.newest_generated_id()?);
        let store = Self {
            suggestions: ComputedSuggestions::open(&folder, &edges)?,
            folder,
            identity,
            content: (identity.content as u32).into(),
            log: recovered.reader,
            keys,
            shared,
            projections: all,
            edges,
            posts,
            comments,
            feeds,
            visibility: Visibility::new(newest),
            flushed: flushed.0.into(),
            sealed: flushed.0.into(),
            floor: floor.millis().into(),
            snapshot_gate: Mutex::new(()),
            checkpointing: Mutex::new(()),
            repaired: AtomicBool::new(false),
            half_applied: AtomicBool::new(false),
            flushing: Signal::default(),
            snapshotting: Signal::default(),
            compacting: Signal::default(),
            erasing: Signal::default(),
            flushes: Pulse::default(),
            compactions: Pulse::default(),
            flush_failure: Mutex::new(None),
            compaction_failure: Mutex::new(None),
            opened: Instant::now(),
            counters: Counters::default(),
            layers: Layers::default(),
            workers: WorkerPool::new(),
            health,
            settings,
        };
        store.finish_opening(resnapshot)?;
        Ok(Some(Opened { store: Arc::new(store), log: recovered.writer, floor, ids }))
    }

    fn finish_opening(&self, resnapshot: bool) -> Result<()> {
        if self.has_sealed() {
            // A full disk has kept rows in memory: all of them wait for maintenance now, up to one position.
            self.seal();
        }
        if resnapshot {
            let instead = "the index can't be stored; if the process is killed, the next start takes longer";
            files::unless_full(self.snapshot(), instead)?;
        }
        self.projections.all().try_for_each(|projection| projection.catch_up(&self.log, self.position()))
    }
}
