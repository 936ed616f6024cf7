//! The files of an import: edges in sorted runs, and what is written down about them. Applying them loads rows and index together.
//!
//! `imports/NUMBER/import` is text with a checksum: `fingerprint`, `kind`, `limit`, `taken`, `self`, `runs`. Manifests of older
//! versions also have `at`, the `since` of edges that came without one; their runs have it in the records. In runs, [`NO_SINCE`]
//! stands for it: such edges get the time of the event, so that their `since` is never earlier than one that was given out before.

use std::fs;
use std::path::{Path, PathBuf};

use kinfolk_core::bulk::Progress;
use kinfolk_core::{EdgeKind, Error, IdKind, Result, Timestamp};

use super::Edges;
use super::load::{self, Loaded, Merge, PairRecord, Target};
use crate::disk::files;
use crate::disk::id_encoding::IdEncoding;
use crate::log::{Event, EventBody};
use crate::settings::Settings;

const MANIFEST: &str = "import";

/// In a run: the edge came without `since`. Later than any time.
pub(crate) const NO_SINCE: u64 = 1 << 48;

/// What is written down about an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub fingerprint: String,
    pub kind: EdgeKind,
    pub limit: Option<u32>,
    pub taken: u64,
    pub self_follows: u64,
    pub runs: usize,
}

impl Manifest {
    /// Writes it down.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let limit = self.limit.map_or("none".into(), |limit| limit.to_string());
        let lines = format!(
            "fingerprint {}\nkind {}\nlimit {limit}\ntaken {}\nself {}\nruns {}\n",
            self.fingerprint,
            self.kind.name(),
            self.taken,
            self.self_follows,
            self.runs
        );
        files::replace_text(&folder.join(MANIFEST), &lines)
    }

    /// How many edges its runs have.
    fn edges(&self) -> u64 {
        self.taken.saturating_sub(self.self_follows)
    }

    /// Nothing, too, where a run is missing: a clean-up was interrupted, and the import is applied or was given up.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join(MANIFEST)).ok()?;
        let lines = files::open_text(&text)?;
        let field = |name| files::text_field(lines, name);
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

pub(crate) fn run_paths(folder: &Path, count: usize) -> Vec<PathBuf> {
    (0..count).map(|number| folder.join(format!("run-{number:05}"))).collect()
}

pub(crate) fn imports_folder(store: &Path) -> PathBuf {
    store.join("imports")
}

pub(crate) fn import_folder(store: &Path, number: u64) -> PathBuf {
    imports_folder(store).join(format!("{number:016x}"))
}

/// How many bytes the files of stopped imports have; what can't be read counts as nothing.
pub(crate) fn stopped_bytes(store: &Path) -> u64 {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries(&imports_folder(store)).flat_map(|import| entries(&import.path()));
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

pub(crate) fn folder_number(folder: &Path) -> u64 {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    u64::from_str_radix(name, 16).unwrap_or(0)
}

/// Whether the run files of an import are still there.
pub(crate) fn is_kept(store: &Path, number: u64) -> bool {
    Manifest::read(&import_folder(store, number)).is_some()
}

/// What still needs an import.
pub(crate) struct ImportTarget<'a> {
    pub edges: &'a Edges,
    /// Which trees, in the order of [`super::Tree::ALL`].
    pub trees: [bool; 3],
    /// Whether the index does.
    pub index: bool,
}

/// Loads the edges of an import that the log has.
pub(crate) fn apply(
    store: &Path,
    &ImportTarget { edges, trees, index }: &ImportTarget<'_>,
    event: &Event,
    settings: &Settings,
    progress: &dyn Fn(Progress),
) -> Result<Loaded> {
    let EventBody::Imported { number, .. } = event.body else {
        return Err(Error::storage("not an import"));
    };
    let folder = import_folder(store, number);
    let manifest = Manifest::read(&folder).ok_or_else(|| {
        Error::corrupt(format!(
            "the import in {} is in the log but its files are damaged: restore from a backup",
            folder.display()
        ))
    })?;
    let scratch = folder.join("by-followee");
    files::create_folder(&scratch)?;
    let target = Target {
        rows: &edges.rows,
        index: &edges.index,
        scratch: &scratch,
        sort_memory: settings.sort_memory,
        position: event.position,
        kind: event.kind,
        trees,
        indexed: index,
        total: Some(manifest.edges()),
    };
    let (runs, limit) = (run_paths(&folder, manifest.runs), manifest.limit);
    match edges.rows.ids {
        IdKind::Integer => load::load::<u64>(&target, merge(&runs, event.at)?, limit, progress),
        IdKind::Uuid => load::load::<u128>(&target, merge(&runs, event.at)?, limit, progress),
    }
}

/// How many edges an import adds to those that there are.
pub(crate) fn count(
    edges: &Edges,
    folder: &Path,
    manifest: &Manifest,
    progress: &dyn Fn(Progress),
) -> Result<u64> {
    let (runs, limit) = (run_paths(folder, manifest.runs), manifest.limit);
    let graph = (&edges.index, manifest.kind);
    let report = |done| progress(Progress { stage: "counting", done, total: Some(manifest.edges()) });
    // Times decide which edges are kept, not how many.
    match edges.rows.ids {
        IdKind::Integer => load::count::<u64>(graph, merge(&runs, Timestamp::MAX)?, limit, &report),
        IdKind::Uuid => load::count::<u128>(graph, merge(&runs, Timestamp::MAX)?, limit, &report),
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
