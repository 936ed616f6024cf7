//! One connection: reads what has arrived, hands it to the [pipeline](super::pipeline), sends the replies with one write.
//!
//! Replies leave before more is read, so a client that does not take them stops only itself.

use std::ops::ControlFlow;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Instant;

use kinfolk_core::{Error, Store};
use tracing::Instrument;

use super::batch::{Batch, Ending, Filled};
use super::clients::Activity;
use super::command::Command;
use super::command_counts::CommandCounts;
use super::frame::FrameLimits;
use super::guard::Guard;
use super::memory::Purpose;
use super::pipeline::Work;
use super::reply::Output;
use super::reply_mode::ReplyMode;
use super::session::Session;
use super::timeouts::{End, Timeouts};
use super::trace;
use super::transport::{self, Leftover, Received, Socket, Unfinished, WriteTimeout};
use super::worker::{Arrival, Moved, Stay};
use super::workspace::{READ_BYTES, Workspace};
use crate::internal_error;
use crate::metrics::{Operation, Protocol};

/// How many commands one batch has at most.
const BATCH_MAX: usize = 1_024;
/// Other connections of the thread get a turn after replies of this many bytes.
const TURN_BYTES: usize = 128 << 10;

/// The client is gone, or does not take its replies.
pub(super) struct Gone;

/// A client and its session.
pub(super) struct Connection<T, S: Store> {
    pub socket: T,
    pub session: Session<S>,
    pub counts: CommandCounts,
    /// How many arguments were handled since other connections had a turn.
    pub turn: usize,
    /// Bytes of commands that count as memory only while the client does not take its replies.
    uncounted: usize,
    /// The period of its thread in which it was counted last.
    period: u32,
}

impl<T: Socket, S: Store> Connection<T, S> {
    pub(crate) fn new(socket: T, session: Session<S>) -> Self {
        Self { socket, session, counts: CommandCounts::default(), turn: 0, uncounted: 0, period: 0 }
    }

    /// Serves until the client or the service ends it, or until it goes on in another thread.
    pub(crate) async fn serve(mut self, stay: Stay<S>) {
        let Stay { signals, placement, counted, alive: _alive } = stay;
        let mut rest = Leftover::default();
        let mut timeouts = Timeouts::default();
        timeouts.renew(&self.session);
        let mut woken = pin!(signals.wake.notified());
        self.session.update_credential_end();
        if signals.is_stopping() || self.session.client.is_killed() || self.session.is_refused() {
            // The signal came before this connection could hear it, as while it moved.
            signals.wake.notify_waiters();
        }
        let reason = loop {
            let until = timeouts.until(&self.session, &rest);
            let invalidated = self.session.subscription.as_ref().map(|subscription| subscription.signal());
            let interrupted = |context: &mut Context<'_>| {
                let is_invalidated =
                    invalidated.as_ref().is_some_and(|signal| signal.poll(context).is_ready());
                if is_invalidated || woken.as_mut().poll(context).is_ready() {
                    return Poll::Ready(());
                }
                timeouts.poll(until, context)
            };
            let kept = match self.receive(&mut rest, interrupted).await {
                Received::Input(mut workspace) => {
                    placement.count(&mut self.period);
                    match self.process(&mut workspace).await {
                        Ok(ControlFlow::Continue(unfinished)) => {
                            rest.keep_from(unfinished, workspace, &mut self.session.memory)
                        }
                        Ok(ControlFlow::Break(())) => {
                            workspace.give_back();
                            break None;
                        }
                        Err(Gone) => return,
                    }
                }
                Received::Refused(over) => Err(over),
                Received::Ended => break None,
                Received::Interrupted => {
                    if self.send_invalidations().await.is_err() {
                        return;
                    }
                    // In this order no signal is missed.
                    woken.set(signals.wake.notified());
                    if signals.is_stopping() || self.session.client.is_killed() {
                        break None;
                    }
                    self.session.update_credential_end();
                    match timeouts.end(&self.session, &rest) {
                        None => continue,
                        Some(End::Silent) => break None,
                        Some(End::WithError(error)) => break Some(error),
                    }
                }
            };
            if let Err(over) = kept {
                break Some(over.into());
            }
            if self.may_leave(&rest)
                && let Some(way) = placement.way_out()
            {
                if let Some(stream) = self.socket.leave() {
                    let moved = Moved { stream, session: self.session, counted };
                    way.send(Arrival::Moved(Box::new(moved)));
                }
                return;
            }
            timeouts.renew(&self.session);
        };
        drop(rest);
        self.end(reason).await;
    }

    /// Whether it may go on in another thread. One that has not authenticated has one deadline, which does not move.
    fn may_leave(&self, rest: &Leftover) -> bool {
        T::MAY_LEAVE && self.session.caller.is_some() && rest.is_empty()
    }

    async fn receive(
        &mut self,
        rest: &mut Leftover,
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
    async fn process(&mut self, workspace: &mut Workspace) -> Result<ControlFlow<(), Unfinished>, Gone> {
        let Workspace { input, batch, writes, checks, output: out } = workspace;
        let mut at = 0;
        loop {
            // Who the caller is decides how much it may send, so until that is known commands are taken one by one.
            let max = if self.session.caller.is_some() { BATCH_MAX } else { 1 };
            let Filled { end, ending } = batch.fill(input, at, max, self.session.limits());
            at = end;
            out.version = self.session.version;
            let busy = Workspace::busy_bytes(input, batch);
            self.uncounted = busy.uncounted;
            if let Err(over) = self.session.memory.set(Purpose::Input, busy.counted) {
                self.fail(Operation::Other, &over.into(), out);
                self.session.closing = true;
            } else if batch.len() > 0 {
                let started = Instant::now();
                let guard = Guard::of_batch(&self.session, batch.len());
                let mut work = Work::new(writes, checks, out, guard);
                let ran = if self.session.shared.sampling.chooses() {
                    Box::pin(self.run_traced(batch, input, &mut work)).await
                } else {
                    self.run(batch, input, &mut work).await
                };
                self.counts.observe(&self.session.shared.service.metrics, started.elapsed());
                ran?;
                self.note_activity(batch, input, started);
            }
            if let (Ending::Malformed(malformed), false) = (ending, self.session.closing) {
                let error = Error::from(malformed);
                let replied = out.bytes.len();
                self.fail(Operation::Other, &error, out);
                if self.session.reply_mode != ReplyMode::On {
                    out.bytes.truncate(replied);
                }
                self.session.closing = true;
            }
            // Behind the replies: what a client has to drop, it has received before.
            self.session.write_invalidations(out);
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

    /// Shows others what this connection does, and ends it if one of them wants that.
    fn note_activity(&mut self, batch: &Batch, input: &[u8], at: Instant) {
        let Session { client, transaction, version, .. } = &self.session;
        let command = batch.command(batch.len() - 1, input).get(0).and_then(Command::<S>::number);
        let queued = transaction.as_ref().map(|queue| queue.batch.len());
        client.note(Activity { at, command, queued, version: *version });
        self.session.closing |= client.is_killed();
    }

    /// As [`Connection::run`], within a span.
    async fn run_traced(&mut self, batch: &Batch, input: &[u8], work: &mut Work<'_>) -> Result<(), Gone> {
        let span = trace::span::<S>(batch, input, work.out.version);
        let replied = work.out.bytes.len();
        let ran = self.run(batch, input, work).instrument(span.clone()).await;
        trace::finish(&span, batch, work.out.bytes.get(replied..).unwrap_or_default());
        ran
    }

    pub(super) fn fail(&self, operation: Operation, error: &Error, out: &mut Output) {
        internal_error::log(error, &format_args!("connection {}", self.session.id));
        self.session.shared.service.metrics.failed(Protocol::Resp, operation, error.code());
        out.error(error);
    }

    pub(super) async fn send(&mut self, out: &mut Output) -> Result<(), Gone> {
        if out.bytes.is_empty() {
            return Ok(());
        }
        let large = out.bytes.len() >= TURN_BYTES;
        let max = self.session.shared.settings.write_timeout;
        let timeout = WriteTimeout { max, input_bytes: self.uncounted };
        let memory = &mut self.session.memory;
        let sent = transport::send(&mut self.socket, &mut out.bytes, timeout, memory).await;
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

    /// Sends what the client has to drop from its cache, while it waits for nothing else.
    async fn send_invalidations(&mut self) -> Result<(), Gone> {
        let mut out = Output { bytes: Vec::new(), version: self.session.version };
        self.session.write_invalidations(&mut out);
        self.send(&mut out).await
    }

    pub(super) async fn yield_turn(&mut self) {
        self.turn = 0;
        tokio::task::yield_now().await;
    }
}
