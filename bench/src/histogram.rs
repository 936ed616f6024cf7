//! Latency histogram: 64 buckets for each power of two, so a percentile is at most 1.6 % too high, never too low.

use std::time::Duration;

const BUCKET_BITS: u32 = 6;
const BUCKETS: usize = ((64 - BUCKET_BITS as usize) << BUCKET_BITS) + (1 << BUCKET_BITS);

/// How often each latency was seen, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0 }
    }
}

impl Histogram {
    pub fn record(&mut self, latency: Duration) {
        self.record_many(latency, 1);
    }

    /// Records several that took the same time.
    pub fn record_many(&mut self, latency: Duration, count: u64) {
        // 2^64 ns are 584 years.
        self.counts[bucket_of(latency.as_nanos() as u64)] += count;
        self.total += count;
    }

    /// Adds what another one has.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.total += other.total;
    }

    /// How many were recorded.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The latency in nanoseconds that `share` of all were not slower than; 0 if there were none.
    pub fn percentile_ns(&self, share: f64) -> f64 {
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return highest_of(bucket) as f64;
            }
        }
        0.0
    }

    pub fn percentile_us(&self, share: f64) -> f64 {
        self.percentile_ns(share) / 1e3
    }

    pub fn percentile_ms(&self, share: f64) -> f64 {
        self.percentile_ns(share) / 1e6
    }
}

fn bucket_of(value: u64) -> usize {
    let shift = value.max(1).ilog2().saturating_sub(BUCKET_BITS);
    ((shift as usize) << BUCKET_BITS) + (value >> shift) as usize
}

fn highest_of(bucket: usize) -> u64 {
    let shift = (bucket >> BUCKET_BITS).saturating_sub(1);
    let first = (bucket - (shift << BUCKET_BITS)) as u64;
    (first << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_bucket_that_is_close_above_it() {
        let values =
            (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) + 1, (1 << bit) - 1, (1 << bit) / 3 * 4]);
        for value in values.chain([0, u64::MAX]) {
            let highest = highest_of(bucket_of(value));
            assert!(highest >= value && highest - value <= value / 64, "{value} became {highest}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_ranks() {
        let mut histogram = Histogram::default();
        assert!(histogram.percentile_ns(0.5).abs() < f64::EPSILON);
        for value in 1..=100 {
            histogram.record(Duration::from_nanos(value));
        }
        let at = |share| histogram.percentile_ns(share) as u64;
        assert_eq!((at(0.0), at(0.5), at(0.99), at(1.0)), (1, 50, 99, 100));
    }
}
