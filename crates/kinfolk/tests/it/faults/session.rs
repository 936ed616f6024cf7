//! A writing session: one `kinfolk apply` process, steps in, answers out. It may be killed at any moment.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;

use super::program::{self, collect, receive};
use super::workload::Step;

/// What a pipe takes at least without its reader; sending more at once could block for ever.
const PIPE_BYTES: usize = 60_000;

/// The answer to one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Ok { changed: bool },
    Error { code: String, line: String },
}

impl Answer {
    /// Reads an answer line without its end. A line that is cut short is no answer, and not passed here.
    fn parse(line: &str) -> Self {
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some("ok"), Some("changed")) => Self::Ok { changed: true },
            (Some("ok"), Some("unchanged")) => Self::Ok { changed: false },
            (Some("error"), Some(code)) => {
                Self::Error { code: code.trim_end_matches(':').to_owned(), line: line.to_owned() }
            }
            _ => panic!("not an answer of apply: {line:?}"),
        }
    }
}

/// A running writer.
pub struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<Answer>,
}

impl Session {
    /// Starts a command that ends in `kinfolk apply`.
    pub fn start(command: &mut Command) -> Self {
        let mut child = program::start(command);
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || forward_answers(stdout, &sender));
        // Read so that the process does not wait; nobody looks at it.
        drop(collect(child.stderr.take().expect("stderr is piped")));
        let stdin = child.stdin.take();
        Self { child, stdin, answers }
    }

    /// Submits steps. That the process is gone already is not an error here: it shows in the answers.
    pub fn send(&mut self, steps: &[Step]) {
        let text: String = steps.iter().map(Step::line).collect();
        assert!(text.len() <= PIPE_BYTES, "a burst must fit into the pipe");
        let stdin = self.stdin.as_mut().expect("nothing is sent after the input was closed");
        drop(stdin.write_all(text.as_bytes()));
    }

    /// Ends the input: the process answers what it has and closes the store.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// The next answer; none if the process has ended its output.
    pub fn answer(&self) -> Option<Answer> {
        match receive(&self.answers) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("apply hangs: it neither answers nor ends"),
        }
    }

    /// Up to `count` answers; fewer if the process ends its output.
    pub fn answers(&self, count: usize) -> Vec<Answer> {
        (0..count).map_while(|_| self.answer()).collect()
    }

    /// Sends SIGKILL and returns the answers that had left the process and were not read yet.
    pub fn kill(mut self) -> Vec<Answer> {
        self.child.kill().expect("the child can be ended");
        self.child.wait().expect("the child can be waited for");
        std::iter::from_fn(|| self.answer()).collect()
    }
}

impl Drop for Session {
    /// A test that fails in the middle leaves no process behind; one that has ended already is not disturbed.
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Passes on whole lines; a last line that a kill cut short was never an acknowledgement.
fn forward_answers(mut stdout: impl BufRead, sender: &mpsc::Sender<Answer>) {
    let mut line = String::new();
    while stdout.read_line(&mut line).is_ok_and(|length| length > 0) {
        let Some(whole) = line.strip_suffix('\n') else { return };
        if sender.send(Answer::parse(whole)).is_err() {
            return;
        }
        line.clear();
    }
}
