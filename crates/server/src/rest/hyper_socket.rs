//! The socket as hyper sees it: hyper reads no end of input while a response is owed, and does not write for itself.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::exchange::{EndOfInput, Exchange};

/// A socket, with what its connection owes.
///
/// - The end of the client's input reaches hyper once the responses to all complete requests are sent. hyper would close
///   the connection before that, though the client may only have closed its sending side. A request that can be much work
///   is given up after a moment.
/// - What hyper writes without a request is dropped: it is the empty response to a malformed one, in whose place the
///   connection sends a problem document.
/// - The socket stays open when hyper is done with it, for that document.
pub(crate) struct HyperSocket<T> {
    socket: T,
    exchange: Exchange,
    input_ended: bool,
    /// Runs while a request may still get its response though its client sends no more.
    leaving: Option<Pin<Box<Sleep>>>,
}

impl<T> HyperSocket<T> {
    pub(crate) fn new(socket: T, exchange: Exchange) -> Self {
        Self { socket, exchange, input_ended: false, leaving: None }
    }

    pub(crate) fn into_socket(self) -> T {
        self.socket
    }

    fn poll_leaving(&mut self, until: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.leaving.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if timer.deadline() != until {
            timer.as_mut().reset(until);
        }
        timer.as_mut().poll(context)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for HyperSocket<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.input_ended {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.socket).poll_read(context, buffer))?;
            self.input_ended = buffer.filled().len() == before;
        }
        if self.input_ended {
            match self.exchange.end_of_input(context) {
                EndOfInput::Known => {}
                EndOfInput::KnownAt(moment) => ready!(self.poll_leaving(moment, context)),
                EndOfInput::Held => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for HyperSocket<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.exchange.is_idle() {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.exchange.is_idle() {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        Pin::new(&mut self.socket).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// hyper flushes a socket only when it has nothing left to write.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_flush(context))?;
        self.exchange.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}
