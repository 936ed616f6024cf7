//! One connection: reads what has arrived, runs its commands in order, sends the replies with one write.
//!
//! Replies leave before more is read, so a client that does not take them stops only itself. Writes that follow each
//! other are committed together; any other command waits for them, so that it sees them. Checks that follow each other are
//! answered at once where the store can, and the rest of them together.

use std::ops::ControlFlow;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Instant;

use kinfolk_core::{EdgeKind, Error, ErrorCode, Id, Result, Store};
use tracing::Instrument;

use super::batch::{Arguments, Batch, Ending};
use super::checks::Checks;
use super::commands::{self, Request, change, check, posts};
use super::frame::FrameLimits;
use super::listener::Signals;
use super::memory::Purpose;
use super::patience::{End, Patience};
use super::reply::Output;
use super::session::{Queue, Session};
use super::table::{Command, Connection as OfConnection, Read, Single, Transaction, Verb, Write};
use super::tally::Tally;
use super::trace;
use super::transport::{self, Received, Rest, Socket, Stall, Unfinished};
use super::workspace::{READ_BYTES, Workspace};
use super::writes::Writes;
use crate::access::Scope;
use crate::inner;
use crate::metrics::{Operation, Protocol};
use crate::socket::LEAVING_MAX;

/// The most commands in one batch.
const BATCH_MAX: usize = 1_024;
/// After so many arguments without a pause, or replies of so many bytes, others on the thread have their turn. It is
/// the arguments that cost time: each is a user to look up.
const TURN_ARGUMENTS: usize = 4_096;
const TURN_BYTES: usize = 128 << 10;

/// The client is gone, or does not take its replies.
struct Gone;

/// A client and its session.
pub(super) struct Connection<T, S: Store> {
    socket: T,
    session: Session<S>,
    tally: Tally,
    /// Arguments handled since others had their turn.
    turn: usize,
    /// Bytes of commands that are not counted, unless the client does not take its replies.
    uncounted: usize,
}

/// What one batch works on. The input is borrowed apart from the rest.
struct Work<'a> {
    writes: &'a mut Writes,
    checks: &'a mut Checks,
    out: &'a mut Output,
    /// Whether the caller's budget covers the whole batch.
    paid: bool,
    /// The scope that the caller was last found to have, in this batch.
    granted: Option<Scope>,
    /// Set within `EXEC`: its writes are not committed in parts, and it goes on when the client is gone.
    is_transaction: bool,
    /// Nobody takes the replies of the transaction any more.
    is_gone: bool,
}

impl<'a> Work<'a> {
    fn new(writes: &'a mut Writes, checks: &'a mut Checks, out: &'a mut Output, paid: bool) -> Self {
        Self { writes, checks, out, paid, granted: None, is_transaction: false, is_gone: false }
    }
}

impl<T: Socket, S: Store> Connection<T, S> {
    pub fn new(socket: T, session: Session<S>) -> Self {
        Self { socket, session, tally: Tally::default(), turn: 0, uncounted: 0 }
    }

    /// Serves until the client or the service ends it; lets go of `guard` then.
    pub async fn serve(mut self, signals: Signals, _guard: impl Send) {
        let mut rest = Rest::default();
        let mut patience = Patience::default();
        patience.renew(&self.session);
        let mut woken = pin!(signals.wake.notified());
        if signals.is_stopping() {
            // The signal came before this connection could hear it.
            signals.wake.notify_waiters();
        }
        let reason = loop {
            let until = patience.until(&self.session, &rest);
            let interrupted = |context: &mut Context<'_>| match woken.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => patience.poll(until, context),
            };
            let kept = match self.receive(&mut rest, interrupted).await {
                Received::Input(mut workspace) => match self.process(&mut workspace).await {
                    Ok(ControlFlow::Continue(unfinished)) => {
                        rest.keep_from(unfinished, workspace, &mut self.session.memory)
                    }
                    Ok(ControlFlow::Break(())) => {
                        workspace.give_back();
                        break None;
                    }
                    Err(Gone) => return,
                },
                Received::Refused(over) => Err(over),
                Received::Ended => break None,
                Received::Interrupted => {
                    // In this order no signal is missed.
                    woken.set(signals.wake.notified());
                    if signals.is_stopping() {
                        break None;
                    }
                    self.session.update_credential_end();
                    match patience.end(&self.session, &rest) {
                        None => continue,
                        Some(End::Silent) => break None,
                        Some(End::WithError(error)) => break Some(error),
                    }
                }
            };
            if let Err(over) = kept {
                break Some(over.into());
            }
            patience.renew(&self.session);
        };
        drop(rest);
        self.end(reason).await;
    }

    async fn receive(
        &mut self,
        rest: &mut Rest,
        mut interrupted: impl FnMut(&mut Context<'_>) -> Poll<()>,
    ) -> Received {
        let Self { socket, session, turn, .. } = self;
        let FrameLimits { frame_bytes_max, inline_bytes_max, .. } = *session.limits();
        let input_max = frame_bytes_max.max(inline_bytes_max) + READ_BYTES;
        let interrupted = |context: &mut Context<'_>| {
            *turn = 0;
            interrupted(context)
        };
        transport::receive(socket, rest, &mut session.memory, input_max, interrupted).await
    }

    /// Gives back what the connection holds and ends it, after an error if there is one.
    async fn end(&mut self, reason: Option<Error>) {
        self.session.release();
        self.uncounted = 0;
        if let Some(error) = reason {
            let mut out = Output { bytes: Vec::new(), version: self.session.version };
            self.fail(Operation::Other, &error, &mut out);
            if self.send(&mut out).await.is_err() {
                return;
            }
        }
        transport::finish(&mut self.socket).await;
    }

    /// Runs all whole commands of the input and takes them out of it. Continues with what is left.
    async fn process(
        &mut self,
        workspace: &mut Workspace,
    ) -> std::result::Result<ControlFlow<(), Unfinished>, Gone> {
        let Workspace { input, batch, writes, checks, output: out } = workspace;
        let mut at = 0;
        loop {
            // Who the caller is decides how much it may send, so until that is known commands are taken one by one.
            let max = if self.session.caller.is_some() { BATCH_MAX } else { 1 };
            let (end, ending) = batch.fill(input, at, max, self.session.limits());
            at = end;
            out.version = self.session.version;
            let busy = Workspace::busy_bytes(input, batch);
            self.uncounted = busy.uncounted;
            if let Err(over) = self.session.memory.set(Purpose::Input, busy.counted) {
                self.fail(Operation::Other, &over.into(), out);
                self.session.closing = true;
            } else if batch.len() > 0 {
                let started = Instant::now();
                let budget = self.session.caller.as_ref().map(|caller| &caller.budget);
                let paid = budget.is_none_or(|budget| budget.take(batch.len() as u32).is_ok());
                let mut work = Work::new(writes, checks, out, paid);
                let ran = if self.session.shared.sampling.chooses() {
                    Box::pin(self.run_traced(batch, input, &mut work)).await
                } else {
                    self.run(batch, input, &mut work).await
                };
                self.tally.observe(&self.session.shared.service.metrics, started.elapsed());
                ran?;
            }
            if let (Ending::Malformed(malformed), false) = (ending, self.session.closing) {
                let error = Error::from(malformed);
                self.fail(Operation::Other, &error, out);
                self.session.closing = true;
            }
            self.send(out).await?;
            if self.session.closing {
                return Ok(ControlFlow::Break(()));
            }
            if let Ending::Incomplete { needed } = ending {
                input.drain(..at);
                return Ok(ControlFlow::Continue(Unfinished { needed: needed - at, is_another: at > 0 }));
            }
        }
    }

    /// As [`Connection::run`], within a span.
    async fn run_traced(
        &mut self,
        batch: &Batch,
        input: &[u8],
        work: &mut Work<'_>,
    ) -> std::result::Result<(), Gone> {
        let span = trace::span(batch, input, work.out.version);
        let replied = work.out.bytes.len();
        let ran = self.run(batch, input, work).instrument(span.clone()).await;
        trace::finish(&span, batch, work.out.bytes.get(replied..).unwrap_or_default());
        ran
    }

    /// Runs the commands of a batch in order.
    async fn run(
        &mut self,
        batch: &Batch,
        input: &[u8],
        work: &mut Work<'_>,
    ) -> std::result::Result<(), Gone> {
        for number in 0..batch.len() {
            let arguments = batch.command(number, input);
            self.turn += 1 + arguments.len();
            if self.turn >= TURN_ARGUMENTS {
                self.yield_turn().await;
            }
            let Some(name) = arguments.get(0) else { continue };
            match self.admit(name, arguments, work) {
                Err((operation, error)) => {
                    self.tally.add(operation);
                    self.session.abort_transaction();
                    // The end of a credential is the end of its connection. A client without one may still send one.
                    let is_known = self.session.caller.is_some();
                    self.session.closing |= is_known && error.code() == ErrorCode::Unauthenticated;
                    self.refuse(operation, error, work);
                }
                Ok(command) => self.run_one(command, arguments, work).await?,
            }
            if std::mem::take(&mut self.session.caller_changed) {
                // What was found and paid for held for the former caller.
                (work.granted, work.paid) = (None, false);
            }
            if work.writes.is_full() && !work.is_transaction {
                self.commit(work).await;
            }
            if !work.checks.is_empty() && work.checks.len() >= self.session.shared.service.checks_max() {
                self.answer_checks(work).await;
            }
            if work.out.bytes.len() >= self.session.shared.settings.output_bytes_max {
                self.send_part(work).await?;
            }
            // All commands of a transaction have a reply, as was announced.
            if self.session.closing && !work.is_transaction {
                break;
            }
        }
        self.commit(work).await;
        self.answer_checks(work).await;
        Ok(())
    }

    /// Refuses what is no command, is called wrongly, or is not allowed.
    fn admit(
        &self,
        name: &[u8],
        arguments: Arguments<'_>,
        work: &mut Work<'_>,
    ) -> std::result::Result<&'static Command, (Operation, Error)> {
        let found = Command::find(name);
        let operation = found.map_or(Operation::Other, |command| command.operation);
        let mut admitted = || {
            let caller = match (&self.session.caller, found) {
                (Some(caller), _) => Some(caller),
                (None, Some(command)) if command.is_open() => None,
                (None, _) => return Err(Error::Unauthenticated { detail: "authentication required" }),
            };
            let command = found.ok_or_else(|| unknown(name))?;
            if !command.takes(arguments.len()) {
                let detail = format!("wrong number of arguments for '{}'", command.name);
                return Err(Error::InvalidRequest { detail });
            }
            // A caller whose credential has ended may show another.
            if let Some(caller) = caller.filter(|_| !command.is_open()) {
                match command.scope {
                    None => caller.check()?,
                    Some(scope) if work.granted == Some(scope) => {}
                    Some(scope) => {
                        caller.require(scope)?;
                        work.granted = Some(scope);
                    }
                }
                if !work.paid {
                    caller.budget.take(1)?;
                }
            }
            if let Some(capability) = command.capability {
                self.session.shared.service.require(capability)?;
            }
            Ok(command)
        };
        admitted().map_err(|error| (operation, error))
    }

    async fn run_one(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_>,
        work: &mut Work<'_>,
    ) -> std::result::Result<(), Gone> {
        if self.session.transaction.is_some() && is_queued(command.verb) {
            self.enqueue(command, arguments, work);
            return Ok(());
        }
        self.tally.add(command.operation);
        if let Verb::Write(verb) = command.verb {
            self.answer_checks(work).await;
            let change = speaks_for(&self.session, command, arguments)
                .and_then(|actor| change::parse(verb, actor, &self.session.shared.service, arguments));
            work.writes.push(command.operation, change, work.is_transaction);
            return Ok(());
        }
        if !work.writes.is_empty() {
            self.commit(work).await;
        }
        if let Verb::Read(verb) = command.verb
            && verb.is_one_check(arguments.len())
            && self.session.refused_token.is_none()
        {
            self.check(command, verb, arguments, work);
            return Ok(());
        }
        self.answer_checks(work).await;
        let result = match command.verb {
            Verb::Read(verb) if verb.may_walk_far() && !work.is_transaction => {
                let walk = Box::pin(read(&mut self.session, command, verb, arguments, work.out));
                tokio::select! {
                    biased;
                    result = walk => result,
                    () = client_gave_up(&self.socket) => {
                        // Nobody waits for the answer, so the walk has ended here. What was answered before it goes out.
                        self.session.closing = true;
                        Ok(())
                    }
                }
            }
            Verb::Read(verb) => Box::pin(read(&mut self.session, command, verb, arguments, work.out)).await,
            Verb::Single(verb) => {
                Box::pin(write(&mut self.session, command, verb, arguments, work.out)).await
            }
            Verb::Info => Box::pin(commands::server::info(&self.session, work.out)).await,
            Verb::Connection(verb) => commands::connection::run(verb, &mut self.session, arguments, work.out),
            Verb::Transaction(Transaction::Exec) => match self.take_transaction() {
                Ok(queue) => return Box::pin(self.execute(*queue, work)).await,
                Err(error) => Err(error),
            },
            Verb::Transaction(verb) => self.change_transaction(verb, work.out),
            // What is missing is refused to those who will not be allowed to have it, too.
            Verb::Missing(what) => {
                speaks_for(&self.session, command, arguments).and(Err(Error::NotAvailable { what }))
            }
            Verb::Write(_) => Ok(()),
        };
        if let Err(error) = result {
            self.fail(command.operation, &error, work.out);
        }
        Ok(())
    }

    fn enqueue(&mut self, command: &Command, arguments: Arguments<'_>, work: &mut Work<'_>) {
        self.tally.add(Operation::Other);
        let steps = match command.verb {
            Verb::Write(Write::Post) => 1,
            Verb::Write(_) => arguments.len().saturating_sub(2).max(1),
            _ => 1,
        };
        match self.session.enqueue(arguments, steps) {
            Ok(()) => work.out.simple("QUEUED"),
            Err(error) => {
                self.session.abort_transaction();
                self.fail(Operation::Other, &error, work.out);
            }
        }
    }

    fn take_transaction(&mut self) -> Result<Box<Queue>> {
        let queue = self.session.transaction.take().ok_or_else(|| without_multi("EXEC"))?;
        if queue.aborted { Err(Error::TransactionAborted) } else { Ok(queue) }
    }

    /// `MULTI` and `DISCARD`.
    fn change_transaction(&mut self, verb: Transaction, out: &mut Output) -> Result<()> {
        if verb == Transaction::Multi {
            if self.session.transaction.is_some() {
                return Err(Error::InvalidRequest { detail: "MULTI calls can not be nested".to_owned() });
            }
            self.session.open_transaction();
        } else {
            self.session.transaction.take().ok_or_else(|| without_multi("DISCARD"))?;
            self.session.memory.release(Purpose::Queue);
        }
        out.ok();
        Ok(())
    }

    /// Runs a transaction: its commands are a batch of their own, paid for when they were queued.
    async fn execute(&mut self, queue: Queue, work: &mut Work<'_>) -> std::result::Result<(), Gone> {
        work.out.array(queue.batch.len());
        let mut inner = Work::new(&mut *work.writes, &mut *work.checks, &mut *work.out, true);
        inner.is_transaction = true;
        let ran = self.run(&queue.batch, &queue.input, &mut inner).await;
        let is_gone = inner.is_gone;
        drop(queue);
        self.session.memory.release(Purpose::Queue);
        // It may have changed the caller.
        (work.granted, work.paid) = (None, work.paid && inner.paid);
        if is_gone { Err(Gone) } else { ran }
    }

    /// One check, the most frequent command: answered without an allocation if the store can say so at once. Otherwise it waits
    /// for those that follow it.
    fn check(&mut self, command: &Command, verb: Read, arguments: Arguments<'_>, work: &mut Work<'_>) {
        let Session { shared, seen: at_least, .. } = &self.session;
        let service = &*shared.service;
        let request = Request { service, arguments, at_least, budget: None };
        let asked = check::edge(verb, &request)
            .and_then(|edge| Ok((edge, service.graph.check_now(EdgeKind::Follow, edge, at_least)?)));
        match asked {
            Ok((_, Some(exists))) if work.checks.is_empty() => work.out.flag(exists),
            Ok((_, Some(exists))) => work.checks.add_known(command.operation, exists),
            Ok((edge, None)) => work.checks.ask(command.operation, edge),
            Err(error) => self.refuse(command.operation, error, work),
        }
    }

    async fn answer_checks(&mut self, work: &mut Work<'_>) {
        if !work.checks.is_empty() {
            let Session { shared, seen, .. } = &self.session;
            // Boxed: an idle connection need not have room for it, and most stores never have checks that wait.
            Box::pin(work.checks.answer(&shared.service, seen, work.out)).await;
        }
    }

    async fn commit(&mut self, work: &mut Work<'_>) {
        if !work.writes.is_empty() {
            work.writes.commit(&mut self.session, work.out).await;
        }
    }

    /// Answers an error in its turn: behind writes that are not committed and checks that are not answered yet, or at once.
    fn refuse(&mut self, operation: Operation, error: Error, work: &mut Work<'_>) {
        if !work.writes.is_empty() {
            work.writes.push(operation, Err(error), false);
        } else if !work.checks.is_empty() {
            work.checks.refuse(operation, error);
        } else {
            self.fail(operation, &error, work.out);
        }
    }

    fn fail(&self, operation: Operation, error: &Error, out: &mut Output) {
        inner::log(error, &format_args!("connection {}", self.session.id));
        self.session.shared.service.metrics.failed(Protocol::Resp, operation, error.code());
        out.error(error);
    }

    /// Sends what there is before there is too much of it. A transaction does not stop half-way for a client that is
    /// gone: the rest of its replies is thrown away.
    async fn send_part(&mut self, work: &mut Work<'_>) -> std::result::Result<(), Gone> {
        if !work.is_gone {
            let sent = self.send(work.out).await;
            if !work.is_transaction {
                return sent;
            }
            work.is_gone = sent.is_err();
        }
        work.out.bytes.clear();
        Ok(())
    }

    async fn send(&mut self, out: &mut Output) -> std::result::Result<(), Gone> {
        if out.bytes.is_empty() {
            return Ok(());
        }
        let large = out.bytes.len() >= TURN_BYTES;
        let stalled_max = self.session.shared.settings.stalled_max;
        let stall = Stall { max: stalled_max, input_bytes: self.uncounted };
        let memory = &mut self.session.memory;
        let sent = transport::send(&mut self.socket, &mut out.bytes, stall, memory).await;
        self.session.memory.release(Purpose::Output);
        sent.map_err(|error| {
            tracing::debug!(connection = self.session.id, %error, "replies could not be sent");
            Gone
        })?;
        if large {
            self.yield_turn().await;
        }
        Ok(())
    }

    async fn yield_turn(&mut self) {
        self.turn = 0;
        tokio::task::yield_now().await;
    }
}

/// Runs a read that sees what the client has written and what it has asked to see.
async fn read<S: Store>(
    session: &mut Session<S>,
    command: &Command,
    verb: Read,
    arguments: Arguments<'_>,
    out: &mut Output,
) -> Result<()> {
    speaks_for(session, command, arguments)?;
    if let Some(refused) = session.refused_token.take() {
        return Err(*refused);
    }
    let service = &*session.shared.service;
    let budget = session.caller.as_ref().map(|caller| &*caller.budget);
    commands::read(verb, Request { service, arguments, at_least: &session.seen, budget }, out).await
}

/// Runs a write that is a commit of its own.
async fn write<S: Store>(
    session: &mut Session<S>,
    command: &Command,
    verb: Single,
    arguments: Arguments<'_>,
    out: &mut Output,
) -> Result<()> {
    let actor = speaks_for(session, command, arguments)?;
    let service = &session.shared.service;
    let position = match verb {
        Single::Dismiss => change::dismiss(actor, service, arguments).await?,
        Single::DeletePost => posts::delete(actor, service, arguments, &session.seen).await?,
    };
    session.seen.advance(position);
    out.bulk(session.token());
    Ok(())
}

/// For whom the caller speaks with a command, if it may.
fn speaks_for<S: Store>(
    session: &Session<S>,
    command: &Command,
    arguments: Arguments<'_>,
) -> Result<Option<Id>> {
    let Some(caller) = &session.caller else {
        return Err(Error::Unauthenticated { detail: "authentication required" });
    };
    change::authorize(command.who, caller, session.shared.service.id_kind(), arguments)
}

/// Whether a transaction queues it, instead of running it.
fn is_queued(verb: Verb) -> bool {
    !matches!(
        verb,
        Verb::Transaction(_)
            | Verb::Connection(OfConnection::Quit | OfConnection::Reset)
            | Verb::Missing("WATCH")
    )
}

fn without_multi(name: &str) -> Error {
    Error::InvalidRequest { detail: format!("{name} without MULTI") }
}

/// Names the command, but none of its arguments: there may be secrets in them.
fn unknown(name: &[u8]) -> Error {
    const SHOWN_MAX: usize = 32;
    let shown = String::from_utf8_lossy(name.get(..SHOWN_MAX).unwrap_or(name)).escape_debug().to_string();
    Error::InvalidRequest { detail: format!("unknown command '{shown}'; COMMAND DOCS tells which there are") }
}

/// Waits until a client sends no more, and then as long as one that has only stopped sending may wait for an answer: from
/// here it looks the same as one that is gone.
async fn client_gave_up(socket: &impl Socket) {
    socket.peer_left().await;
    tokio::time::sleep(LEAVING_MAX).await;
}
