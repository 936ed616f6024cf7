//! Reads edges from files, text or Parquet, plain or compressed, into a [`Sink`].
//!
//! A text file has lines `follower,followee[,since]`: separated by commas, tabs or spaces, whichever the first line
//! uses. Lines that start with `#` and blank lines are skipped. The first line may be a header: `follower` and `followee`
//! (or `from` and `to`), then optionally `since`, in any case. A Parquet file has columns of those names.

mod line;
mod lines;
mod parquet;
mod source;

use std::fmt;

use kinfolk_core::graph::Edge;
use kinfolk_core::{Error, Id, IdKind, Timestamp};

pub use lines::LineReader;
pub use parquet::{Expected, expect as expect_parquet, read as read_parquet, rows as parquet_rows};
pub use source::{Source, Text, format_of};

/// How far a `since` may be ahead of the clock.
const SINCE_AHEAD_MILLIS: u64 = 5 * 60 * 1_000;

/// The rules for valid edges.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The kind of ids of the graph; either, if it is not known.
    pub ids: Option<IdKind>,
    /// A later `since` is malformed.
    pub since_max: Timestamp,
}

impl Rules {
    /// The rules as of now.
    pub fn new(ids: IdKind, now: Timestamp) -> Self {
        Self { ids: Some(ids), since_max: now.plus_millis(SINCE_AHEAD_MILLIS) }
    }

    /// The rules for a graph that is elsewhere: the kind of ids and the clock are for its server to compare.
    pub fn elsewhere() -> Self {
        Self { ids: None, since_max: Timestamp::MAX }
    }

    /// Parses an id. The error says why not.
    fn parse_id(self, text: &[u8]) -> Result<Id, String> {
        if let Some(kind) = self.ids {
            return kind.parse_bytes(text).map_err(|error| error.to_string());
        }
        let parsed = IdKind::Integer.parse_bytes(text).or_else(|_| IdKind::Uuid.parse_bytes(text));
        parsed.map_err(|_| {
            let shown: String = String::from_utf8_lossy(text).chars().take(40).collect();
            format!("{shown:?} is not an id; an id is an integer from 0 to 2^63 - 1 or a UUID")
        })
    }
}

/// A location in the input: the line of a text file or the row of a Parquet file, from 1.
#[derive(Clone, Copy, Debug)]
pub struct Location<'a> {
    /// The name of the file.
    pub file: &'a str,
    /// The line or row.
    pub line: u64,
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// Receives edges.
pub trait Sink {
    /// Receives an edge.
    fn edge(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<(), Stop>;

    /// Receives a malformed line or row; `Ok` continues with the next one.
    fn malformed(&mut self, location: Location<'_>, reason: &str) -> Result<(), Stop>;
}

/// Why reading stopped early.
#[derive(Debug)]
pub enum Stop {
    /// The input is malformed: location and reason.
    Malformed(String),
    /// The input could not be read; a retry may succeed.
    Unreadable(anyhow::Error),
    /// The sink refused an edge.
    Refused(Error),
}

impl Stop {
    /// The input is malformed at a location.
    pub fn malformed(location: Location<'_>, reason: &str) -> Self {
        Self::Malformed(format!("{location}: {reason}"))
    }
}
