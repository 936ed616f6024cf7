//! `start`: time to the first right answer, memory of a whole process, bytes on disk.

use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use clap::Args;
use kinfolk_core::Id;
use kinfolk_core::graph::{EdgeList, Side};
use kinfolk_embedded::{Embedded, Settings};

use crate::dataset::{Dataset, KIND, disk_bytes, edge};
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::process::memory_bytes;
use crate::random::Random;
use crate::size::Size;
use crate::survey::{Pair, Users};

const NAME: &str = "start";
const WARM_UP_CHECKS: usize = 1_000_000;
const WARM_UP_PAGES: usize = 20_000;

const ROWS: &[Row] = &[
    Row::new("start", "start, from the process to the first right answer", "s")
        .target(Target::AtMost(10.0))
        .target_from(Size::HUNDRED_MILLION),
    Row::new("start_cold", "the same, with nothing of the disk in the page cache", "s")
        .target(Target::AtMost(10.0))
        .target_from(Size::HUNDRED_MILLION),
    Row::new("memory", "memory, all of the process, after a warm-up", "bytes/edge")
        .target(Target::AtMost(14.0))
        .target_from(Size::HUNDRED_MILLION),
    Row::new("memory_max", "memory, all of the process, at most", "bytes/edge"),
    Row::new("disk_imported", "disk, as the import leaves it", "bytes/edge"),
    Row::new("disk", "disk, both directions, times and log, after compaction", "bytes/edge")
        .target(Target::AtMost(60.0))
        .target_from(Size::HUNDRED_MILLION),
];

pub fn run(options: &Options) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let store = data.store_folder()?;
    let edges = data.survey.edges as f64;
    let mut recorder = Recorder::new(ROWS);
    for round in 1..=options.rounds {
        eprintln!("{NAME}, round {round}");
        if empty_page_cache() {
            recorder.record("start_cold", run_child(&data, &store)?.first_answer.as_secs_f64());
        }
        let child = run_child(&data, &store)?;
        recorder.record("start", child.first_answer.as_secs_f64());
        recorder.record("memory", child.memory_bytes as f64 / edges);
        recorder.record("memory_max", child.memory_bytes_max as f64 / edges);
    }
    let scratch = data.scratch_store()?;
    recorder.record("disk_imported", disk_bytes(scratch.path())? as f64 / edges);
    let opened = Embedded::open(scratch.path(), Settings::default())?;
    opened.compact()?;
    opened.close()?;
    recorder.record("disk", disk_bytes(scratch.path())? as f64 / edges);
    let notes = vec![format!(
        "each start is a new process; the warm-up is {WARM_UP_CHECKS} checks and {WARM_UP_PAGES} pages of 50 followers"
    )];
    recorder.finish(NAME, data.size, notes).publish(&options.results)
}

/// What a started process reported.
pub struct Child {
    pub first_answer: Duration,
    pub memory_bytes: u64,
    pub memory_bytes_max: u64,
}

/// The process that is started: it opens the store, answers, warms up and tells its memory.
#[derive(Clone, Debug, Args)]
pub struct StartChild {
    store: PathBuf,
    follower: u64,
    followee: u64,
    user_first: u64,
    user_last: u64,
}

/// Starts this program again as a [`StartChild`] and reads its two lines.
pub fn run_child(data: &Dataset, store: &Path) -> Result<Child> {
    let (pair, users) = (data.survey.sample[0], data.survey.users);
    let numbers = [pair.follower, pair.followee, users.first, users.last];
    let started = Instant::now();
    let mut child = Command::new(env::current_exe()?)
        .arg("start-child")
        .arg(store)
        .args(numbers.map(|number| number.to_string()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("the output is piped")?).lines();
    let answer = lines.next().transpose()?;
    let first_answer = started.elapsed();
    let memory = lines.next().transpose()?.unwrap_or_default();
    if !child.wait()?.success() || answer.as_deref() != Some("right") {
        bail!("the started process did not give the right answer");
    }
    let (now, max) = memory.split_once(' ').context("the started process did not tell its memory")?;
    Ok(Child { first_answer, memory_bytes: now.parse()?, memory_bytes_max: max.parse()? })
}

impl StartChild {
    pub fn run(&self) -> Result<()> {
        let store = Embedded::open(&self.store, Settings::default())?;
        if !store.follows(KIND, edge(Pair { follower: self.follower, followee: self.followee })) {
            bail!("the answer is wrong");
        }
        println!("right");
        let users = Users { first: self.user_first, last: self.user_last };
        let mut random = Random::new(3);
        for _ in 0..WARM_UP_CHECKS {
            black_box(store.follows(KIND, edge(users.random_pair(&mut random))));
        }
        for _ in 0..WARM_UP_PAGES {
            let user = Id::Integer(users.random_pair(&mut random).follower);
            store.list_page(EdgeList { kind: KIND, side: Side::Followers, of: user }, None, 50)?;
        }
        let memory = |name| memory_bytes(process::id(), name);
        println!("{} {}", memory("VmRSS"), memory("VmHWM"));
        Ok(store.close()?)
    }
}

/// Asks the kernel to forget cached files; only root may, so elsewhere the row is left out.
pub fn empty_page_cache() -> bool {
    Command::new("sync").status().is_ok_and(|status| status.success())
        && fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}
