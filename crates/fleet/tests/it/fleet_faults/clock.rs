//! A clock that jumps.

use std::sync::atomic::{AtomicI64, Ordering};

use kinfolk_core::{Clock, SystemClock, Timestamp};

/// The system's clock, and how many milliseconds it is ahead of it.
#[derive(Default)]
pub struct JumpingClock(AtomicI64);

impl JumpingClock {
    /// Jumps by some milliseconds, until what is returned is dropped.
    pub fn jump(&self, millis: i64) -> Jumped<'_> {
        self.0.store(millis, Ordering::SeqCst);
        Jumped(self)
    }
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        let millis = SystemClock.now().millis().saturating_add_signed(self.0.load(Ordering::SeqCst));
        Timestamp::from_millis(millis)
    }
}

/// A jump that ends when it is dropped.
pub struct Jumped<'a>(&'a JumpingClock);

impl Drop for Jumped<'_> {
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::SeqCst);
    }
}
