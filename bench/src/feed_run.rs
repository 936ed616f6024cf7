//! `feed-run`: posts and feed pages by the clock for minutes, with how far deliveries lag and how long pages take in each
//! second. Writes a plot of both beside the JSON file. In process: what a server adds is measured by `feed`.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::process;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use kinfolk_core::feeds::{FeedStore, NewPost, PostStore};
use kinfolk_core::{Error, Frontier, Id};
use kinfolk_embedded::{Embedded, Settings, Stats};
use tokio::task::LocalSet;

use crate::fan_out::quiet;
use crate::feed_graph::FeedGraph;
use crate::histogram::Histogram;
use crate::measurement::{Recorder, Results, Row, Series, number};
use crate::options::Options;
use crate::plot::{Axis, Panel, Plot, Values};
use crate::posting::{Made, runtime};
use crate::process::memory_bytes;
use crate::random::Random;
use crate::server::cpu_seconds;
use crate::size::Size;

const NAME: &str = "feed-run";
const PAGE: usize = 50;
const TICK: Duration = Duration::from_millis(1);
/// How often the lag is looked at; the worst look of a second counts.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// More than this under way mean that the store does not keep up.
const WAITING_MAX: u64 = 100_000;
const MIB: f64 = (1_u64 << 20) as f64;

const ROWS: &[Row] = &[
    Row::new("posts", "durable posts", "/s"),
    Row::new("entries", "inbox entries that they made", "/s"),
    Row::new("pages", "feed pages of 50 beside them", "/s"),
    Row::new("lag_median", "fan-out lag, the worst of each second, median", "ms"),
    Row::new("lag_max", "the same, the worst of all", "ms"),
    Row::new("lag_events_max", "events not delivered yet, the most at any time", ""),
    Row::new("page_p50", "feed page of 50, p50", "ms"),
    Row::new("page_p99", "the same, p99", "ms"),
    Row::new("page_p99_worst", "the same, p99 of the worst second", "ms"),
    Row::new("post_p50", "durable post, p50", "ms"),
    Row::new("post_p99", "the same, p99", "ms"),
    Row::new("cores", "cores that the process used, with its load generator", ""),
    Row::new("memory", "memory, all of the process, at the end", "MiB"),
    Row::new("inbox_memory", "of these, inboxes as the store counts them", "MiB"),
];

/// Flags of this benchmark.
#[derive(Clone, Debug, Args)]
pub struct FeedRun {
    /// How many edges the graph has, such as 1m or 20m; a hundredth of it is the number of users
    #[arg(long, default_value = "20m")]
    pub edges: Size,
    /// How long the run takes
    #[arg(long, default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// How many posts a second, by authors at random
    #[arg(long, default_value_t = 1_000)]
    pub posts: u64,
    /// How many feed pages a second, of users at random
    #[arg(long, default_value_t = 300)]
    pub pages: u64,
    /// Where the graph is kept between runs
    #[arg(long, default_value = "target/bench")]
    pub work: PathBuf,
    /// Where the JSON file goes
    #[arg(long, default_value = "bench/results")]
    pub results: PathBuf,
    /// Where the plot goes
    #[arg(long, default_value = "docs/feed-run.svg")]
    pub plot: PathBuf,
}

/// As part of all benchmarks: of its own size, wherever these work.
pub fn run_default(options: &Options) -> Result<()> {
    FeedRun {
        edges: Size::of(20_000_000),
        seconds: 180,
        posts: 1_000,
        pages: 300,
        work: options.work.clone(),
        results: options.results.clone(),
        plot: PathBuf::from("docs/feed-run.svg"),
    }
    .run()
}

impl FeedRun {
    pub fn run(&self) -> Result<()> {
        let graph = FeedGraph::prepare(&self.work, self.edges)?;
        let scratch = graph.scratch()?;
        let store = Embedded::open(scratch.path(), Settings::default())?;
        graph.wake_everyone(&store)?;
        let before = store.stats();
        eprintln!("{NAME}: {} users, {} edges, for {} s", graph.users, before.edges, self.seconds);

        let cpu = cpu_seconds(process::id());
        let (stop, started) = (AtomicBool::new(false), Instant::now());
        let (load, looks) = thread::scope(|scope| {
            let watcher = scope.spawn(|| watch(&store, started, &stop));
            let load = self.load(&store, graph.users);
            stop.store(true, Ordering::Relaxed);
            let looks = watcher.join().map_err(|_| anyhow!("the watcher panicked"))?;
            anyhow::Ok((load?, looks))
        })?;
        let cores = (cpu_seconds(process::id()) - cpu) / started.elapsed().as_secs_f64();
        quiet(&store);
        let course = Course::of(&load, &looks, self.seconds as usize);
        let (after, memory) = (store.stats(), memory_bytes(process::id(), "VmRSS"));
        store.close()?;

        let mut recorder = Recorder::new(ROWS);
        self.record(&mut recorder, &load, &course, (before, after));
        recorder.record("cores", cores);
        recorder.record("memory", memory as f64 / MIB);
        let mut results = recorder.finish(NAME, self.edges, self.notes(&graph, before));
        results.series = course.series();
        self.plot(&results, &graph, before.edges)?;
        results.publish(&self.results)
    }

    /// Posts and reads by the clock, however many are under way.
    fn load(&self, store: &Embedded, users: u64) -> Result<Load> {
        let load = Rc::new(RefCell::new(Load::new(self.seconds as usize)));
        let tasks = LocalSet::new();
        let time = Duration::from_secs(self.seconds);
        let started = Instant::now();
        let pace = tasks.run_until(async {
            let mut random = Random::new(9);
            let (mut posted, mut read) = (0, 0);
            let mut tick = tokio::time::interval(TICK);
            while started.elapsed() < time && load.borrow().is_well() {
                tick.tick().await;
                let due = started.elapsed().min(time).as_secs_f64();
                while posted < (due * self.posts as f64) as u64 {
                    posted += 1;
                    let author = 1 + random.below(users);
                    tokio::task::spawn_local(post(store.clone(), author, Rc::clone(&load)));
                }
                while read < (due * self.pages as f64) as u64 {
                    read += 1;
                    let of = 1 + random.below(users);
                    tokio::task::spawn_local(page(store.clone(), of, started, Rc::clone(&load)));
                }
            }
        });
        let runtime = runtime()?;
        runtime.block_on(pace);
        if load.borrow().waiting > WAITING_MAX {
            bail!("the store did not keep up with {} posts and {} pages a second", self.posts, self.pages);
        }
        runtime.block_on(tasks);
        let mut load = Rc::into_inner(load).context("something is still under way")?.into_inner();
        match load.failure.take() {
            Some(error) => Err(error.into()),
            None => Ok(load),
        }
    }

    fn record(&self, recorder: &mut Recorder, load: &Load, course: &Course, (before, after): (Stats, Stats)) {
        let seconds = self.seconds as f64;
        let mut pages = Histogram::default();
        load.pages.iter().for_each(|second| pages.merge(second));
        recorder.record("posts", load.posts.total() as f64 / seconds);
        recorder.record("entries", (after.fan_out_entries - before.fan_out_entries) as f64 / seconds);
        recorder.record("pages", pages.total() as f64 / seconds);
        let largest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let mut lag = course.lag_ms.clone();
        lag.sort_by(f64::total_cmp);
        recorder.record("lag_median", lag.get(lag.len() / 2).copied().unwrap_or(0.0));
        recorder.record("lag_max", largest(&lag));
        recorder.record("lag_events_max", largest(&course.lag_events));
        recorder.record_ms("page", &pages);
        recorder.record("page_p99_worst", largest(&course.page_p99_ms));
        recorder.record_ms("post", &load.posts);
        recorder.record("inbox_memory", after.inbox_bytes as f64 / MIB);
    }

    fn notes(&self, graph: &FeedGraph, before: Stats) -> Vec<String> {
        vec![
            format!(
                "{} users, {} edges, power-law skewed; everybody has read before, so that {} have inboxes, most of \
                 them full",
                number(graph.users as f64),
                number(before.edges as f64),
                number(before.inboxes as f64)
            ),
            format!(
                "{} s of {} posts and {} pages a second by the clock, of users at random, however many are under way; \
                 in process, with the load on the same cores",
                self.seconds,
                number(self.posts as f64),
                self.pages
            ),
            "the lag is the age of the oldest event that is not delivered; a page is right however large it is; the \
             clock of ages has a resolution of a millisecond"
                .to_owned(),
        ]
    }

    fn plot(&self, results: &Results, graph: &FeedGraph, edges: u64) -> Result<()> {
        let series = |key: &str| results.series.iter().find(|series| series.key == key).context("a series");
        let rate = |key: &str| results.figure(key).map_or(0.0, |figure| figure.median);
        let subtitle = format!(
            "{} users, {} edges · {} posts/s making {} inbox entries/s, {} feed pages/s · {} cores, all on one machine",
            number(graph.users as f64),
            number(edges as f64),
            number(rate("posts").round()),
            number(rate("entries").round()),
            number(rate("pages").round()),
            results.machine.cores
        );
        let lag = vec![("oldest event not delivered", series("lag_ms")?)];
        let pages = vec![("p99", series("page_p99_ms")?), ("p50", series("page_p50_ms")?)];
        let plot = Plot {
            title: "Home feeds under a steady load",
            subtitle: &subtitle,
            axis: Axis::Seconds,
            panels: vec![
                Panel {
                    title: "Fan-out lag, worst of each second",
                    lines: lag,
                    bound: None,
                    values: Values::Linear,
                },
                Panel {
                    title: "Feed page of 50",
                    lines: pages,
                    bound: Some((2.0, "2 ms")),
                    values: Values::Linear,
                },
            ],
        };
        if let Some(folder) = self.plot.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&self.plot, plot.svg()).with_context(|| format!("cannot write {}", self.plot.display()))
    }
}

/// What the load measured.
struct Load {
    posts: Histogram,
    /// For each second, pages that were asked for in it.
    pages: Vec<Histogram>,
    waiting: u64,
    failure: Option<Error>,
}

impl Load {
    fn new(seconds: usize) -> Self {
        Self {
            posts: Histogram::default(),
            pages: vec![Histogram::default(); seconds],
            waiting: 0,
            failure: None,
        }
    }

    fn is_well(&self) -> bool {
        self.failure.is_none() && self.waiting <= WAITING_MAX
    }
}

async fn post(store: Embedded, author: u64, load: Rc<RefCell<Load>>) {
    let payload = Some(Made::at(author, 0, 0).payload().into());
    let author = Id::Integer(author);
    let new = NewPost { id: None, author, created_at: None, payload, idempotency_key: None };
    load.borrow_mut().waiting += 1;
    let started = Instant::now();
    let answer = store.register(new).await;
    let mut load = load.borrow_mut();
    load.waiting -= 1;
    match answer {
        Ok(_) => load.posts.record(started.elapsed()),
        Err(error) => load.failure = Some(error),
    }
}

async fn page(store: Embedded, of: u64, begun: Instant, load: Rc<RefCell<Load>>) {
    load.borrow_mut().waiting += 1;
    let started = Instant::now();
    let answer = store.feed(Id::Integer(of), None, PAGE, Frontier::EMPTY).await;
    let latency = started.elapsed();
    let mut load = load.borrow_mut();
    load.waiting -= 1;
    match answer {
        Ok(_) => {
            let last = load.pages.len() - 1;
            let second = ((started - begun).as_secs() as usize).min(last);
            load.pages[second].record(latency);
        }
        Err(error) => load.failure = Some(error),
    }
}

/// A look at the store.
struct Look {
    at: Duration,
    figures: Stats,
}

fn watch(store: &Embedded, started: Instant, stop: &AtomicBool) -> Vec<Look> {
    let mut looks = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        looks.push(Look { at: started.elapsed(), figures: store.stats() });
        thread::sleep(LOOK_EVERY);
    }
    looks
}

/// What happened in each second.
struct Course {
    lag_ms: Vec<f64>,
    lag_events: Vec<f64>,
    entries: Vec<f64>,
    page_p50_ms: Vec<f64>,
    page_p99_ms: Vec<f64>,
}

impl Course {
    fn of(load: &Load, looks: &[Look], seconds: usize) -> Self {
        let (mut lag_ms, mut lag_events) = (vec![0.0_f64; seconds], vec![0.0_f64; seconds]);
        // How many entries there were at the last look of each second.
        let mut total = vec![0; seconds];
        for Look { at, figures } in looks {
            let second = (at.as_secs() as usize).min(seconds - 1);
            lag_ms[second] = lag_ms[second].max(figures.fan_out_lag.as_secs_f64() * 1e3);
            lag_events[second] = lag_events[second].max(figures.fan_out_lag_events as f64);
            total[second] = figures.fan_out_entries;
        }
        let mut before = looks.first().map_or(0, |look| look.figures.fan_out_entries);
        let growth = |&total: &u64| {
            let grown = total.saturating_sub(before);
            before = before.max(total);
            grown as f64
        };
        Self {
            lag_ms,
            lag_events,
            entries: total.iter().map(growth).collect(),
            page_p50_ms: load.pages.iter().map(|second| second.percentile_ms(0.5)).collect(),
            page_p99_ms: load.pages.iter().map(|second| second.percentile_ms(0.99)).collect(),
        }
    }

    fn series(self) -> Vec<Series> {
        vec![
            Series::new("lag_ms", "fan-out lag, worst of each second", "ms", self.lag_ms),
            Series::new(
                "lag_events",
                "events not delivered yet, most in each second",
                "events",
                self.lag_events,
            ),
            Series::new("entries", "inbox entries", "/s", self.entries),
            Series::new("page_p50_ms", "feed page of 50, p50", "ms", self.page_p50_ms),
            Series::new("page_p99_ms", "feed page of 50, p99", "ms", self.page_p99_ms),
        ]
    }
}
