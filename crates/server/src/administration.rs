//! The operations of administrators on the store behind the graph. The binary implements them for its profiles.

use std::io::{Read, Write};

use kinfolk_api::{ExportContent, FileFormat, Import};
use kinfolk_core::bulk::{BackupReport, ImportReport, Progress, VerifyReport};
use kinfolk_core::suggestions::{Ranking, SuggestionRunRequest, WalkBounds};
use kinfolk_core::{Error, Id, Result};

use crate::service::Capability;

/// Bulk work and statistics of a store. Work that a store does not do returns `NotAvailable`. The methods block and may take long:
/// protocols call them away from their own threads.
pub trait Administration: Send + Sync + 'static {
    /// The state of the store, for metrics. Cheap: every scrape calls it.
    fn stats(&self) -> Vec<Stat> {
        Vec::new()
    }

    /// The time spent in the layers of the store so far, for metrics. As cheap as [`Administration::stats`].
    fn layers(&self) -> Vec<LayerTimes> {
        Vec::new()
    }

    /// Tables about the deployment, such as its hosts, for people. As cheap as [`Administration::stats`].
    fn tables(&self) -> Vec<StateTable> {
        Vec::new()
    }

    /// Up to `limit` users by number, from one on: every user that has, or had, an edge. Users keep their numbers, and a new one
    /// gets the next, so that pages that follow each other have all users. Cheap, too.
    fn users(&self, _from: u32, _limit: usize) -> Result<NumberedUsers> {
        Err(Error::NotAvailable { what: "iterating over all keys" })
    }

    /// How many users follow others, and how many are followed, together: the number of sets that are not empty. Cheap, too.
    fn set_count(&self) -> Option<u64> {
        None
    }

    /// Why the store failed, if it did: the server is not ready from then on. Cheap, too.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Why the server should not be sent requests for now, if there is a reason. Anybody may read it. Cheap, too.
    fn not_ready(&self) -> Option<String> {
        None
    }

    /// Whether the store has one of the capabilities that administrators use.
    fn has(&self, _capability: Capability) -> bool {
        true
    }

    /// The default computation of suggestions for all users.
    fn everyone(&self) -> SuggestionRunRequest {
        let bounds = WalkBounds { per_node: None, results: 100, ranking: Ranking::default() };
        SuggestionRunRequest { bounds, threads: 1, afresh: false }
    }

    /// Adds the edges of a file, all or nothing.
    fn import(
        &self,
        _file: &mut (dyn Read + Send),
        _options: &Import,
        _progress: &dyn Fn(Progress),
    ) -> Result<ImportDone> {
        Err(Capability::Imports.missing())
    }

    /// Writes all edges or all comments as of now; returns their number.
    fn export(&self, _file: &mut (dyn Write + Send), _request: ExportRequest) -> Result<u64> {
        Err(Capability::Exports.missing())
    }

    /// Compares all derived data with the edges, posts and comments; optionally repairs it.
    fn verify(&self, _repair: bool, _progress: &dyn Fn(Progress)) -> Result<VerifyReport> {
        Err(Capability::Verification.missing())
    }

    /// Writes a backup of the whole store as of now.
    fn backup(&self, _file: &mut (dyn Write + Send), _progress: &dyn Fn(Progress)) -> Result<BackupReport> {
        Err(Capability::Backups.missing())
    }

    /// Compacts all files and erases the bodies of purged comments; returns the number of these comments.
    fn compact(&self) -> Result<u64> {
        Err(Capability::Compaction.missing())
    }
}

/// Users by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedUsers {
    /// Which numbering it is. Another one, as after a restart, may give users other numbers.
    pub numbering: u64,
    /// The users, in the order of their numbers.
    pub users: Vec<Id>,
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportDone {
    /// The report of the store.
    pub report: ImportReport,
    /// Malformed lines.
    pub invalid: u64,
}

/// The options of an export.
#[derive(Clone, Copy, Debug)]
pub struct ExportRequest {
    /// Edges or comments.
    pub content: ExportContent,
    /// The format of the file.
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
    /// How it behaves over time.
    pub kind: StatKind,
    /// What it is about, as a label and its value, where a name has several values. Those of one name come one after another.
    pub of: Option<(&'static str, String)>,
    /// Its value now.
    pub value: f64,
}

/// A statistic that goes up and down.
pub fn gauge(name: &'static str, help: &'static str, value: f64) -> Stat {
    Stat { name, help, kind: StatKind::Gauge, of: None, value }
}

/// A statistic that only grows.
pub fn counter(name: &'static str, help: &'static str, value: f64) -> Stat {
    Stat { name, help, kind: StatKind::Counter, of: None, value }
}

/// A table about the deployment.
#[derive(Clone, Debug)]
pub struct StateTable {
    /// What it is about.
    pub title: &'static str,
    /// Its columns.
    pub columns: &'static [StateColumn],
    /// Its rows, with a text for each column.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct StateColumn {
    /// What it is called.
    pub name: &'static str,
    /// Whether it has numbers.
    pub is_number: bool,
}

/// The time spent in a layer of the store since it was opened.
#[derive(Clone, Debug)]
pub struct LayerTimes {
    /// The layer, as metrics and spans call it.
    pub layer: &'static str,
    /// The distribution of its durations.
    pub times: kinfolk_core::histogram::HistogramSnapshot,
}
