//! Storage that fails while the process lives: syncs that return an error, and disks that are full. What fails must
//! not be acknowledged, the process must say so and live on, and a later start must be right.
//!
//! All sites: `KINFOLK_FAULT_SITES=100000 cargo test --release -p kinfolk --test it faults::failing -- --nocapture`

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::data::check::{Expected, must_recover};
use super::data::history::History;
use super::data::workload::Workload;
use super::data::{End, Server};
use super::power::crash::{Style, materialise};
use super::power::disk::Disk;
use super::power::record::{DATA, read_trace};
use super::power::replay::Replay;
use super::power::trace::Trace;
use super::program;
use super::random::Random;
use super::tracer::{self, Injection};
use super::{number, require_none, scratch, seed};

/// Rounds of requests that a run takes.
const ROUNDS: usize = 40;

#[test]
fn a_failed_sync_is_never_acknowledged() {
    if !tracer::available("failed sync") {
        return;
    }
    let mut random = Random::new(seed("failed sync"));
    let mut tally = Tally::default();
    for scene in Scene::all(&mut random) {
        let (_, trace) = scene.run_traced(&scene.stage(), None).expect("an undisturbed run succeeds");
        let sites: Vec<usize> = (1..=syncs_per_thread_max(&trace)).collect();
        for site in sample(sites, number("KINFOLK_FAULT_SITES", 20) / 2, &mut random) {
            let outcome = scene.fail_sync(site, &mut random);
            tally.add(&format!("{} store, sync {site} of each thread", scene.name), outcome);
        }
    }
    tally.finish("failed sync");
}

#[test]
fn a_write_that_finds_the_disk_full_is_never_acknowledged() {
    if !tracer::available("full disk") {
        return;
    }
    let mut random = Random::new(seed("full disk"));
    let mut tally = Tally::default();
    for scene in Scene::all(&mut random) {
        let stage = scene.stage();
        let (_, trace) = scene.run_traced(&stage, None).expect("an undisturbed run succeeds");
        let sites = write_sites(&trace, &stage.root);
        for (file, site) in sample(sites, number("KINFOLK_FAULT_SITES", 20) / 2, &mut random) {
            let outcome = scene.fill_file(&file, site, &mut random);
            tally.add(&format!("{} store, write {site} of {}", scene.name, file.display()), outcome);
        }
    }
    tally.finish("full disk");
}

#[test]
fn a_disk_that_is_really_full_is_never_acknowledged() {
    let mut random = Random::new(seed("small disk"));
    if !small_disks_available() {
        println!("small disk: NOT RUN, mounting a small file system in a namespace is not permitted here");
        return;
    }
    let mut tally = Tally::default();
    let [scene, _] = Scene::all(&mut random);
    let whole = scene.run_on_small_disk(1 << 30, &mut random).map(|run| run.bytes_used);
    let whole = whole.expect("a disk that is large enough is no fault");
    let pages: Vec<usize> = (1..=whole / 4096 + 1).collect();
    for page in sample(pages, number("KINFOLK_FAULT_SITES", 20) / 2, &mut random) {
        let outcome = scene.run_on_small_disk(page * 4096, &mut random).map(|run| run.failed);
        tally.add(&format!("a disk of {} bytes", page * 4096), outcome);
    }
    tally.finish("small disk");
}

/// Counts how runs ended: a fault was reached, was not, or something was wrong.
#[derive(Default)]
struct Tally {
    reached: usize,
    not_reached: usize,
    violations: Vec<String>,
}

impl Tally {
    fn add(&mut self, site: &str, outcome: Result<bool, String>) {
        match outcome {
            Ok(true) => self.reached += 1,
            Ok(false) => self.not_reached += 1,
            Err(problem) => self.violations.push(format!("{site}: {problem}")),
        }
    }

    fn finish(&self, test: &str) {
        println!(
            "{test}: {} failures planted, {} sites not reached, {} violations",
            self.reached,
            self.not_reached,
            self.violations.len()
        );
        require_none(test, &self.violations);
    }
}

/// A store before the run, and the seed of what is submitted in it.
struct Scene {
    name: &'static str,
    disk: Disk,
    history: History,
    random: Random,
}

/// What a run submitted, and what became of it.
struct Outcome {
    history: History,
    /// Whether something could not be done.
    failed: bool,
    /// Purged texts whose erasure was acknowledged.
    erased: Vec<String>,
}

/// A folder of its own for one run; the store is `data` below the root.
struct Stage {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

/// How a run on a small disk went.
struct SmallRun {
    bytes_used: usize,
    failed: bool,
}

impl Scene {
    /// A store that the run makes, and one that it opens.
    fn all(random: &mut Random) -> [Self; 2] {
        let scene = |name, disk, history, part| Self { name, disk, history, random: random.fork(part) };
        let fresh = scene("new", Disk::empty(), History::default(), 1);
        let stage = fresh.stage();
        let server = Server::on(&stage.root.join(DATA)).expect("an undisturbed server starts");
        let outcome = fresh.run(server).expect("an undisturbed run succeeds");
        assert!(!outcome.failed, "nothing is refused in an undisturbed run");
        let existing = scene("old", Disk::load(&stage.root), outcome.history, 2);
        [fresh, existing]
    }

    fn stage(&self) -> Stage {
        let folder = scratch();
        let root = folder.path().canonicalize().expect("the folder exists");
        materialise(&self.disk, Style::AllKept, &mut self.random.clone(), &root);
        Stage { _folder: folder, root }
    }

    /// Submits the same kinds of operations every time, erases purged texts in between, and ends the server in order.
    fn run(&self, server: Server) -> Result<Outcome, String> {
        let mut history = self.history.clone();
        let mut workload = Workload::after(&self.history, self.random.clone());
        let mut erased: Vec<String> = Vec::new();
        for round in 0..ROUNDS {
            server.round(&mut history, &mut workload)?;
            if round == ROUNDS * 2 / 3 {
                let purged: Vec<String> = history.model.purged_texts().map(str::to_owned).collect();
                erased = if server.compact() { purged } else { Vec::new() };
            }
        }
        let ended = server.end(End::InOrder);
        ended.orderly()?;
        let failed = history.has_failures() || !ended.succeeded();
        Ok(Outcome { history, failed, erased })
    }

    /// As [`Scene::run`]; a server that refuses to start took nothing, and must say why.
    fn run_command(&self, command: Command) -> Result<Outcome, String> {
        match Server::start(command) {
            Ok(server) => self.run(server),
            Err(refused) => {
                refused.orderly()?;
                Ok(Outcome { history: self.history.clone(), failed: true, erased: Vec::new() })
            }
        }
    }

    fn run_traced(
        &self,
        stage: &Stage,
        injection: Option<&Injection<'_>>,
    ) -> Result<(Outcome, Trace), String> {
        let record = tempfile::NamedTempFile::new().expect("a temporary file");
        let arguments = program::serve_arguments(&stage.root.join(DATA));
        let outcome = self.run_command(tracer::command(record.path(), &arguments, injection))?;
        Ok((outcome, read_trace(record.path())))
    }

    /// The given sync of each thread fails; then the process is restarted, once as it is and twice after a power loss
    /// that takes everything which the failed sync did not bring to the disk.
    fn fail_sync(&self, site: usize, random: &mut Random) -> Result<bool, String> {
        let stage = self.stage();
        let injection =
            Injection { calls: "fsync,fdatasync", error: "EIO", when: site.to_string(), path: None };
        let (outcome, trace) = self.run_traced(&stage, Some(&injection))?;
        let mut replay = Replay::new(self.disk.clone(), &stage.root);
        trace.events.iter().try_for_each(|&event| replay.step(&trace, event))?;
        must_recover(&stage.root.join(DATA), &outcome.expected(), random)?;
        for style in [Style::AllLost, Style::Mixed] {
            let folder = scratch();
            let fates = materialise(&replay.disk, style, random, folder.path()).join("; ");
            must_recover(&folder.path().join(DATA), &outcome.expected(), random)
                .map_err(|problem| format!("then power lost, {style:?}: {problem} [{fates}]"))?;
        }
        Ok(trace.calls.iter().any(|call| call.injected))
    }

    /// From the given write on, a file takes nothing more.
    fn fill_file(&self, file: &Path, site: usize, random: &mut Random) -> Result<bool, String> {
        let stage = self.stage();
        let path = stage.root.join(file);
        let injection = Injection {
            calls: "write,pwrite64,writev,pwritev,fallocate",
            error: "ENOSPC",
            when: format!("{site}+"),
            path: Some(&path),
        };
        let (outcome, trace) = self.run_traced(&stage, Some(&injection))?;
        must_recover(&stage.root.join(DATA), &outcome.expected(), random)?;
        Ok(trace.calls.iter().any(|call| call.injected))
    }

    /// Runs on a real file system of that size, and restarts on a copy with room.
    fn run_on_small_disk(&self, bytes: usize, random: &mut Random) -> Result<SmallRun, String> {
        let folder = scratch();
        let (small, copy) = (folder.path().join("small"), folder.path().join("copy"));
        for path in [&small, &copy] {
            std::fs::create_dir(path).expect("a new folder");
        }
        let mut command = in_namespace(
            "mount -t tmpfs -o size=$1 kinfolk \"$2\" || exit 90; shift; \
             small=$1; copy=$2; shift 2; \"$@\"; status=$?; cp -a \"$small/.\" \"$copy\"; exit $status",
        );
        command.arg(bytes.to_string()).args([&small, &copy]).arg(program::binary());
        command.args(program::serve_arguments(&small.join(DATA)));
        let outcome = self.run_command(command)?;
        let bytes_used = folder_bytes(&copy);
        must_recover(&copy.join(DATA), &outcome.expected(), random)?;
        Ok(SmallRun { bytes_used, failed: outcome.failed })
    }
}

impl Outcome {
    fn expected(&self) -> Expected<'_> {
        Expected { erased: &self.erased, ..Expected::all(&self.history) }
    }
}

/// Up to `count` of the sites, in order.
fn sample<Site>(mut sites: Vec<Site>, count: usize, random: &mut Random) -> Vec<Site> {
    while sites.len() > count {
        sites.remove(random.below(sites.len()));
    }
    sites
}

fn syncs_per_thread_max(trace: &Trace) -> usize {
    let mut counts: HashMap<u32, usize> = HashMap::new();
    for call in trace.calls.iter().filter(|call| call.name == "fsync" || call.name == "fdatasync") {
        *counts.entry(call.thread).or_default() += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

/// Each write of each file, by the file's path below the root. Files with random names cannot be named beforehand:
/// the small disks cover those.
fn write_sites(trace: &Trace, root: &Path) -> Vec<(PathBuf, usize)> {
    let mut open: HashMap<i64, PathBuf> = HashMap::new();
    let mut counts: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for call in trace.calls.iter().filter(|call| call.succeeded()) {
        match call.name.as_str() {
            "openat" => {
                let path = Path::new(std::str::from_utf8(call.bytes(1)).unwrap_or_default());
                let descriptor = call.result.expect("a call that succeeded has a result");
                match path.strip_prefix(root) {
                    Ok(below) => open.insert(descriptor, below.to_owned()),
                    Err(_) => open.remove(&descriptor),
                };
            }
            // What gets its number next may be a connection.
            "close" => drop(call.integer(0).and_then(|descriptor| open.remove(&descriptor))),
            "write" | "pwrite64" | "writev" | "pwritev" | "fallocate" => {
                if let Some(path) = call.integer(0).and_then(|descriptor| open.get(&descriptor)) {
                    *counts.entry(path.clone()).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    counts.retain(|path, _| !path.to_string_lossy().contains("tmp"));
    counts.into_iter().flat_map(|(path, count)| (1..=count).map(move |site| (path.clone(), site))).collect()
}

/// A shell script that may mount without being seen elsewhere, and without rights where the system allows that.
fn in_namespace(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command
}

fn small_disks_available() -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder");
    in_namespace("mount -t tmpfs -o size=65536 kinfolk \"$1\"")
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn folder_bytes(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    entries
        .map(|entry| {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                4096 + folder_bytes(&path)
            } else {
                let blocks = path.metadata().expect("the file exists").blocks();
                usize::try_from(blocks * 512).expect("a file of this test fits memory")
            }
        })
        .sum()
}
