//! Runs the real binary for short commands and reads what it prints. Long writing sessions are in `session`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::workload::Pair;

/// Longer than any command here takes on a busy machine, in seconds: reaching it means that the program hangs.
const PATIENCE_SECONDS: usize = 120;

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit status; none if a signal ended it or it hung.
    pub status: Option<i32>,
    pub output: String,
    pub errors: String,
}

impl Ended {
    /// Ended as a program should: success, or status 1 or 2 with a reason and no panic.
    pub fn orderly(&self) -> Result<(), String> {
        let reason = self.errors.trim();
        match self.status {
            _ if self.panicked() => Err(format!("panicked: {}", excerpt(reason))),
            Some(0) => Ok(()),
            Some(1 | 2) if reason.is_empty() => Err("refused without a reason".to_owned()),
            Some(1 | 2) => Ok(()),
            status => Err(format!("ended with status {status:?}: {}", excerpt(reason))),
        }
    }

    pub fn panicked(&self) -> bool {
        self.errors.contains("panicked at")
    }

    pub fn succeeded(&self) -> bool {
        self.status == Some(0)
    }

    /// For a place where only success is right.
    pub fn require_success(&self, what: &str) -> Result<(), String> {
        self.orderly().map_err(|problem| format!("{what} {problem}"))?;
        if self.succeeded() { Ok(()) } else { Err(format!("{what} refused: {}", excerpt(&self.errors))) }
    }
}

/// The beginning of a message, on one line.
pub fn excerpt(text: &str) -> String {
    let flat: String = text.trim().chars().take(400).collect();
    flat.replace('\n', " / ")
}

/// As [`SMALL_SETTINGS`], for servers that take requests of many users: everything that is stored now and then is stored all the time.
pub const SMALL_SERVER_SETTINGS: [(&str, &str); 4] = [
    ("KINFOLK_TEST_SEGMENT_BYTES", "16384"),
    ("KINFOLK_TEST_FLUSH_ROWS", "600"),
    ("KINFOLK_TEST_FLUSH_POST_BYTES", "8192"),
    ("KINFOLK_TEST_SNAPSHOT_EVENTS", "700"),
];

/// The settings that make log segments roll and go, rows be flushed and merged, and snapshots be written, all in a run
/// of some hundred steps.
pub const SMALL_SETTINGS: [(&str, &str); 5] = [
    ("KINFOLK_TEST_SEGMENT_BYTES", "8192"),
    ("KINFOLK_TEST_FLUSH_ROWS", "600"),
    ("KINFOLK_TEST_FLUSH_POST_BYTES", "8192"),
    ("KINFOLK_TEST_SNAPSHOT_EVENTS", "500"),
    ("KINFOLK_TEST_LOG_KEEP_BYTES", "20000"),
];

/// Where the program under test is.
pub fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_kinfolk")
}

/// The arguments of `kinfolk apply` on a folder.
pub fn apply_arguments(data: &Path) -> Vec<String> {
    let data = data.to_str().expect("temporary paths are text").to_owned();
    ["apply", "--data", &data, "--ids", "integer"].map(str::to_owned).to_vec()
}

/// The arguments of a server on a folder. Some authors cross the threshold of fan-out, and inboxes are small, so that feeds come
/// from all that they can come from.
pub fn serve_arguments(data: &Path) -> Vec<String> {
    let data = data.to_str().expect("temporary paths are text");
    let line = "serve --http 127.0.0.1:0 --resp 127.0.0.1:0 --ids integer --http-threads 2 --resp-threads 1 \
        --suggest-every 0 --fan-out-threshold 6 --inbox-entries 8 --backfill-posts 3 --data";
    line.split_whitespace().chain([data]).map(str::to_owned).collect()
}

/// Starts a command with small settings and all its streams piped.
pub fn start(command: &mut Command) -> Child {
    command
        .envs(SMALL_SETTINGS)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started")
}

/// Runs a command to its end, with `input` on its standard input.
pub fn run(command: &mut Command, input: &[u8]) -> Ended {
    let mut child = start(command);
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let input = input.to_vec();
    // The program may end before it has read everything: that is for the caller to judge.
    thread::spawn(move || drop(stdin.write_all(&input)));
    let output = collect(child.stdout.take().expect("stdout is piped"));
    let errors = collect(child.stderr.take().expect("stderr is piped"));
    match receive(&output) {
        Ok(output) => {
            let errors = receive(&errors).unwrap_or_default();
            let status = child.wait().expect("the child can be waited for").code();
            Ended { status, output, errors }
        }
        Err(_) => {
            child.kill().expect("the child can be ended");
            child.wait().expect("the child can be waited for");
            let errors = format!("still running after {PATIENCE_SECONDS} s");
            Ended { status: None, output: String::new(), errors }
        }
    }
}

/// Waits for what a process does, but not for ever. In short waits, so that a test which is itself stopped for a while,
/// together with its process, does not take that for a hang.
pub fn receive<T>(from: &mpsc::Receiver<T>) -> Result<T, RecvTimeoutError> {
    for _ in 0..PATIENCE_SECONDS {
        match from.recv_timeout(Duration::from_secs(1)) {
            Err(RecvTimeoutError::Timeout) => {}
            received => return received,
        }
    }
    Err(RecvTimeoutError::Timeout)
}

/// Reads a stream to its end in the background.
pub fn collect(mut stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What arrived before a failure still counts.
        drop(stream.read_to_end(&mut bytes));
        drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receiver
}

/// Opens a folder for writing and closes it again; makes a new store if there is none.
pub fn open_and_close(data: &Path) -> Ended {
    run(Command::new(binary()).args(apply_arguments(data)), b"")
}

/// `kinfolk verify`. What it finds is its answer, so that the reason may be on either stream.
pub fn verify(data: &Path) -> Ended {
    let mut ended = run(Command::new(binary()).arg("verify").arg("--data").arg(data), b"");
    if ended.errors.trim().is_empty() {
        ended.errors.clone_from(&ended.output);
    }
    ended
}

/// `kinfolk export`, as it ended.
pub fn export(data: &Path) -> Ended {
    run(Command::new(binary()).args(["export", "-", "--data"]).arg(data), b"")
}

/// The edges of an export, each with its `since`.
pub fn parse_export(output: &str) -> Result<BTreeMap<Pair, String>, String> {
    let mut edges = BTreeMap::new();
    for line in output.lines().filter(|line| !line.starts_with("follower")) {
        let mut fields = line.split(',');
        let mut id = || fields.next().and_then(|text| text.trim_matches('"').parse().ok());
        let (follower, followee) =
            id().zip(id()).ok_or_else(|| format!("export printed {:?}", excerpt(line)))?;
        let since = fields.next().unwrap_or_default().to_owned();
        if edges.insert(Pair { follower, followee }, since).is_some() {
            return Err(format!("export printed {follower},{followee} twice"));
        }
    }
    Ok(edges)
}
