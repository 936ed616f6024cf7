//! `everyone`: suggestions for every user of a graph, computed and stored, beside a PySpark job of the same
//! definition. Both have to come to the same results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context, Result, bail};
use clap::Args;
use kinfolk_core::suggestions::{Ranking, SuggestionRunRequest, SuggestionStore, WalkBounds};
use kinfolk_core::{Frontier, Id};
use kinfolk_embedded::{Embedded, Settings};
use serde::{Deserialize, Serialize};

use crate::dataset::{Scratch, copy_folder, disk_bytes};
use crate::everyone_graph::Graph;
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::process::{memory_bytes, run as run_program};
use crate::spark::{Spark, Sums, Told};

/// How many suggestions are stored for a user.
const KEPT: usize = 100;
/// A run that takes longer is stopped; its rate is over the users until then.
const LONGEST: Duration = Duration::from_secs(600);
/// What is stored is asked for right after.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);
const MIB: f64 = (1_u64 << 20) as f64;

/// The targets are set for the real graph.
const ROWS_TWITTER: &[Row] = &rows(true);
const ROWS_GENERATED: &[Row] = &rows(false);

const fn rows(with_targets: bool) -> [Row; 15] {
    let users = Row::new("users", "suggestions for everyone, users", "/s");
    let times = Row::new("times_spark", "users/s, Kinfolk / PySpark, both with the edges in memory", "×");
    let (users, times) = match with_targets {
        true => (users.target(Target::AtLeast(50_000.0)), times.target(Target::AtLeast(10.0))),
        false => (users, times),
    };
    [
        users,
        Row::new("paths", "suggestions for everyone, two-step paths", "/s"),
        Row::new("seconds", "suggestions for everyone, to all of them stored", "s"),
        Row::new("open_seconds", "opening the store before that", "s"),
        Row::new("cpu_seconds", "processor time of the whole process", "s"),
        Row::new("memory_before", "memory, all of the process, before", "MiB"),
        Row::new("memory_max", "memory, all of the process, at most", "MiB"),
        Row::new("stored", "disk for each user with suggestions", "bytes"),
        Row::new("spark_users", "PySpark, users", "/s"),
        Row::new("spark_seconds", "PySpark, from the edges in memory to Parquet files", "s"),
        Row::new("spark_total_seconds", "PySpark, from the start of the process to Parquet files", "s"),
        Row::new("spark_cpu_seconds", "PySpark, processor time with the edges in memory", "s"),
        Row::new("spark_memory_max", "PySpark, memory of the JVM at most", "MiB"),
        times,
        Row::new(
            "times_spark_total",
            "the same, with PySpark's start and reading, and opening the store",
            "×",
        ),
    ]
}

/// Flags of this benchmark.
#[derive(Clone, Debug, Args)]
pub struct Everyone {
    #[command(flatten)]
    pub options: Options,
    /// Take the real graph, ego-Twitter in the folder that KINFOLK_TEST_DATA names, instead of a generated one
    #[arg(long)]
    pub twitter: bool,
}

impl Everyone {
    pub fn run(&self) -> Result<()> {
        let graph = match self.twitter {
            true => Graph::twitter(&self.options)?,
            false => Graph::generated(&self.options)?,
        };
        measure(&self.options, &graph, compute_in_child)
    }
}

/// On the generated graph and, where it is at hand, on the real one.
pub fn run_both(options: &Options) -> Result<()> {
    Everyone { options: options.clone(), twitter: false }.run()?;
    if Graph::twitter_file().is_some() {
        Everyone { options: options.clone(), twitter: true }.run()?;
    }
    Ok(())
}

/// What computing told.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Computed {
    users: u64,
    suggested: u64,
    complete: bool,
    open_s: f64,
    seconds: f64,
    cpu_s: f64,
    memory_bytes_before: u64,
    memory_bytes_max: u64,
}

impl Computed {
    /// Users a second. Those who follow nobody cost nothing and don't count, where that can be told.
    fn per_second(&self, graph: &Graph) -> f64 {
        self.users.min(graph.followers.len() as u64) as f64 / self.seconds
    }
}

/// Measures both sides alternately. `compute` runs on a copy of the store.
pub fn measure(options: &Options, graph: &Graph, compute: fn(&Path) -> Result<Computed>) -> Result<()> {
    let spark = (!options.without_spark).then(Spark::install).transpose()?;
    let mut recorder = Recorder::new(if graph.is_real { ROWS_TWITTER } else { ROWS_GENERATED });
    let mut stopped = false;
    for round in 1..=options.rounds {
        eprintln!("{}, round {round}", graph.name);
        let scratch = Scratch::new(graph.folder.join("store-everyone"))?;
        copy_folder(&graph.store, scratch.path())?;
        let before = disk_bytes(scratch.path())?;
        let computed = compute(scratch.path())?;
        let stored = disk_bytes(scratch.path())?.saturating_sub(before);
        record(&mut recorder, graph, computed, stored);
        stopped |= !computed.complete;
        if let Some(spark) = &spark {
            compare(&mut recorder, graph, spark, computed, scratch.path())?;
        }
    }
    let notes = notes(graph, spark.is_some(), stopped);
    recorder.finish(graph.name, graph.size, notes).publish(&options.results)
}

fn notes(graph: &Graph, with_spark: bool, stopped: bool) -> Vec<String> {
    let mut notes = vec![format!(
        "{} users follow anyone; {} two-step paths; the best {KEPT} of each user by count are stored, no bound on \
         those in between; {} threads",
        graph.followers.len(),
        graph.paths,
        cores()
    )];
    if with_spark {
        notes.push(
            "PySpark in local mode with as many threads and 8 GiB reads the same edges; it leaves out shares and \
             through which users"
                .to_owned(),
        );
        notes.push(format!(
            "ids, counts and scores of {} users and sums over all that is stored are the same on both sides",
            graph.sample.len()
        ));
    }
    if stopped {
        notes.push(format!("stopped after {} s: rates are those until then", LONGEST.as_secs()));
    }
    notes
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn record(recorder: &mut Recorder, graph: &Graph, computed: Computed, stored_bytes: u64) {
    recorder.record("users", computed.per_second(graph));
    if computed.complete {
        recorder.record("paths", graph.paths as f64 / computed.seconds);
        recorder.record("seconds", computed.seconds);
    }
    recorder.record("open_seconds", computed.open_s);
    recorder.record("cpu_seconds", computed.cpu_s);
    recorder.record("memory_before", computed.memory_bytes_before as f64 / MIB);
    recorder.record("memory_max", computed.memory_bytes_max as f64 / MIB);
    recorder.record("stored", stored_bytes as f64 / computed.suggested.max(1) as f64);
}

fn compare(
    recorder: &mut Recorder,
    graph: &Graph,
    spark: &Spark,
    computed: Computed,
    store: &Path,
) -> Result<()> {
    let job = spark.suggest(&graph.edges_file, &graph.folder.join("spark"), cores(), &graph.sample)?;
    let users = graph.followers.len() as f64;
    recorder.record("spark_users", users / job.suggest_s());
    recorder.record("spark_seconds", job.suggest_s());
    recorder.record("spark_total_seconds", job.total_s);
    recorder.record("spark_cpu_seconds", job.suggest_cpu_s);
    recorder.record("spark_memory_max", job.memory_bytes_max as f64 / MIB);
    recorder.record("times_spark", computed.per_second(graph) * job.suggest_s() / users);
    if computed.complete {
        recorder.record("times_spark_total", job.total_s / (computed.open_s + computed.seconds));
        let (sums, sample) = stored(store, graph)?;
        agree("the sums of both sides", &sums, &job.sums)?;
        for (user, ours) in sample {
            let theirs = job.sample.get(&user).context("PySpark left a user out")?;
            agree(&format!("the suggestions of user {user}"), &ours, theirs)?;
        }
    }
    Ok(())
}

fn agree<T: PartialEq + std::fmt::Debug>(what: &str, ours: &T, theirs: &T) -> Result<()> {
    if ours == theirs { Ok(()) } else { bail!("{what} differ: {ours:?}, and with PySpark {theirs:?}") }
}

/// Everything that is stored: sums of it, and what some users have.
pub fn stored(store: &Path, graph: &Graph) -> Result<(Sums, BTreeMap<String, Vec<Told>>)> {
    let store = Embedded::open(store, Settings::default())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let of = |user: u64| -> Result<Vec<Told>> {
        let found = runtime.block_on(store.stored_suggestions(Id::Integer(user), FRESH, Frontier::EMPTY))?;
        let items = found.map(|found| found.items).unwrap_or_default();
        items
            .into_iter()
            .map(|item| match item.id {
                Id::Integer(id) => Ok((id, item.mutual_count, item.score.0)),
                other => bail!("{other} is suggested in a graph of integers"),
            })
            .collect()
    };
    let mut sums = Sums::default();
    for &user in &graph.followers {
        for (id, mutual_count, _) in of(user)? {
            sums.rows += 1;
            sums.id_sum += id;
            sums.mutual_count_sum += u64::from(mutual_count);
        }
    }
    let sample = graph.sample.iter().map(|&user| Ok((user.to_string(), of(user)?))).collect::<Result<_>>()?;
    store.close()?;
    Ok((sums, sample))
}

/// Opens a store and suggests for everyone in it.
pub fn compute(store: &Path) -> Result<Computed> {
    let started = Instant::now();
    let store = Embedded::open(store, Settings::default())?;
    let open_s = started.elapsed().as_secs_f64();
    let memory = |name| memory_bytes(process::id(), name);
    let memory_bytes_before = memory("VmRSS");
    let bounds = WalkBounds { per_node: None, results: KEPT, ranking: Ranking::Count };
    let request = SuggestionRunRequest { bounds, threads: cores(), afresh: true };
    let started = Instant::now();
    let report = store.compute_suggestions(request, &|_, _| started.elapsed() < LONGEST)?;
    let seconds = started.elapsed().as_secs_f64();
    let memory_bytes_max = memory("VmHWM");
    store.close()?;
    Ok(Computed {
        users: report.users,
        suggested: report.suggested,
        complete: report.complete,
        open_s,
        seconds,
        cpu_s: crate::server::cpu_seconds(process::id()),
        memory_bytes_before,
        memory_bytes_max,
    })
}

/// The same in a process of its own, so that memory is that of the store alone.
fn compute_in_child(store: &Path) -> Result<Computed> {
    let printed = run_program(Command::new(env::current_exe()?).arg("everyone-child").arg(store))?;
    serde_json::from_str(&printed).with_context(|| format!("the started process printed {printed:?}"))
}

/// The process that is started.
#[derive(Clone, Debug, Args)]
pub struct EveryoneChild {
    store: PathBuf,
}

impl EveryoneChild {
    pub fn run(&self) -> Result<()> {
        println!("{}", serde_json::to_string(&compute(&self.store)?)?);
        Ok(())
    }
}
