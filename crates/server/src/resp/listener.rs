//! Accepts connections and hands them to threads, each with a runtime of its own. [`Balance`] says how many threads are needed;
//! a connection moves between two commands, with what the session knows.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kinfolk_core::Store;
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

use super::balance::{Balance, Load, Transfer};
use super::idle_cores::IdleCores;
use super::loading::Waiting;
use super::session::Shared;
use super::settings::RespSettings;
use super::tracking;
use super::worker::{Seat, Worker};
use crate::service::Service;

/// How long to wait after a connection could not be accepted, as when there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often the load of the threads is looked at.
const BALANCE_PERIOD: Duration = Duration::from_millis(200);

/// A connection that waits for a thread.
#[derive(Debug)]
pub(super) struct Accepted {
    pub stream: std::net::TcpStream,
    pub peer: SocketAddr,
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
    let shared = Arc::new(Shared::new(service, settings));
    let tls = tls.map(TlsAcceptor::from);
    // A token of these threads: if one of them fails, the others are stopped. Not a child of `stop`: a client whose idle connection
    // is closed must not find this process again, so the listener goes first.
    let working = CancellationToken::new();
    // They end with this function, also where it ends early.
    let _ending = working.clone().drop_guard();
    let workers = Worker::start_all(&shared, tls.as_ref(), &working)?;
    let (seats, mut endings): (Vec<_>, FuturesUnordered<_>) =
        workers.into_iter().map(|Worker { seat, ended }| (seat, ended)).unzip();
    let feed = tracking::run(Arc::clone(&shared.service), Arc::clone(&shared.tracking), working.clone());
    drop(shared);
    // Connections that can't move are spread from the start.
    let may_move = tls.is_none() && seats.len() > 1;
    let first = if may_move { 1 } else { seats.len() };
    for (accepted, seat) in waiting.0.into_iter().zip(seats.iter().take(first).cycle()) {
        seat.take(accepted).await;
    }
    let serve = async {
        let outcome = hand_out(&listener, &seats, may_move, &mut endings, &stop).await;
        drop((listener, seats));
        working.cancel();
        while endings.next().await.is_some() {}
        outcome
    };
    tokio::join!(serve, feed).0
}

/// Hands connections to the threads that are needed, one after the other, until `stop`, and balances them; to all threads if they can't
/// move later. A thread that ends before is an error: its connections are gone, and so would be those that it gets.
async fn hand_out<S: Store>(
    listener: &tokio::net::TcpListener,
    seats: &[Seat<S>],
    may_move: bool,
    endings: &mut FuturesUnordered<oneshot::Receiver<()>>,
    stop: &CancellationToken,
) -> io::Result<()> {
    let mut balance = Balance::new(seats.len());
    let mut loads = Loads::new(seats);
    let mut period = tokio::time::interval(BALANCE_PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut turn = 0;
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            Some(_) = endings.next() => {
                return Err(io::Error::other("a thread of the Redis protocol has failed"));
            }
            _ = period.tick(), if may_move => {
                let (threads, idle_cores) = loads.next(seats);
                let transfer = balance.step(&threads, idle_cores);
                apply(transfer, seats, balance.active());
                continue;
            }
            accepted = accept(listener) => accepted,
        };
        turn = (turn + 1) % if may_move { balance.active() } else { seats.len() };
        if let (Some(accepted), Some(seat)) = (accepted, seats.get(turn)) {
            seat.take(accepted).await;
        }
    }
}

/// How busy the threads were when they were last looked at.
struct Loads {
    at: Instant,
    busy: Vec<Duration>,
    idle_cores: IdleCores,
}

impl Loads {
    fn new<S: Store>(seats: &[Seat<S>]) -> Self {
        Self {
            at: Instant::now(),
            busy: seats.iter().map(Seat::busy).collect(),
            idle_cores: IdleCores::new(),
        }
    }

    /// What the threads did since then, and how many cores were idle.
    fn next<S: Store>(&mut self, seats: &[Seat<S>]) -> (Vec<Load>, f64) {
        let now = Instant::now();
        let took = (now - std::mem::replace(&mut self.at, now)).as_secs_f64().max(f64::MIN_POSITIVE);
        let load = |(seat, busy): (&Seat<S>, &mut Duration)| {
            let before = std::mem::replace(busy, seat.busy());
            let spent = busy.saturating_sub(before);
            Load { busy: spent.as_secs_f64() / took, connections: seat.end_period() }
        };
        (seats.iter().zip(&mut self.busy).map(load).collect(), self.idle_cores.since_last())
    }
}

/// Makes connections move. Those of threads that take none keep moving; others do so for one period.
fn apply<S: Store>(transfer: Option<Transfer>, seats: &[Seat<S>], active: usize) {
    for (number, seat) in seats.iter().enumerate() {
        match transfer {
            Some(Transfer { from, to, count }) if from == number => seat.send_away(count, to),
            _ if number < active => seat.send_away(0, number),
            _ => {}
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
