//! Sockets: accepting, TLS, the limits of a connection, and stopping without cutting anybody off.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::answer::answer;
use super::stall::Impatient;
use super::{Shared, Store};
use crate::metrics::Protocol;

/// The most bytes of a request's line and headers together.
const HEADERS_BYTES_MAX: usize = 64 * 1024;

/// The most bytes that a connection reads ahead, or keeps for a client that does not read.
const BUFFER_BYTES_MAX: usize = 2 * HEADERS_BYTES_MAX;

/// How long to wait after an accept that failed, mostly because no file descriptors are left.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// Accepts connections until the server is told to stop, then waits for those that are busy.
pub async fn accept<S: Store>(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    shared: Shared<S>,
    router: Router,
) {
    let tls = tls.map(TlsAcceptor::from);
    let places = Arc::new(Semaphore::new(shared.settings.connections_max));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let stop = shared.stop.clone();
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await.expect("the places are never closed");
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            // Keeps the set from growing: a finished connection is forgotten.
            Some(_) = connections.join_next() => continue,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((socket, peer)) => {
                let connection = connection(
                    socket,
                    peer,
                    tls.clone(),
                    Arc::clone(&shared),
                    router.clone(),
                    graceful.watcher(),
                );
                connections.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    if timeout(shared.settings.drain_timeout, graceful.shutdown()).await.is_err() {
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
    watcher: Watcher,
) {
    crate::socket::prepare(&socket);
    let _counted = Counted::new(Arc::clone(&shared));
    match tls {
        None => serve(socket, peer, shared, router, watcher).await,
        Some(tls) => {
            let handshake = timeout(shared.settings.header_timeout, tls.accept(socket));
            tokio::select! {
                () = shared.stop.cancelled() => {}
                accepted = handshake => match accepted {
                    Ok(Ok(socket)) => serve(socket, peer, Arc::clone(&shared), router, watcher).await,
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
    watcher: Watcher,
) {
    let header_timeout = shared.settings.header_timeout;
    let socket = Impatient::new(socket, shared.settings.write_timeout);
    let service = service_fn(move |request| {
        let answer = answer(Arc::clone(&shared), router.clone(), request);
        async { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_header_size(HEADERS_BYTES_MAX)
        .max_buf_size(BUFFER_BYTES_MAX)
        .pipeline_flush(true)
        .serve_connection(TokioIo::new(socket), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}

/// Counts a connection as open for as long as it lives, once there is somebody to count.
struct Counted<S>(Option<Shared<S>>);

impl<S> Counted<S> {
    fn new(shared: Shared<S>) -> Self {
        let Some(service) = shared.door.service() else { return Self(None) };
        service.metrics.connected(Protocol::Rest);
        Self(Some(shared))
    }
}

impl<S> Drop for Counted<S> {
    fn drop(&mut self) {
        if let Some(service) = self.0.as_ref().and_then(|shared| shared.door.service()) {
            service.metrics.disconnected(Protocol::Rest);
        }
    }
}
