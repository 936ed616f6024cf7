//! How large the measured graph is. The shape follows from the number of edges.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number of edges, written as `1m`, `250k` or `5000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Size(u64);

impl Size {
    pub const MILLION: Self = Self(1_000_000);
    pub const HUNDRED_MILLION: Self = Self(100_000_000);
    pub const BILLION: Self = Self(1_000_000_000);

    /// The size of a graph that has so many edges.
    pub const fn of(edges: u64) -> Self {
        Self(edges)
    }

    pub fn edges(self) -> u64 {
        self.0
    }

    /// Twenty edges a user, as in the 100 M edges of 5 M users that the targets are set for.
    pub fn users(self) -> u64 {
        self.0 / 20
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, unit) = match text.as_bytes().last() {
            Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
            Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
            _ => (text, 1),
        };
        let edges = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        match edges {
            // The small accounts that pages are read of need some room.
            Some(edges) if edges >= 10_000 => Ok(Self(edges)),
            Some(_) => Err("a graph needs at least 10000 edges".to_owned()),
            None => Err(format!("{text:?} is not a number of edges such as 1m, 250k or 50000")),
        }
    }
}

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        size.to_string()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            edges if edges % 1_000_000 == 0 => write!(out, "{}m", edges / 1_000_000),
            edges if edges % 1_000 == 0 => write!(out, "{}k", edges / 1_000),
            edges => write!(out, "{edges}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, edges) in [("1m", 1_000_000), ("100M", 100_000_000), ("250k", 250_000), ("12345", 12_345)]
        {
            let size: Size = text.parse().unwrap();
            assert_eq!((size.edges(), size.to_string()), (edges, text.to_lowercase()));
        }
        for text in ["", "m", "1g", "-1", "9999999999999999999m", "5k"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        assert_eq!(Size::HUNDRED_MILLION.users(), 5_000_000);
    }
}
