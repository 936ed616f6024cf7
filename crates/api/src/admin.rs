//! Administration: files, the progress of long jobs, and their outcomes.

use std::borrow::Cow;
use std::ops::AddAssign;

use kinfolk_core::bulk::{self, BackupReport, ImportReport, VerifyReport};
use kinfolk_core::suggestions::SuggestionRunReport;
use kinfolk_core::{Position, names};
use serde::{Deserialize, Serialize};

use crate::Problem;
use crate::scalar::position;

/// The state of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Status {
    /// `alive` or `ready`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status: Cow<'static, str>,
}

/// The format of a file of edges or comments. Names of such files end with the name of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileFormat {
    /// CSV.
    #[default]
    Csv,
    /// CSV, compressed with gzip.
    CsvGzip,
    /// CSV, compressed with zstd.
    CsvZstd,
    /// Apache Parquet.
    Parquet,
}

names! {
    FileFormat { Csv => "csv", CsvGzip => "csv.gz", CsvZstd => "csv.zst", Parquet => "parquet" }
}

impl FileFormat {
    /// The media type of such a file.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv",
            Self::CsvGzip => "application/gzip",
            Self::CsvZstd => "application/zstd",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }
}

/// How a file of edges is imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Import {
    /// The format of the file.
    pub format: FileFormat,
    /// Count and skip malformed lines, instead of stopping at the first.
    pub skip_invalid: bool,
    /// Keep edges over the following limit.
    pub no_limit: bool,
    /// How many bytes the file has, if that is known. Servers want to know it of Parquet.
    pub length: Option<u64>,
}

/// What an export contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportContent {
    /// All edges.
    #[default]
    Edges,
    /// All comments, tombstones included, with their bodies unless they are purged.
    Comments,
}

names! { ExportContent { Edges => "edges", Comments => "comments" } }

/// How far a job has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Progress {
    /// What is being done.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub stage: Cow<'static, str>,
    /// How much of it is done.
    pub done: u64,
    /// How much there is, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub total: Option<u64>,
}

impl From<bulk::Progress> for Progress {
    fn from(bulk::Progress { stage, done, total }: bulk::Progress) -> Self {
        Self { stage: stage.into(), done, total }
    }
}

/// A line of the response to a long job: progress, and finally one result or error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobLine<T> {
    /// How far the job has come.
    Progress(Progress),
    /// The job is done.
    Result(T),
    /// The job failed.
    Error(Problem),
}

/// The outcome of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImportOutcome {
    /// New edges.
    pub added: u64,
    /// Edges that existed already, in the graph or earlier in the file.
    pub duplicates: u64,
    /// Edges from a user to itself.
    pub self_follows: u64,
    /// Edges over the following limit.
    pub over_limit: u64,
    /// Lines that could not be read.
    pub invalid: u64,
    /// A read with this token sees the import.
    pub token: String,
}

impl ImportOutcome {
    /// The outcome of an import that skipped invalid lines.
    pub fn new(report: &ImportReport, invalid: u64, token: String) -> Self {
        let ImportReport { added, duplicates, self_follows, over_limit, .. } = *report;
        Self { added, duplicates, self_follows, over_limit, invalid, token }
    }

    /// How many edges were read.
    pub fn edges(&self) -> u64 {
        self.added + self.duplicates + self.self_follows + self.over_limit
    }
}

/// Adds the outcome of a later import: its token covers both.
impl AddAssign for ImportOutcome {
    fn add_assign(&mut self, later: Self) {
        self.added += later.added;
        self.duplicates += later.duplicates;
        self.self_follows += later.self_follows;
        self.over_limit += later.over_limit;
        self.invalid += later.invalid;
        self.token = later.token;
    }
}

/// The outcome of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VerifyOutcome {
    /// Edges compared.
    pub edges: u64,
    /// Users compared.
    pub users: u64,
    /// How many differences there were.
    pub differences: u64,
    /// The first of them, in words.
    pub examples: Vec<String>,
    /// Whether all differences were repaired.
    pub repaired: bool,
}

impl From<VerifyReport> for VerifyOutcome {
    fn from(report: VerifyReport) -> Self {
        let VerifyReport { edges, users, difference_count, differences, repaired } = report;
        Self { edges, users, differences: difference_count, examples: differences, repaired }
    }
}

/// What a backup contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupOutcome {
    /// Edges, of all kinds.
    pub edges: u64,
    /// Posts, deleted ones included.
    pub posts: u64,
    /// Comments, tombstones included.
    pub comments: u64,
    /// The position in the change log as of which the backup was taken.
    #[serde(with = "position")]
    pub position: Position,
    /// The size of the file.
    pub bytes: u64,
}

impl From<BackupReport> for BackupOutcome {
    fn from(BackupReport { edges, posts, comments, position, bytes }: BackupReport) -> Self {
        Self { edges, posts, comments, position, bytes }
    }
}

/// The outcome of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CompactOutcome {
    /// How many purged comments had bodies that were not erased yet.
    pub erased: u64,
}

/// The outcome of computing suggestions for everyone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SuggestOutcome {
    /// Users visited.
    pub users: u64,
    /// Users for whom suggestions were stored.
    pub suggested: u64,
    /// Users visited by an earlier run that this one resumed.
    pub resumed: u64,
    /// Whether all users were visited; if not, the next run resumes.
    pub complete: bool,
}

impl From<SuggestionRunReport> for SuggestOutcome {
    fn from(SuggestionRunReport { users, suggested, resumed, complete }: SuggestionRunReport) -> Self {
        Self { users, suggested, resumed, complete }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_job() {
        let json = r#"{"progress":{"stage":"reading","done":5}}"#;
        let line: JobLine<CompactOutcome> = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&line).unwrap(), json);
        let line: JobLine<CompactOutcome> = serde_json::from_str(r#"{"result":{"erased":3}}"#).unwrap();
        assert_eq!(line, JobLine::Result(CompactOutcome { erased: 3 }));
        let line: JobLine<CompactOutcome> = serde_json::from_str(r#"{"error":{"code":"closed"}}"#).unwrap();
        assert!(matches!(line, JobLine::Error(problem) if problem.message() == "closed"));
    }

    #[test]
    fn names_lead_back() {
        for format in FileFormat::ALL {
            assert_eq!(FileFormat::from_name(format.name()), Some(format));
        }
        assert_eq!(FileFormat::from_name("xlsx"), None);
        assert_eq!(ExportContent::from_name("comments"), Some(ExportContent::Comments));
    }

    #[test]
    fn outcomes_of_imports_add_up() {
        let mut all = ImportOutcome { added: 1, token: "a".to_owned(), ..ImportOutcome::default() };
        all += ImportOutcome { added: 2, duplicates: 3, invalid: 4, token: "b".to_owned(), ..all.clone() };
        assert_eq!((all.added, all.invalid, all.edges(), &*all.token), (3, 4, 6, "b"));
    }
}
