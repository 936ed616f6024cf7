//! The last ten minutes of the metrics, in samples. Taking one reads counters; nothing is drawn here.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use kinfolk_core::histogram::{BOUNDS_NANOS, BUCKETS, HistogramSnapshot};
use kinfolk_core::{Clock, SystemClock, Timestamp};
use serde::Serialize;

use crate::metrics::{Metrics, Operation, Protocol};

/// How often a sample is taken.
pub(super) const INTERVAL: Duration = Duration::from_secs(5);
/// How many samples are kept: ten minutes.
const SAMPLES_MAX: usize = 120;

/// The latest samples, and the counters at the last one.
#[derive(Debug, Default)]
pub(super) struct History {
    samples: VecDeque<Sample>,
    last: Option<Counters>,
}

/// All counters at one moment.
#[derive(Debug)]
struct Counters {
    at: Instant,
    operations: Vec<OperationCounters>,
}

/// Of one operation.
#[derive(Clone, Debug, Default)]
struct OperationCounters {
    /// Of all protocols together.
    durations: HistogramSnapshot,
    /// How many requests of each protocol, in its order.
    by_protocol: Vec<u64>,
    failures: u64,
}

/// What happened in one interval.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Its end.
    pub(super) at: Timestamp,
    seconds: f64,
    /// The operations with requests.
    active: Vec<Activity>,
}

/// The requests of one operation in one interval.
#[derive(Clone, Debug)]
struct Activity {
    operation: Operation,
    /// The buckets that are not empty.
    buckets: Vec<(u8, u64)>,
    failures: u64,
}

/// A line of a chart: a value for each sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Series {
    /// Requests a second.
    pub(super) rate: Vec<f64>,
    /// Failed requests a second.
    pub(super) failures: Vec<f64>,
    /// The median in microseconds; `None` where there was no request.
    pub(super) p50_us: Vec<Option<f64>>,
    /// The 99th percentile.
    pub(super) p99_us: Vec<Option<f64>>,
}

impl Counters {
    fn read(metrics: &Metrics) -> Self {
        let operation = |&operation: &Operation| {
            let mut counters = OperationCounters::default();
            for &protocol in Protocol::ALL {
                let snapshot = metrics.durations(protocol, operation);
                counters.by_protocol.push(snapshot.count());
                counters.failures += metrics.all_failures(protocol, operation);
                for (sum, count) in counters.durations.buckets.iter_mut().zip(snapshot.buckets) {
                    *sum += count;
                }
            }
            counters
        };
        Self { at: Instant::now(), operations: Operation::ALL.iter().map(operation).collect() }
    }
}

impl OperationCounters {
    /// What was added since an earlier moment.
    fn since(&self, earlier: &Self) -> (Vec<(u8, u64)>, u64) {
        let pairs = self.durations.buckets.iter().zip(&earlier.durations.buckets);
        let added = (0_u8..).zip(pairs.map(|(now, before)| now.saturating_sub(*before)));
        (added.filter(|&(_, count)| count > 0).collect(), self.failures.saturating_sub(earlier.failures))
    }
}

impl History {
    /// Takes a sample.
    pub(super) fn sample(&mut self, metrics: &Metrics) {
        let now = Counters::read(metrics);
        if let Some(last) = &self.last {
            let active = Operation::ALL.iter().zip(now.operations.iter().zip(&last.operations)).filter_map(
                |(&operation, (now, last))| {
                    let (buckets, failures) = now.since(last);
                    (!buckets.is_empty() || failures > 0).then_some(Activity { operation, buckets, failures })
                },
            );
            let seconds = now.at.duration_since(last.at).as_secs_f64();
            let sample = Sample { at: SystemClock.now(), seconds, active: active.collect() };
            if self.samples.len() == SAMPLES_MAX {
                self.samples.pop_front();
            }
            self.samples.push_back(sample);
        }
        self.last = Some(now);
    }

    /// The ends of the samples, oldest first.
    pub(super) fn times(&self) -> impl Iterator<Item = Timestamp> {
        self.samples.iter().map(|sample| sample.at)
    }

    /// The operations that were used in the last ten minutes, the busiest first, and through which protocols since the start.
    pub(super) fn operations(&self) -> Vec<(Operation, Vec<Protocol>)> {
        let requests = |operation| -> u64 {
            let activities = self.samples.iter().flat_map(|sample| &sample.active);
            let of = activities.filter(|activity| activity.operation == operation);
            of.map(|activity| {
                activity.failures + activity.buckets.iter().map(|(_, count)| count).sum::<u64>()
            })
            .sum()
        };
        let counted = Operation::ALL.iter().map(|&operation| (requests(operation), operation));
        let mut active: Vec<(u64, Operation)> = counted.filter(|&(count, _)| count > 0).collect();
        active.sort_by_key(|&(count, operation)| (std::cmp::Reverse(count), operation as usize));
        active.into_iter().map(|(_, operation)| (operation, self.protocols(operation))).collect()
    }

    fn protocols(&self, operation: Operation) -> Vec<Protocol> {
        let counts = self.last.as_ref().and_then(|last| last.operations.get(operation as usize));
        let counts = counts.map(|counters| counters.by_protocol.as_slice()).unwrap_or_default();
        Protocol::ALL
            .iter()
            .zip(counts)
            .filter(|&(_, &count)| count > 0)
            .map(|(&protocol, _)| protocol)
            .collect()
    }

    /// The chart of one operation, or of all.
    pub(super) fn series(&self, operation: Option<Operation>) -> Series {
        let mut series = Series::default();
        for sample in &self.samples {
            let of =
                sample.active.iter().filter(|activity| operation.is_none_or(|of| of == activity.operation));
            let (mut buckets, mut failures) = ([0; BUCKETS], 0);
            for activity in of {
                failures += activity.failures;
                for &(bucket, count) in &activity.buckets {
                    buckets[usize::from(bucket)] += count;
                }
            }
            let seconds = sample.seconds.max(0.001);
            series.rate.push(rounded(buckets.iter().sum::<u64>() as f64 / seconds));
            series.failures.push(rounded(failures as f64 / seconds));
            series.p50_us.push(quantile_us(&buckets, 0.5));
            series.p99_us.push(quantile_us(&buckets, 0.99));
        }
        series
    }
}

/// A figure with as many digits as a chart can show.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// A quantile in microseconds, between the bounds of its bucket in proportion to the counts.
fn quantile_us(buckets: &[u64; BUCKETS], quantile: f64) -> Option<f64> {
    let total: u64 = buckets.iter().sum();
    let wanted = total as f64 * quantile;
    let mut below = 0;
    for (at, &count) in buckets.iter().enumerate() {
        if count > 0 && (below + count) as f64 >= wanted {
            let lower = at.checked_sub(1).map_or(0, |before| BOUNDS_NANOS[before]);
            let upper = BOUNDS_NANOS.get(at).copied().unwrap_or(lower);
            let part = (wanted - below as f64) / count as f64;
            return Some(rounded((lower as f64 + (upper - lower) as f64 * part) / 1_000.0));
        }
        below += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use kinfolk_core::ErrorCode;

    use super::*;

    #[test]
    fn a_sample_has_what_happened_since_the_last_one() {
        let (metrics, mut history) = (Metrics::default(), History::default());
        metrics.observe(Protocol::Rest, Operation::Follow, 7, Duration::from_millis(1));
        history.sample(&metrics);
        assert_eq!(history.times().count(), 0, "the first look has no interval");
        metrics.observe(Protocol::Resp, Operation::Check, 100, Duration::from_micros(9));
        metrics.observe(Protocol::Rest, Operation::Check, 1, Duration::from_millis(2));
        metrics.failed(Protocol::Rest, Operation::Counts, ErrorCode::InvalidId);
        history.sample(&metrics);
        history.sample(&metrics);

        let operations = history.operations();
        assert_eq!(operations[0], (Operation::Check, vec![Protocol::Rest, Protocol::Resp]));
        assert_eq!(operations[1].0, Operation::Counts);
        assert_eq!(operations.len(), 2, "follows were before: {operations:?}");
        let checks = history.series(Some(Operation::Check));
        assert!(checks.rate[0] > 0.0 && checks.rate[1] == 0.0);
        assert_eq!(checks.p50_us[1], None);
        let median = checks.p50_us[0].unwrap();
        assert!((7.0..=10.0).contains(&median), "{median}");
        assert!(history.series(None).failures[0] > 0.0);
    }

    #[test]
    fn only_ten_minutes_are_kept() {
        let (metrics, mut history) = (Metrics::default(), History::default());
        (0..SAMPLES_MAX + 10).for_each(|_| history.sample(&metrics));
        assert_eq!(history.times().count(), SAMPLES_MAX);
        assert_eq!(history.series(None).rate.len(), SAMPLES_MAX);
    }

    #[test]
    fn quantiles_lie_in_their_bucket() {
        let mut buckets = [0; BUCKETS];
        assert_eq!(quantile_us(&buckets, 0.5), None);
        buckets[0] = 1;
        assert!(quantile_us(&buckets, 0.5).unwrap() <= 1.0);
        buckets[BUCKETS - 1] = 1;
        assert_eq!(quantile_us(&buckets, 0.99), Some(10_000_000.0), "beyond the last bound");
    }
}
