//! Storage that fails while the process lives: syncs that return an error, and disks that are full. What fails must
//! not be acknowledged, the process must say so and live on, and a later start must be right.
//!
//! All sites: `KINFOLK_FAULT_SITES=100000 cargo test --release -p kinfolk --test it faults::failing -- --nocapture`

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::check::must_recover;
use super::model::{Edges, Promise, Submitted, apply};
use super::power::crash::{Style, materialise};
use super::power::disk::Disk;
use super::power::record::{DATA, bursts, read_trace};
use super::power::replay::Replay;
use super::power::trace::Trace;
use super::program::{self, Ended};
use super::random::Random;
use super::session::{Answer, Session};
use super::tracer::{self, Injection};
use super::workload::{Step, Workload};
use super::{number, require_none, seed};

#[test]
fn a_failed_sync_is_never_acknowledged() {
    if !tracer::available("failed sync") {
        return;
    }
    let mut random = Random::new(seed("failed sync"));
    let mut tally = Tally::default();
    for scene in Scene::all(&mut random) {
        let (_, _, trace) = scene.run_traced(&scene.stage(), None);
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
        let (_, _, trace) = scene.run_traced(&stage, None);
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

/// A store before the run, and the steps of the run.
struct Scene {
    name: &'static str,
    disk: Disk,
    before: Edges,
    steps: Vec<Step>,
    random: Random,
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
        let mut workload = Workload::new(random.fork(1), 40);
        let mut scene = |name, disk, before| Self {
            name,
            disk,
            before,
            steps: workload.steps(700),
            random: random.fork(2),
        };
        let fresh = scene("new", Disk::empty(), Edges::new());
        let stage = fresh.stage();
        let data = stage.root.join(DATA);
        let mut session =
            Session::start(Command::new(program::binary()).args(program::apply_arguments(&data)));
        session.converse(fresh.steps.chunks(40));
        session.finish().1.require_success("apply").expect("an undisturbed run succeeds");
        let before = program::edges_of(&data).expect("an undisturbed store can be read");
        let existing = scene("old", Disk::load(&stage.root), before);
        [fresh, existing]
    }

    fn stage(&self) -> Stage {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path().canonicalize().expect("the folder exists");
        materialise(&self.disk, Style::AllKept, &mut self.random.clone(), &root);
        Stage { _folder: folder, root }
    }

    /// Submits the steps, in the same bursts every time, and closes.
    fn converse(&self, mut session: Session) -> (Vec<Answer>, Ended) {
        let bursts = bursts(&self.steps, &mut self.random.clone());
        let mut answers = session.converse(bursts.into_iter());
        let (rest, ended) = session.finish();
        answers.extend(rest);
        (answers, ended)
    }

    fn run_traced(&self, stage: &Stage, injection: Option<&Injection<'_>>) -> (Vec<Answer>, Ended, Trace) {
        let record = tempfile::NamedTempFile::new().expect("a temporary file");
        let arguments = program::apply_arguments(&stage.root.join(DATA));
        let session = Session::start(&mut tracer::command(record.path(), &arguments, injection));
        let (answers, ended) = self.converse(session);
        (answers, ended, read_trace(record.path()))
    }

    /// The given sync of each thread fails; then the process is restarted, once as it is and twice after a power loss
    /// that takes everything which the failed sync did not bring to the disk.
    fn fail_sync(&self, site: usize, random: &mut Random) -> Result<bool, String> {
        let stage = self.stage();
        let injection =
            Injection { calls: "fsync,fdatasync", error: "EIO", when: site.to_string(), path: None };
        let (answers, ended, trace) = self.run_traced(&stage, Some(&injection));
        let settled = self.settle(&answers, &ended)?;
        let mut replay = Replay::new(self.disk.clone(), &stage.root);
        trace.events.iter().try_for_each(|&event| replay.step(&trace, event))?;
        must_recover(&stage.root.join(DATA), settled.submitted(self), random)?;
        for style in [Style::AllLost, Style::Mixed] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let fates = materialise(&replay.disk, style, random, folder.path()).join("; ");
            must_recover(&folder.path().join(DATA), settled.submitted(self), random)
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
        let (answers, ended, trace) = self.run_traced(&stage, Some(&injection));
        let settled = self.settle(&answers, &ended)?;
        must_recover(&stage.root.join(DATA), settled.submitted(self), random)?;
        Ok(trace.calls.iter().any(|call| call.injected))
    }

    /// Runs on a real file system of that size, and restarts on a copy with room.
    fn run_on_small_disk(&self, bytes: usize, random: &mut Random) -> Result<SmallRun, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (small, copy) = (folder.path().join("small"), folder.path().join("copy"));
        for path in [&small, &copy] {
            std::fs::create_dir(path).expect("a new folder");
        }
        let mut command = in_namespace(
            "mount -t tmpfs -o size=$1 kinfolk \"$2\" || exit 90; shift; \
             small=$1; copy=$2; shift 2; \"$@\"; status=$?; cp -a \"$small/.\" \"$copy\"; exit $status",
        );
        command.arg(bytes.to_string()).args([&small, &copy]).arg(program::binary());
        command.args(program::apply_arguments(&small.join(DATA)));
        let (answers, ended) = self.converse(Session::start(&mut command));
        let settled = self.settle(&answers, &ended)?;
        let bytes_used = folder_bytes(&copy);
        must_recover(&copy.join(DATA), settled.submitted(self), random)?;
        let failed = settled.acknowledged < self.steps.len() || !ended.succeeded();
        Ok(SmallRun { bytes_used, failed })
    }

    /// Reads from the answers what must be there, may be there and must not be there.
    fn settle(&self, answers: &[Answer], ended: &Ended) -> Result<Settled, String> {
        let told = answers.iter().any(|answer| matches!(answer, Answer::Error { .. }));
        if !told || ended.status != Some(1) || ended.panicked() {
            ended.orderly()?;
        }
        if answers.is_empty() && ended.status == Some(1) {
            // Refused at the start, with a reason.
            return Ok(Settled { steps: self.steps.clone(), ..Settled::default() });
        }
        if answers.len() != self.steps.len() {
            let errors = program::excerpt(&ended.errors);
            return Err(format!("{} of {} steps answered; {errors}", answers.len(), self.steps.len()));
        }
        let mut edges = self.before.clone();
        let mut settled = Settled::default();
        for (index, (step, answer)) in self.steps.iter().zip(answers).enumerate() {
            match answer {
                Answer::Ok { changed: true } if settled.has_unknown() => {
                    return Err(format!("step {index} is acknowledged after the store went read-only"));
                }
                // Whatever became of the unknown ones, this must still be so after a restart.
                Answer::Ok { changed: false } if settled.has_unknown() => {
                    let (pair, exists) = (step.pairs()[0], matches!(step, Step::Follow(_)));
                    settled.promises.push(Promise { pair, exists, after: settled.steps.len() });
                }
                Answer::Ok { changed } if *changed != apply(&mut edges, step) => {
                    return Err(format!("step {index} {step:?} was answered {answer:?}"));
                }
                Answer::Ok { .. } => {
                    settled.steps.push(step.clone());
                    settled.acknowledged += 1;
                }
                // The outcome of these is unknown.
                Answer::Error { code, .. } if code == "read_only" || code == "closed" => {
                    settled.steps.push(step.clone());
                }
                // This says that nothing was written.
                Answer::Error { code, .. } if code == "storage_full" => {}
                Answer::Error { line, .. } => return Err(format!("step {index} was answered {line:?}")),
            }
        }
        Ok(settled)
    }
}

/// The steps that are or may be in the store; of these the first ones are acknowledged.
#[derive(Default)]
struct Settled {
    steps: Vec<Step>,
    acknowledged: usize,
    promises: Vec<Promise>,
}

impl Settled {
    fn has_unknown(&self) -> bool {
        self.acknowledged < self.steps.len()
    }

    fn submitted<'a>(&'a self, scene: &'a Scene) -> Submitted<'a> {
        Submitted {
            before: &scene.before,
            steps: &self.steps,
            acknowledged: self.acknowledged,
            promises: &self.promises,
        }
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
