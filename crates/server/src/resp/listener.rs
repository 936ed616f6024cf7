//! Accepts connections and hands them to threads. A connection stays on its thread, whose runtime serves no other.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kinfolk_core::Store;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::{Accept, TlsAcceptor};
use tokio_util::sync::CancellationToken;

use super::clients::Addresses;
use super::connection::Connection;
use super::loading::Waiting;
use super::memory::Pools;
use super::operation_rate::OperationRate;
use super::session::{Session, Shared};
use super::settings::RespSettings;
use super::slow_log::SlowLog;
use super::trace::Sampling;
use super::tracking::{self, Tracking};
use crate::metrics::Protocol;
use crate::service::Service;

/// How many accepted connections may wait for a thread.
const WAITING_MAX: usize = 256;
/// How long to wait after a connection could not be accepted, as when there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const TLS_HANDSHAKE_MAX: Duration = Duration::from_secs(10);
const REFUSED: &[u8] = b"-ERR too many connections\r\n";

/// A connection that waits for a thread.
#[derive(Debug)]
pub(super) struct Accepted {
    pub stream: std::net::TcpStream,
    pub peer: SocketAddr,
}

/// A connection that is to be served.
struct Opened<S: Store> {
    stream: TcpStream,
    session: Session<S>,
    counted: Counted<S>,
}

/// Serves the Redis protocol on threads of its own until `stop`, then lets connections finish what was received.
///
/// # Errors
/// If the listener or the threads can't be set up, or a thread has ended before `stop`.
pub async fn run<S: Store>(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    service: Arc<Service<S>>,
    settings: RespSettings,
    stop: CancellationToken,
) -> io::Result<()> {
    run_after_loading(listener, Waiting::default(), tls, service, settings, stop).await
}

/// As [`run`], also for connections that were opened before the store was loaded.
///
/// # Errors
/// As [`run`].
pub async fn run_after_loading<S: Store>(
    listener: TcpListener,
    waiting: Waiting,
    tls: Option<Arc<ServerConfig>>,
    service: Arc<Service<S>>,
    settings: RespSettings,
    stop: CancellationToken,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let threads = settings.threads.max(1);
    let tracking = Arc::new(Tracking::new(settings.tracking_items_max));
    let shared = Arc::new(Shared {
        pools: Arc::new(Pools::new(&settings)),
        sampling: Sampling::new(settings.trace_sample),
        slow_log: SlowLog::new(settings.slow_log_threshold, settings.slow_log_length),
        clients: Arc::default(),
        started_at: Instant::now(),
        rate: OperationRate::default(),
        service,
        settings,
        connections: AtomicUsize::new(0),
        accepted: AtomicU64::new(0),
        quotas: Arc::default(),
        tracking,
    });
    let tls = tls.map(TlsAcceptor::from);
    // A token of these threads: if one of them fails, the others are stopped. Not a child of `stop`: a client whose idle connection
    // is closed must not find this process again, so the listener goes first.
    let working = CancellationToken::new();
    let workers = (0..threads)
        .map(|number| Worker::start(number, Arc::clone(&shared), tls.clone(), working.clone()))
        .collect::<io::Result<Vec<_>>>()?;
    let (connections, mut endings): (Vec<_>, FuturesUnordered<_>) =
        workers.into_iter().map(|Worker { connections, ended }| (connections, ended)).unzip();
    for (accepted, worker) in waiting.0.into_iter().zip(connections.iter().cycle()) {
        // It fails only if the worker has ended, which is noticed next.
        let _ = worker.send(accepted).await;
    }
    let feed = tracking::run(Arc::clone(&shared.service), Arc::clone(&shared.tracking), working.clone());
    drop(shared);
    let serve = async {
        let outcome = hand_out(&listener, &connections, &mut endings, &stop).await;
        drop((listener, connections));
        working.cancel();
        while endings.next().await.is_some() {}
        outcome
    };
    tokio::join!(serve, feed).0
}

/// Hands connections to the workers round-robin until `stop`. A worker that ends before is an error: its connections are
/// gone, and so would be those that it gets.
async fn hand_out(
    listener: &tokio::net::TcpListener,
    workers: &[mpsc::Sender<Accepted>],
    endings: &mut FuturesUnordered<oneshot::Receiver<()>>,
    stop: &CancellationToken,
) -> io::Result<()> {
    let mut turns = workers.iter().cycle();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            Some(_) = endings.next() => {
                return Err(io::Error::other("a thread of the Redis protocol has failed"));
            }
            accepted = accept(listener) => accepted,
        };
        if let (Some(accepted), Some(worker)) = (accepted, turns.next()) {
            // It fails only if the worker has ended, which is noticed next.
            let _ = worker.send(accepted).await;
        }
    }
}

pub(super) async fn accept(listener: &tokio::net::TcpListener) -> Option<Accepted> {
    let accepted =
        listener.accept().await.and_then(|(stream, peer)| Ok(Accepted { stream: stream.into_std()?, peer }));
    match accepted {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// What interrupts connections that wait, all of a thread at once.
#[derive(Clone)]
pub(super) struct Signals {
    /// Wakes all that wait: the service stops, or keys have changed.
    pub wake: Arc<Notify>,
    stop: CancellationToken,
}

impl Signals {
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Wakes connections until the service stops.
    async fn relay(self, mut changes: Option<watch::Receiver<()>>) {
        while let Some(changes) = &mut changes {
            match self.stop.run_until_cancelled(changes.changed()).await {
                Some(Ok(())) => self.wake.notify_waiters(),
                Some(Err(_)) | None => break,
            }
        }
        self.stop.cancelled().await;
        self.wake.notify_waiters();
    }
}

/// A thread with a runtime of its own.
struct Worker {
    connections: mpsc::Sender<Accepted>,
    ended: oneshot::Receiver<()>,
}

impl Worker {
    fn start<S: Store>(
        number: usize,
        shared: Arc<Shared<S>>,
        tls: Option<TlsAcceptor>,
        stop: CancellationToken,
    ) -> io::Result<Self> {
        let (connections, accepted) = mpsc::channel(WAITING_MAX);
        let (ending, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name(format!("resp-{number}")).spawn(move || {
            // A token of the thread's own: the one above is behind a lock that all threads would share.
            runtime.block_on(work(accepted, &shared, tls.as_ref(), &stop.child_token()));
            drop(runtime);
            // The store is closed after this, and must have no other owner then.
            drop(shared);
            let _ = ending.send(());
        })?;
        Ok(Self { connections, ended })
    }
}

async fn work<S: Store>(
    mut accepted: mpsc::Receiver<Accepted>,
    shared: &Arc<Shared<S>>,
    tls: Option<&TlsAcceptor>,
    stop: &CancellationToken,
) {
    let signals = Signals { wake: Arc::default(), stop: stop.clone() };
    tokio::spawn(signals.clone().relay(shared.service.access.changes()));
    // Every connection holds a sender; when none is left, all have ended.
    let (alive, mut all_ended) = mpsc::channel::<()>(1);
    while let Some(accepted) = accepted.recv().await {
        let Some(Opened { stream, session, counted }) = open(shared, accepted, &signals) else { continue };
        let (signals, guard) = (signals.clone(), (counted, alive.clone()));
        // An idle connection costs the size of what is spawned here, so nothing is wrapped around it.
        match tls {
            None => tokio::spawn(Connection::new(stream, session).serve(signals, guard)),
            Some(acceptor) => tokio::spawn(serve_tls(acceptor.accept(stream), session, signals, guard)),
        };
    }
    drop(alive);
    if tokio::time::timeout(shared.settings.drain_max, all_ended.recv()).await.is_err() {
        tracing::warn!("connections did not end in time and were cut");
    }
}

/// Counts a connection for as long as it lives.
struct Counted<S: Store>(Arc<Shared<S>>);

impl<S: Store> Counted<S> {
    /// One more, unless there are too many.
    fn new(shared: Arc<Shared<S>>) -> Option<Self> {
        shared.service.metrics.connected(Protocol::Resp);
        let before = shared.connections.fetch_add(1, Ordering::Relaxed);
        let max = shared.settings.connections_max;
        Some(Self(shared)).filter(|_| before < max)
    }
}

impl<S: Store> Drop for Counted<S> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
        self.0.service.metrics.disconnected(Protocol::Resp);
    }
}

/// Takes a connection in, unless there are too many.
fn open<S: Store>(shared: &Arc<Shared<S>>, accepted: Accepted, signals: &Signals) -> Option<Opened<S>> {
    let Accepted { mut stream, peer } = accepted;
    let Some(counted) = Counted::new(Arc::clone(shared)) else {
        // Whether it arrives does not matter: there is no room for a client that has to be waited for.
        let _ = stream.write(REFUSED);
        return None;
    };
    let stream = TcpStream::from_std(stream).ok()?;
    crate::socket::prepare(&stream);
    let addresses = Addresses { peer, local: stream.local_addr().ok() };
    let session = Session::new(Arc::clone(shared), addresses, Arc::clone(&signals.wake));
    Some(Opened { stream, session, counted })
}

async fn serve_tls<S: Store>(
    handshake: Accept<TcpStream>,
    session: Session<S>,
    signals: Signals,
    guard: impl Send,
) {
    if let Ok(Ok(stream)) = tokio::time::timeout(TLS_HANDSHAKE_MAX, handshake).await {
        Connection::new(stream, session).serve(signals, guard).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thread_that_ends_by_itself_ends_the_protocol() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (connections, _accepted) = mpsc::channel(1);
        let ends: Vec<_> = (0..2).map(|_| oneshot::channel()).collect();
        let (mut sides, mut endings): (Vec<_>, FuturesUnordered<_>) = ends.into_iter().unzip();
        let workers = [connections.clone(), connections];
        let stop = CancellationToken::new();
        // As a panic does.
        drop(sides.pop());
        let failed = hand_out(&listener, &workers, &mut endings, &stop).await.unwrap_err();
        assert!(failed.to_string().contains("has failed"), "{failed}");
        stop.cancel();
        hand_out(&listener, &workers, &mut endings, &stop).await.unwrap();
    }
}
