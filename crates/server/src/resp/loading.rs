//! Replies `LOADING` while the store loads, so that clients know to try again, as with Redis. There is no service yet: callers
//! are not known, and nothing is kept between two commands. So a connection goes on as a new one when the store is loaded.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

use super::batch::{Batch, Ending, Filled};
use super::frame::FrameLimits;
use super::listener::{Accepted, accept};
use super::request::is;

/// How many connections are held; others get the reply and are closed.
const CONNECTIONS_MAX: usize = 1_000;
/// How many commands are replied to at once.
const BATCH_MAX: usize = 1_024;
const LOADING: &[u8] = b"-LOADING Kinfolk is loading the store; try again\r\n";
const OK: &[u8] = b"+OK\r\n";

/// Replies on a listener until the store is loaded.
#[derive(Debug)]
pub struct Loading {
    stop: CancellationToken,
    replying: JoinHandle<Vec<Accepted>>,
}

/// Connections that were opened while the store was loading.
#[derive(Debug, Default)]
pub struct Waiting(pub(super) Vec<Accepted>);

impl Loading {
    /// Starts to reply. Must be called within a runtime.
    ///
    /// # Errors
    /// If the listener can't be used.
    pub fn start(listener: &TcpListener, tls: Option<Arc<ServerConfig>>) -> io::Result<Self> {
        let listener = listener.try_clone()?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let stop = CancellationToken::new();
        let replying = tokio::spawn(reply(listener, tls.map(TlsAcceptor::from), stop.clone()));
        Ok(Self { stop, replying })
    }

    /// Stops to reply. The connections can be served from now on.
    pub async fn finish(self) -> Waiting {
        self.stop.cancel();
        // A panic would have closed them.
        Waiting(self.replying.await.unwrap_or_default())
    }
}

async fn reply(
    listener: tokio::net::TcpListener,
    tls: Option<TlsAcceptor>,
    stop: CancellationToken,
) -> Vec<Accepted> {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = accept(&listener) => accepted,
        };
        let Some(Accepted { stream, peer }) = accepted else { continue };
        let Ok(mut stream) = TcpStream::from_std(stream) else { continue };
        if connections.len() >= CONNECTIONS_MAX {
            // Whether it arrives does not matter: there is no room for a client that has to be waited for.
            let _ = stream.try_write(LOADING);
            continue;
        }
        let (tls, stop) = (tls.clone(), stop.clone());
        connections.spawn(async move {
            match tls {
                None => {
                    let goes_on = hold(&mut stream, &stop).await;
                    goes_on.then(|| to_accepted(stream, peer)).flatten()
                }
                Some(tls) => {
                    // The state of its encryption can't be handed on.
                    if let Some(Ok(mut stream)) = stop.run_until_cancelled(tls.accept(stream)).await {
                        hold(&mut stream, &stop).await;
                    }
                    None
                }
            }
        });
    }
    let mut going_on = Vec::new();
    while let Some(ended) = connections.join_next().await {
        going_on.extend(ended.ok().flatten());
    }
    going_on
}

fn to_accepted(stream: TcpStream, peer: SocketAddr) -> Option<Accepted> {
    stream.into_std().ok().map(|stream| Accepted { stream, peer })
}

/// Replies to the commands of a connection until `stop`. Returns whether it goes on: it is open, and no command of it has come
/// only in part.
async fn hold(socket: &mut (impl AsyncRead + AsyncWrite + Unpin), stop: &CancellationToken) -> bool {
    let (mut input, mut batch) = (Vec::new(), Batch::default());
    loop {
        match stop.run_until_cancelled(socket.read_buf(&mut input)).await {
            None => return input.is_empty(),
            Some(Ok(0) | Err(_)) => return false,
            Some(Ok(_)) => {}
        }
        loop {
            let Filled { end, ending } = batch.fill(&mut input, 0, BATCH_MAX, &FrameLimits::UNAUTHENTICATED);
            let mut replies = Vec::new();
            let mut is_over = matches!(ending, Ending::Malformed(_));
            for command in (0..batch.len()).map(|number| batch.command(number, &input)) {
                let Some(name) = command.get(0) else { continue };
                is_over |= is(name, "QUIT");
                replies.extend_from_slice(if is(name, "QUIT") { OK } else { LOADING });
            }
            if matches!(ending, Ending::Malformed(_)) {
                // It may be a command that only known callers may send.
                replies.extend_from_slice(LOADING);
            }
            // A client that takes no replies does not keep the server from starting.
            let sent = stop.run_until_cancelled(socket.write_all(&replies)).await;
            if is_over || !matches!(sent, Some(Ok(()))) {
                return false;
            }
            input.drain(..end);
            if !matches!(ending, Ending::Full) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net;

    use super::*;

    /// Sends a command and reads a line, away from the runtime.
    async fn call(client: net::TcpStream, command: &'static str) -> (net::TcpStream, String) {
        let called = tokio::task::spawn_blocking(move || {
            let mut client = client;
            client.write_all(command.as_bytes()).unwrap();
            let mut line = String::new();
            BufReader::new(client.try_clone().unwrap()).read_line(&mut line).unwrap();
            (client, line)
        });
        called.await.unwrap()
    }

    #[tokio::test]
    async fn clients_wait_and_go_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let loading = Loading::start(&listener, None).unwrap();
        let connect = || net::TcpStream::connect(address).unwrap();
        let (client, line) = call(connect(), "*1\r\n$4\r\nPING\r\n").await;
        assert_eq!(line.as_bytes(), LOADING);
        let (client, line) = call(client, "SISMEMBER following:1 2\r\n").await;
        assert_eq!(line.as_bytes(), LOADING);
        // Neither of these can go on.
        let (_unfinished, line) = call(connect(), "PING\r\nPIN").await;
        assert_eq!(line.as_bytes(), LOADING);
        let (left, line) = call(connect(), "QUIT\r\n").await;
        assert_eq!(line.as_bytes(), OK);
        assert_eq!(call(left, "").await.1, "");
        let waiting = loading.finish().await;
        let peers: Vec<_> = waiting.0.iter().map(|accepted| accepted.peer).collect();
        assert_eq!(peers, [client.local_addr().unwrap()]);
    }
}
