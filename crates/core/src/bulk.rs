//! Types of bulk operations, which every profile implements in its own way: imports, verification, backups, suggestion runs.

use crate::{EdgeKind, Frontier, Position, Timestamp};

/// The progress of a long operation.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The current stage.
    pub stage: &'static str,
    /// Units of work done in this stage.
    pub done: u64,
    /// Units of work in this stage, if known.
    pub total: Option<u64>,
}

/// Options of an import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Which kind of edge.
    pub kind: EdgeKind,
    /// The maximum number of followees per follower; `None` for no limit.
    pub following_limit: Option<u32>,
    /// Identifies the input and every option that changes how it is read. A stopped import resumes only if it is equal.
    pub fingerprint: String,
    /// The maximum memory for sorting, in bytes.
    pub sort_memory: usize,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// New edges.
    pub added: u64,
    /// Edges from a user to itself, skipped.
    pub self_follows: u64,
    /// Edges that existed already or occur twice in the input, skipped.
    pub duplicates: u64,
    /// Edges beyond the following limit, skipped.
    pub over_limit: u64,
    /// A read with this frontier sees the import.
    pub frontier: Frontier,
}

/// The result of a verification.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// How many edges the source of truth has, of all kinds.
    pub edges: u64,
    /// How many users the index has, of all kinds.
    pub users: u64,
    /// How many differences were found.
    pub difference_count: u64,
    /// Descriptions of the first differences.
    pub differences: Vec<String>,
    /// Whether the differences were repaired.
    pub repaired: bool,
}

/// The contents of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// How many edges, of all kinds.
    pub edges: u64,
    /// How many posts, including deleted ones.
    pub posts: u64,
    /// How many comments, including tombstones.
    pub comments: u64,
    /// The position that the backup reflects.
    pub position: Position,
    /// The size of the file in bytes.
    pub bytes: u64,
}

/// The most recent run that computed suggestions for all users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuggestionRun {
    /// When it started.
    pub started_at: Timestamp,
    /// When it finished; `None` if it was stopped or is still running.
    pub finished_at: Option<Timestamp>,
}
