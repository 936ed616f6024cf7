//! `mixed`: what checks cost while durable follows arrive at a fixed rate, against the same checks alone.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use kinfolk_embedded::{Embedded, Settings};

use crate::dataset::{Dataset, KIND, edge};
use crate::histogram::Histogram;
use crate::load::open_loop;
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::survey::Pair;

const NAME: &str = "mixed";
const PAIRS: usize = 4_000_000;
const FOLLOWS_PER_SECOND: u64 = 20_000;

const ROWS: &[Row] = &[
    Row::new("idle_p50", "check without writes, p50", "µs"),
    Row::new("idle_p99", "check without writes, p99", "µs"),
    Row::new("writes_p50", "check while 20,000 follows/s arrive, p50", "µs"),
    Row::new("writes_p99", "check while 20,000 follows/s arrive, p99", "µs"),
    Row::new("times_idle_p99", "check p99 with writes / without", "×").target(Target::Below(2.0)),
    Row::new("follows", "durable follows in that time", "/s"),
    Row::new("follow_p50", "durable follow in that time, p50", "ms"),
    Row::new("follow_p99", "durable follow in that time, p99", "ms"),
];

pub fn run(options: &Options) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let scratch = data.scratch_store()?;
    let store = Embedded::open(scratch.path(), Settings::default())?;
    let pairs = data.survey.pairs_to_check(PAIRS, 2);
    check_for(Duration::from_secs(1), &pairs, &store);

    let mut recorder = Recorder::new(ROWS);
    for round in 1..=options.rounds {
        eprintln!("{NAME}, round {round}");
        let idle = check_for(options.round_time(), &pairs, &store);
        let (users, seed) = (data.survey.users, u64::from(round));
        let (busy, follows) = thread::scope(|scope| {
            let writer =
                scope.spawn(|| open_loop(&store, users, FOLLOWS_PER_SECOND, options.round_time(), seed));
            let busy = check_for(options.round_time(), &pairs, &store);
            (busy, writer.join().map_err(|_| anyhow!("the writer panicked")))
        });
        let follows = follows??;
        recorder.record("idle_p50", idle.percentile_us(0.5));
        recorder.record("idle_p99", idle.percentile_us(0.99));
        recorder.record("writes_p50", busy.percentile_us(0.5));
        recorder.record("writes_p99", busy.percentile_us(0.99));
        recorder.record("times_idle_p99", busy.percentile_ns(0.99) / idle.percentile_ns(0.99));
        recorder.record("follows", follows.per_second());
        recorder.record("follow_p50", follows.latency.percentile_ms(0.5));
        recorder.record("follow_p99", follows.latency.percentile_ms(0.99));
    }
    store.close()?;
    let notes = vec![
        format!("rounds of {} s alone and {0} s with follows; one thread checks", options.seconds),
        "follows are started by the clock, in groups every millisecond, however many are waiting".to_owned(),
    ];
    recorder.finish(NAME, data.size, notes).publish(&options.results)
}

fn check_for(time: Duration, pairs: &[Pair], store: &Embedded) -> Histogram {
    let mut histogram = Histogram::default();
    let begun = Instant::now();
    for &pair in pairs.iter().cycle() {
        let started = Instant::now();
        black_box(store.follows(KIND, edge(black_box(pair))));
        let ended = Instant::now();
        histogram.record(ended - started);
        if ended - begun >= time {
            break;
        }
    }
    histogram
}
