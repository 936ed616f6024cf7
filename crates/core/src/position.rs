//! Positions in the change log. A position defines an order, never a time.
//!
//! A deployment has one log per shard, each with its own order: the sequences of a shard have no gaps, and sequences of two
//! shards cannot be compared. The embedded profile has one shard.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A shard: one log of a deployment, and the users whose data it is the source of truth for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(pub u16);

impl Shard {
    /// The shard of a deployment that has only one.
    pub const ONLY: Self = Self(0);
}

/// The number of an event in the log of one shard. The first event has sequence 1; 0 is "before all events".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

impl Sequence {
    /// Before the first event.
    pub const START: Self = Self(0);

    /// The sequence after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The position with this sequence in a shard.
    pub fn on(self, shard: Shard) -> Position {
        Position { shard, sequence: self }
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// The position of an event in the change log of a deployment. Written as `SHARD-SEQUENCE`, such as `0-17`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// The shard.
    pub shard: Shard,
    /// The sequence in its log.
    pub sequence: Sequence,
}

impl Position {
    /// The position after this one, in the same shard.
    #[must_use]
    pub fn next(self) -> Self {
        self.sequence.next().on(self.shard)
    }
}

/// Positions of one shard are ordered; positions of two shards cannot be compared.
impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self.shard == other.shard).then(|| self.sequence.cmp(&other.sequence))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.shard.0, self.sequence)
    }
}

/// The error for text that is not a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsePositionError;

impl FromStr for Position {
    type Err = ParsePositionError;

    fn from_str(text: &str) -> Result<Self, ParsePositionError> {
        let (shard, sequence) = text.split_once('-').ok_or(ParsePositionError)?;
        let shard = Shard(shard.parse().map_err(|_| ParsePositionError)?);
        Ok(Sequence(sequence.parse().map_err(|_| ParsePositionError)?).on(shard))
    }
}

/// Identifies one lifetime of a change log. A restore begins a new epoch, so that tokens from before it can be detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_written_and_read() {
        let position = Sequence(17).on(Shard(255));
        assert_eq!(position.to_string(), "255-17");
        assert_eq!("255-17".parse(), Ok(position));
        for text in ["", "17", "-17", "1-", "65536-1", "1-2-3", "1--2", "a-b"] {
            assert_eq!(text.parse::<Position>(), Err(ParsePositionError), "{text:?}");
        }
    }
}
