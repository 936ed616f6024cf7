//! `apply`: follows and unfollows from lines on standard input, each acknowledged on standard output once it is durable.
//!
//! Lines are read ahead, so that many share one sync of the disk. They take effect and are acknowledged in order.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{BufRead, Read};
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use kinfolk_api::WriteOutcome;
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand, EdgeStore, Graph, Receipt};
use kinfolk_core::{Error, Frontier, IdKind};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::prelude::*;
use crate::client::LocalGraph;

/// The maximum number of lines in flight.
const OUTSTANDING_MAX: usize = 1_024;

/// Far longer than any command.
const LINE_LEN_MAX: usize = 4_096;

/// Follow and unfollow by lines on standard input
#[derive(Debug, Args)]
#[command(after_help = "Example: printf 'follow 1 2\\nunfollow 1 2\\n' | kinfolk apply\n\n\
    Each line 'follow A B' or 'unfollow A B' is acknowledged in order, once it is durable:\n  \
    ok changed TOKEN\n  \
    ok unchanged TOKEN\n  \
    error CODE message\n\n\
    With --json, each acknowledgement is a JSON document on its own line:\n  \
    {\"changed\":true,\"token\":\"TOKEN\"}\n  \
    {\"error\":{\"code\":\"CODE\",\"message\":\"message\"}}\n\n\
    The exit status is 1 if any line failed. The graph is created if there is none.\n\
    SIGTERM and SIGINT act like the end of the input.")]
pub(crate) struct Apply {}

impl Apply {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let mut graph = LocalGraph::open_or_create(context.folder_only()?)?;
        context.token.as_deref().map_or(Ok(()), |token| graph.see(token))?;
        let (sender, receiver) = mpsc::channel(OUTSTANDING_MAX);
        // The thread may wait for input forever; it ends with the process.
        std::thread::spawn(move || read_lines(io::stdin().lock(), &sender));
        let pump = async {
            let signals = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
            let seen = graph.seen.clone();
            let printer = Acknowledgements { out: context.stdout(), json: context.json };
            Pump::new(&graph.graph, receiver, signals, printer, seen).run().await
        };
        // Without a cooperative budget: a write that yields before it reaches the store's queue would lose its turn.
        let outcome = graph.run(tokio::task::unconstrained(pump));
        graph.close()?;
        Ok(outcome?)
    }
}

/// A line, or why it was rejected.
type Line = Result<Vec<u8>, Error>;

fn read_lines(mut input: impl BufRead, sender: &Sender<Line>) {
    loop {
        let (line, is_last) = match read_line(&mut input) {
            Ok(None) => return,
            Ok(Some(line)) => (line, false),
            Err(error) => {
                (Err(Error::InvalidInput { detail: format!("standard input failed: {error}") }), true)
            }
        };
        if sender.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

/// The next line without its end, `None` at the end of the input.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let length = input.by_ref().take(LINE_LEN_MAX as u64 + 1).read_until(b'\n', &mut line)?;
    if length == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if length > LINE_LEN_MAX {
        input.skip_until(b'\n')?;
        let detail = format!("the line is longer than {LINE_LEN_MAX} bytes");
        return Ok(Some(Err(Error::InvalidInput { detail })));
    }
    Ok(Some(Ok(line)))
}

/// Parses a line.
fn parse_command(line: &[u8], ids: IdKind) -> Result<EdgeCommand, Error> {
    let mut parts = line.split(u8::is_ascii_whitespace).filter(|part| !part.is_empty());
    let (verb, follower, followee) = (parts.next(), parts.next(), parts.next());
    let action = match verb {
        Some(b"follow") => Some(EdgeAction::Follow),
        Some(b"unfollow") => Some(EdgeAction::Unfollow),
        _ => None,
    };
    match (action, follower, followee, parts.next()) {
        (Some(action), Some(follower), Some(followee), None) => {
            let edge = Edge { follower: ids.parse_bytes(follower)?, followee: ids.parse_bytes(followee)? };
            Ok(EdgeCommand { action, edge })
        }
        _ => Err(Error::InvalidInput { detail: "expected 'follow A B' or 'unfollow A B'".to_owned() }),
    }
}

/// A write in flight.
type Pending<'a> = Pin<Box<dyn Future<Output = Result<Receipt, Error>> + 'a>>;

/// Moves lines into the store and acknowledgements out of it.
struct Pump<'a, S, W> {
    graph: &'a Graph<S>,
    lines: Receiver<Line>,
    signals: [Signal; 2],
    input_ended: bool,
    pending: VecDeque<Pending<'a>>,
    out: Acknowledgements<W>,
    outcome: Outcome,
    /// What the caller has seen: its token, and what was acknowledged to it.
    seen: Frontier,
}

impl<'a, S: EdgeStore, W: Write> Pump<'a, S, W> {
    fn new(
        graph: &'a Graph<S>,
        lines: Receiver<Line>,
        signals: [Signal; 2],
        out: Acknowledgements<W>,
        seen: Frontier,
    ) -> Self {
        let pending = VecDeque::with_capacity(OUTSTANDING_MAX);
        Self { graph, lines, signals, input_ended: false, pending, out, outcome: Outcome::Done, seen }
    }

    async fn run(mut self) -> io::Result<Outcome> {
        poll_fn(|task| self.poll(task)).await?;
        Ok(self.outcome)
    }

    /// Takes lines and acknowledges writes until neither is possible. Ready when the input has ended and every write is
    /// acknowledged.
    fn poll(&mut self, task: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        loop {
            self.take_lines(task);
            match self.pending.front_mut().map(|write| write.as_mut().poll(task)) {
                Some(Poll::Ready(result)) => {
                    self.pending.pop_front();
                    self.acknowledge(result)?;
                }
                Some(Poll::Pending) => {
                    self.out.out.flush()?;
                    return Poll::Pending;
                }
                None => {
                    self.out.out.flush()?;
                    return if self.input_ended { Poll::Ready(Ok(())) } else { Poll::Pending };
                }
            }
        }
    }

    /// Hands lines to the store while there are any and the number in flight allows it.
    fn take_lines(&mut self, task: &mut TaskContext<'_>) {
        if self.signals.iter_mut().any(|signal| signal.poll_recv(task).is_ready()) {
            self.input_ended = true;
        }
        while !self.input_ended && self.pending.len() < OUTSTANDING_MAX {
            let Poll::Ready(line) = self.lines.poll_recv(task) else { return };
            let Some(line) = line else {
                self.input_ended = true;
                return;
            };
            let mut write = self.begin(line);
            // The first poll puts the write into the store's queue, so that lines take effect in order. Its
            // acknowledgement waits its turn.
            let polled = write.as_mut().poll(task);
            self.pending.push_back(match polled {
                Poll::Ready(result) => Box::pin(std::future::ready(result)),
                Poll::Pending => write,
            });
        }
    }

    fn begin(&self, line: Line) -> Pending<'a> {
        let graph = self.graph;
        let command = line.and_then(|line| parse_command(&line, graph.context.id_kind()));
        match command {
            Ok(EdgeCommand { action, edge }) => Box::pin(async move {
                let Edge { follower, followee } = edge;
                match action {
                    EdgeAction::Follow => graph.follow(KIND, follower, followee).await,
                    EdgeAction::Unfollow => graph.unfollow(KIND, follower, followee).await,
                }
            }),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn acknowledge(&mut self, result: Result<Receipt, Error>) -> io::Result<()> {
        match result {
            Ok(Receipt { position, changed }) => {
                self.seen.advance(position);
                let token = self.graph.context.token(self.seen.clone());
                self.out.write(&Acknowledgement::Written(WriteOutcome {
                    changed: changed.contains(&true),
                    token,
                }))
            }
            Err(error) => {
                self.outcome = Outcome::No;
                let message = error.to_string().replace(['\n', '\r'], " ");
                self.out.write(&Acknowledgement::Refused {
                    error: LineError { code: error.code().name(), message },
                })
            }
        }
    }
}

/// The response to one line.
#[derive(Serialize)]
#[serde(untagged)]
enum Acknowledgement {
    Written(WriteOutcome),
    Refused { error: LineError },
}

#[derive(Serialize)]
struct LineError {
    code: &'static str,
    message: String,
}

/// Prints acknowledgements, a line each.
struct Acknowledgements<W> {
    out: W,
    json: bool,
}

impl<W: Write> Acknowledgements<W> {
    fn write(&mut self, acknowledgement: &Acknowledgement) -> io::Result<()> {
        let out = &mut self.out;
        if self.json {
            serde_json::to_writer(&mut *out, acknowledgement)?;
            return writeln!(out);
        }
        match acknowledgement {
            Acknowledgement::Written(WriteOutcome { changed: true, token }) => {
                writeln!(out, "ok changed {token}")
            }
            Acknowledgement::Written(WriteOutcome { token, .. }) => writeln!(out, "ok unchanged {token}"),
            Acknowledgement::Refused { error: LineError { code, message } } => {
                writeln!(out, "error {code} {message}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::ErrorCode;
    use kinfolk_core::Id;

    use super::*;

    #[test]
    fn commands_parse() {
        let edge = Edge { follower: Id::Integer(1), followee: Id::Integer(2) };
        for line in ["follow 1 2", "  follow\t1   2\r", "follow 01 2"] {
            let command = parse_command(line.as_bytes(), IdKind::Integer).unwrap();
            assert_eq!(command, EdgeCommand { action: EdgeAction::Follow, edge }, "{line:?}");
        }
        let command = parse_command(b"unfollow 1 2", IdKind::Integer).unwrap();
        assert_eq!(command.action, EdgeAction::Unfollow);
    }

    #[test]
    fn malformed_commands_say_why() {
        for (line, code) in [
            ("", ErrorCode::InvalidInput),
            ("follow", ErrorCode::InvalidInput),
            ("follow 1", ErrorCode::InvalidInput),
            ("follow 1 2 3", ErrorCode::InvalidInput),
            ("like 1 2", ErrorCode::InvalidInput),
            ("FOLLOW 1 2", ErrorCode::InvalidInput),
            ("follow 1 x", ErrorCode::InvalidId),
            ("follow 1 \0", ErrorCode::InvalidId),
            ("follow -1 2", ErrorCode::InvalidId),
        ] {
            let error = parse_command(line.as_bytes(), IdKind::Integer).unwrap_err();
            assert_eq!(error.code(), code, "{line:?}");
        }
    }

    #[test]
    fn lines_are_bounded_and_the_last_needs_no_end() {
        let long = "x".repeat(LINE_LEN_MAX + 1);
        let fits = "y".repeat(LINE_LEN_MAX);
        let mut input = io::Cursor::new(format!("a\n\n{long}\n{fits}\n{long}{long}\nlast"));
        let mut lines = Vec::new();
        while let Some(line) = read_line(&mut input).unwrap() {
            lines.push(line.map(|line| line.len()).ok());
        }
        assert_eq!(lines, [Some(1), Some(0), None, Some(LINE_LEN_MAX), None, Some(4)]);
    }
}
