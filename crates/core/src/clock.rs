//! The wall clock as a port, so that tests can stop it, turn it back or let it jump.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::Timestamp;

/// A wall clock. It may jump in both directions; nothing may depend on it for order.
pub trait Clock: Send + Sync {
    /// The time now, as far as this clock knows.
    fn now(&self) -> Timestamp;
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
