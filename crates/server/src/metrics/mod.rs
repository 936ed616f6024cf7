//! Metrics of requests: counts, outcomes and durations. Rendered for Prometheus; kept in plain atomics, because a check takes
//! less time than looking up a metric by its name.

mod names;
pub(crate) mod process;
mod render;
mod stripes;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kinfolk_core::histogram::{Histogram, HistogramSnapshot};
use kinfolk_core::{Clock, ErrorCode, SystemClock, Timestamp};
pub(crate) use names::Source;
pub use names::{Operation, Protocol};
use parking_lot::Mutex;
use stripes::Striped;

use crate::administration::{LayerTimes, Stat};

const PROTOCOLS: usize = Protocol::ALL.len();
const OPERATIONS: usize = Operation::ALL.len();

/// A number for each protocol, each on a cache line of its own.
type PerProtocol = [Padded; PROTOCOLS];

#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(AtomicU64);

/// Counters and histograms of all requests.
#[derive(Debug, Default)]
pub struct Metrics {
    durations: Striped<Durations>,
    failures: Failures,
    opened: PerProtocol,
    closed: PerProtocol,
    suggestions_served: [AtomicU64; Source::ALL.len()],
    jobs: Mutex<Vec<JobEnd>>,
    differences_left: AtomicU64,
}

/// The latest end of a job of administration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobEnd {
    pub(crate) operation: Operation,
    pub(crate) at: Timestamp,
    /// Whether it did what it was asked to.
    pub(crate) succeeded: bool,
}

/// A histogram for each protocol and operation.
#[derive(Debug)]
struct Durations(Box<[Histogram]>);

impl Default for Durations {
    fn default() -> Self {
        Self((0..PROTOCOLS * OPERATIONS).map(|_| Histogram::default()).collect())
    }
}

impl Durations {
    fn of(&self, protocol: Protocol, operation: Operation) -> &Histogram {
        &self.0[protocol as usize * OPERATIONS + operation as usize]
    }
}

/// A counter for each protocol, operation and error code. Failures are rare enough for one set.
#[derive(Debug)]
struct Failures(Box<[AtomicU64]>);

impl Default for Failures {
    fn default() -> Self {
        Self((0..PROTOCOLS * OPERATIONS * ErrorCode::ALL.len()).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Failures {
    fn of(&self, protocol: Protocol, operation: Operation, code: ErrorCode) -> &AtomicU64 {
        let row = protocol as usize * OPERATIONS + operation as usize;
        &self.0[row * ErrorCode::ALL.len() + code as usize]
    }
}

impl Metrics {
    /// Counts `count` requests that took the same time, as those of one pipeline do.
    pub fn observe(&self, protocol: Protocol, operation: Operation, count: u64, took: Duration) {
        self.durations.mine().of(protocol, operation).observe(count, took);
    }

    /// Counts a refused or failed request.
    pub fn failed(&self, protocol: Protocol, operation: Operation, code: ErrorCode) {
        self.failures.of(protocol, operation, code).fetch_add(1, Ordering::Relaxed);
    }

    /// A connection was opened.
    pub fn connected(&self, protocol: Protocol) {
        self.opened[protocol as usize].0.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection has ended.
    pub fn disconnected(&self, protocol: Protocol) {
        self.closed[protocol as usize].0.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a response with suggestions.
    pub fn suggestions_served(&self, source: Source) {
        self.suggestions_served[source as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A job of administration has ended.
    pub(crate) fn job_ended(&self, operation: Operation, succeeded: bool) {
        let mut jobs = self.jobs.lock();
        jobs.retain(|job| job.operation != operation);
        jobs.push(JobEnd { operation, at: SystemClock.now(), succeeded });
    }

    /// A verification has found so many differences and not repaired them.
    pub(crate) fn leave_differences(&self, count: u64) {
        self.differences_left.store(count, Ordering::Relaxed);
    }

    /// How many differences the latest verification since the start has found and not repaired.
    pub(crate) fn differences_left(&self) -> u64 {
        self.differences_left.load(Ordering::Relaxed)
    }

    /// The latest end of a job since the start.
    pub(crate) fn last_job(&self, operation: Operation) -> Option<JobEnd> {
        self.jobs.lock().iter().find(|job| job.operation == operation).copied()
    }

    /// Everything, in the text format of Prometheus, with the statistics and latencies of the store.
    pub fn render(&self, stats: &[Stat], layers: &[LayerTimes]) -> String {
        render::render(self, stats, layers)
    }

    pub(crate) fn durations(&self, protocol: Protocol, operation: Operation) -> HistogramSnapshot {
        let mut sum = HistogramSnapshot::default();
        for stripe in self.durations.all() {
            stripe.of(protocol, operation).add_to(&mut sum);
        }
        sum
    }

    /// How many requests of a protocol have ended.
    pub(crate) fn total(&self, protocol: Protocol) -> u64 {
        let count = |&operation| self.durations(protocol, operation).buckets.iter().sum::<u64>();
        Operation::ALL.iter().map(count).sum()
    }

    fn failures(&self, protocol: Protocol, operation: Operation, code: ErrorCode) -> u64 {
        self.failures.of(protocol, operation, code).load(Ordering::Relaxed)
    }

    /// How many requests were refused or failed, for whatever reason.
    pub(crate) fn all_failures(&self, protocol: Protocol, operation: Operation) -> u64 {
        ErrorCode::ALL.iter().map(|&code| self.failures(protocol, operation, code)).sum()
    }

    fn opened(&self, protocol: Protocol) -> u64 {
        self.opened[protocol as usize].0.load(Ordering::Relaxed)
    }

    fn closed(&self, protocol: Protocol) -> u64 {
        self.closed[protocol as usize].0.load(Ordering::Relaxed)
    }
}
