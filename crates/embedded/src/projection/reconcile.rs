//! Comparing a projection with the truth a few rows at a time, in the background.

use kinfolk_core::{Error, Result, Timestamp};

use super::difference::Difference;
use crate::lsm::Part;

/// Goes through all rows of a projection, round after round.
pub(crate) trait Reconcile: Send {
    /// Compares some rows; returns whether the round is complete.
    fn step(&mut self, findings: &mut Findings) -> bool;
}

/// What a step has found.
pub(crate) struct Findings {
    /// How many rows to compare.
    pub rows_max: usize,
    /// Not earlier than any event.
    pub now: Timestamp,
    /// What seems to differ.
    pub suspected: Vec<Difference>,
    /// How many rows were read.
    pub rows: usize,
    /// How often something could not be read, and why at first.
    pub unreadable: Option<Unreadable>,
}

/// What could not be read.
pub(crate) struct Unreadable {
    pub times: u64,
    pub first: Error,
}

impl Unreadable {
    /// The value, unless it could not be read: then that is noted.
    pub(crate) fn unless_read<T>(noted: &mut Option<Self>, read: Result<T>) -> Option<T> {
        read.map_err(|first| noted.get_or_insert(Self { times: 0, first }).times += 1).ok()
    }
}

impl Findings {
    /// Nothing yet.
    pub(crate) fn new(rows_max: usize, now: Timestamp) -> Self {
        Self { rows_max, now, suspected: Vec::new(), rows: 0, unreadable: None }
    }

    /// The value, unless it could not be read: then that is noted.
    pub(crate) fn readable<T>(&mut self, read: Result<T>) -> Option<T> {
        Unreadable::unless_read(&mut self.unreadable, read)
    }

    /// Takes note of a part that was read; returns whether something in it could not be.
    pub(crate) fn note_part(&mut self, part: &mut Part) -> bool {
        self.rows += part.rows.len();
        match part.unreadable.take() {
            Some(error) => self.readable::<()>(Err(error)).is_none(),
            None => false,
        }
    }
}
