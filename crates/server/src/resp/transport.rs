//! The socket of a connection, plain or with TLS: receives, sends, ends. Knows nothing of commands.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::io::poll_read_buf;

use super::workspace::Workspace;

/// Up to so many bytes of an unfinished command are kept in memory of just that size.
const REST_BYTES_SMALL: usize = 4 << 10;
/// How much is read and thrown away, and for how long, so that the last replies are not lost with the connection.
const LINGER_BYTES_MAX: usize = 1 << 20;
const LINGER_MAX: Duration = Duration::from_secs(1);

/// A socket that can be read and written.
pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin + Send {
    /// The connection below.
    fn tcp(&self) -> &TcpStream;

    /// Waits until the client sends no more: it is gone, or as good as gone. Whatever it has sent before stays
    /// unread. Where the system can't tell, this never ends.
    fn peer_left(&self) -> impl Future<Output = ()> + Send {
        peer_left(self.tcp())
    }
}

impl Socket for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Socket for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
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
pub(super) struct Rest {
    small: Vec<u8>,
    large: Option<Box<Workspace>>,
    /// There is nothing to do before so many bytes are there.
    pub needed: usize,
}

impl Rest {
    fn lend(&mut self) -> Box<Workspace> {
        self.large.take().unwrap_or_else(|| {
            let mut workspace = Workspace::lend();
            workspace.input.extend_from_slice(&self.small);
            workspace
        })
    }

    /// Keeps the input of a workspace until more of it arrives.
    pub fn keep(&mut self, workspace: Box<Workspace>) {
        if workspace.input.len() > REST_BYTES_SMALL {
            self.small = Vec::new();
            self.large = Some(workspace);
            return;
        }
        if self.small != workspace.input {
            self.small = workspace.input.clone();
        }
        workspace.give_back();
    }
}

/// Waits until something can be done with the input. Nothing if the connection has ended, or `stop` has come and
/// nothing was received before.
pub(super) async fn receive(
    socket: &mut impl Socket,
    rest: &mut Rest,
    mut stop: Pin<&mut impl Future<Output = ()>>,
    mut on_wait: impl FnMut(),
) -> Option<Box<Workspace>> {
    poll_fn(move |context| {
        let mut workspace = rest.lend();
        loop {
            if workspace.input.len() == workspace.input.capacity() {
                // Grows with what has arrived, not with what was announced.
                let arrived = workspace.input.len();
                workspace.input.reserve(arrived);
            }
            match poll_read_buf(Pin::new(&mut *socket), context, &mut workspace.input) {
                Poll::Ready(Ok(0) | Err(_)) => {
                    workspace.give_back();
                    return Poll::Ready(None);
                }
                Poll::Ready(Ok(_)) if workspace.input.len() >= rest.needed => {
                    return Poll::Ready(Some(workspace));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => {
                    rest.keep(workspace);
                    on_wait();
                    return stop.as_mut().poll(context).map(|()| None);
                }
            }
        }
    })
    .await
}

/// Sends everything. Fails if the client takes nothing for `stalled_max`.
pub(super) async fn send(
    socket: &mut impl Socket,
    bytes: &mut Vec<u8>,
    stalled_max: Duration,
) -> io::Result<()> {
    let mut unsent = bytes.as_slice();
    while !unsent.is_empty() {
        let mut write = pin!(socket.write(unsent));
        // Most of the time the socket takes everything at once, and no timer is needed.
        let sent = match poll_fn(|context| Poll::Ready(write.as_mut().poll(context))).await {
            Poll::Ready(sent) => sent?,
            Poll::Pending => within(stalled_max, write).await?,
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
        Poll::Pending => within(stalled_max, flush).await,
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
