//! `scale`: the life of a graph of any size on this machine: import, start, checks, follows, pages, the whole design load, a kill, verify
//! and backup. The same at every size, so that costs can be compared; `scale-plot` draws them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use kinfolk_core::Id;
use kinfolk_core::graph::Side;
use kinfolk_embedded::{Embedded, Settings};
use serde::{Deserialize, Serialize};

use crate::dataset::{Dataset, Scratch, disk_bytes};
use crate::design::Driver;
use crate::lean_client::{LeanClient, Requests};
use crate::measurement::{Recorder, Results, Row, Series, Target, number};
use crate::open_loop::Outcome;
use crate::options::Options;
use crate::pages::{Page, read, small_page};
use crate::plot::{Axis, Panel, Plot, Values};
use crate::process::run_measured;
use crate::random::Random;
use crate::resp::{durable_adds, single_checks};
use crate::server::{Server, cpu_seconds};
use crate::size::Size;
use crate::start::{empty_page_cache, run_child};
use crate::survey::Survey;

const NAME: &str = "scale";
const GIB: f64 = (1_u64 << 30) as f64;
const CONNECTIONS: usize = 32;
/// Checks that are encoded before they are sent; then they are sent again.
const ENCODED: usize = 1 << 20;
/// What the plot shows.
const SIZES: [Size; 4] = [Size::MILLION, Size::of(10_000_000), Size::HUNDRED_MILLION, Size::BILLION];

const ROWS: &[Row] = &[
    Row::new("import_seconds", "import of a CSV file without times", "s"),
    Row::new("import", "the same", "edges/s"),
    Row::new("import_memory", "the same, memory at most", "GiB"),
    Row::new("disk", "disk, both directions, times and log", "bytes/edge").target(Target::AtMost(60.0)),
    Row::new("start", "start, from the process to the first right answer", "s")
        .target(Target::AtMost(20.0))
        .target_from(Size::BILLION),
    Row::new("start_cold", "the same, with nothing of the disk in the page cache", "s"),
    Row::new("memory", "memory, all of the process, after a warm-up", "bytes/edge")
        .target(Target::AtMost(14.0))
        .target_from(Size::HUNDRED_MILLION),
    Row::new("largest_p50", "page of 50 followers of the largest account, p50", "µs"),
    Row::new("largest_p99", "the same, p99", "µs"),
    Row::new("small_p50", "page of 50 followers of a small account, p50", "µs"),
    Row::new("small_p99", "the same, p99", "µs"),
    Row::new("check_1", "SISMEMBER, no pipeline", "/s"),
    Row::new("check_1_cpu", "the same, server CPU a check", "µs"),
    Row::new("check_16", "SISMEMBER, pipeline of 16", "/s"),
    Row::new("check_16_cpu", "the same, server CPU a check", "µs"),
    Row::new("follow", "durable SADD, 64 connections, no pipeline", "/s"),
    Row::new("follow_cpu", "the same, server CPU a follow", "µs"),
    Row::new("design_checks", "the whole design load, checks answered", "/s"),
    Row::new("design_follows", "the whole design load, durable follows answered", "/s"),
    Row::new("design_check_p50", "the whole design load, check p50", "ms"),
    Row::new("design_check_p99", "the whole design load, check p99", "ms").target(Target::Below(5.0)),
    Row::new("design_follow_p99", "the whole design load, durable follow p99", "ms"),
    Row::new("design_cores", "the whole design load, cores that the server used", ""),
    Row::new("restart", "start after a kill under that load, until it is ready", "s"),
    Row::new("verify_seconds", "verify", "s"),
    Row::new("verify_memory", "verify, memory at most", "bytes/edge"),
    Row::new("backup_seconds", "backup", "s"),
    Row::new("backup_memory", "backup, memory at most", "bytes/edge"),
    Row::new("backup_disk", "backup, its file", "bytes/edge"),
];

/// What an import took; kept beside its store.
#[derive(Serialize, Deserialize)]
struct Imported {
    seconds: f64,
    memory_bytes_max: u64,
}

/// The graph in a store of its own, imported if it is not there yet.
fn import(data: &Dataset) -> Result<(PathBuf, Imported)> {
    let (store, report) = (data.folder().join("store-scale"), data.folder().join("store-scale.json"));
    if !report.exists() {
        let usage = data.import(&data.csv_without_times(), &store)?;
        let imported =
            Imported { seconds: usage.elapsed.as_secs_f64(), memory_bytes_max: usage.memory_bytes_max };
        fs::write(&report, serde_json::to_vec(&imported)?)?;
    }
    Ok((store, serde_json::from_slice(&fs::read(&report)?)?))
}

pub fn run(options: &Options) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let edges = data.survey.edges as f64;
    let mut recorder = Recorder::new(ROWS);
    let (store, imported) = import(&data)?;
    recorder.record("import_seconds", imported.seconds);
    recorder.record("import", edges / imported.seconds);
    recorder.record("import_memory", imported.memory_bytes_max as f64 / GIB);
    recorder.record("disk", disk_bytes(&store)? as f64 / edges);
    if empty_page_cache() {
        recorder.record("start_cold", run_child(&data, &store)?.first_answer.as_secs_f64());
    }
    let child = run_child(&data, &store)?;
    recorder.record("start", child.first_answer.as_secs_f64());
    recorder.record("memory", child.memory_bytes as f64 / edges);
    measure_pages(&mut recorder, &data.survey, &store, options.rounds)?;

    let server = Server::start(data.kinfolk(), &store)?;
    for _ in 0..options.rounds {
        measure_checks(&mut recorder, options, &data.survey, &server)?;
        measure_follows(&mut recorder, options, &data.survey, &server)?;
    }
    let mut driver = Driver::new(&server, &data.survey);
    let load = driver.load(1.0, options.round_time() * 6)?;
    let seconds = load.checks.due.len() as f64;
    let [checked, followed] = [&load.checks, &load.follows].map(Outcome::latencies);
    recorder.record("design_checks", checked.total() as f64 / seconds);
    recorder.record("design_follows", followed.total() as f64 / seconds);
    recorder.record_ms("design_check", &checked);
    recorder.record("design_follow_p99", followed.percentile_ms(0.99));
    recorder.record("design_cores", load.cores);
    drop(driver);
    server.kill()?;
    let restarting = Instant::now();
    let server = Server::start(data.kinfolk(), &store)?;
    recorder.record("restart", restarting.elapsed().as_secs_f64());
    server.stop()?;
    measure_tools(&mut recorder, &data, &store)?;

    let notes = vec![
        format!("a load takes {} s, the design load six times as long; one process, clients on the same cores", options.seconds),
        "the graph after its import has all follows at one time; what the loads added stays for what is measured after them".to_owned(),
        "the kill comes right after the design load; the start after it includes adding an API key".to_owned(),
    ];
    recorder.finish(NAME, data.size, notes).publish(&options.results)
}

fn measure_pages(recorder: &mut Recorder, survey: &Survey, store: &Path, rounds: u32) -> Result<()> {
    let store = Embedded::open(store, Settings::default())?;
    for round in 1..=rounds {
        let random = &mut Random::new(u64::from(round));
        let of = Id::Integer(survey.largest);
        let largest = read(&store, || Page { side: Side::Followers, of, after: None })?;
        recorder.record_us("largest", &largest);
        let small = read(&store, || small_page(random, Side::Followers, &survey.small_by_followers))?;
        recorder.record_us("small", &small);
    }
    Ok(store.close()?)
}

fn measure_checks(
    recorder: &mut Recorder,
    options: &Options,
    survey: &Survey,
    server: &Server,
) -> Result<()> {
    const WARM_UP: Duration = Duration::from_millis(500);
    for pipeline in [1, 16] {
        let mut random = Random::new(0xc4ec);
        let batches = (0..ENCODED / pipeline).map(|_| single_checks(survey, pipeline, &mut random));
        let mut requests = Requests::new(batches.collect());
        let mut client = LeanClient::connect(server.resp, Some(&server.key), CONNECTIONS)?;
        client.run(&mut requests, WARM_UP)?;
        let before = cpu_seconds(server.process());
        let measured = client.run(&mut requests, options.round_time())?;
        let checks = measured.batches as f64 * pipeline as f64;
        recorder.record(&format!("check_{pipeline}"), checks / measured.elapsed.as_secs_f64());
        let cpu = cpu_seconds(server.process()) - before;
        recorder.record(&format!("check_{pipeline}_cpu"), cpu * 1e6 / checks);
    }
    Ok(())
}

fn measure_follows(
    recorder: &mut Recorder,
    options: &Options,
    survey: &Survey,
    server: &Server,
) -> Result<()> {
    let follows = durable_adds(options, survey, server)?;
    recorder.record("follow", follows.per_second);
    recorder.record("follow_cpu", follows.cpu_us);
    Ok(())
}

/// Commands on the folder of a store that nobody has open.
fn measure_tools(recorder: &mut Recorder, data: &Dataset, store: &Path) -> Result<()> {
    let edges = data.survey.edges as f64;
    let backup = Scratch::new(data.folder().join("backup"))?;
    fs::create_dir_all(backup.path())?;
    let file = backup.path().join("graph.backup");
    for name in ["verify", "backup"] {
        let mut command = Command::new(data.kinfolk());
        command.arg(name).arg("--data").arg(store);
        if name == "backup" {
            command.arg(&file);
        }
        let usage = run_measured(command, &data.folder().join(format!("{name}.log")))?;
        recorder.record(&format!("{name}_seconds"), usage.elapsed.as_secs_f64());
        recorder.record(&format!("{name}_memory"), usage.memory_bytes_max as f64 / edges);
    }
    recorder.record("backup_disk", disk_bytes(backup.path())? as f64 / edges);
    Ok(())
}

/// Draws what operations cost at each size.
#[derive(Clone, Debug, Args)]
pub struct ScalePlot {
    /// Where the JSON files are
    #[arg(long, default_value = "bench/results")]
    pub results: PathBuf,
    /// Where the plot goes
    #[arg(long, default_value = "docs/scale.svg")]
    pub plot: PathBuf,
}

impl ScalePlot {
    pub fn run(&self) -> Result<()> {
        let read = |size: Size| Results::read(&self.results.join(format!("{NAME}-{size}.json")));
        let results = SIZES.into_iter().map(read).collect::<Result<Vec<_>>>()?;
        fs::write(&self.plot, draw(&results)?)
            .with_context(|| format!("cannot write {}", self.plot.display()))
    }
}

fn draw(results: &[Results]) -> Result<String> {
    let series = |key: &str| -> Result<_> {
        let figure = |results: &Results| {
            let found = results.figure(key).map(|figure| (figure.median, figure.unit.clone()));
            found.with_context(|| format!("there is no figure {key} at {}", results.edges))
        };
        let figures = results.iter().map(figure).collect::<Result<Vec<_>>>()?;
        let unit = figures.first().map_or("", |(_, unit)| unit.as_str());
        let values = figures.iter().map(|(value, _)| *value).collect();
        Ok(Series::new(key, key, unit, values))
    };
    let [check_1, check_16, follow] =
        [series("check_1_cpu")?, series("check_16_cpu")?, series("follow_cpu")?];
    let [largest, small] = [series("largest_p50")?, series("small_p50")?];
    let machine = &results.last().context("there is a size")?.machine;
    let subtitle = format!(
        "{} cores, {} GiB: server CPU or median latency of one operation",
        machine.cores,
        number(machine.memory_gib)
    );
    let labels: Vec<String> = results.iter().map(|results| number(results.edges.edges() as f64)).collect();
    let plot = Plot {
        title: "What an operation costs as the graph grows",
        subtitle: &subtitle,
        axis: Axis::Labels { title: "edges", labels: &labels },
        panels: vec![
            Panel {
                title: "Check over the Redis protocol",
                lines: vec![("no pipeline", &check_1), ("pipeline of 16", &check_16)],
                bound: None,
                values: Values::Linear,
            },
            Panel {
                title: "Durable follow over the Redis protocol",
                lines: vec![("SADD", &follow)],
                bound: None,
                values: Values::Linear,
            },
            Panel {
                title: "Page of 50 followers, in process",
                lines: vec![("the largest account", &largest), ("a small account", &small)],
                bound: None,
                values: Values::Linear,
            },
        ],
    };
    Ok(plot.svg())
}
