//! Outcomes of writes. REST carries them in headers; the command line prints them.

use serde::{Deserialize, Serialize};

/// The outcome of a write that returns nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteOutcome {
    /// Whether the write changed anything.
    pub changed: bool,
    /// The consistency token: a read with it sees the write.
    pub token: String,
}

/// The outcome of a write, and the item as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written<T> {
    /// Whether the write changed anything: false if it repeated an earlier one.
    pub changed: bool,
    /// The consistency token: a read with it sees the write.
    pub token: String,
    /// The item.
    #[serde(flatten)]
    pub item: T,
}

impl<T> Written<T> {
    /// The outcome of writing an item.
    pub fn new(WriteOutcome { changed, token }: WriteOutcome, item: T) -> Self {
        Self { changed, token, item }
    }
}
