//! `design`: the load that Kinfolk is designed for, all of it at once, on this machine, over the Redis protocol. Commands are sent by
//! the clock. The store has posts and comments, too; the load is of the graph.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use kinfolk_embedded::{Embedded, Settings};

use crate::commenting::Commenter;
use crate::dataset::{Dataset, Scratch};
use crate::fan_out::quiet;
use crate::histogram::Histogram;
use crate::lean_client;
use crate::measurement::{Recorder, Results, Row, Series, Target, number};
use crate::open_loop::{self, Encoded, Load, Outcome, Outcomes};
use crate::options::Options;
use crate::plot::{Axis, Panel, Plot, Values};
use crate::posting::{Made, register_all};
use crate::random::Random;
use crate::server::{Server, cpu_seconds};
use crate::survey::{Pair, Survey};

const NAME: &str = "design";
const CHECKS_PER_SECOND: u64 = 580_000;
const FOLLOWS_PER_SECOND: u64 = 60_000;
/// The targets of the whole load, which the plot draws.
const CHECK_P99_MS_MAX: f64 = 5.0;
const FOLLOW_P99_MS_MAX: f64 = 50.0;
const CHECKERS: usize = 8;
const WRITERS: usize = 32;
/// Checks that are encoded before they are sent; then they are sent again.
const ENCODED: usize = 1 << 21;
/// One in so many follows may be refused: a generated account may follow as many as is allowed already.
const REFUSED_SHARE: u64 = 100;
/// A server that has just started compacts the files that were left by those who filled its store. That is over by then.
const WARM_UP: Duration = Duration::from_secs(5);
/// Half of the load takes at most so long.
const HALF_MAX: Duration = Duration::from_secs(60);
/// What there is in the store beside the graph.
const POSTS: u64 = 100_000;
const COMMENTS: usize = 1_000_000;
/// 2025-01-01.
const POSTS_FROM_MILLIS: u64 = 1_735_689_600_000;

const ROWS: &[Row] = &[
    Row::new("checks", "checks answered", "/s").target(Target::AtLeast(0.99 * CHECKS_PER_SECOND as f64)),
    Row::new("follows", "durable follows answered", "/s")
        .target(Target::AtLeast(0.99 * FOLLOWS_PER_SECOND as f64)),
    Row::new("check_p50", "check under the whole load, p50", "ms"),
    Row::new("check_p99", "check under the whole load, p99", "ms").target(Target::Below(CHECK_P99_MS_MAX)),
    Row::new("check_max", "check under the whole load, slowest", "ms"),
    Row::new("follow_p50", "durable follow under the whole load, p50", "ms"),
    Row::new("follow_p99", "durable follow under the whole load, p99", "ms")
        .target(Target::Below(FOLLOW_P99_MS_MAX)),
    Row::new("follow_max", "durable follow under the whole load, slowest", "ms"),
    Row::new("check_p99_worst", "check p99 of the worst second", "ms"),
    Row::new("fewest", "checks answered in the second with the fewest", "").target(Target::AtLeast(1.0)),
    Row::new("late_p99", "the client itself was late by, p99", "ms"),
    Row::new("cores", "cores that the server used", ""),
    Row::new("half_check_p50", "check under half of it, p50", "ms"),
    Row::new("half_check_p99", "check under half of it, p99", "ms").target(Target::Below(1.0)),
    Row::new("half_follow_p50", "durable follow under half of it, p50", "ms"),
    Row::new("half_follow_p99", "durable follow under half of it, p99", "ms"),
    Row::new("half_late_p99", "the client itself was late by, p99", "ms"),
    Row::new("half_cores", "cores that the server used", ""),
];

/// Flags of this benchmark.
#[derive(Clone, Debug, Args)]
pub struct Design {
    #[command(flatten)]
    pub options: Options,
    /// Where a plot of the whole load goes, a point for each second
    #[arg(long)]
    pub plot: Option<PathBuf>,
}

/// As part of all benchmarks.
pub fn run_default(options: &Options) -> Result<()> {
    Design { options: options.clone(), plot: None }.run()
}

impl Design {
    pub fn run(&self) -> Result<()> {
        let options = &self.options;
        let data = Dataset::prepare(options)?;
        let store = data.store_folder_filled("store-content", Settings::default(), |store| {
            add_content(store, &data.survey)
        })?;
        let scratch = Scratch::copy_of(&store, data.folder().join("store-scratch"))?;
        let server = Server::start(data.kinfolk(), scratch.path())?;
        let mut driver = Driver::new(&server, &data.survey);
        let mut recorder = Recorder::new(ROWS);
        let mut course = Course::default();
        driver.load(0.5, WARM_UP)?;
        for round in 1..=options.rounds {
            eprintln!("{NAME}, round {round}");
            let half = driver.load(0.5, options.round_time().min(HALF_MAX))?;
            recorder.record_ms("half_check", &half.checks.latencies());
            recorder.record_ms("half_follow", &half.follows.latencies());
            recorder.record("half_late_p99", half.lateness.percentile_ms(0.99));
            recorder.record("half_cores", half.cores);
            let whole = driver.load(1.0, options.round_time())?;
            whole.record(&mut recorder);
            course = Course::of(&whole);
        }
        server.stop()?;
        let notes = vec![
            format!(
                "{} s of half the load, after {} s that do not count, then {} s of the whole; the client runs on the same cores",
                options.round_time().min(HALF_MAX).as_secs(),
                WARM_UP.as_secs(),
                options.seconds
            ),
            format!(
                "{CHECKERS} connections send checks, every other one of an edge that exists, and {WRITERS} send follows of new \
                 edges, pipelined, every millisecond"
            ),
            "latencies count from when a command was due, also where the client was late".to_owned(),
            format!(
                "the store has {} posts and {} comments as well",
                number(POSTS as f64),
                number(COMMENTS as f64)
            ),
        ];
        let mut results = recorder.finish(NAME, data.size, notes);
        results.series = course.series();
        if let Some(plot) = &self.plot {
            draw(&results, plot)?;
        }
        results.publish(&options.results)
    }
}

/// Posts by users at random, and one thread.
fn add_content(store: &Embedded, survey: &Survey) -> Result<()> {
    eprintln!("adding posts and comments");
    let (users, mut random) = (survey.users, Random::new(12));
    let posts =
        (0..POSTS).map(move |number| Made::at(users.random(&mut random), POSTS_FROM_MILLIS + number, number));
    register_all(store, posts.map(Made::registration))?;
    Commenter::new(6, users).comment_thread(store, COMMENTS)?;
    quiet(store);
    Ok(())
}

/// Loads a server with checks and follows.
pub struct Driver<'a> {
    server: &'a Server,
    survey: &'a Survey,
    checks: Encoded,
    random: Random,
}

/// What a load measured.
pub struct Measured {
    pub checks: Outcome,
    pub follows: Outcome,
    pub lateness: Histogram,
    pub cores: f64,
}

impl<'a> Driver<'a> {
    pub fn new(server: &'a Server, survey: &'a Survey) -> Self {
        let pairs = survey.pairs_to_check(ENCODED, 4).into_iter();
        let check = |pair: Pair| {
            ["SISMEMBER".to_owned(), format!("following:{}", pair.follower), pair.followee.to_string()]
        };
        Self { server, survey, checks: Encoded::new(pairs.map(check)), random: Random::new(13) }
    }

    /// So much of the load, for a time.
    pub fn load(&mut self, share: f64, time: Duration) -> Result<Measured> {
        let Self { server, survey, checks, random } = self;
        let of = |rate: u64| (rate as f64 * share) as u64;
        let follow = |count, out: &mut Vec<u8>| {
            for _ in 0..count {
                let pair = survey.users.random_pair(random);
                let follower = format!("following:{}", pair.follower);
                lean_client::encode(&["SADD", &follower, &pair.followee.to_string()], out);
            }
        };
        let mut loads = [
            Load {
                per_second: of(CHECKS_PER_SECOND),
                connections: CHECKERS,
                encode: Box::new(|count, out| checks.take(count, out)),
            },
            Load { per_second: of(FOLLOWS_PER_SECOND), connections: WRITERS, encode: Box::new(follow) },
        ];
        let (before, started) = (cpu_seconds(server.process()), Instant::now());
        let Outcomes { loads, lateness } = open_loop::run(server.resp, &server.key, &mut loads, time)?;
        let cores = (cpu_seconds(server.process()) - before) / started.elapsed().as_secs_f64();
        let [checks, follows] = <[Outcome; 2]>::try_from(loads).ok().context("two loads")?;
        if checks.refused > 0 {
            bail!("a check was refused: {}", checks.refusal);
        }
        if follows.refused * REFUSED_SHARE > follows.latencies().total() {
            bail!("{} follows were refused: {}", follows.refused, follows.refusal);
        }
        Ok(Measured { checks, follows, lateness, cores })
    }
}

impl Measured {
    fn record(&self, recorder: &mut Recorder) {
        let Self { checks, follows, lateness, cores } = self;
        let seconds = checks.due.len() as f64;
        let [checked, followed] = [checks, follows].map(Outcome::latencies);
        // Those that came after the end are of the last second.
        recorder.record("checks", checked.total() as f64 / seconds);
        recorder.record("follows", followed.total() as f64 / seconds);
        recorder.record_ms("check", &checked);
        recorder.record_ms("follow", &followed);
        recorder.record("check_max", checked.percentile_ms(1.0));
        recorder.record("follow_max", followed.percentile_ms(1.0));
        let worst = checks.due.iter().map(|second| second.percentile_ms(0.99)).fold(0.0, f64::max);
        recorder.record("check_p99_worst", worst);
        recorder.record("fewest", checks.replies.iter().copied().min().unwrap_or_default() as f64);
        recorder.record("late_p99", lateness.percentile_ms(0.99));
        recorder.record("cores", *cores);
    }
}

/// What happened in each second of the whole load.
#[derive(Default)]
struct Course {
    check_ms: [Vec<f64>; 2],
    follow_ms: [Vec<f64>; 2],
    answered: Vec<f64>,
}

impl Course {
    fn of(whole: &Measured) -> Self {
        let percentiles = |of: &Outcome| {
            [0.99, 0.5].map(|share| of.due.iter().map(|second| second.percentile_ms(share)).collect())
        };
        Self {
            check_ms: percentiles(&whole.checks),
            follow_ms: percentiles(&whole.follows),
            answered: whole.checks.replies.iter().map(|&count| count as f64).collect(),
        }
    }

    fn series(self) -> Vec<Series> {
        let [check_p99, check_p50] = self.check_ms;
        let [follow_p99, follow_p50] = self.follow_ms;
        vec![
            Series::new("check_p99_ms", "check, p99", "ms", check_p99),
            Series::new("check_p50_ms", "check, p50", "ms", check_p50),
            Series::new("follow_p99_ms", "durable follow, p99", "ms", follow_p99),
            Series::new("follow_p50_ms", "durable follow, p50", "ms", follow_p50),
            Series::new("answered", "checks answered", "/s", self.answered),
        ]
    }
}

fn draw(results: &Results, file: &Path) -> Result<()> {
    let series = |key: &str| results.series.iter().find(|series| series.key == key).context("a series");
    let cores = results.figure("cores").map_or(0.0, |figure| figure.median);
    let checked = &series("check_p99_ms")?.values;
    let slow = checked.iter().filter(|&&p99| p99 >= CHECK_P99_MS_MAX).count();
    let subtitle = format!(
        "{} edges · {} checks/s and {} durable follows/s at a fixed rate\nThe server uses {} of {} cores, which it shares with the \
         client · check p99 over {CHECK_P99_MS_MAX} ms in {slow} of {} seconds",
        number(results.edges.edges() as f64),
        number(CHECKS_PER_SECOND as f64),
        number(FOLLOWS_PER_SECOND as f64),
        number(cores),
        results.machine.cores,
        checked.len()
    );
    let plot = Plot {
        title: "The whole design load on one small machine",
        subtitle: &subtitle,
        axis: Axis::Seconds,
        panels: vec![
            Panel {
                title: "Check",
                lines: vec![("p99", series("check_p99_ms")?), ("p50", series("check_p50_ms")?)],
                bound: Some((CHECK_P99_MS_MAX, "target 5 ms")),
                values: Values::Logarithmic,
            },
            Panel {
                title: "Durable follow",
                lines: vec![("p99", series("follow_p99_ms")?), ("p50", series("follow_p50_ms")?)],
                bound: Some((FOLLOW_P99_MS_MAX, "target 50 ms")),
                values: Values::Logarithmic,
            },
        ],
    };
    fs::write(file, plot.svg()).with_context(|| format!("cannot write {}", file.display()))
}
