//! How many commands ran in a second, measured between two calls of `INFO`. Nothing is sampled in between.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Calls that follow each other within this time get the same rate.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The rate at the last call.
#[derive(Debug, Default)]
pub(super) struct OperationRate {
    last: Mutex<Option<Sample>>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    total: u64,
    per_second: u64,
}

impl OperationRate {
    /// The rate since the last call or, at the first, since `start`, when there were no commands.
    pub(crate) fn since_last(&self, start: Instant, now: Instant, total: u64) -> u64 {
        let mut last = self.last.lock();
        let before = last.unwrap_or(Sample { at: start, total: 0, per_second: 0 });
        let elapsed = now.saturating_duration_since(before.at);
        if elapsed < INTERVAL_MIN {
            return before.per_second;
        }
        let per_second = (total.saturating_sub(before.total) as f64 / elapsed.as_secs_f64()) as u64;
        *last = Some(Sample { at: now, total, per_second });
        per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_between_calls() {
        let (rate, start) = (OperationRate::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(rate.since_last(start, at(50), 1_000), 0);
        assert_eq!(rate.since_last(start, at(500), 1_000), 2_000);
        assert_eq!(rate.since_last(start, at(550), 9_000), 2_000);
        assert_eq!(rate.since_last(start, at(1_500), 1_100), 100);
    }
}
