//! A clock that tests hold in their hands: it stops, jumps and goes back. It never moves by itself.

use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::{Clock, Timestamp};

/// A clock that shows the time that was set, to all threads.
#[derive(Debug)]
pub struct SimulatedClock(AtomicU64);

impl SimulatedClock {
    /// A stopped clock that shows `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(AtomicU64::new(now.millis()))
    }

    /// Shows `now` from here on.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.millis(), Ordering::SeqCst);
    }

    /// Goes forward.
    pub fn advance(&self, millis: u64) {
        self.shift(|now| now.saturating_add(millis));
    }

    /// Goes back, as far as 1970.
    pub fn turn_back(&self, millis: u64) {
        self.shift(|now| now.saturating_sub(millis));
    }

    fn shift(&self, change: impl Fn(u64) -> u64) {
        let shown = |now| Some(Timestamp::from_millis(change(now)).millis());
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, shown).expect("the closure always answers");
    }
}

impl Default for SimulatedClock {
    /// 2026-11-15T08:00:00.123Z: not a full second, so that a store that rounds is found out.
    fn default() -> Self {
        Self::new(Timestamp::from_millis(1_794_729_600_123))
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_what_it_was_told() {
        let clock = SimulatedClock::new(Timestamp::from_millis(10));
        clock.advance(5);
        assert_eq!(clock.now().millis(), 15);
        clock.turn_back(20);
        assert_eq!(clock.now(), Timestamp::MIN);
        clock.set(Timestamp::MAX);
        clock.advance(1);
        assert_eq!(clock.now(), Timestamp::MAX);
    }
}
