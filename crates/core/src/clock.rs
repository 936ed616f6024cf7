//! The wall clock as a port, so that tests can stop it, set it back and let it jump.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Timestamp;

/// A wall clock. It may jump in both directions, so ordering must never depend on it.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;

    /// Called when a store with timestamps up to `newest` opens with this clock, so that the clock can check itself against it.
    fn begin(&self, _newest: Timestamp) {}

    /// How far the underlying clock is ahead of this one, if it is too far ahead to be followed; otherwise zero.
    fn ahead(&self) -> Duration {
        Duration::ZERO
    }
}

/// The clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(since_epoch.as_millis() as u64)
    }
}
