//! Records runs of the real binary in one folder: a server that takes all kinds of data, an import, and a server on the reopened
//! store that also erases purged texts.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::data::history::{Bounds, History};
use super::super::data::operation::Operation;
use super::super::data::workload::Workload;
use super::super::data::{End, Server};
use super::super::program;
use super::super::random::Random;
use super::super::tracer;
use super::disk::Disk;
use super::trace::{Call, Trace};

/// What a recorded process did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Answered requests.
    Serve,
    /// Took one operation, which its end in order acknowledges.
    Import,
}

/// Everything that happened in one folder.
pub struct Recording {
    /// Where the folder's parent was; the folder was made below it by the first process.
    pub root: PathBuf,
    pub processes: Vec<(Activity, Trace)>,
    /// What all processes together took, in order. All of it was acknowledged.
    pub history: History,
    /// How many entries there were after each round: nothing of the next is submitted before all of one is answered.
    rounds: Vec<usize>,
    /// How many entries there were when purged texts were erased, and which texts these were.
    erased_at: usize,
    pub erased: Vec<String>,
    /// The files that the last process really left.
    pub left: Disk,
}

/// The folder of the store below the root.
pub const DATA: &str = "data";
/// Rounds of requests that a recorded server takes.
const ROUNDS: usize = 130;

/// Runs and records. The real folder is removed again: from now on only the record counts.
pub fn record(random: &mut Random) -> Recording {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let records = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().canonicalize().expect("the folder exists");
    let mut workload = Workload::new(random.fork(1));
    let mut recording = Recording {
        root,
        processes: Vec::new(),
        history: History::default(),
        rounds: Vec::new(),
        erased_at: usize::MAX,
        erased: Vec::new(),
        left: Disk::empty(),
    };
    recording.serve(&mut workload, &records.path().join("first"), None);
    recording.import(workload.import(60), records.path());
    recording.serve(&mut workload, &records.path().join("second"), Some(ROUNDS / 2));
    recording.left = Disk::load(&recording.root);
    recording
}

impl Recording {
    /// How often a file was opened to be made: tells whether logs rolled and rows were flushed.
    pub fn files_made(&self) -> usize {
        let calls = self.processes.iter().flat_map(|(_, trace)| &trace.calls);
        calls.filter(|call| call.name == "openat" && call.word(2).contains("O_CREAT")).count()
    }

    /// The position that each token stands for.
    pub fn positions(&self) -> HashMap<&str, usize> {
        let tokens = (1..).zip(&self.history.entries);
        tokens.filter_map(|(position, entry)| Some((entry.token.as_deref()?, position))).collect()
    }

    /// Where the import is in the log.
    pub fn imported(&self) -> usize {
        let is_import = |operation: &Operation| matches!(operation, Operation::Import { .. });
        let found = self.history.entries.iter().position(|entry| is_import(&entry.operation));
        found.expect("there was an import") + 1
    }

    /// What may be in a log when so much is acknowledged: the round that is under way may be in it too.
    pub fn bounds(&self, acknowledged: usize) -> Bounds {
        let end = self.rounds.iter().copied().find(|&end| end > acknowledged);
        Bounds { at_least: acknowledged, at_most: end.unwrap_or(acknowledged) }
    }

    /// The texts that are in no file any more when so much is acknowledged.
    pub fn erased(&self, acknowledged: usize) -> &[String] {
        // Only what was acknowledged after the erasure shows that it was.
        if acknowledged > self.erased_at { &self.erased } else { &[] }
    }

    fn serve(&mut self, workload: &mut Workload, record: &Path, erase_after: Option<usize>) {
        let arguments = program::serve_arguments(&self.root.join(DATA));
        let server = Server::start(tracer::command(record, &arguments, None));
        let server = server.expect("an undisturbed server starts");
        // What came from another process.
        self.history.catch_up(&server.reader()).expect("an undisturbed log can be read");
        for round in 0..ROUNDS {
            self.rounds.push(self.history.entries.len());
            server.round(&mut self.history, workload).expect("an undisturbed round succeeds");
            if erase_after == Some(round) {
                self.erased_at = self.history.entries.len();
                self.erased = self.history.model.purged_texts().map(str::to_owned).collect();
                assert!(server.compact() && !self.erased.is_empty(), "purged texts are erased");
            }
        }
        self.rounds.push(self.history.entries.len());
        assert!(!self.history.has_failures(), "no operation fails");
        server.end(End::InOrder).require_success("serving under the tracer").expect("it ends in order");
        self.processes.push((Activity::Serve, read_trace(record)));
    }

    fn import(&mut self, operation: Operation, records: &Path) {
        let Operation::Import { pairs, since } = &operation else { panic!("an import is expected") };
        let file = records.join("edges.csv");
        let lines: String =
            pairs.iter().map(|pair| format!("{},{},{since}\n", pair.follower, pair.followee)).collect();
        fs::write(&file, format!("follower,followee,since\n{lines}")).expect("the import can be written");
        let text = |path: &Path| path.to_str().expect("temporary paths are text").to_owned();
        let arguments = ["import".to_owned(), text(&file), "--data".to_owned(), text(&self.root.join(DATA))];
        let record = records.join("import");
        let ended = program::run(&mut tracer::command(&record, &arguments, None), b"");
        ended.require_success("import under the tracer").expect("an undisturbed import succeeds");
        self.history.note_import(operation);
        self.processes.push((Activity::Import, read_trace(&record)));
    }
}

/// The token in an answer of a server that a call sends.
pub fn token_sent(call: &Call) -> Option<&str> {
    const HEADER: &[u8] = b"kinfolk-token: ";
    if !matches!(call.name.as_str(), "write" | "writev" | "sendto" | "sendmsg") {
        return None;
    }
    let bytes = call.bytes(1);
    let start = bytes.windows(HEADER.len()).position(|part| part == HEADER)? + HEADER.len();
    let length = bytes[start..].iter().position(|&byte| byte == b'\r')?;
    std::str::from_utf8(&bytes[start..start + length]).ok()
}

/// Reads what the tracer wrote.
pub fn read_trace(record: &Path) -> Trace {
    let text = fs::read_to_string(record).expect("the tracer wrote a record");
    Trace::parse(&text).unwrap_or_else(|problem| panic!("the record cannot be read: {problem}"))
}
