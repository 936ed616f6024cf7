//! Bulk work on an open store, shared by the command line on a folder and by a server: what is read goes in, what
//! is stored comes out. Where it is read from and written to is the caller's business.

use std::cell::Cell;

use anyhow::Result;
use kinfolk_core::bulk::{ImportOptions, ImportReport, Progress};
use kinfolk_core::comments::Comment;
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Timestamp};

use crate::input::{Place, Rules, Sink, Stop};
use crate::profile::{EdgeImport, OpenStore};
use crate::progress::READING;

/// The kind of edge that files hold.
const KIND: EdgeKind = EdgeKind::Follow;

/// How many edges pass between two reports of progress.
const REPORT_EDGES: u64 = 16_384;
/// The same for comments.
const REPORT_COMMENTS: u64 = 1_024;

/// How to import.
#[derive(Clone, Debug)]
pub struct ImportChoices {
    /// Count and skip what is malformed.
    pub skip_invalid: bool,
    /// How many one user may follow; `None` for any number.
    pub following_limit: Option<u32>,
    /// How much memory sorting may use.
    pub sort_memory: usize,
    /// Names the input and all that decides how it is read; `None` for input that can't be read again.
    pub fingerprint: Option<String>,
    /// How many bytes the input has, if that is known.
    pub bytes_total: Option<u64>,
}

/// What an import has read and done.
#[derive(Clone, Debug)]
pub struct ImportDone {
    /// What the store did.
    pub report: ImportReport,
    /// What was malformed.
    pub invalid: u64,
    /// What was not.
    pub edges: u64,
}

/// Imports what `read` hands over. Malformed input leaves nothing behind; what could not be read this time can be
/// continued, if it can be read again.
pub fn import<S: OpenStore>(
    store: &S,
    choices: &ImportChoices,
    report: &dyn Fn(Progress),
    read: impl FnOnce(Rules, &Cell<u64>, &mut Intake<'_, S::Import>) -> Result<(), Stop>,
) -> Result<ImportDone, Stop> {
    let options = ImportOptions {
        kind: KIND,
        following_limit: choices.following_limit,
        fingerprint: choices.fingerprint.clone().unwrap_or_else(unrepeatable_name),
        sort_memory: choices.sort_memory,
    };
    let import = store.import(&options).map_err(Stop::Refused)?;
    let rules = Rules::new(store.id_kind(), store.now());
    let bytes_read = Cell::new(0);
    let mut intake = Intake {
        still_taken: import.taken(),
        import,
        skip_invalid: choices.skip_invalid,
        invalid: 0,
        edges: 0,
        bytes_read: &bytes_read,
        bytes_total: choices.bytes_total,
        report,
    };
    let outcome = read(rules, &bytes_read, &mut intake);
    let Intake { import, invalid, edges, .. } = intake;
    match outcome {
        Ok(()) => {
            let report = import.finish(report).map_err(Stop::Refused)?;
            Ok(ImportDone { report, invalid, edges })
        }
        Err(Stop::Malformed(mut detail)) => {
            // The malformed line is what the user must see, whatever else goes wrong.
            if let Err(error) = import.abandon() {
                detail.push_str(&format!("; nor could what was read be removed: {error}"));
            }
            Err(Stop::Malformed(detail))
        }
        Err(stop) => {
            if choices.fingerprint.is_none()
                && let Err(error) = import.abandon()
            {
                tracing::warn!(%error, "an import that failed could not be removed");
            }
            Err(stop)
        }
    }
}

/// Hands edges to the store, apart from those that an earlier run has handed over.
pub struct Intake<'a, I> {
    import: I,
    /// How many edges of the input an earlier run has made durable, less those that have passed since.
    still_taken: u64,
    skip_invalid: bool,
    invalid: u64,
    edges: u64,
    bytes_read: &'a Cell<u64>,
    bytes_total: Option<u64>,
    report: &'a dyn Fn(Progress),
}

impl<I: EdgeImport> Sink for Intake<'_, I> {
    #[inline]
    fn edge(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<(), Stop> {
        self.edges += 1;
        if self.edges.is_multiple_of(REPORT_EDGES) {
            let (done, total) = (self.bytes_read.get(), self.bytes_total);
            (self.report)(Progress { stage: READING, done, total });
        }
        if self.still_taken > 0 {
            self.still_taken -= 1;
            return Ok(());
        }
        self.import.push(edge, since).map_err(Stop::Refused)
    }

    fn malformed(&mut self, place: Place<'_>, reason: &str) -> Result<(), Stop> {
        if !self.skip_invalid {
            return Err(Stop::malformed(place, reason));
        }
        self.invalid += 1;
        Ok(())
    }
}

/// Hands all edges on, as of now; gives their number.
pub fn export(
    store: &impl OpenStore,
    report: &dyn Fn(Progress),
    mut write: impl FnMut(Edge, Timestamp) -> Result<()>,
) -> Result<u64> {
    let total = Some(store.edge_count(KIND));
    let mut edges = 0;
    for edge in store.edges(KIND)? {
        let (edge, since) = edge?;
        write(edge, since)?;
        edges += 1;
        if edges % REPORT_EDGES == 0 {
            report(Progress { stage: "exporting", done: edges, total });
        }
    }
    Ok(edges)
}

/// Hands all comments on, as of now, thread by thread, oldest first; gives their number.
pub fn export_comments(
    store: &impl OpenStore,
    report: &dyn Fn(Progress),
    mut write: impl FnMut(&Comment) -> Result<()>,
) -> Result<u64> {
    let mut comments = 0;
    for comment in store.all_comments()? {
        write(&comment?)?;
        comments += 1;
        if comments % REPORT_COMMENTS == 0 {
            report(Progress { stage: "exporting", done: comments, total: None });
        }
    }
    Ok(comments)
}

/// A name unlike any other.
pub fn unrepeatable_name() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("once {} {}", std::process::id(), now.as_nanos())
}
