//! A real server on a folder, perhaps under a tracer, and connections that write to it.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::history::History;
use super::operation::Operation;
use super::reader::Reader;
use super::workload::{ROUND_MAX, Workload};
use crate::faults::client::{Answer, Ask, Client};
use crate::faults::program::{self, Ended, SMALL_SETTINGS};
use crate::serve::running::Running;

pub struct Server {
    running: Running,
    /// One for each operation of a round.
    clients: Vec<Client>,
}

/// How a server is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    InOrder,
    Kill,
}

impl End {
    fn signal(self) -> &'static str {
        match self {
            Self::InOrder => "TERM",
            Self::Kill => "KILL",
        }
    }
}

impl Server {
    /// Starts a command that serves; one that refuses to says why.
    pub fn start(mut command: Command) -> Result<Self, Ended> {
        command.envs(SMALL_SETTINGS);
        let running = Running::from_command(command).map_err(|run| Ended {
            status: Some(run.status).filter(|&status| status >= 0),
            output: run.stdout,
            errors: run.stderr,
        })?;
        let clients = (0..ROUND_MAX).map(|_| Client::new(&running.http)).collect();
        Ok(Self { running, clients })
    }

    /// Serves a folder, which is made if it is missing.
    pub fn on(data: &Path) -> Result<Self, Ended> {
        let mut command = Command::new(program::binary());
        command.args(program::serve_arguments(data));
        Self::start(command)
    }

    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&self.clients[0])
    }

    /// Submits some operations and takes note of what becomes of them, some times.
    pub fn write(&self, history: &mut History, workload: &mut Workload, rounds: usize) -> Result<(), String> {
        for _ in 0..rounds {
            self.round(history, workload)?;
        }
        Ok(())
    }

    pub fn round(&self, history: &mut History, workload: &mut Workload) -> Result<(), String> {
        let operations = workload.round(&history.model);
        let answers = self.send(&operations, || {});
        note(history, operations, answers)?;
        history.catch_up(&self.reader())
    }

    /// Submits some operations and kills the server some time later.
    pub fn round_and_kill(
        self,
        history: &mut History,
        workload: &mut Workload,
        delay: Duration,
    ) -> Result<(), String> {
        let operations = workload.round(&history.model);
        let answers = self.send(&operations, || {
            // The delay is the fault, not a wait for something.
            thread::sleep(delay);
            self.running.signal(End::Kill.signal());
        });
        note(history, operations, answers)?;
        self.end(End::Kill).orderly()
    }

    /// Sends each operation on a connection of its own, and does something before the answers are waited for.
    fn send(&self, operations: &[Operation], meanwhile: impl FnOnce()) -> Vec<Option<Answer>> {
        thread::scope(|scope| {
            let sending = self.clients.iter().zip(operations);
            let sending: Vec<_> = sending
                .map(|(client, operation)| scope.spawn(move || client.send(&operation.ask())))
                .collect();
            meanwhile();
            sending.into_iter().map(|sending| sending.join().expect("a client does not panic")).collect()
        })
    }

    /// Erases the texts of purged comments from all files; whether that is acknowledged.
    pub fn compact(&self) -> bool {
        let ask = Ask { method: "POST", ..Ask::get("/v1/admin/compact") };
        self.clients[0]
            .send(&ask)
            .is_some_and(|answer| answer.status == 200 && answer.body.contains("\"erased\""))
    }

    /// Ends it; how that went. A kill is not a failure.
    pub fn end(self, end: End) -> Ended {
        let (status, lines) = self.running.end(end.signal());
        let status = if end == End::Kill { 0 } else { status };
        Ended {
            status: Some(status).filter(|&status| status >= 0),
            output: String::new(),
            errors: lines.join("\n"),
        }
    }
}

fn note(
    history: &mut History,
    operations: Vec<Operation>,
    answers: Vec<Option<Answer>>,
) -> Result<(), String> {
    operations.into_iter().zip(answers).try_for_each(|(operation, answer)| history.note(operation, answer))
}
