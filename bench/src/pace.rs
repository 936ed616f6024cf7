//! Asking by the clock, so that a long wait counts for everything that was due in it.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::histogram::Histogram;

/// Asks so often for a time, one at a time, and tells how long answers took from when they were due.
pub fn by_the_clock(
    time: Duration,
    per_second: u32,
    mut ask: impl FnMut() -> Result<()>,
) -> Result<Histogram> {
    let mut histogram = Histogram::default();
    let begun = Instant::now();
    let mut due = begun;
    while due < begun + time {
        // Waking up late is not the server's doing; being held up by the answer before is.
        let early = due.saturating_duration_since(Instant::now());
        thread::sleep(early);
        let started = if early.is_zero() { due } else { Instant::now() };
        ask()?;
        histogram.record(started.elapsed());
        due += Duration::from_secs(1) / per_second;
    }
    Ok(histogram)
}
