//! Sockets: accepting, TLS, the limits of a connection, and a graceful stop.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1::{self, Parts};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kinfolk_core::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

use super::exchange::Exchange;
use super::hyper_socket::HyperSocket;
use super::malformed::{self, BUFFER_BYTES_MAX, HEADERS_BYTES_MAX};
use super::respond::{self, respond};
use super::write_timeout::WriteTimeout;
use super::{Rest, Shared, Store};
use crate::metrics::Protocol;

/// How long to wait after an accept that failed, mostly because no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long, and how much at a time, is read of a request that gets no response.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);
const DISCARD_BYTES: usize = 8 * 1024;

/// Accepts connections until the server stops, then waits for those that are busy.
pub(crate) async fn accept<S: Store>(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    shared: Shared<S>,
    router: Router,
    stop: CancellationToken,
) {
    let tls = tls.map(TlsAcceptor::from);
    let permits = Arc::new(Semaphore::new(shared.settings.connections_max));
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            let permit = Arc::clone(&permits).acquire_owned().await.expect("the semaphore is never closed");
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            // Keeps the set from growing: a finished connection is forgotten.
            Some(_) = connections.join_next() => continue,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((socket, peer)) => {
                let connection = connection(socket, peer, tls.clone(), Arc::clone(&shared), router.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // In this order: a client whose idle connection is closed does not find this process again.
    drop(listener);
    shared.stop.cancel();
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(shared.settings.drain_timeout, all).await.is_err() {
        tracing::warn!("some requests were still running when the time to finish them was over");
    }
    connections.shutdown().await;
}

async fn connection<S: Store>(
    socket: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    shared: Shared<S>,
    router: Router,
) {
    crate::socket::prepare(&socket);
    let _counted = Counted::new(Arc::clone(&shared));
    match tls {
        None => serve(socket, peer, shared, router).await,
        Some(tls) => {
            let handshake = timeout(shared.settings.header_timeout, tls.accept(socket));
            tokio::select! {
                () = shared.stop.cancelled() => {}
                accepted = handshake => match accepted {
                    Ok(Ok(socket)) => serve(socket, peer, Arc::clone(&shared), router).await,
                    Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
                    Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
                },
            }
        }
    }
}

async fn serve<S: Store>(
    socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    shared: Shared<S>,
    router: Router,
) {
    let exchange = Exchange::default();
    let socket = HyperSocket::new(WriteTimeout::new(socket, shared.settings.write_timeout), exchange.clone());
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.settings.header_timeout)
        .max_header_size(HEADERS_BYTES_MAX)
        .max_buf_size(BUFFER_BYTES_MAX)
        // A large response waits as it is: what has a share in it, or shares it, is not copied.
        .writev(true)
        .serve_connection(
            TokioIo::new(socket),
            service_fn(|request: Request<Incoming>| {
                exchange.begin(request.body());
                let response = respond(Arc::clone(&shared), router.clone(), exchange.clone(), request);
                async { Ok::<_, Infallible>(response.await) }
            }),
        );
    // A token of its own: the one above is behind a lock that all connections would share.
    let stop = shared.stop.child_token();
    let ended = tokio::select! {
        biased;
        ended = &mut connection => ended,
        () = stop.cancelled() => {
            std::pin::Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    let Parts { io, read_buf: unread, .. } = connection.into_parts();
    let mut socket = io.into_inner().into_socket();
    let mut refused = None;
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended early");
        if !exchange.is_idle() {
            return;
        }
        refused = malformed::refusal(&error, &unread);
    }
    let lingers = refused.is_some() || !unread.is_empty() || exchange.lacks_body();
    if let Some(error) = refused {
        refuse(&mut socket, &shared, &error).await;
    }
    if socket.shutdown().await.is_ok() && lingers {
        discard(&mut socket).await;
    }
}

/// Sends a problem document to a client of which no request could be read.
async fn refuse<S: Store>(socket: impl AsyncWrite + Unpin, shared: &Rest<S>, error: &Error) {
    // hyper writes responses to requests only, so it gets one.
    let io = tokio::io::join(&b"GET / HTTP/1.1\r\n\r\n"[..], socket);
    let service = service_fn(|_: Request<Incoming>| {
        std::future::ready(Ok::<_, Infallible>(respond::refuse(shared, error.clone())))
    });
    let connection =
        http1::Builder::new().keep_alive(false).half_close(true).serve_connection(TokioIo::new(io), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a client did not take why it was refused");
    }
}

/// Reads on for a moment: a socket that is closed while its client still sends resets the connection, and the client
/// may lose the response that it has not read yet.
async fn discard(socket: &mut (impl AsyncRead + Unpin)) {
    let mut bytes = vec![0; DISCARD_BYTES];
    let all = async { while socket.read(&mut bytes).await.is_ok_and(|count| count > 0) {} };
    let _ = timeout(DISCARD_TIME_MAX, all).await;
}

/// Counts a connection as open for as long as it lives, once there is a service.
struct Counted<S: Store>(Option<Shared<S>>);

impl<S: Store> Counted<S> {
    fn new(shared: Shared<S>) -> Self {
        let Some(service) = shared.door.service() else { return Self(None) };
        service.metrics.connected(Protocol::Rest);
        Self(Some(shared))
    }
}

impl<S: Store> Drop for Counted<S> {
    fn drop(&mut self) {
        if let Some(service) = self.0.as_ref().and_then(|shared| shared.door.service()) {
            service.metrics.disconnected(Protocol::Rest);
        }
    }
}
