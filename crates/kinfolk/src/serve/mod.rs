//! The lifecycle of the server: bind, load, become ready, serve, drain, close. The protocols are in `kinfolk-server`; the
//! profile opens the graph.

mod listeners;
mod logging;
#[cfg(feature = "otlp")]
mod otlp;
mod protocols;
#[cfg(feature = "otlp")]
mod spans;
mod suggest;
#[cfg(target_os = "linux")]
mod time_slices;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kinfolk_core::{Context as CoreContext, EdgeKind, Error};
use kinfolk_server::{Access, Door, Service, Tls};
use tokio::time::MissedTickBehavior;

pub(crate) use listeners::Listeners;
pub(crate) use logging::Logging;

use crate::print::grouped;
use crate::profile::{OpenStore, Profile};
use crate::settings::Configuration;
use crate::signals::{SignalRequest, Signals};
use listeners::Urls;
use protocols::Protocols;
use suggest::Schedule;

/// The interval between checks of the files of keys and certificates.
const CHECK_FILES_EVERY: Duration = Duration::from_secs(1);
/// How long bulk work has to notice the end of the grace period.
const CANCELLATION_TIME: Duration = Duration::from_secs(1);
/// The interval between log lines during a long load.
const LOADING_EVERY: Duration = Duration::from_secs(5);

/// A server, bound but not running.
pub(crate) struct Server<P> {
    configuration: Configuration,
    profile: P,
    listeners: Listeners,
    tls: Option<Arc<Tls>>,
}

/// The announcement of a server that is ready.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    /// The URL of REST.
    pub(crate) http: String,
    /// The URL of the Redis protocol, if the process serves it.
    pub(crate) redis: Option<String>,
    /// The number of edges, if the store knows it.
    pub(crate) edges: Option<u64>,
    /// The time that the load took.
    pub(crate) loaded_in: Duration,
    /// Whether authentication is off.
    pub(crate) is_open: bool,
}

impl std::fmt::Display for Ready {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { http, redis, edges, loaded_in, is_open } = self;
        write!(out, "ready: {http}")?;
        if let Some(redis) = redis {
            write!(out, " {redis}")?;
        }
        if let Some(edges) = edges {
            write!(out, ", {} edges", grouped(*edges))?;
        }
        write!(out, ", loaded in {:.1} s", loaded_in.as_secs_f64())?;
        if *is_open {
            write!(out, "; authentication is off, only this machine can connect")?;
        }
        Ok(())
    }
}

impl<P: Profile> Server<P> {
    /// Validates the configuration and binds the sockets.
    pub(crate) fn bind(configuration: &Configuration, profile: &P) -> Result<Self> {
        let role = configuration.server.role;
        profile.require_role(role)?;
        protocols::check(configuration)?;
        let (http, resp) = (configuration.http.address, configuration.resp.address);
        let resp = role.serves_api().then_some(resp);
        Self::with_listeners(configuration, profile, Listeners::bind(http, resp)?)
    }

    /// As [`Server::bind`], on sockets that are already bound.
    pub(crate) fn with_listeners(
        configuration: &Configuration,
        profile: &P,
        listeners: Listeners,
    ) -> Result<Self> {
        let tls = protocols::tls(configuration)?;
        Ok(Self { configuration: configuration.clone(), profile: profile.clone(), listeners, tls })
    }

    /// Serves until a signal stops it, then drains and closes. Calls `announce` once, when it is ready, unless a signal came
    /// before. If a part of it fails, the whole server stops with an error, so that a supervisor can restart it.
    pub(crate) fn run(self, announce: impl FnOnce(&Ready)) -> Result<()> {
        // Before the threads that serve are started: they inherit it.
        #[cfg(target_os = "linux")]
        if let Err(error) = time_slices::shorten() {
            tracing::info!(%error, "threads keep the usual time slices");
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.configuration.http.threads.0)
            // The usual 61 tasks take two milliseconds here, for which new requests would wait.
            .event_interval(7)
            .global_queue_interval(7)
            .thread_name("kinfolk-rest")
            .enable_all()
            .build()
            .context("could not start threads")?;
        let served = runtime.block_on(self.serve(announce));
        let wait = match &served {
            Ok(Some(served)) => served.remaining_grace(),
            // An interrupted load is abandoned.
            _ => Duration::ZERO,
        };
        runtime.shutdown_timeout(wait);
        served?.map_or(Ok(()), |Served { store, outcome, .. }| outcome.and(close(store)))
    }

    /// Serves until the end; returns the store to close, if it was loaded.
    async fn serve(self, announce: impl FnOnce(&Ready)) -> Result<Option<Served<P::Store>>> {
        let Self { configuration, profile, listeners, tls } = self;
        let mut signals = Signals::new().context("could not listen for signals")?;
        let door = Door::closed();
        let Urls { http, redis } = listeners.urls(tls.is_some())?;
        let Listeners { http: http_listener, resp: resp_listener } = listeners;
        let mut protocols = Protocols::start_rest(&configuration, http_listener, tls, Arc::clone(&door))?;

        let loading = resp_listener.as_ref().map(|listener| protocols.start_loading(listener)).transpose()?;

        let began = Instant::now();
        let store = tokio::select! {
            store = load(profile.clone()) => store?,
            _ = signals.stop() => return Ok(None),
            broken = protocols.broken() => return Err(broken),
        };
        let loaded_in = began.elapsed();
        let access = protocols::access(&configuration, &store, profile.shared_budgets())?;
        let is_open = access.is_open();
        let service = service(&profile, access, &store);
        door.open(Arc::clone(&service));
        if let (Some(listener), Some(loading)) = (resp_listener, loading) {
            let waiting = loading.finish().await;
            protocols.start_resp(&configuration, listener, waiting, Arc::clone(&service))?;
        }
        // It serves already, but may have to wait for others before it is ready.
        let background = tokio::select! {
            background = profile.start_background(&store) => Some(background?),
            _ = signals.stop() => None,
        };
        let (mut outcome, mut schedule) = (Ok(()), None);
        if background.is_some() {
            let edges = EdgeKind::ALL.iter().map(|&kind| store.edge_count(kind)).sum();
            announce(&Ready { http, redis, edges, loaded_in, is_open });
            if let Some(request) = profile.everyone() {
                schedule = Schedule::start(store.clone(), request, configuration.suggest.every.0)?;
            }
            outcome = watch(&mut signals, &service, &mut protocols, schedule.as_ref()).await;
        }
        // It stops by a signal, or because a part failed.
        let signalled = outcome.is_ok().then(Instant::now);
        Signals::end_at_once_on_the_next(signalled).context("could not start a thread")?;
        door.close();
        match &outcome {
            Ok(()) => tracing::info!("stopping"),
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "stopping: a part of the server failed");
            }
        }
        if let Some(schedule) = schedule {
            outcome = outcome.and(schedule.stop().await);
        }
        // A failed store still serves reads. Nobody knows of a server that was never ready.
        if background.is_some() && (outcome.is_ok() || service.failure().is_some()) {
            tokio::time::sleep(configuration.drain()).await;
        }
        let grace_ends = Instant::now() + configuration.server.grace.0;
        outcome = outcome.and(protocols.stop().await);
        if let Some(background) = background {
            P::stop_background(background).await;
        }
        Ok(Some(Served { store, grace_ends, outcome }))
    }
}

/// A server that takes no more requests.
struct Served<S> {
    store: S,
    /// When the grace period of bulk work ends.
    grace_ends: Instant,
    /// Ok after a signal, otherwise why it stopped.
    outcome: Result<()>,
}

impl<S> Served<S> {
    /// How long to wait for bulk work, within the grace period of requests.
    fn remaining_grace(&self) -> Duration {
        self.grace_ends.saturating_duration_since(Instant::now()).max(CANCELLATION_TIME)
    }
}

/// Closes the store. Bulk work that still runs is abandoned: the next start discards or finishes it, as after a crash.
fn close(store: impl OpenStore) -> Result<()> {
    match store.close() {
        Err(Error::InUse { .. }) => {
            tracing::warn!(
                "bulk work was still running at the end of the grace period; the next start recovers"
            );
            Ok(())
        }
        closed => closed.context("the store could not be closed cleanly"),
    }
}

/// Opens or creates the store on a blocking thread.
async fn load<P: Profile>(profile: P) -> Result<P::Store> {
    tracing::info!(location = profile.location(), "loading");
    let began = Instant::now();
    let mut loading = tokio::task::spawn_blocking(move || profile.open_or_create());
    let mut ticks = tokio::time::interval(LOADING_EVERY);
    ticks.tick().await;
    loop {
        tokio::select! {
            loaded = &mut loading => return loaded.context("the store could not be loaded")?,
            _ = ticks.tick() => tracing::info!(seconds = began.elapsed().as_secs(), "still loading"),
        }
    }
}

fn service<P: Profile>(profile: &P, access: Access, store: &P::Store) -> Arc<Service<P::Store>> {
    let page_limit_max = CoreContext::<P::Store>::PAGE_LIMIT_MAX;
    let context = CoreContext::new(Arc::new(store.clone()), store.keyring(), page_limit_max);
    let administration = profile.administration(store);
    Arc::new(Service::new(context, profile.service_settings(), access, administration))
}

/// Watches files, signals, the store, the protocols and the schedule of suggestions until a signal stops the server or a part
/// of it fails.
async fn watch<S: OpenStore>(
    signals: &mut Signals,
    service: &Arc<Service<S>>,
    protocols: &mut Protocols,
    schedule: Option<&Schedule>,
) -> Result<()> {
    let mut ticks = tokio::time::interval(CHECK_FILES_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            request = signals.next() => match request {
                SignalRequest::Stop(_) => return Ok(()),
                SignalRequest::Reload => protocols.reload(service),
            },
            _ = ticks.tick() => {
                if let Some(reason) = service.failure() {
                    return Err(anyhow::Error::msg(reason).context("the store has failed"));
                }
                if schedule.is_some_and(Schedule::has_failed) {
                    anyhow::bail!("the schedule of suggestions ended by itself");
                }
                protocols.reload_if_changed(service);
            }
            broken = protocols.broken() => return Err(broken),
        }
    }
}
