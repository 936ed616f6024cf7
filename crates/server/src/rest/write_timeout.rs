//! A socket whose writes time out: a client that does not read is disconnected.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A socket, with a limit on how long a write may make no progress.
pub(crate) struct WriteTimeout<T> {
    socket: T,
    timeout: Duration,
    /// Runs while a write waits. Kept for the next time, as making one costs more than resetting it.
    timer: Option<Pin<Box<Sleep>>>,
    waits: bool,
}

impl<T: AsyncWrite + Unpin> WriteTimeout<T> {
    /// Disconnects a client that reads nothing for so long.
    pub(crate) fn new(socket: T, timeout: Duration) -> Self {
        Self { socket, timeout, timer: None, waits: false }
    }

    /// Passes a write on, and ends it when it has waited for too long.
    fn write<R>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut T>, &mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if let Poll::Ready(written) = write(Pin::new(&mut self.socket), context) {
            self.waits = false;
            return Poll::Ready(written);
        }
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
        if !self.waits {
            self.waits = true;
            timer.as_mut().reset(Instant::now() + timeout);
        }
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteTimeout<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(context, |socket, context| socket.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(context, |socket, context| socket.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(context, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(context, AsyncWrite::poll_shutdown)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_client_that_reads_gets_everything_and_one_that_does_not_is_left() {
        let (ours, mut theirs) = duplex(10);
        let mut socket = WriteTimeout::new(ours, Duration::from_millis(20));
        let reader = async {
            let mut read = [0; 30];
            theirs.read_exact(&mut read).await.unwrap();
        };
        let (written, ()) = tokio::join!(socket.write_all(&[7; 30]), reader);
        written.unwrap();
        assert_eq!(socket.write_all(&[7; 30]).await.unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
