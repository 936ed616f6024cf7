//! A thread that serves connections, with a runtime of its own. A connection moves to another thread between two commands,
//! with all that its session knows; [`super::balance`] decides when.

use std::io::{self, Write};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use kinfolk_core::Store;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, RuntimeMetrics};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_rustls::{Accept, TlsAcceptor};
use tokio_util::sync::CancellationToken;

use super::clients::Addresses;
use super::connection::Connection;
use super::listener::Accepted;
use super::session::{Session, Shared};
use crate::metrics::Protocol;

/// How many connections may wait for a thread.
const WAITING_MAX: usize = 256;
const TLS_HANDSHAKE_MAX: Duration = Duration::from_secs(10);
const REFUSED: &[u8] = b"-ERR too many connections\r\n";

/// A connection that is to be served.
struct Opened<S: Store> {
    stream: TcpStream,
    session: Session<S>,
    counted: Counted<S>,
}

/// A connection that comes to a thread.
pub(super) enum Arrival<S: Store> {
    New(Accepted),
    Moved(Box<Moved<S>>),
}

/// A connection that comes from another thread, between two commands.
pub(super) struct Moved<S: Store> {
    pub stream: std::net::TcpStream,
    pub session: Session<S>,
    pub counted: Counted<S>,
}

/// A place at a thread.
#[derive(Debug)]
pub(super) struct Seat<S: Store> {
    number: usize,
    placement: Arc<Placement<S>>,
    metrics: RuntimeMetrics,
}

impl<S: Store> Seat<S> {
    /// Brings a new connection.
    pub(crate) async fn take(&self, accepted: Accepted) {
        if let Some(entrance) = self.placement.entrances.get(self.number) {
            // It fails only if the thread has ended, which is noticed elsewhere.
            let _ = entrance.send(Arrival::New(accepted)).await;
        }
    }

    /// How long the thread has worked so far.
    pub(crate) fn busy(&self) -> Duration {
        self.metrics.worker_total_busy_duration(0)
    }

    /// How many connections were served in the period that ends.
    pub(crate) fn end_period(&self) -> usize {
        self.placement.period.fetch_add(1, Ordering::Relaxed);
        self.placement.served.swap(0, Ordering::Relaxed)
    }

    /// Makes so many connections go to another thread, once they have been served.
    pub(crate) fn send_away(&self, count: usize, to: usize) {
        self.placement.to.store(to, Ordering::Relaxed);
        self.placement.leaving.store(count, Ordering::Relaxed);
    }
}

/// Where the connections of a thread belong.
#[derive(Debug)]
pub(super) struct Placement<S: Store> {
    /// The ways into all threads.
    entrances: Arc<[mpsc::Sender<Arrival<S>>]>,
    /// How many connections are to move.
    leaving: AtomicUsize,
    /// To which thread.
    to: AtomicUsize,
    /// The number of the period, and how many connections were served in it.
    period: AtomicU32,
    served: AtomicUsize,
}

impl<S: Store> Placement<S> {
    fn new(entrances: Arc<[mpsc::Sender<Arrival<S>>]>) -> Self {
        let [leaving, to, served] = [0, 0, 0].map(AtomicUsize::new);
        Self { entrances, leaving, to, period: AtomicU32::new(1), served }
    }

    /// Counts a connection that is served, once in a period: `seen` is the period in which it was counted last.
    #[inline]
    pub(crate) fn count(&self, seen: &mut u32) {
        let period = self.period.load(Ordering::Relaxed);
        if *seen != period {
            *seen = period;
            self.served.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The way into another thread, if a connection is to go there.
    #[inline]
    pub(crate) fn way_out(&self) -> Option<mpsc::Permit<'_, Arrival<S>>> {
        if self.leaving.load(Ordering::Relaxed) == 0 { None } else { self.take_way_out() }
    }

    #[cold]
    fn take_way_out(&self) -> Option<mpsc::Permit<'_, Arrival<S>>> {
        let one_fewer = |leaving: usize| leaving.checked_sub(1);
        self.leaving.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_fewer).ok()?;
        // A thread that has many waiting, or stops, takes no more.
        self.entrances.get(self.to.load(Ordering::Relaxed))?.try_reserve().ok()
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
pub(super) struct Worker<S: Store> {
    pub seat: Seat<S>,
    pub ended: oneshot::Receiver<()>,
}

impl<S: Store> Worker<S> {
    /// Starts as many as the settings say. They work until `stop`.
    pub(crate) fn start_all(
        shared: &Arc<Shared<S>>,
        tls: Option<&TlsAcceptor>,
        stop: &CancellationToken,
    ) -> io::Result<Vec<Self>> {
        let threads = shared.settings.threads.max(1);
        let (entrances, arrivals): (Vec<_>, Vec<_>) =
            (0..threads).map(|_| mpsc::channel(WAITING_MAX)).unzip();
        let entrances: Arc<[_]> = entrances.into();
        let start = |(number, arrivals)| {
            let placement = Arc::new(Placement::new(Arc::clone(&entrances)));
            let (ending, ended) = oneshot::channel();
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let metrics = runtime.metrics();
            let (seat_placement, shared) = (Arc::clone(&placement), Arc::clone(shared));
            let (tls, stop) = (tls.cloned(), stop.clone());
            thread::Builder::new().name(format!("resp-{number}")).spawn(move || {
                // A token of the thread's own: the one above is behind a lock that all threads would share.
                runtime.block_on(work(arrivals, placement, &shared, tls.as_ref(), &stop.child_token()));
                drop(runtime);
                // The store is closed after this, and must have no other owner then.
                drop(shared);
                let _ = ending.send(());
            })?;
            Ok(Self { seat: Seat { number, placement: seat_placement, metrics }, ended })
        };
        arrivals.into_iter().enumerate().map(start).collect()
    }
}

async fn work<S: Store>(
    mut arrivals: mpsc::Receiver<Arrival<S>>,
    placement: Arc<Placement<S>>,
    shared: &Arc<Shared<S>>,
    tls: Option<&TlsAcceptor>,
    stop: &CancellationToken,
) {
    let signals = Signals { wake: Arc::default(), stop: stop.clone() };
    tokio::spawn(signals.clone().relay(shared.service.access.changes()));
    // Every connection holds a sender; when none is left, all have ended.
    let (alive, mut all_ended) = mpsc::channel::<()>(1);
    let mut stopped = pin!(stop.cancelled());
    loop {
        let arrival = tokio::select! {
            biased;
            // What is under way still arrives.
            () = &mut stopped, if !arrivals.is_closed() => {
                arrivals.close();
                continue;
            }
            arrival = arrivals.recv() => arrival,
        };
        let opened = match arrival {
            None => break,
            Some(Arrival::New(accepted)) => open(shared, accepted, &signals),
            Some(Arrival::Moved(moved)) => moved.open(&signals),
        };
        let Some(Opened { stream, session, counted }) = opened else { continue };
        let stay = Stay {
            signals: signals.clone(),
            placement: Arc::clone(&placement),
            counted,
            alive: alive.clone(),
        };
        // An idle connection costs the size of what is spawned here, so nothing is wrapped around it.
        match tls {
            None => tokio::spawn(Connection::new(stream, session).serve(stay)),
            Some(acceptor) => tokio::spawn(serve_tls(acceptor.accept(stream), session, stay)),
        };
    }
    drop((alive, placement));
    if tokio::time::timeout(shared.settings.drain_max, all_ended.recv()).await.is_err() {
        tracing::warn!("connections did not end in time and were cut");
    }
}

/// What a connection has of its thread while it is there.
pub(super) struct Stay<S: Store> {
    pub signals: Signals,
    pub placement: Arc<Placement<S>>,
    pub counted: Counted<S>,
    pub alive: mpsc::Sender<()>,
}

impl<S: Store> Moved<S> {
    /// Takes it in.
    fn open(self, signals: &Signals) -> Option<Opened<S>> {
        let Self { stream, session, counted } = self;
        let stream = TcpStream::from_std(stream).ok()?;
        session.client.set_wake(Arc::clone(&signals.wake));
        Some(Opened { stream, session, counted })
    }
}

/// Counts a connection for as long as it lives.
pub(super) struct Counted<S: Store>(Arc<Shared<S>>);

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

async fn serve_tls<S: Store>(handshake: Accept<TcpStream>, session: Session<S>, stay: Stay<S>) {
    if let Ok(Ok(stream)) = tokio::time::timeout(TLS_HANDSHAKE_MAX, handshake).await {
        Connection::new(stream, session).serve(stay).await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{self, TcpListener};

    use kinfolk_conformance::{ModelStore, SimulatedClock};
    use kinfolk_core::{Context, IdKind, Keyring, SigningKey};

    use super::super::balance::Transfer;
    use super::super::settings::RespSettings;
    use super::*;
    use crate::{Access, Administration, Service, ServiceSettings};

    struct Nothing;

    impl Administration for Nothing {}

    fn shared() -> Arc<Shared<ModelStore>> {
        let store = ModelStore::new(IdKind::Integer, Arc::new(SimulatedClock::default()));
        let keys = Keyring::new(SigningKey::new([7; 32]), []);
        let context = Context::new(Arc::new(store), keys, Context::<ModelStore>::PAGE_LIMIT_MAX);
        let service = Service::new(context, ServiceSettings::default(), Access::open(), Arc::new(Nothing));
        Arc::new(Shared::new(Arc::new(service), RespSettings { threads: 2, ..RespSettings::default() }))
    }

    fn expect(client: &mut net::TcpStream, expected: &str) {
        let mut reply = vec![0; expected.len()];
        client.read_exact(&mut reply).unwrap();
        assert_eq!(String::from_utf8_lossy(&reply), expected);
    }

    #[test]
    fn connections_move_between_commands_with_all_that_they_know() {
        let stop = CancellationToken::new();
        let workers = Worker::start_all(&shared(), None, &stop).unwrap();
        let (seats, ends): (Vec<_>, Vec<_>) =
            workers.into_iter().map(|Worker { seat, ended }| (seat, ended)).unzip();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let runtime = Builder::new_current_thread().build().unwrap();
        let mut clients: Vec<_> = (0..20)
            .map(|_| {
                let client = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                let (stream, peer) = listener.accept().unwrap();
                stream.set_nonblocking(true).unwrap();
                runtime.block_on(seats[0].take(Accepted { stream, peer }));
                client
            })
            .collect();
        for turn in 0..10 {
            let (from, to) = (turn % 2, 1 - turn % 2);
            seats[to].end_period();
            seats[to].send_away(0, to);
            seats[from].send_away(Transfer::ALL, to);
            for (number, client) in clients.iter_mut().enumerate() {
                client.write_all(b"MULTI\r\n").unwrap();
                expect(client, "+OK\r\n");
                // It has moved with an open transaction, and does not while a command is incomplete.
                write!(client, "SADD following:{} 10", number + 1).unwrap();
                client.write_all(format!("{turn}\r\nEXEC\r\n").as_bytes()).unwrap();
                expect(client, "+QUEUED\r\n*1\r\n:1\r\n");
            }
            assert_eq!(seats[to].end_period(), clients.len());
        }
        for (number, client) in clients.iter_mut().enumerate() {
            write!(client, "SCARD following:{}\r\n", number + 1).unwrap();
            expect(client, ":10\r\n");
        }
        drop(seats);
        stop.cancel();
        ends.into_iter().for_each(|ended| ended.blocking_recv().unwrap());
        let ended = clients.iter_mut().all(|client| matches!(client.read(&mut [0]), Ok(0)));
        assert!(ended, "connections end when the threads stop");
    }
}
