//! Imports: edges are sorted into run files first, then one event in the log makes all of them count.
//!
//! Until that event is durable nothing is visible and the run files can be continued or dropped. From then on the
//! import has happened: a start that finds it half applied applies the rest from the run files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};

use kinfolk_core::bulk::{ImportOptions, ImportReport};
use kinfolk_core::graph::Edge;
use kinfolk_core::{Error, IdKind, Result, Shard, Timestamp};

use crate::disk::files::{self, IoContext};
use crate::disk::format;
use crate::disk::id_encoding::IdEncoding;
use crate::edges::imports::{
    self, ImportTarget, Manifest, NO_SINCE, folder_number, import_folder, imports_folder, run_paths,
};
use crate::edges::index;
use crate::edges::load::{PairRecord, Sorter};
use crate::engine::writer::Writer;
use crate::log::{Event, EventBody};
use crate::{Embedded, Progress};

/// An import that takes edges in. Dropped before [`Import::finish`], it can be continued later.
pub struct Import {
    store: Embedded,
    spool: Box<dyn Spool>,
}

/// The collecting part, with the type of id hidden.
trait Spool: Send {
    fn push(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<()>;
    fn finish(&mut self) -> Result<()>;
    fn manifest(&self) -> &Manifest;
    fn folder(&self) -> &Path;
}

/// Collects edges of one id type in sorted runs.
struct Collector<K> {
    folder: PathBuf,
    /// What was taken so far.
    manifest: Manifest,
    sorter: Sorter<PairRecord<K>>,
    /// What may be written down once the spill in flight is durable.
    pending: Option<Manifest>,
}

impl<K: IdEncoding> Collector<K> {
    fn open(folder: PathBuf, manifest: Manifest, sort_memory: usize) -> Self {
        let runs = run_paths(&folder, manifest.runs);
        let sorter = Sorter::new(&folder, sort_memory).with_runs(runs);
        Self { folder, manifest, sorter, pending: None }
    }

    fn spill(&mut self) -> Result<()> {
        self.sorter.spill()?;
        self.manifest.runs = self.sorter.runs.len();
        // The spill before is durable now, so it may be written down.
        let durable = self.pending.replace(self.manifest.clone());
        durable.map_or(Ok(()), |durable| durable.write(&self.folder))
    }
}

impl<K: IdEncoding> Spool for Collector<K> {
    fn push(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<()> {
        if self.sorter.is_full() {
            self.spill()?;
        }
        self.manifest.taken += 1;
        if edge.follower == edge.followee {
            self.manifest.self_follows += 1;
            return Ok(());
        }
        let since = since.map_or(NO_SINCE, Timestamp::millis);
        let record =
            PairRecord { follower: K::from_id(edge.follower), followee: K::from_id(edge.followee), since };
        self.sorter.push(record)
    }

    fn finish(&mut self) -> Result<()> {
        self.spill()?;
        self.sorter.wait()?;
        self.manifest.write(&self.folder)
    }

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Import {
    /// Starts an import, or continues one with the same options that was stopped.
    pub(crate) fn start(store: Embedded, options: &ImportOptions) -> Result<Self> {
        let shared = &store.store;
        // An import that is logged but could not be applied waits for the next start, which needs its folder.
        shared.folder.require()?;
        shared.health.require_writable()?;
        let imports = imports_folder(shared.folder.path());
        files::create_folder(&imports)?;
        // The prefix: runs of older versions have another time in edges without one, and are not continued.
        let fingerprint = blake3::hash(format!("2 {}", options.fingerprint).as_bytes()).to_hex().to_string();
        let continues = |manifest: &Manifest| {
            manifest.fingerprint == fingerprint
                && manifest.kind == options.kind
                && manifest.limit == options.following_limit
        };
        let mut found = None;
        for entry in fs::read_dir(&imports).during("reading folder", &imports)? {
            let folder = entry.during("reading folder", &imports)?.path();
            match Manifest::read(&folder).filter(continues) {
                Some(manifest) if found.is_none() => found = Some((folder, manifest)),
                // Of another input, or never got to a manifest: it would only take space.
                _ => fs::remove_dir_all(&folder).during("removing", &folder)?,
            }
        }
        let (folder, manifest) = match found {
            Some(found) => found,
            None => {
                let folder = import_folder(shared.folder.path(), u64::from_le_bytes(format::random()?));
                files::create_folder(&folder)?;
                let manifest = Manifest {
                    fingerprint,
                    kind: options.kind,
                    limit: options.following_limit,
                    taken: 0,
                    self_follows: 0,
                    runs: 0,
                };
                manifest.write(&folder)?;
                (folder, manifest)
            }
        };
        let spool: Box<dyn Spool> = match shared.identity.ids {
            IdKind::Integer => Box::new(Collector::<u64>::open(folder, manifest, options.sort_memory)),
            IdKind::Uuid => Box::new(Collector::<u128>::open(folder, manifest, options.sort_memory)),
        };
        Ok(Self { store, spool })
    }

    /// How many edges an earlier run has taken in durably: skip so many of the input.
    pub fn taken(&self) -> u64 {
        self.spool.manifest().taken
    }

    /// Takes one edge; without `since` it gets the time at which the import takes effect. Self-follows are counted and
    /// skipped.
    #[inline]
    pub fn push(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<()> {
        self.store.store.identity.ids.require(edge.follower)?;
        self.store.store.identity.ids.require(edge.followee)?;
        self.spool.push(edge, since)
    }

    /// Gives up and removes what was taken in.
    pub fn abandon(self) -> Result<()> {
        let folder = self.spool.folder().to_path_buf();
        drop(self);
        fs::remove_dir_all(&folder).during("removing", &folder)
    }

    /// Makes the import durable, then visible. Other writes wait meanwhile; reads go on.
    pub fn finish(mut self, progress: &dyn Fn(Progress)) -> Result<ImportReport> {
        self.spool.finish()?;
        let manifest = self.spool.manifest().clone();
        let folder = self.spool.folder().to_path_buf();
        drop(self.spool);
        let (sender, messages) = channel();
        self.store.run_on_writer(move |writer| {
            let outcome = commit(writer, &folder, &manifest, &sender);
            let _ = sender.send(Message::Done(outcome));
        })?;
        for message in messages {
            match message {
                Message::Progress(step) => progress(step),
                Message::Done(outcome) => return outcome,
            }
        }
        Err(Error::Closed)
    }
}

enum Message {
    Progress(Progress),
    Done(Result<ImportReport>),
}

/// Logs the import and applies it, on the writer's thread.
fn commit(
    writer: &mut Writer,
    folder: &Path,
    manifest: &Manifest,
    progress: &Sender<Message>,
) -> Result<ImportReport> {
    let at = writer.now();
    let store = writer.store.clone();
    let report = |step| {
        let _ = progress.send(Message::Progress(step));
    };
    // A snapshot from now until the end would hold a part of the import, and replaying could not know which.
    let _closed = store.snapshot_gate.lock();
    // Older rows must be below those of the import, not above them; and a start that finds the import half applied
    // needs the index as it was before.
    store.flush_now()?;
    if !index::is_saved(store.folder.path()) || store.projections.snapshotted() < store.position() {
        store.snapshot()?;
    }
    // Counted before it is loaded: the event says how many edges are added, and comes first.
    let edges = imports::count(&store.edges, folder, manifest, &report)?;
    let event = Event {
        position: writer.log.next(),
        at,
        kind: manifest.kind,
        body: EventBody::Imported { number: folder_number(folder), edges },
    };
    writer.log_durably(std::slice::from_ref(&event), at)?;
    let target = ImportTarget { edges: &store.edges, trees: [true; 3], index: true };
    let applied = imports::apply(store.folder.path(), &target, &event, &store.settings, &report);
    let applied = applied.and_then(|loaded| {
        for projection in store.projections.in_memory() {
            projection.apply(std::slice::from_ref(&event))?;
        }
        store.visibility.publish(event.position);
        // All rows first: maintenance takes what is sealed for flushed everywhere.
        store.flush_rows(event.position)?;
        store.sealed.store(event.position.0, Ordering::Release);
        store.record_flushed(event.position)?;
        report(Progress { stage: "writing the index", done: 0, total: None });
        store.snapshot()?;
        fs::remove_dir_all(folder).during("removing", folder)?;
        store.flushing.wake();
        Ok(loaded)
    });
    let loaded = applied.map_err(|error| {
        // The import is in the log, so it counts; what could not be applied is applied by the next start.
        writer.refuse_from_now_on(&format!("an import could not be applied: {error}"))
    })?;
    debug_assert_eq!(loaded.added, edges, "what is added depends on the runs and on the index before");
    Ok(ImportReport {
        added: loaded.added,
        self_follows: manifest.self_follows,
        duplicates: loaded.duplicates,
        over_limit: loaded.over_limit,
        frontier: event.position.on(Shard::ONLY).into(),
    })
}
