//! Imports: edges are sorted into run files first, then one event in the log makes all of them count.
//!
//! Until that event is durable nothing is visible and the run files can be continued or dropped. From then on the
//! import has happened: a start that finds it half applied applies the rest from the run files.
//!
//! `imports/NUMBER/import` is text with a checksum: `fingerprint`, `kind`, `limit`, `taken`, `self`, `runs`. Manifests of older
//! versions also have `at`, the `since` of edges that came without one; their runs have it in the records. In runs, [`NO_SINCE`]
//! stands for it: such edges get the time of the event, so that their `since` is never earlier than one that was given out before.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};

use kinfolk_core::bulk::{ImportOptions, ImportReport};
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Error, IdKind, Result, Shard, Timestamp};

use crate::background::maintenance;
use crate::disk::files::{self, IoContext};
use crate::disk::format;
use crate::disk::id_encoding::IdEncoding;
use crate::edges::Rows;
use crate::edges::index::{self, Index};
use crate::edges::load::{self, Loaded, Merge, PairRecord, Sorter, Target};
use crate::engine::store::Store;
use crate::engine::writer::Writer;
use crate::log::{Event, EventBody};
use crate::settings::Settings;
use crate::{Embedded, Progress};

const MANIFEST: &str = "import";

/// In a run: the edge came without `since`. Later than any time.
const NO_SINCE: u64 = 1 << 48;

/// An import that takes edges in. Dropped before [`Import::finish`], it can be continued later.
pub struct Import {
    store: Embedded,
    spool: Box<dyn Spool>,
}

/// The collecting part, with the type of id hidden.
trait Spool: Send {
    fn taken(&self) -> u64;
    fn push(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<()>;
    fn finish(&mut self) -> Result<()>;
    fn manifest(&self) -> &Manifest;
    fn folder(&self) -> &Path;
}

/// What is written down about an import.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Manifest {
    fingerprint: String,
    kind: EdgeKind,
    limit: Option<u32>,
    taken: u64,
    self_follows: u64,
    runs: usize,
}

impl Manifest {
    fn write(&self, folder: &Path) -> Result<()> {
        let limit = self.limit.map_or("none".into(), |limit| limit.to_string());
        let lines = format!(
            "fingerprint {}\nkind {}\nlimit {limit}\ntaken {}\nself {}\nruns {}\n",
            self.fingerprint,
            self.kind.name(),
            self.taken,
            self.self_follows,
            self.runs
        );
        files::replace_file(&folder.join(MANIFEST), files::seal_text(&lines).as_bytes())
    }

    /// Nothing, too, where a run is missing: a clean-up was interrupted, and the import is applied or was given up.
    fn read(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join(MANIFEST)).ok()?;
        let lines = files::open_text(&text)?;
        let field = |name: &str| lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let limit = match field("limit")? {
            "none" => None,
            limit => Some(limit.parse().ok()?),
        };
        let manifest = Self {
            fingerprint: field("fingerprint")?.to_owned(),
            kind: EdgeKind::from_name(field("kind")?)?,
            limit,
            taken: field("taken")?.parse().ok()?,
            self_follows: field("self")?.parse().ok()?,
            runs: field("runs")?.parse().ok()?,
        };
        let are_there = run_paths(folder, manifest.runs).iter().all(|run| run.exists());
        are_there.then_some(manifest)
    }
}

fn run_paths(folder: &Path, count: usize) -> Vec<PathBuf> {
    (0..count).map(|number| folder.join(format!("run-{number:05}"))).collect()
}

fn imports_folder(store: &Path) -> PathBuf {
    store.join("imports")
}

fn import_folder(store: &Path, number: u64) -> PathBuf {
    imports_folder(store).join(format!("{number:016x}"))
}

/// How many bytes the files of stopped imports have; what can't be read counts as nothing.
pub fn stopped_bytes(store: &Path) -> u64 {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries(&imports_folder(store)).flat_map(|import| entries(&import.path()));
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

/// Collects edges of one id type in sorted runs.
struct Collector<K> {
    folder: PathBuf,
    manifest: Manifest,
    sorter: Sorter<PairRecord<K>>,
    /// What the manifest may say once the spill in flight is durable.
    pending: Option<(u64, u64, usize)>,
    taken: u64,
    self_follows: u64,
}

impl<K: IdEncoding> Collector<K> {
    fn open(folder: PathBuf, manifest: Manifest, sort_memory: usize) -> Self {
        let runs = run_paths(&folder, manifest.runs);
        let sorter = Sorter::new(&folder, sort_memory).with_runs(runs);
        let (taken, self_follows) = (manifest.taken, manifest.self_follows);
        Self { folder, manifest, sorter, pending: None, taken, self_follows }
    }

    fn spill(&mut self) -> Result<()> {
        self.sorter.spill()?;
        // The spill before is durable now, so the manifest may count it.
        if let Some(durable) = self.pending.replace((self.taken, self.self_follows, self.sorter.runs().len()))
        {
            self.record(durable)?;
        }
        Ok(())
    }

    fn record(&mut self, (taken, self_follows, runs): (u64, u64, usize)) -> Result<()> {
        self.manifest.taken = taken;
        self.manifest.self_follows = self_follows;
        self.manifest.runs = runs;
        self.manifest.write(&self.folder)
    }
}

impl<K: IdEncoding> Spool for Collector<K> {
    fn taken(&self) -> u64 {
        self.taken
    }

    fn push(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<()> {
        if self.sorter.is_full() {
            self.spill()?;
        }
        self.taken += 1;
        if edge.follower == edge.followee {
            self.self_follows += 1;
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
        self.record((self.taken, self.self_follows, self.sorter.runs().len()))
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
        let shared = store.shared();
        // An import that is logged but could not be applied waits for the next start, which needs its folder.
        shared.require_folder()?;
        if let Some(reason) = shared.health.refusal() {
            return Err(Error::ReadOnly { reason: reason.to_owned() });
        }
        let imports = imports_folder(&shared.folder);
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
                let folder = import_folder(&shared.folder, u64::from_le_bytes(format::random()?));
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
        self.spool.taken()
    }

    /// Takes one edge; without `since` it gets the time at which the import takes effect. Self-follows are counted and
    /// skipped.
    #[inline]
    pub fn push(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<()> {
        self.store.shared().identity.ids.require(edge.follower)?;
        self.store.shared().identity.ids.require(edge.followee)?;
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
    // A snapshot from now until the end would hold a part of the import, and replaying could not tell which.
    let _closed = store.snapshot_gate.lock();
    // Older rows must be below those of the import, not above them; and a start that finds the import half applied
    // needs the index as it was before.
    store.flush_now()?;
    if !index::is_saved(&store.folder) || store.snapshotted.load(Ordering::Acquire) < store.position().0 {
        maintenance::snapshot(&store)?;
    }
    // Counted before it is loaded: the event says how many edges are added, and comes first.
    let edges = count(&store, folder, manifest, &report)?;
    let event = Event {
        position: writer.log.next(),
        at,
        kind: manifest.kind,
        body: EventBody::Imported { number: folder_number(folder), edges },
    };
    writer.log_durably(std::slice::from_ref(&event), at)?;
    let applied = apply(
        &store.folder,
        (&store.rows, &store.index),
        &event,
        ([true; 3], true),
        (&store.settings, &report),
    )
    .and_then(|loaded| {
        store.forget_newest(&event);
        store.feeds.take_note(std::slice::from_ref(&event));
        store.visibility.publish(event.position);
        // Posts first: maintenance takes what is sealed for flushed everywhere.
        store.flush_projections(event.position)?;
        store.sealed.store(event.position.0, Ordering::Release);
        maintenance::record_flushed(&store, event.position)?;
        report(Progress { stage: "writing the index", done: 0, total: None });
        maintenance::snapshot(&store)?;
        fs::remove_dir_all(folder).during("removing", folder)?;
        store.signal.wake();
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

fn folder_number(folder: &Path) -> u64 {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    u64::from_str_radix(name, 16).unwrap_or(0)
}

/// Whether the run files of an import are still there.
pub fn is_kept(store: &Path, number: u64) -> bool {
    Manifest::read(&import_folder(store, number)).is_some()
}

/// Applies an import that the log has, at a start.
pub fn apply_committed(
    store: &Path,
    target: (&Rows, &Index),
    event: &Event,
    wanted: ([bool; 3], bool),
    settings: &Settings,
) -> Result<()> {
    apply(store, target, event, wanted, (settings, &|_| {}))?;
    if let EventBody::Imported { number, .. } = event.body {
        let folder = import_folder(store, number);
        fs::remove_dir_all(&folder).during("removing", &folder)?;
    }
    Ok(())
}

fn apply(
    store: &Path,
    (rows, index): (&Rows, &Index),
    event: &Event,
    (trees, indexed): ([bool; 3], bool),
    (settings, progress): (&Settings, &dyn Fn(Progress)),
) -> Result<Loaded> {
    let EventBody::Imported { number, .. } = event.body else {
        return Err(Error::Storage { detail: "not an import".into() });
    };
    let folder = import_folder(store, number);
    let manifest = Manifest::read(&folder).ok_or_else(|| Error::Corrupt {
        detail: format!(
            "the import in {} is in the log but its files are damaged: restore from a backup",
            folder.display()
        ),
    })?;
    let scratch = folder.join("by-followee");
    files::create_folder(&scratch)?;
    let target = Target {
        rows,
        index,
        scratch: &scratch,
        sort_memory: settings.sort_memory,
        position: event.position,
        kind: event.kind,
        trees,
        indexed,
    };
    let (runs, limit) = (run_paths(&folder, manifest.runs), manifest.limit);
    match rows.ids() {
        IdKind::Integer => load::load::<u64>(&target, merge(&runs, event.at)?, limit, progress),
        IdKind::Uuid => load::load::<u128>(&target, merge(&runs, event.at)?, limit, progress),
    }
}

/// How many edges an import adds to those that there are.
fn count(store: &Store, folder: &Path, manifest: &Manifest, progress: &dyn Fn(Progress)) -> Result<u64> {
    let (runs, limit) = (run_paths(folder, manifest.runs), manifest.limit);
    let graph = (&store.index, manifest.kind);
    // Times decide which edges are kept, not how many.
    match store.identity.ids {
        IdKind::Integer => load::count::<u64>(graph, merge(&runs, Timestamp::MAX)?, limit, progress),
        IdKind::Uuid => load::count::<u128>(graph, merge(&runs, Timestamp::MAX)?, limit, progress),
    }
}

/// The edges of all runs in order; those that came without `since` get this one.
fn merge<K: IdEncoding>(
    runs: &[PathBuf],
    at: Timestamp,
) -> Result<impl Iterator<Item = Result<PairRecord<K>>> + use<K>> {
    let with_since = move |mut record: PairRecord<K>| {
        if record.since == NO_SINCE {
            record.since = at.millis();
        }
        record
    };
    Ok(Merge::open(runs)?.map(move |record| record.map(with_since)))
}
