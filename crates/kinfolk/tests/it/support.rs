//! Runs the binary in a temporary folder and says what came out.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A folder of its own for a test, in which the binary runs.
pub struct Sandbox {
    folder: tempfile::TempDir,
    /// The folder of the graph, unless the configuration decides.
    data: Option<&'static str>,
}

/// What a run printed and how it ended.
#[derive(Debug)]
pub struct Run {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Sandbox {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), data: Some("./kinfolk-data") }
    }

    /// As [`Sandbox::new`]; the file `kinfolk.toml` decides where the graph is.
    pub fn configured(file: &str) -> Self {
        let sandbox = Self { data: None, ..Self::new() };
        sandbox.write("kinfolk.toml", file);
        sandbox
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// The binary, not started yet, free of the settings of whoever runs the tests. It works on the folder
    /// `kinfolk-data` unless it or the sandbox is told otherwise.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kinfolk"));
        command.current_dir(self.folder.path()).args(arguments);
        let settings = std::env::vars_os().map(|(name, _)| name);
        for name in settings.filter(|name| name.to_string_lossy().starts_with("KINFOLK_")) {
            command.env_remove(name);
        }
        command.envs(self.data.map(|data| ("KINFOLK_DATA", data)));
        command
    }

    /// Starts the binary with pipes.
    pub fn spawn(&self, line: &str) -> Child {
        let mut command = self.command(line.split_whitespace());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Runs a command line without quotes.
    pub fn run(&self, line: &str) -> Run {
        self.run_with_input(line, "")
    }

    pub fn run_with_input(&self, line: &str, input: impl AsRef<[u8]>) -> Run {
        let mut child = self.spawn(line);
        let mut pipe = child.stdin.take().unwrap();
        let input = input.as_ref().to_vec();
        // From a thread, as the command may wait for its output to be read before it reads on.
        let feeder = std::thread::spawn(move || {
            // A command that does not read all of its input closes the pipe, which is its right.
            let _ = pipe.write_all(&input);
        });
        let run = Run::from(child.wait_with_output().unwrap());
        feeder.join().unwrap();
        run
    }

    /// Runs a command that must succeed; its output.
    pub fn ok(&self, line: &str) -> String {
        let run = self.run(line);
        assert_eq!(run.status, 0, "{line}: {run:?}");
        run.stdout
    }

    /// Runs a command that must succeed with `--json`; its answer.
    pub fn json(&self, line: &str) -> Value {
        let stdout = self.ok(&format!("{line} --json"));
        assert_eq!(stdout.lines().count(), 1, "one document: {stdout}");
        serde_json::from_str(&stdout).unwrap()
    }

    /// Runs a command that must fail; the one line that it says.
    pub fn fails(&self, line: &str, status: i32) -> String {
        self.run(line).failure(status)
    }

    /// All edges of a store as CSV.
    pub fn export(&self, data: &str) -> String {
        self.ok(&format!("export - --data {data}"))
    }
}

impl Run {
    /// The one line that a failed command says.
    pub fn failure(&self, status: i32) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.stdout, "", "nothing on stdout");
        let message = self.stderr.strip_prefix("kinfolk: ").expect("starts with the program's name");
        let message = message.strip_suffix('\n').expect("ends with the line");
        assert!(!message.contains('\n'), "one line: {message}");
        message.to_owned()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Replaces what differs from run to run: times, tokens, cursors and ids that were made, which are numbered.
pub fn stable(text: &str) -> String {
    let is_word = |character: char| character.is_ascii_alphanumeric() || "-_:.".contains(character);
    let is_made =
        |word: &str| word.len() == 36 && word.as_bytes()[14] == b'7' && word.matches('-').count() == 4;
    let mut out = String::new();
    let mut made = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let is_time = word.len() == 24 && word.ends_with('Z') && word.as_bytes()[10] == b'T';
        if is_made(word) && !made.contains(&word) {
            made.push(word);
        }
        if is_time {
            out.push_str("TIME");
        } else if let Some(at) = made.iter().position(|&id| id == word) {
            out.push_str(&format!("ID{}", at + 1));
        } else if word.len() > 36 {
            // Longer than a UUID.
            out.push_str("OPAQUE");
        } else {
            out.push_str(word);
        }
        let mut characters = after.chars();
        out.extend(characters.next());
        rest = characters.as_str();
    }
    out
}

/// Sorts the lines of an export after its header, as the store would.
pub fn expected_export(edges: &[(u64, u64, &str)]) -> String {
    let mut edges = edges.to_vec();
    edges.sort_unstable();
    let lines: String =
        edges.iter().map(|(follower, followee, since)| format!("{follower},{followee},{since}\n")).collect();
    format!("follower,followee,since\n{lines}")
}

pub fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(content: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// The names in a folder, to see that nothing is left behind.
pub fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Copies a folder with all that is in it.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
