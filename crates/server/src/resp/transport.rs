//! The socket of a connection, plain or with TLS: receives, sends, ends. Knows nothing of commands.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::io::poll_read_buf;

use super::memory::{FREE_BYTES, Held, OverBudget, Purpose};
use super::workspace::{READ_BYTES, Workspace};

/// Up to this many bytes of an unfinished command are kept in memory of just that size.
const REST_BYTES_SMALL: usize = FREE_BYTES;
/// How much is read and thrown away, and for how long, so that the last replies are not lost with the connection.
const LINGER_BYTES_MAX: usize = 1 << 20;
const LINGER_MAX: Duration = Duration::from_secs(1);

/// A socket that can be read and written.
pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin + Send {
    /// The connection below.
    fn tcp(&self) -> &TcpStream;

    /// Waits until the client sends no more: it is gone, or treated as gone. What it has sent before stays
    /// unread. Where the system does not report it, this never ends.
    fn peer_left(&self) -> impl Future<Output = ()> + Send {
        peer_left(self.tcp())
    }

    /// Whether [`Socket::leave`] succeeds.
    const MAY_LEAVE: bool;

    /// The connection below, to be served by another thread. What TLS has agreed on can't leave.
    fn leave(self) -> Option<std::net::TcpStream>;
}

impl Socket for TcpStream {
    const MAY_LEAVE: bool = true;

    fn tcp(&self) -> &TcpStream {
        self
    }

    fn leave(self) -> Option<std::net::TcpStream> {
        self.into_std().ok()
    }
}

impl Socket for TlsStream<TcpStream> {
    const MAY_LEAVE: bool = false;

    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }

    fn leave(self) -> Option<std::net::TcpStream> {
        None
    }
}

#[cfg(target_os = "linux")]
async fn peer_left(socket: &TcpStream) {
    // Urgent data is not listened for, so that this ends when the other side has closed, and only then, however much
    // there is to read. A wait for something to read would end at once where a pipeline goes on.
    let _ = socket.ready(tokio::io::Interest::PRIORITY).await;
}

#[cfg(not(target_os = "linux"))]
async fn peer_left(_: &TcpStream) {
    std::future::pending().await
}

/// What was received of a command that is not whole yet.
#[derive(Debug, Default)]
pub(super) struct Leftover {
    input: Vec<u8>,
    /// There is nothing to do before this many bytes have arrived.
    needed: usize,
    /// When the command began to arrive.
    pub since: Option<Instant>,
}

/// How a batch has left its input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unfinished {
    /// There is nothing to do before this many bytes have arrived.
    pub needed: usize,
    /// Commands were taken out: what is left belongs to another one.
    pub is_another: bool,
}

impl Leftover {
    pub(crate) fn is_empty(&self) -> bool {
        self.input.is_empty()
    }

    fn lend(&mut self) -> Box<Workspace> {
        let mut workspace = Workspace::lend();
        if self.input.len() > REST_BYTES_SMALL {
            workspace.input = std::mem::take(&mut self.input);
        } else {
            workspace.input.extend_from_slice(&self.input);
        }
        workspace
    }

    /// Keeps the input of a workspace, as a batch has left it, until more of it arrives.
    pub(crate) fn keep_from(
        &mut self,
        unfinished: Unfinished,
        workspace: Box<Workspace>,
        memory: &mut Held,
    ) -> Result<(), OverBudget> {
        self.needed = unfinished.needed;
        if workspace.input.is_empty() {
            self.since = None;
        } else if unfinished.is_another || self.since.is_none() {
            self.since = Some(Instant::now());
        }
        self.keep(workspace, memory)
    }

    /// Keeps the input of a workspace. Its other buffers are of use to others meanwhile.
    fn keep(&mut self, mut workspace: Box<Workspace>, memory: &mut Held) -> Result<(), OverBudget> {
        let arrived = workspace.input.len();
        if arrived > REST_BYTES_SMALL {
            self.input = std::mem::take(&mut workspace.input);
            if self.input.capacity() / 2 > arrived.max(READ_BYTES) {
                self.input.shrink_to(arrived.max(READ_BYTES));
            }
        } else if self.input != workspace.input {
            self.input = workspace.input.clone();
        }
        workspace.give_back();
        memory.set(Purpose::Input, self.input.capacity())
    }
}

/// What comes of waiting for input.
pub(super) enum Received {
    /// Something can be done with it.
    Input(Box<Workspace>),
    /// The client sends no more.
    Ended,
    /// Something else than input has come, and nothing was received before.
    Interrupted,
    /// More has arrived than may be held.
    Refused(OverBudget),
}

/// Waits until something can be done with the input, or `interrupted`, which is polled whenever there is nothing to
/// read, is ready. The input never needs room for more than `input_max` bytes.
pub(super) async fn receive(
    socket: &mut impl Socket,
    rest: &mut Leftover,
    memory: &mut Held,
    input_max: usize,
    mut interrupted: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> Received {
    poll_fn(move |context| {
        let mut workspace = rest.lend();
        loop {
            if let Err(over) = grow(&mut workspace.input, memory, input_max) {
                return Poll::Ready(Received::Refused(over));
            }
            match poll_read_buf(Pin::new(&mut *socket), context, &mut workspace.input) {
                Poll::Ready(Ok(0) | Err(_)) => {
                    workspace.give_back();
                    return Poll::Ready(Received::Ended);
                }
                Poll::Ready(Ok(_)) if workspace.input.len() >= rest.needed => {
                    return Poll::Ready(Received::Input(workspace));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => {
                    return match rest.keep(workspace, memory) {
                        Ok(()) => interrupted(context).map(|()| Received::Interrupted),
                        Err(over) => Poll::Ready(Received::Refused(over)),
                    };
                }
            }
        }
    })
    .await
}

/// Makes room for more input. It grows with what has arrived, not with what was announced.
fn grow(input: &mut Vec<u8>, memory: &mut Held, input_max: usize) -> Result<(), OverBudget> {
    let arrived = input.len();
    if arrived < input.capacity() {
        return Ok(());
    }
    let room = arrived.saturating_mul(2).min(input_max).max(arrived + READ_BYTES);
    memory.set(Purpose::Input, room)?;
    input.reserve_exact(room - arrived);
    Ok(())
}

/// What holds while a client does not take its replies.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteTimeout {
    /// How long that may be.
    pub max: Duration,
    /// Input that is held as long and counted nowhere else.
    pub input_bytes: usize,
}

/// Sends everything. Fails if the client takes nothing for too long, or if the bytes may not be held until it reads.
pub(super) async fn send(
    socket: &mut impl Socket,
    bytes: &mut Vec<u8>,
    timeout: WriteTimeout,
    memory: &mut Held,
) -> io::Result<()> {
    let mut unsent = bytes.as_slice();
    while !unsent.is_empty() {
        let mut write = pin!(socket.write(unsent));
        // Most of the time the socket takes everything at once, and no timer is needed.
        let sent = match poll_fn(|context| Poll::Ready(write.as_mut().poll(context))).await {
            Poll::Ready(sent) => sent?,
            Poll::Pending => {
                let held = memory.set(Purpose::Output, bytes.capacity() + timeout.input_bytes);
                held.map_err(|over| io::Error::new(io::ErrorKind::OutOfMemory, over))?;
                within(timeout.max, write).await?
            }
        };
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        unsent = unsent.get(sent..).unwrap_or_default();
    }
    bytes.clear();
    let mut flush = pin!(socket.flush());
    match poll_fn(|context| Poll::Ready(flush.as_mut().poll(context))).await {
        Poll::Ready(flushed) => flushed,
        Poll::Pending => within(timeout.max, flush).await,
    }
}

async fn within<T>(max: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(max, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Ends the connection so that the client gets the last replies: a socket that is closed with unread input resets
/// the connection and takes them back.
pub(super) async fn finish(socket: &mut impl Socket) {
    let linger = async {
        socket.shutdown().await?;
        let mut workspace = Workspace::lend();
        let mut left = LINGER_BYTES_MAX;
        loop {
            workspace.input.clear();
            let read = socket.read_buf(&mut workspace.input).await?;
            left = left.saturating_sub(read);
            if read == 0 || left == 0 {
                workspace.give_back();
                return Ok(());
            }
        }
    };
    let _: io::Result<()> = within(LINGER_MAX, linger).await;
}
