//! What operators ask of the store behind the graph. The binary's wiring implements it for its adapter.

use std::io::{Read, Write};

use kinfolk_api::{ExportContent, FileFormat};
use kinfolk_core::bulk::{ImportReport, Progress, VerifyReport};
use kinfolk_core::suggestions::{Ranking, SuggestionRunRequest, WalkBounds};
use kinfolk_core::{Error, Result};

use crate::service::Capability;

/// Bulk work and statistics. The methods block and may take long: protocols call them away from their own threads.
pub trait Administration: Send + Sync + 'static {
    /// The state of the store, for metrics. Cheap: it is asked at every scrape.
    fn stats(&self) -> Vec<Stat>;

    /// How long the layers of the store took so far, for metrics; none if it does not measure them. As cheap as
    /// [`Administration::stats`].
    fn layers(&self) -> Vec<LayerTimes> {
        Vec::new()
    }

    /// Why the store can't go on, if that is so: the server is not ready from then on. Cheap, too.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Why the server should not be sent requests for now, if there is a reason. Anybody may read it. Cheap, too.
    fn not_ready(&self) -> Option<String> {
        None
    }

    /// Whether the store has one of the capabilities that operators use.
    fn has(&self, _capability: Capability) -> bool {
        true
    }

    /// How suggestions are computed for everyone, where the caller leaves it open.
    fn everyone(&self) -> SuggestionRunRequest {
        let bounds = WalkBounds { per_node: None, results: 100, ranking: Ranking::default() };
        SuggestionRunRequest { bounds, threads: 1, afresh: false }
    }

    /// Adds the edges that a file has; the file comes in as bytes. All or nothing.
    fn import(
        &self,
        file: &mut (dyn Read + Send),
        request: &ImportRequest,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<ImportDone>;

    /// Writes all edges, or all comments, as of now. Returns how many.
    fn export(&self, file: &mut (dyn Write + Send), request: ExportRequest) -> Result<u64>;

    /// Compares everything derived with the edges themselves, and repairs it if asked to.
    fn verify(&self, repair: bool, progress: &(dyn Fn(Progress) + Sync)) -> Result<VerifyReport>;

    /// Writes a backup of the whole store, as of now.
    fn backup(&self, file: &mut (dyn Write + Send)) -> Result<()>;

    /// Merges all files of the store and erases the texts of comments that were purged; returns of how many.
    fn compact(&self) -> Result<u64>;
}

/// Nothing to administer: every request is refused as not available. For a graph that lives in a test.
#[derive(Clone, Copy, Debug)]
pub struct NoAdministration;

const MISSING: Error = Error::NotAvailable { what: "administration" };

impl Administration for NoAdministration {
    fn stats(&self) -> Vec<Stat> {
        Vec::new()
    }

    fn import(
        &self,
        _file: &mut (dyn Read + Send),
        _request: &ImportRequest,
        _progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<ImportDone> {
        Err(MISSING)
    }

    fn export(&self, _file: &mut (dyn Write + Send), _request: ExportRequest) -> Result<u64> {
        Err(MISSING)
    }

    fn verify(&self, _repair: bool, _progress: &(dyn Fn(Progress) + Sync)) -> Result<VerifyReport> {
        Err(MISSING)
    }

    fn backup(&self, _file: &mut (dyn Write + Send)) -> Result<()> {
        Err(MISSING)
    }

    fn compact(&self) -> Result<u64> {
        Err(MISSING)
    }
}

/// What to import and how.
#[derive(Clone, Copy, Debug)]
pub struct ImportRequest {
    /// The file's format.
    pub format: FileFormat,
    /// Count and skip lines that can't be read, instead of stopping at the first.
    pub skip_invalid: bool,
    /// Keep edges over the following limit.
    pub no_limit: bool,
    /// How many bytes the file has, if that is known.
    pub length: Option<u64>,
}

/// What an import did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportDone {
    /// What the store did.
    pub report: ImportReport,
    /// Lines that could not be read.
    pub invalid: u64,
}

/// What to export.
#[derive(Clone, Copy, Debug)]
pub struct ExportRequest {
    /// What.
    pub content: ExportContent,
    /// The format to write.
    pub format: FileFormat,
}

/// How a statistic behaves over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatKind {
    /// Goes up and down.
    Gauge,
    /// Only grows.
    Counter,
}

/// A statistic of the store, as Prometheus expects it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    /// The whole metric name, such as `kinfolk_index_bytes`.
    pub name: &'static str,
    /// One line of explanation.
    pub help: &'static str,
    /// How it behaves.
    pub kind: StatKind,
    /// Its value now.
    pub value: f64,
}

/// How long a layer of the store took, since it was opened.
#[derive(Clone, Debug)]
pub struct LayerTimes {
    /// Which layer, as metrics and spans call it.
    pub layer: &'static str,
    /// How often it took how long.
    pub times: kinfolk_core::histogram::HistogramSnapshot,
}
