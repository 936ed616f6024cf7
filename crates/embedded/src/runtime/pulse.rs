//! The pulse of work in the background: when it last came to its end, and how often it failed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The pulse of one kind of work.
#[derive(Debug)]
pub(crate) struct Pulse {
    succeeded: Mutex<Instant>,
    failures: AtomicU64,
}

impl Default for Pulse {
    /// As if it had just succeeded.
    fn default() -> Self {
        Self { succeeded: Mutex::new(Instant::now()), failures: AtomicU64::new(0) }
    }
}

impl Pulse {
    /// Everything that there was to do was done, or failed.
    pub(crate) fn beat(&self, is_done: bool) {
        if is_done {
            *self.succeeded.lock() = Instant::now();
        } else {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How long ago it last succeeded, if there is something to do.
    pub(crate) fn stalled(&self, is_waiting: bool) -> Duration {
        if is_waiting { self.succeeded.lock().elapsed() } else { Duration::ZERO }
    }

    /// How often it failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_waits_is_stalled() {
        let pulse = Pulse::default();
        *pulse.succeeded.lock() -= Duration::from_secs(60);
        pulse.beat(false);
        assert_eq!(pulse.stalled(false), Duration::ZERO);
        assert!(pulse.stalled(true) >= Duration::from_secs(60));
        assert_eq!(pulse.failures(), 1);
        pulse.beat(true);
        assert!(pulse.stalled(true) < Duration::from_secs(60));
    }
}
