//! Records runs of the real binary in one folder: a session, an import, a session on the reopened store.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::program;
use super::super::random::Random;
use super::super::session::{Answer, Session};
use super::super::tracer;
use super::super::workload::{Step, Workload};
use super::disk::Disk;
use super::trace::Trace;

/// What a recorded process did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Answered line by line.
    Apply,
    /// Took one step, which its end in order acknowledges.
    Import,
}

/// Everything that happened in one folder.
pub struct Recording {
    /// Where the folder's parent was; the folder was made below it by the first process.
    pub root: PathBuf,
    pub processes: Vec<(Activity, Trace)>,
    /// What all processes together submitted, in order.
    pub steps: Vec<Step>,
    /// The files that the last process really left.
    pub left: Disk,
}

/// The folder of the store below the root.
pub const DATA: &str = "data";

/// Runs and records. The real folder is removed again: from now on only the record counts.
pub fn record(random: &mut Random) -> Recording {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let records = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().canonicalize().expect("the folder exists");
    let mut workload = Workload::new(random.fork(1), 50);
    let mut recording = Recording { root, processes: Vec::new(), steps: Vec::new(), left: Disk::empty() };
    let first = workload.steps(900);
    recording.session(first, random, &records.path().join("first"));
    let import = workload.import(400);
    recording.import(import, records.path());
    let second = workload.steps(900);
    recording.session(second, random, &records.path().join("second"));
    recording.left = Disk::load(&recording.root);
    recording
}

impl Recording {
    /// How often a file was opened to be made: tells whether logs rolled and rows were flushed.
    pub fn files_made(&self) -> usize {
        let calls = self.processes.iter().flat_map(|(_, trace)| &trace.calls);
        calls.filter(|call| call.name == "openat" && call.word(2).contains("O_CREAT")).count()
    }

    fn session(&mut self, steps: Vec<Step>, random: &mut Random, record: &Path) {
        let arguments = program::apply_arguments(&self.root.join(DATA));
        let mut session = Session::start(&mut tracer::command(record, &arguments, None));
        let answers = session.converse(bursts(&steps, random).into_iter());
        let (_, ended) = session.finish();
        ended.require_success("apply under the tracer").expect("an undisturbed run succeeds");
        assert_eq!(answers.len(), steps.len(), "every step is answered");
        assert!(answers.iter().all(|answer| matches!(answer, Answer::Ok { .. })), "no step fails");
        self.steps.extend(steps);
        self.processes.push((Activity::Apply, read_trace(record)));
    }

    fn import(&mut self, step: Step, records: &Path) {
        let file = records.join("edges.csv");
        let lines: String =
            step.pairs().iter().map(|pair| format!("{},{}\n", pair.follower, pair.followee)).collect();
        fs::write(&file, format!("follower,followee\n{lines}")).expect("the import can be written");
        let text = |path: &Path| path.to_str().expect("temporary paths are text").to_owned();
        let arguments = ["import".to_owned(), text(&file), "--data".to_owned(), text(&self.root.join(DATA))];
        let record = records.join("import");
        let ended = program::run(&mut tracer::command(&record, &arguments, None), b"");
        ended.require_success("import under the tracer").expect("an undisturbed import succeeds");
        self.steps.push(step);
        self.processes.push((Activity::Import, read_trace(&record)));
    }
}

/// Splits steps so that some are alone in their sync and some share it.
pub fn bursts<'a>(steps: &'a [Step], random: &mut Random) -> Vec<&'a [Step]> {
    let (mut rest, mut bursts) = (steps, Vec::new());
    while !rest.is_empty() {
        let size = (1 + random.below(30)).min(rest.len());
        let (burst, after) = rest.split_at(size);
        bursts.push(burst);
        rest = after;
    }
    bursts
}

/// Reads what the tracer wrote.
pub fn read_trace(record: &Path) -> Trace {
    let text = fs::read_to_string(record).expect("the tracer wrote a record");
    Trace::parse(&text).unwrap_or_else(|problem| panic!("the record cannot be read: {problem}"))
}
