//! The wall clock as a port, so that tests can stop it, turn it back or let it jump.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Timestamp;

/// A wall clock. It may jump in both directions; nothing may depend on it for order.
pub trait Clock: Send + Sync {
    /// The time now, as far as this clock knows.
    fn now(&self) -> Timestamp;

    /// A store that uses this clock is opened, and has given out times up to `newest`. A clock that checks itself can compare
    /// with it.
    fn begin(&self, _newest: Timestamp) {}

    /// How far the clock that this one follows is ahead of it, where that is so far that it is not followed.
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
