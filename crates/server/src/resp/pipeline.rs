//! Runs the commands of a batch in order.
//!
//! Writes that follow each other are committed together; any other command waits for them, so that it sees them. Checks
//! that follow each other are looked up together.

use std::time::{Duration, Instant};

use kinfolk_core::{Error, ErrorCode, Result, Store};

use super::batch::{Arguments, Batch};
use super::checks::Checks;
use super::command::{ActorIn, Command, Cost, ParseEdge, Run};
use super::commands::exec;
use super::connection::{Connection, Gone};
use super::guard::{self, Admitted, Guard, Refusal};
use super::memory::Purpose;
use super::reply::Output;
use super::reply_mode::ReplyMode;
use super::request::{Request, is};
use super::session::{Queue, Session};
use super::subcommand;
use super::transport::Socket;
use super::writes::{PermittedChange, Writes};
use crate::access::Permit;
use crate::metrics::Operation;
use crate::socket::LEAVING_MAX;

/// Other connections of the thread get a turn after this many arguments: each is a user to look up.
const TURN_ARGUMENTS: usize = 4_096;

/// What one batch works on. The input is borrowed apart from the rest.
pub(super) struct Work<'a> {
    writes: &'a mut Writes,
    checks: &'a mut Checks,
    pub out: &'a mut Output,
    guard: Guard,
    /// Set within `EXEC`: its writes are not committed in parts, and it goes on when the client is gone.
    is_transaction: bool,
    /// The client takes no more replies of the transaction.
    is_gone: bool,
    /// The number of the command that runs.
    number: usize,
    /// The number of the last command that waits for the store with others.
    last_of_run: usize,
    /// The slowest commit, or run of checks.
    slowest: Option<SlowRun>,
}

/// Commands that were sent to the store together and took long.
struct SlowRun {
    took: Duration,
    /// The number of the last.
    last: usize,
    /// How many there are.
    count: usize,
}

impl<'a> Work<'a> {
    pub(crate) fn new(
        writes: &'a mut Writes,
        checks: &'a mut Checks,
        out: &'a mut Output,
        guard: Guard,
    ) -> Self {
        Self {
            writes,
            checks,
            out,
            guard,
            is_transaction: false,
            is_gone: false,
            number: 0,
            last_of_run: 0,
            slowest: None,
        }
    }
}

impl<T: Socket, S: Store> Connection<T, S> {
    /// Runs the commands of a batch in order.
    pub(super) async fn run(
        &mut self,
        batch: &Batch,
        input: &[u8],
        work: &mut Work<'_>,
    ) -> std::result::Result<(), Gone> {
        self.session.require_current_epoch();
        for number in 0..batch.len() {
            let arguments = batch.command(number, input);
            self.turn += 1 + arguments.len();
            if self.turn >= TURN_ARGUMENTS {
                self.yield_turn().await;
            }
            if arguments.len() == 0 {
                continue;
            }
            work.number = number;
            if self.session.reply_mode == ReplyMode::On || work.is_transaction {
                self.run_admitted(arguments, work).await?;
            } else {
                // Boxed: an idle connection need not have room for it.
                Box::pin(self.run_silently(arguments, work)).await?;
            }
            if self.session.subscription.is_some() && !work.is_transaction {
                self.session.end_caching(arguments);
            }
            if std::mem::take(&mut self.session.caller_changed) {
                work.guard.reset();
            }
            if work.writes.is_full() && !work.is_transaction {
                self.commit(work).await;
            }
            if !work.checks.is_empty() && work.checks.len() >= self.session.shared.service.checks_max() {
                self.reply_to_checks(work).await;
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
        self.reply_to_checks(work).await;
        if let Some(SlowRun { took, last, count }) = work.slowest.take() {
            self.log_slow(batch.command(last, input), count - 1, took);
        }
        Ok(())
    }

    fn log_slow(&self, arguments: Arguments<'_>, others: usize, took: Duration) {
        self.session.shared.slow_log.add(&self.session.client, arguments, others, took);
    }

    /// Runs one command, if its guard lets it through.
    #[inline]
    pub(super) async fn run_admitted(
        &mut self,
        arguments: Arguments<'_>,
        work: &mut Work<'_>,
    ) -> std::result::Result<(), Gone> {
        match work.guard.admit(&self.session, arguments) {
            Err(refusal) => {
                self.refuse_command(refusal, arguments, work);
                Ok(())
            }
            Ok(admitted) => self.run_one(admitted, arguments, work).await,
        }
    }

    async fn run_one(
        &mut self,
        admitted: Admitted<S>,
        arguments: Arguments<'_>,
        work: &mut Work<'_>,
    ) -> std::result::Result<(), Gone> {
        let command = admitted.command;
        if self.session.transaction.is_some() && command.is_queued {
            self.enqueue(command, arguments, work);
            return Ok(());
        }
        self.counts.add(command.operation);
        if let Run::Write(..) = command.run {
            self.reply_to_checks(work).await;
            let change = parse_write(&mut self.session, &admitted, arguments);
            work.writes.push(command.operation, change, work.is_transaction);
            work.last_of_run = work.number;
            return Ok(());
        }
        if !work.writes.is_empty() {
            self.commit(work).await;
        }
        if self.session.subscription.is_some() {
            if !self.session.shared.tracking.is_live() {
                Box::pin(self.session.shared.tracking.live()).await;
            }
            self.session.note_read(command, arguments);
        }
        if let Run::Check(edge, _) = command.run
            && arguments.len() == 3
            && let Ok(permit) = admitted.permit()
        {
            self.check(command.operation, edge, permit, arguments, work);
            return Ok(());
        }
        self.reply_to_checks(work).await;
        let started = Instant::now();
        let result = match command.run {
            Run::Check(..) | Run::Read(_) | Run::View(_) => self.read(&admitted, arguments, work).await,
            Run::Commit(_) => Box::pin(commit_one(&mut self.session, &admitted, arguments, work.out)).await,
            Run::Server(run) => match guard::require_service(&self.session, command) {
                Ok(()) => run(&self.session, arguments, work.out).await,
                Err(error) => Err(error),
            },
            Run::Session(run) => run(&mut self.session, arguments, work.out),
            Run::Exec => match exec::take_queue(&mut self.session) {
                Ok(queue) => return Box::pin(self.execute(*queue, work)).await,
                Err(error) => Err(error),
            },
            Run::Write(..) => Ok(()),
        };
        let took = started.elapsed();
        if self.session.shared.slow_log.is_slow(took) {
            self.log_slow(arguments, 0, took);
        }
        if let Err(error) = result {
            self.fail(command.operation, &error, work.out);
        }
        Ok(())
    }

    fn enqueue(&mut self, command: &Command<S>, arguments: Arguments<'_>, work: &mut Work<'_>) {
        self.counts.add(Operation::Other);
        let steps = match command.run {
            Run::Write(ActorIn::Key, _) => arguments.len().saturating_sub(2).max(1),
            _ => 1,
        };
        // A call that can't succeed is refused now, as in Redis, and not when the others have run.
        let is_family = !command.subcommands.is_empty() && arguments.len() > 1;
        let required = match is_family {
            true => subcommand::require(command.name, command.subcommands, arguments).map(|_| ()),
            false => Ok(()),
        };
        match required.and_then(|()| self.session.enqueue(arguments, steps)) {
            Ok(()) => work.out.simple("QUEUED"),
            Err(error) => {
                self.session.abort_transaction();
                self.fail(Operation::Other, &error, work.out);
            }
        }
    }

    /// Runs a transaction: its commands are a batch of their own, paid for when they were queued.
    async fn execute(&mut self, queue: Queue, work: &mut Work<'_>) -> std::result::Result<(), Gone> {
        work.out.array(queue.batch.len());
        let guard = Guard::of_transaction();
        let mut nested = Work::new(&mut *work.writes, &mut *work.checks, &mut *work.out, guard);
        nested.is_transaction = true;
        self.session.is_executing = true;
        let ran = self.run(&queue.batch, &queue.input, &mut nested).await;
        self.session.is_executing = false;
        let (is_gone, guard) = (nested.is_gone, nested.guard);
        drop(queue);
        self.session.memory.release(Purpose::Queue);
        // It may have changed the caller.
        work.guard.resume_after(&guard);
        if is_gone { Err(Gone) } else { ran }
    }

    /// One check, the most frequent command. It waits for the checks that follow it: looking up many edges at once costs less.
    fn check(
        &mut self,
        operation: Operation,
        parse: ParseEdge<S>,
        permit: Permit,
        arguments: Arguments<'_>,
        work: &mut Work<'_>,
    ) {
        let usable = self.session.require_token();
        let Session { shared, seen: at_least, .. } = &self.session;
        let request = Request { service: &shared.service, permit, arguments, at_least, row_budget: None };
        match usable.and_then(|()| parse(&request)) {
            Ok(edge) => {
                work.checks.ask(operation, permit, edge);
                work.last_of_run = work.number;
            }
            Err(error) => self.refuse(operation, error, work),
        }
    }

    pub(super) async fn reply_to_checks(&mut self, work: &mut Work<'_>) {
        let Session { shared, seen, .. } = &self.session;
        if work.checks.is_empty() || work.checks.reply_now(&shared.service, seen, work.out) {
            return;
        }
        let (started, count) = (Instant::now(), work.checks.len());
        // Boxed: an idle connection need not have room for it, and most stores never have checks that wait.
        Box::pin(work.checks.reply(&shared.service, seen, work.out)).await;
        self.note_run(started, count, work);
    }

    pub(super) async fn commit(&mut self, work: &mut Work<'_>) {
        if !work.writes.is_empty() {
            let (started, count) = (Instant::now(), work.writes.len());
            work.writes.commit(&mut self.session, work.out).await;
            self.note_run(started, count, work);
        }
    }

    /// Remembers a run of commands that the store has taken long for, to be logged at the end of the batch.
    fn note_run(&self, started: Instant, count: usize, work: &mut Work<'_>) {
        let took = started.elapsed();
        let is_slowest = work.slowest.as_ref().is_none_or(|slowest| took > slowest.took);
        if is_slowest && self.session.shared.slow_log.is_slow(took) {
            work.slowest = Some(SlowRun { took, last: work.last_of_run, count });
        }
    }

    /// Runs a read. One that may be much work is cancelled when its client disconnects.
    async fn read(
        &mut self,
        admitted: &Admitted<S>,
        arguments: Arguments<'_>,
        work: &mut Work<'_>,
    ) -> Result<()> {
        let read = Box::pin(read(&mut self.session, admitted, arguments, work.out));
        if !admitted.command.is_abandonable || work.is_transaction {
            return read.await;
        }
        tokio::select! {
            biased;
            result = read => result,
            () = client_gave_up(&self.socket) => {
                // No client waits for the reply. Replies to the commands before it are still sent.
                self.session.closing = true;
                Ok(())
            }
        }
    }

    fn refuse_command(&mut self, refusal: Refusal, arguments: Arguments<'_>, work: &mut Work<'_>) {
        let Refusal { operation, error } = refusal;
        self.counts.add(operation);
        self.session.abort_transaction();
        // The end of a credential ends its connection. A client without one may still send one.
        let is_known = self.session.caller.is_some();
        self.session.closing |= is_known && error.code() == ErrorCode::Unauthenticated;
        // As in Redis, a refused EXEC ends its transaction.
        let is_exec = arguments.get(0).is_some_and(|name| is(name, "EXEC"));
        let is_ended = is_exec && self.session.transaction.take().is_some();
        let is_wrong = is_exec && error.code() == ErrorCode::InvalidRequest;
        let is_aborted = (is_ended || is_wrong) && !self.session.closing;
        self.refuse(operation, if is_aborted { Error::TransactionAborted } else { error }, work);
    }

    /// Replies an error in its order: behind writes that are not committed and checks that have no reply yet, or at once.
    fn refuse(&mut self, operation: Operation, error: Error, work: &mut Work<'_>) {
        if !work.writes.is_empty() {
            work.writes.push(operation, Err(error), false);
        } else if !work.checks.is_empty() {
            work.checks.refuse(operation, error);
        } else {
            self.fail(operation, &error, work.out);
        }
    }

    /// Sends what there is before there is too much of it. A transaction does not stop half-way for a client that is
    /// gone: the rest of its replies is discarded.
    async fn send_part(&mut self, work: &mut Work<'_>) -> std::result::Result<(), Gone> {
        let is_silent = work.is_transaction && self.session.reply_mode != ReplyMode::On;
        if !work.is_gone && !is_silent {
            let sent = self.send(work.out).await;
            if !work.is_transaction {
                return sent;
            }
            work.is_gone = sent.is_err();
        }
        work.out.bytes.clear();
        Ok(())
    }
}

/// Parses a write that is committed with its neighbours, and charges for it.
fn parse_write<S: Store>(
    session: &mut Session<S>,
    admitted: &Admitted<S>,
    arguments: Arguments<'_>,
) -> Result<PermittedChange> {
    let Run::Write(_, parse) = admitted.command.run else { return Err(Error::Closed) };
    let permit = admitted.permit()?;
    let actor = guard::actor(session, admitted.command, arguments)?;
    session.require_token()?;
    let service = &*session.shared.service;
    let request = Request { service, permit, arguments, at_least: &session.seen, row_budget: None };
    let change = parse(actor, &request)?;
    guard::charge(service, admitted.command, actor, change.count())?;
    Ok(PermittedChange { permit, change })
}

/// Runs a read that sees what the client has written and what its tokens cover.
async fn read<S: Store>(
    session: &mut Session<S>,
    admitted: &Admitted<S>,
    arguments: Arguments<'_>,
    out: &mut Output,
) -> Result<()> {
    let (command, permit) = (admitted.command, admitted.permit()?);
    let viewer = if let Run::View(_) = command.run { Some(guard::viewer(session, arguments)?) } else { None };
    session.require_token()?;
    let service = &*session.shared.service;
    let budget = session.caller.as_ref().map(|caller| &*caller.budget);
    let row_budget = budget.filter(|_| command.cost == Cost::Rows);
    let request = Request { service, permit, arguments, at_least: &session.seen, row_budget };
    match (&command.run, viewer) {
        (Run::View(run), Some(viewer)) => run(viewer, &request, out).await,
        (Run::Check(_, Some(run)) | Run::Read(run), _) => run(&request, out).await,
        _ => Ok(()),
    }
}

/// Runs a write that is a commit of its own, and replies the token.
async fn commit_one<S: Store>(
    session: &mut Session<S>,
    admitted: &Admitted<S>,
    arguments: Arguments<'_>,
    out: &mut Output,
) -> Result<()> {
    let Run::Commit(run) = admitted.command.run else { return Ok(()) };
    let permit = admitted.permit()?;
    let actor = guard::actor(session, admitted.command, arguments)?;
    session.require_token()?;
    let service = &*session.shared.service;
    let request = Request { service, permit, arguments, at_least: &session.seen, row_budget: None };
    let target = request.id(2)?;
    guard::charge(service, admitted.command, actor, 1)?;
    let position = run(actor, target, &request).await?;
    session.seen.advance(position);
    out.bulk(session.token());
    Ok(())
}

/// Waits until a client sends no more, and then as long as one that has only stopped sending may wait for a reply: from
/// here it looks the same as one that is gone.
async fn client_gave_up(socket: &impl Socket) {
    socket.peer_left().await;
    tokio::time::sleep(LEAVING_MAX).await;
}
