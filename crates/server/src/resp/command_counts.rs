//! Counts the commands of a batch by operation, so that metrics are touched once for each.

use std::time::Duration;

use crate::metrics::{Metrics, Operation, Protocol};

/// The number of commands of each operation.
#[derive(Debug, Default)]
pub(super) struct CommandCounts {
    counts: Vec<(Operation, u64)>,
}

impl CommandCounts {
    pub(crate) fn add(&mut self, operation: Operation) {
        match self.counts.iter_mut().find(|(counted, _)| *counted == operation) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((operation, 1)),
        }
    }

    /// Hands the counts on, all with the time that the batch took.
    pub(crate) fn observe(&mut self, metrics: &Metrics, took: Duration) {
        for (operation, count) in self.counts.drain(..) {
            metrics.observe(Protocol::Resp, operation, count, took);
        }
    }
}
