//! How often accounts are read, by counters that they share by hash, so that memory does not grow with the accounts. An account that
//! shares its counter with others seems to be read more often than it is, and may be kept for nothing.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::time::Instant;

const COUNTERS: usize = 1 << 15;

/// Counters of this second and the one before.
pub(super) struct Heat {
    began: Instant,
    hasher: RandomState,
    counters: Box<[AtomicU64]>,
}

impl Heat {
    pub(super) fn new() -> Self {
        let counters = (0..COUNTERS).map(|_| AtomicU64::default()).collect();
        Self { began: Instant::now(), hasher: RandomState::default(), counters }
    }

    /// Notes a read. Returns whether there were at least so many in this second or in the one before.
    pub(super) fn note(&self, account: &impl Hash, enough: u32) -> bool {
        let counter = &self.counters[self.hasher.hash_one(account) as usize % COUNTERS];
        let second = (self.began.elapsed().as_millis() / Duration::from_secs(1).as_millis()) as u32;
        let add = |bits| Some(Reads::from_bits(bits).in_second(second).add_one().to_bits());
        let before = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        let reads = before.map_or(0, |bits| Reads::from_bits(bits).in_second(second).add_one().most());
        u32::from(reads) >= enough
    }
}

/// What a counter holds: a second, the reads in it, and those in the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reads {
    second: u32,
    now: u16,
    before: u16,
}

impl Reads {
    fn from_bits(bits: u64) -> Self {
        Self { second: (bits >> 32) as u32, now: (bits >> 16) as u16, before: bits as u16 }
    }

    fn to_bits(self) -> u64 {
        (u64::from(self.second) << 32) | (u64::from(self.now) << 16) | u64::from(self.before)
    }

    /// The same reads, seen from a second.
    fn in_second(self, second: u32) -> Self {
        match second.wrapping_sub(self.second) {
            0 => self,
            1 => Self { second, now: 0, before: self.now },
            _ => Self { second, now: 0, before: 0 },
        }
    }

    fn add_one(self) -> Self {
        Self { now: self.now.saturating_add(1), ..self }
    }

    fn most(self) -> u16 {
        self.now.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_two_seconds_count() {
        let reads = Reads { second: 7, now: 9, before: 3 };
        assert_eq!(Reads::from_bits(reads.to_bits()), reads);
        assert_eq!(reads.in_second(7).most(), 9);
        assert_eq!(reads.in_second(8), Reads { second: 8, now: 0, before: 9 });
        assert_eq!(reads.in_second(9).most(), 0);
        assert_eq!(Reads { now: u16::MAX, ..reads }.add_one().now, u16::MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_is_hot_from_enough_reads_on_until_they_are_long_ago() {
        let heat = Heat::new();
        assert!((0..7).all(|_| !heat.note(&"an account", 8)));
        assert!(heat.note(&"an account", 8));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(heat.note(&"an account", 8), "the second before counts");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!heat.note(&"an account", 8));
    }
}
