//! The words of bulk work, which every profile does in its own way: imports, verification, backups, runs of suggestions.

use crate::{EdgeKind, Frontier, Position, Timestamp};

/// How far a long operation has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What is being done.
    pub stage: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// How much there is, if that is known.
    pub total: Option<u64>,
}

/// How to import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Which kind of edge.
    pub kind: EdgeKind,
    /// How many edges a follower may have; `None` for any number.
    pub following_limit: Option<u32>,
    /// Names the input and all that changes how it is read: a stopped import is continued only under the same name.
    pub fingerprint: String,
    /// How much memory sorting may use, in bytes.
    pub sort_memory: usize,
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Edges that are new.
    pub added: u64,
    /// Edges from a user to itself, skipped.
    pub self_follows: u64,
    /// Edges that were there already or came twice, skipped.
    pub duplicates: u64,
    /// Edges beyond the following limit, skipped.
    pub over_limit: u64,
    /// A read that asks for at least this much sees the import.
    pub frontier: Frontier,
}

/// What a full pass found.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// How many edges the truth has, of all kinds.
    pub edges: u64,
    /// How many users the index knows, of all kinds.
    pub users: u64,
    /// How many differences there were.
    pub difference_count: u64,
    /// The first of them, in words.
    pub differences: Vec<String>,
    /// Whether they were repaired.
    pub repaired: bool,
}

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// How many edges, of all kinds.
    pub edges: u64,
    /// How many posts, those that were deleted among them.
    pub posts: u64,
    /// How many comments, tombstones among them.
    pub comments: u64,
    /// As of which position.
    pub position: Position,
    /// The size of the file.
    pub bytes: u64,
}

/// The newest run that computed suggestions for everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuggestionRun {
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended, unless it was stopped or goes on.
    pub finished_at: Option<Timestamp>,
}
