//! Reading edges from files: text and Parquet, plain and compressed. What becomes of the edges is the sink's business.
//!
//! A text file has lines `follower,followee[,since]`: separated by commas, tabs or spaces, whichever the first line
//! uses; `#` begins a comment line; blank lines mean nothing. The first line may be a header: `follower` and `followee`
//! (or `from` and `to`), then optionally `since`, in any case. A Parquet file has columns of those names.

mod line;
mod lines;
mod parquet;
mod source;

use std::fmt;

use kinfolk_core::graph::Edge;
use kinfolk_core::{Error, IdKind, Timestamp};

pub use lines::LineReader;
pub use parquet::{Expected, expect as expect_parquet, read as read_parquet};
pub use source::{Source, Text, format_of};

/// How far ahead of the clock a `since` may be: clocks differ a little.
const SINCE_AHEAD_MILLIS: u64 = 5 * 60 * 1_000;

/// The rules by which input is read.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The kind of ids that the graph uses.
    pub ids: IdKind,
    /// A later `since` is malformed.
    pub since_max: Timestamp,
}

impl Rules {
    /// The rules for reading now.
    pub fn new(ids: IdKind, now: Timestamp) -> Self {
        Self { ids, since_max: now.plus_millis(SINCE_AHEAD_MILLIS) }
    }
}

/// Where in the input: the line of a text file or the row of a Parquet file, counted from 1.
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

/// Takes what is read.
pub trait Sink {
    /// Takes an edge.
    fn edge(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<(), Stop>;

    /// Hears of a malformed line or row; `Ok` means to go on with the next one.
    fn malformed(&mut self, place: Location<'_>, reason: &str) -> Result<(), Stop>;
}

/// Why reading ended before the end.
#[derive(Debug)]
pub enum Stop {
    /// The input is wrong; reading it again would find the same. Says where and why.
    Malformed(String),
    /// The input could not be read this time.
    Unreadable(anyhow::Error),
    /// The sink did not take an edge.
    Refused(Error),
}

impl Stop {
    /// The input is wrong at a place.
    pub fn malformed(place: Location<'_>, reason: &str) -> Self {
        Self::Malformed(format!("{place}: {reason}"))
    }
}
