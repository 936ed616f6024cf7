//! One connection to a node. Calls are sent together as they come, and answered in their order.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::ServerName;

use super::command::words;
use super::{Command, Redis, Reply};
use crate::postgres::Encryption;

/// Calls that wait to be sent, and calls that wait for replies. More are refused.
const CALLS_MAX: usize = 1_024;

/// Bytes and calls that are sent at once, about. Far fewer calls than may wait: those of one write are noted before it.
const WRITE_MAX: usize = 128 << 10;
const WRITTEN_MAX: usize = CALLS_MAX / 4;

/// Room for what is read at once.
const READ_MIN: usize = 16 << 10;

/// How long a peer may take to receive what is sent at once.
const SEND_MAX: Duration = Duration::from_secs(5);

/// What a connection needs to be opened.
pub(super) struct Access {
    pub(super) settings: Redis,
    pub(super) encryption: Encryption,
    /// Loaded by every connection.
    pub(super) scripts: &'static [&'static str],
}

/// Some commands, and who waits for their replies.
struct Call {
    bytes: Vec<u8>,
    replies: usize,
    done: oneshot::Sender<Vec<Reply>>,
}

/// The connection has ended, or takes no more calls.
#[derive(Debug)]
pub(super) struct Lost;

/// A connection to a node.
pub(super) struct Connection {
    calls: mpsc::Sender<Call>,
    /// What the node calls the scripts.
    scripts: Vec<String>,
}

impl Connection {
    /// Connects, signs in, and loads the scripts.
    pub(super) async fn open(address: &str, access: &Access, limit: Duration) -> io::Result<Self> {
        let opened = timeout(limit, Self::open_at(address, access)).await;
        opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn open_at(address: &str, access: &Access) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (calls, queue) = mpsc::channel(CALLS_MAX);
        match access.encryption.connector() {
            None => drop(tokio::spawn(drive(stream, queue))),
            Some(connector) => {
                let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
                let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
                drop(tokio::spawn(drive(connector.connect(name, stream).await?, queue)));
            }
        }
        let mut connection = Self { calls, scripts: Vec::new() };
        let mut greeting: Vec<Vec<u8>> = Vec::new();
        if let Some(password) = &access.settings.password {
            let user = access.settings.username.as_deref();
            greeting.push(words(&[&["AUTH"], user.as_slice(), &[password]].concat()));
        }
        let signs_in = greeting.len();
        greeting.extend(access.scripts.iter().map(|text| words(&["SCRIPT", "LOAD", text])));
        let count = greeting.len();
        let replies = connection.exchange(greeting.concat(), count).await;
        for (number, reply) in replies.map_err(|Lost| io::ErrorKind::ConnectionReset)?.into_iter().enumerate()
        {
            match reply {
                // A server that does not know the command repeats the password.
                Reply::Error(reason) if number < signs_in => {
                    let code = reason.split(' ').next().unwrap_or_default();
                    return Err(io::Error::other(format!("signing in failed: {code}")));
                }
                Reply::Error(reason) => return Err(io::Error::other(reason)),
                reply if number >= signs_in => {
                    let name = reply.text().ok_or_else(|| io::Error::other("a script has no name"))?;
                    connection.scripts.push(name.to_owned());
                }
                _ => {}
            }
        }
        Ok(connection)
    }

    /// The replies to some commands, in their order.
    pub(super) async fn call(&self, commands: &[&Command]) -> Result<Vec<Reply>, Lost> {
        let mut bytes = Vec::new();
        commands.iter().for_each(|command| command.encode(&self.scripts, &mut bytes));
        self.exchange(bytes, commands.len()).await
    }

    /// The reply to a command of words.
    pub(super) async fn ask(&self, asked: &[&str]) -> Result<Reply, Lost> {
        self.exchange(words(asked), 1).await?.pop().ok_or(Lost)
    }

    async fn exchange(&self, bytes: Vec<u8>, replies: usize) -> Result<Vec<Reply>, Lost> {
        let (done, answered) = oneshot::channel();
        self.calls.try_send(Call { bytes, replies, done }).map_err(|_| Lost)?;
        answered.await.map_err(|_| Lost)
    }

    /// Whether calls can be made.
    pub(super) fn is_open(&self) -> bool {
        !self.calls.is_closed()
    }
}

/// Sends calls and reads their replies until either end closes, or something is sent that is no reply.
async fn drive<S: AsyncRead + AsyncWrite + Send>(stream: S, mut calls: mpsc::Receiver<Call>) {
    let (mut input, mut output) = split(stream);
    let (sent, mut waiting) = mpsc::channel(CALLS_MAX);
    let write = async {
        let mut bytes = Vec::new();
        while let Some(call) = calls.recv().await {
            let (mut next, mut count) = (Some(call), 0);
            while let Some(Call { bytes: more, replies, done }) = next {
                bytes.extend(more);
                count += 1;
                if sent.send((replies, done)).await.is_err() {
                    return;
                }
                let has_room = bytes.len() < WRITE_MAX && count < WRITTEN_MAX;
                next = if has_room { calls.try_recv().ok() } else { None };
            }
            // A peer that takes nothing any more is given up.
            match timeout(SEND_MAX, output.write_all(&bytes)).await {
                Ok(Ok(())) => {}
                _ => return,
            }
            bytes.clear();
        }
    };
    let read = async {
        let mut bytes = BytesMut::with_capacity(READ_MIN);
        while let Some((count, done)) = waiting.recv().await {
            let Some(replies) = read_replies(&mut input, &mut bytes, count).await else { return };
            // Who has asked may not wait any more.
            _ = done.send(replies);
        }
    };
    tokio::select! {
        () = write => {}
        () = read => {}
    }
}

async fn read_replies(
    input: &mut (impl AsyncRead + Unpin),
    bytes: &mut BytesMut,
    count: usize,
) -> Option<Vec<Reply>> {
    let mut replies = Vec::with_capacity(count);
    while replies.len() < count {
        match Reply::parse(bytes).ok()? {
            Some((reply, length)) => {
                bytes::Buf::advance(bytes, length);
                replies.push(reply);
            }
            None => {
                bytes.reserve(READ_MIN);
                _ = input.read_buf(bytes).await.ok().filter(|&read| read > 0)?;
            }
        }
    }
    Some(replies)
}
