//! Histograms of durations, in buckets from a microsecond to ten seconds. Callers measure the durations.
//!
//! Each decade has six buckets: narrow enough to read a quantile to a third of its value, few enough to be scraped.
//! The bounds are round numbers, so that "under 1 ms" is exact.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The steps of a decade, times ten.
const STEPS: [u64; 6] = [10, 15, 20, 30, 50, 70];
const DECADES: usize = 7;
/// The number of bounds.
const BOUNDS: usize = STEPS.len() * DECADES + 1;
/// The number of buckets; the last one counts everything above the highest bound.
pub const BUCKETS: usize = BOUNDS + 1;

/// The upper bound of each bucket except the last, in nanoseconds.
pub const BOUNDS_NANOS: [u64; BOUNDS] = bounds();

/// For each number of significant bits, the first bucket that a duration with that many bits can be in.
const FIRST_BY_BITS: [u8; 65] = first_by_bits();

const fn bounds() -> [u64; BOUNDS] {
    let mut bounds = [0; BOUNDS];
    let mut decade_nanos = 100;
    let mut at = 0;
    while at < BOUNDS {
        bounds[at] = STEPS[at % STEPS.len()] * decade_nanos;
        at += 1;
        if at.is_multiple_of(STEPS.len()) {
            decade_nanos *= 10;
        }
    }
    bounds
}

const fn first_by_bits() -> [u8; 65] {
    let mut first = [0; 65];
    let mut bits = 1;
    while bits <= 64 {
        let least = 1_u64 << (bits - 1);
        let mut at = first[bits - 1];
        while (at as usize) < BOUNDS && BOUNDS_NANOS[at as usize] < least {
            at += 1;
        }
        first[bits] = at;
        bits += 1;
    }
    first
}

/// The bucket of a duration: a table lookup and at most four comparisons.
fn bucket(nanos: u64) -> usize {
    let mut at = usize::from(FIRST_BY_BITS[(u64::BITS - nanos.leading_zeros()) as usize]);
    while at < BOUNDS && BOUNDS_NANOS[at] < nanos {
        at += 1;
    }
    at
}

/// Counts durations by bucket. Threads may add to it concurrently.
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_nanos: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [const { AtomicU64::new(0) }; BUCKETS], sum_nanos: AtomicU64::new(0) }
    }
}

/// The contents of a histogram at some moment.
#[derive(Clone, Debug)]
pub struct HistogramSnapshot {
    /// The count of each bucket.
    pub buckets: [u64; BUCKETS],
    /// The sum of all durations.
    pub sum_nanos: u64,
}

impl Default for HistogramSnapshot {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], sum_nanos: 0 }
    }
}

impl HistogramSnapshot {
    /// The total count.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl Histogram {
    /// Counts `count` events of the same duration.
    pub fn observe(&self, count: u64, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)].fetch_add(count, Ordering::Relaxed);
        self.sum_nanos.fetch_add(nanos.saturating_mul(count), Ordering::Relaxed);
    }

    /// Adds the contents to a snapshot.
    pub fn add_to(&self, sum: &mut HistogramSnapshot) {
        for (total, bucket) in sum.buckets.iter_mut().zip(&self.buckets) {
            *total += bucket.load(Ordering::Relaxed);
        }
        sum.sum_nanos = sum.sum_nanos.wrapping_add(self.sum_nanos.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_are_round_and_grow() {
        assert_eq!(BOUNDS_NANOS[0], 1_000);
        assert_eq!(BOUNDS_NANOS[BOUNDS - 1], 10_000_000_000);
        assert!(BOUNDS_NANOS.contains(&1_000_000) && BOUNDS_NANOS.contains(&5_000_000));
        assert!(BOUNDS_NANOS.is_sorted_by(|a, b| a < b));
    }

    proptest! {
        #[test]
        fn a_time_is_in_the_bucket_of_its_bounds(bits in 0u32..64, random in any::<u64>()) {
            let nanos = random >> bits;
            prop_assert_eq!(bucket(nanos), BOUNDS_NANOS.partition_point(|&bound| bound < nanos));
        }
    }

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        for (at, &bound) in BOUNDS_NANOS.iter().enumerate() {
            assert_eq!((bucket(bound), bucket(bound + 1)), (at, at + 1));
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, BOUNDS));
    }

    #[test]
    fn many_at_once_count_as_many() {
        let histogram = Histogram::default();
        histogram.observe(64, Duration::from_micros(2));
        histogram.observe(1, Duration::MAX);
        let mut snapshot = HistogramSnapshot::default();
        histogram.add_to(&mut snapshot);
        assert_eq!((snapshot.count(), snapshot.buckets[2], snapshot.buckets[BOUNDS]), (65, 64, 1));
    }
}
