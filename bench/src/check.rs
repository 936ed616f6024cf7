//! `check`: one pair at a time, in process, beside a plain dictionary and binary search.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::dataset::{Dataset, KIND, edge};
use crate::histogram::Histogram;
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::plain::Plain;
use crate::size::Size;
use crate::survey::Pair;

const NAME: &str = "check";
const PAIRS: usize = 4_000_000;

const ROWS: &[Row] = &[
    Row::new("check_p50", "check in process, uniform, p50", "µs")
        .target(Target::Below(0.6))
        .target_from(Size::HUNDRED_MILLION),
    Row::new("check_p99", "check in process, uniform, p99", "µs")
        .target(Target::Below(1.5))
        .target_from(Size::HUNDRED_MILLION),
    Row::new("check_mean", "check in process, uniform, mean of a plain loop", "µs"),
    Row::new("plain_p50", "dictionary and binary search, p50", "µs"),
    Row::new("plain_p99", "dictionary and binary search, p99", "µs"),
    Row::new("plain_mean", "dictionary and binary search, mean of a plain loop", "µs"),
    Row::new("timer", "of each p50 and p99 above, reading the clock takes", "µs"),
];

pub fn run(options: &Options) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let plain = Plain::load(&data.csv()?)?;
    let by_plain = |pair| plain.follows(pair);
    let pairs = data.survey.pairs_to_check(PAIRS, 1);
    let mut yes = 0;

    let mut recorder = Recorder::new(ROWS);
    for round in 1..=options.rounds {
        eprintln!("{NAME}, round {round}");
        // Opened anew, since the seed of its hash table is: rounds show what difference that makes.
        let store = data.open()?;
        let by_store = |pair| store.follows(KIND, edge(pair));
        yes = agreed(&pairs, by_store, by_plain)?;
        let store_latency = latencies(&pairs, by_store);
        let plain_latency = latencies(&pairs, by_plain);
        recorder.record("check_p50", store_latency.percentile_us(0.5));
        recorder.record("check_p99", store_latency.percentile_us(0.99));
        recorder.record("check_mean", mean_us(&pairs, by_store));
        recorder.record("plain_p50", plain_latency.percentile_us(0.5));
        recorder.record("plain_p99", plain_latency.percentile_us(0.99));
        recorder.record("plain_mean", mean_us(&pairs, by_plain));
        recorder.record("timer", latencies(&pairs, |_| true).percentile_us(0.5));
        store.close()?;
    }
    let notes = vec![format!(
        "{} pairs a round, half of them edges; {yes} answers were yes; both sides gave the same answers",
        pairs.len()
    )];
    recorder.finish(NAME, data.size, notes).publish(&options.results)
}

/// Checks that both sides give the same answers, and how many of them are yes.
fn agreed(pairs: &[Pair], left: impl Fn(Pair) -> bool, right: impl Fn(Pair) -> bool) -> Result<u64> {
    let mut yes = 0;
    for &pair in pairs {
        if left(pair) != right(pair) {
            bail!("the answers for {pair:?} differ: the store holds another graph than the CSV");
        }
        yes += u64::from(left(pair));
    }
    Ok(yes)
}

/// The latency of each check, the time to read the clock included.
fn latencies(pairs: &[Pair], follows: impl Fn(Pair) -> bool) -> Histogram {
    let mut histogram = Histogram::default();
    for &pair in pairs {
        let started = Instant::now();
        black_box(follows(black_box(pair)));
        histogram.record(started.elapsed());
    }
    histogram
}

fn mean_us(pairs: &[Pair], follows: impl Fn(Pair) -> bool) -> f64 {
    let started = Instant::now();
    for &pair in pairs {
        black_box(follows(black_box(pair)));
    }
    started.elapsed().as_secs_f64() * 1e6 / pairs.len() as f64
}
