//! Imports and exports of an open store, shared by the command line and the server. The caller supplies the input and
//! the output.

use std::cell::Cell;
use std::io::Write;

use anyhow::Result;
use kinfolk_core::bulk::{ImportOptions, Progress};
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Timestamp};
use kinfolk_server::{ExportContent, ExportRequest, ImportDone};

use crate::input::{Location, Rules, Sink, Stop};
use crate::output::{Comments, EdgeRow, Edges, Encoder, Table};
use crate::profile::{EdgeImport, OpenStore};
use crate::progress::READING;

/// The edge kind of files.
const KIND: EdgeKind = EdgeKind::Follow;

/// How many edges pass between two reports of an import's progress.
const REPORT_EDGES: u64 = 16_384;
/// How many rows pass between two reports of an export's progress.
const REPORT_ROWS: u64 = 4_096;

/// The options of an import.
#[derive(Clone, Debug)]
pub(crate) struct ImportChoices {
    /// Count and skip malformed lines.
    pub(crate) skip_invalid: bool,
    /// The maximum number of followees of a user; `None` for no limit.
    pub(crate) following_limit: Option<u32>,
    /// Memory for sorting, in bytes.
    pub(crate) sort_memory: usize,
    /// Identifies the input and the options that decide how it is read; `None` for input that cannot be read again.
    pub(crate) fingerprint: Option<String>,
    /// The length of the input in bytes, if known.
    pub(crate) bytes_total: Option<u64>,
}

/// Imports the edges that `read` passes to its sink. Malformed input leaves nothing behind. An import whose input could
/// not be read this time resumes with the next call, if the input can be read again.
pub(crate) fn import<S: OpenStore>(
    store: &S,
    choices: &ImportChoices,
    report: &dyn Fn(Progress),
    read: impl FnOnce(Rules, &Cell<u64>, &mut Intake<'_, S::Import>) -> Result<(), Stop>,
) -> Result<ImportDone, Stop> {
    let options = ImportOptions {
        kind: KIND,
        following_limit: choices.following_limit,
        fingerprint: choices.fingerprint.clone().unwrap_or_else(unique_name),
        sort_memory: choices.sort_memory,
    };
    let import = store.import(&options).map_err(Stop::Refused)?;
    let rules = Rules::new(store.id_kind(), store.now());
    let bytes_read = Cell::new(0);
    let mut intake = Intake {
        to_skip: import.taken(),
        import,
        skip_invalid: choices.skip_invalid,
        invalid: 0,
        edges: 0,
        bytes_read: &bytes_read,
        bytes_total: choices.bytes_total,
        report,
    };
    let outcome = read(rules, &bytes_read, &mut intake);
    let Intake { import, invalid, .. } = intake;
    match outcome {
        Ok(()) => {
            let report = import.finish(report).map_err(Stop::Refused)?;
            Ok(ImportDone { report, invalid })
        }
        Err(Stop::Malformed(mut detail)) => {
            // The user must see the malformed line, even if the cleanup fails too.
            if let Err(error) = import.abandon() {
                detail.push_str(&format!("; could not remove what was read: {error}"));
            }
            Err(Stop::Malformed(detail))
        }
        Err(stop) => {
            if choices.fingerprint.is_none()
                && let Err(error) = import.abandon()
            {
                tracing::warn!(%error, "could not remove a failed import");
            }
            Err(stop)
        }
    }
}

/// Passes edges to the store, except those that an earlier run has passed already.
pub(crate) struct Intake<'a, I> {
    import: I,
    /// The number of edges still to skip: an earlier run made them durable.
    to_skip: u64,
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
        if self.to_skip > 0 {
            self.to_skip -= 1;
            return Ok(());
        }
        self.import.push(edge, since).map_err(Stop::Refused)
    }

    fn malformed(&mut self, location: Location<'_>, reason: &str) -> Result<(), Stop> {
        if !self.skip_invalid {
            return Err(Stop::malformed(location, reason));
        }
        self.invalid += 1;
        Ok(())
    }
}

/// A written export.
pub(crate) struct Exported<W> {
    /// The number of rows.
    pub(crate) rows: u64,
    /// What they were written to.
    pub(crate) out: W,
}

/// Writes all edges or all comments, as of now.
pub(crate) fn export<W: Write + Send>(
    store: &impl OpenStore,
    ExportRequest { content, format }: ExportRequest,
    out: W,
    report: &dyn Fn(Progress),
) -> Result<Exported<W>> {
    let ids = store.id_kind();
    match content {
        ExportContent::Edges => {
            let edges = store.edges(KIND)?.map(|edge| edge.map(|(edge, since)| EdgeRow { edge, since }));
            let encoder = Encoder::new(out, format, Edges { ids, since: true })?;
            write_rows(edges, encoder, store.edge_count(KIND), report)
        }
        ExportContent::Comments => {
            let encoder = Encoder::new(out, format, Comments { ids })?;
            write_rows(store.all_comments()?, encoder, None, report)
        }
    }
}

fn write_rows<W: Write + Send, T: Table>(
    rows: impl Iterator<Item = kinfolk_core::Result<T::Row>>,
    mut encoder: Encoder<W, T>,
    total: Option<u64>,
    report: &dyn Fn(Progress),
) -> Result<Exported<W>> {
    let mut count = 0;
    for row in rows {
        encoder.write(&row?)?;
        count += 1;
        if count % REPORT_ROWS == 0 {
            report(Progress { stage: "exporting", done: count, total });
        }
    }
    Ok(Exported { rows: count, out: encoder.finish()? })
}

/// A unique name.
pub(crate) fn unique_name() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("once {} {}", std::process::id(), now.as_nanos())
}
