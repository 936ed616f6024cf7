//! Starts, watches and stops both protocols. A task that ends by itself is detected: a server without it must not report
//! that it is ready.

use std::collections::HashMap;
use std::future::{Future, pending};
use std::sync::Arc;

use anyhow::{Context, Result};
use kinfolk_core::{IdKind, Store};
use kinfolk_server::resp::{self, Loading, RespSettings, Waiting};
use kinfolk_server::rest::{self, RestSettings};
use kinfolk_server::{
    Access, AccessSettings, ConsoleSettings, Door, LimitSettings, Protocol, Service, SharedBudgets, Tls,
    TlsSettings, TokenSettings, require_safe_binding,
};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::failure::UsageError;
use crate::settings::{Configuration, TlsFiles};

/// Returns an error for settings that cannot work.
pub(crate) fn check(configuration: &Configuration) -> Result<()> {
    // The store decides the kind of ids later; this checks the files.
    let ids = configuration.data.ids.unwrap_or(IdKind::Integer);
    let is_open = new_access(configuration, ids, None)?.is_open();
    require_safe_binding(configuration.http.address, is_open)?;
    require_safe_binding(configuration.resp.address, is_open)?;
    if configuration.resp.unfinished_timeout.0.is_zero() {
        let message = "resp.unfinished_timeout: expected more than 0 s, such as 60 s";
        return Err(UsageError(message.to_owned()).into());
    }
    Ok(())
}

/// The certificate and its key, if configured.
pub(crate) fn tls(configuration: &Configuration) -> Result<Option<Arc<Tls>>> {
    let TlsFiles { certificates, key } = &configuration.tls;
    match (certificates.clone(), key.clone()) {
        (None, None) => Ok(None),
        (Some(certificates), Some(key)) => Ok(Some(Arc::new(Tls::load(&TlsSettings { certificates, key })?))),
        _ => Err(UsageError("set both tls.certificates and tls.key, or neither".to_owned()).into()),
    }
}

/// Authentication and limits, which other processes may share.
pub(crate) fn access(
    configuration: &Configuration,
    store: &impl Store,
    shared_budgets: Option<Arc<SharedBudgets>>,
) -> Result<Access> {
    new_access(configuration, store.id_kind(), shared_budgets)
}

fn new_access(
    configuration: &Configuration,
    id_kind: IdKind,
    shared_budgets: Option<Arc<SharedBudgets>>,
) -> Result<Access> {
    let auth = &configuration.auth;
    let has_tokens = auth.token_keys.is_some() || auth.token_secret.is_some();
    let tokens = has_tokens.then(|| TokenSettings {
        keys_file: auth.token_keys.clone(),
        secret_file: auth.token_secret.clone(),
        algorithms: auth.algorithms.0.clone(),
        audiences: auth.audience.0.clone(),
        issuers: auth.issuer.0.clone(),
        leeway: auth.leeway.0,
        allow_moderate: auth.moderators,
    });
    if auth.keys.is_none() && tokens.is_none() {
        return Ok(Access::open());
    }
    let limits = &configuration.limits;
    let limits = LimitSettings {
        key: limits.key.0,
        user: limits.user.0,
        changes: limits.changes.0,
        budgets_max: limits.remembered.0,
        author_comments: configuration.comments.author_rate.0,
        parent_comments: configuration.comments.parent_rate.0,
    };
    let settings = AccessSettings { id_kind, keys_file: auth.keys.clone(), tokens, limits, shared_budgets };
    Ok(Access::new(&settings)?)
}

/// What the console shows, if it is served.
fn console(configuration: &Configuration) -> Option<ConsoleSettings> {
    let is_served = configuration.http.console && configuration.server.role.serves_api();
    is_served.then(|| ConsoleSettings {
        profile: if configuration.fleet.catalog.is_some() { "fleet" } else { "embedded" },
        version: env!("CARGO_PKG_VERSION"),
        settings: configuration.effective.clone(),
    })
}

/// Maximum number of concurrent reloads: a disk that hangs must not use up threads.
const RELOADS_MAX: usize = 2;

/// Adopts the caller's trace in a request, if traces are sent.
#[cfg(feature = "otlp")]
fn adopt_trace(configuration: &Configuration) -> Option<rest::AdoptTrace> {
    configuration.tracing.otlp_endpoint.as_ref().map(|_| super::spans::adopt as rest::AdoptTrace)
}

/// This binary sends no traces.
#[cfg(not(feature = "otlp"))]
fn adopt_trace(_: &Configuration) -> Option<rest::AdoptTrace> {
    None
}

/// The running protocols.
pub(crate) struct Protocols {
    tls: Option<Arc<Tls>>,
    stop: CancellationToken,
    parts: Parts,
    /// Running reloads of keys and certificates.
    reloads: JoinSet<()>,
}

impl Protocols {
    /// Starts REST, which reports that it is not ready until the door is open.
    pub(crate) fn start_rest<S: Store>(
        configuration: &Configuration,
        listener: std::net::TcpListener,
        tls: Option<Arc<Tls>>,
        door: Arc<Door<S>>,
    ) -> Result<Self> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let defaults = RestSettings::default();
        let settings = RestSettings {
            body_bytes_max: defaults.body_bytes_max.max(configuration.comments.request_bytes_max()),
            connections_max: configuration.http.connections.0,
            request_timeout: configuration.http.timeout.0,
            drain_timeout: configuration.server.grace.0,
            allowed_origins: configuration.http.origins.0.clone(),
            is_system_only: !configuration.server.role.serves_api(),
            console: console(configuration),
            adopt_trace: adopt_trace(configuration),
            ..defaults
        };
        let stop = CancellationToken::new();
        let tls_config = tls.as_ref().map(|tls| tls.server_config(Protocol::Rest)).transpose()?;
        let mut parts = Parts::default();
        let rest = rest::serve(listener, tls_config, door, settings, stop.clone());
        parts.start("REST", async {
            rest.await;
            Ok(())
        });
        Ok(Self { tls, stop, parts, reloads: JoinSet::new() })
    }

    /// Replies on the port of the Redis protocol that the store is loading.
    pub(crate) fn start_loading(&self, listener: &std::net::TcpListener) -> Result<Loading> {
        let tls = self.tls.as_ref().map(|tls| tls.server_config(Protocol::Resp)).transpose()?;
        Ok(Loading::start(listener, tls)?)
    }

    /// Starts the Redis protocol, also for connections that were opened while the store was loading.
    pub(crate) fn start_resp<S: Store>(
        &mut self,
        configuration: &Configuration,
        listener: std::net::TcpListener,
        waiting: Waiting,
        service: Arc<Service<S>>,
    ) -> Result<()> {
        let defaults = RespSettings::default();
        let settings = RespSettings {
            threads: configuration.resp.threads.map_or(defaults.threads, |threads| threads.0),
            connections_max: configuration.resp.connections.0,
            service_connections_max: configuration.resp.key_connections.0,
            user_connections_max: configuration.resp.user_connections.0,
            tracking_items_max: configuration.resp.tracked_reads.0,
            memory_bytes_max: configuration.resp.memory.0 as usize,
            service_memory_bytes_max: configuration.resp.key_memory.0 as usize,
            user_memory_bytes_max: configuration.resp.user_memory.0 as usize,
            connection_memory_bytes_max: configuration.resp.connection_memory.0 as usize,
            idle_max: configuration.resp.idle_timeout.map(|timeout| timeout.0).filter(|max| !max.is_zero()),
            unfinished_max: configuration.resp.unfinished_timeout.0,
            drain_max: configuration.server.grace.0,
            slow_log_threshold: Some(configuration.resp.slow_threshold.0).filter(|min| !min.is_zero()),
            slow_log_length: configuration.resp.slow_commands.0,
            trace_sample: configuration
                .tracing
                .otlp_endpoint
                .as_ref()
                .map_or(0.0, |_| configuration.tracing.sample.0),
            ..defaults
        };
        let tls_config = self.tls.as_ref().map(|tls| tls.server_config(Protocol::Resp)).transpose()?;
        let stop = self.stop.clone();
        let resp = resp::run_after_loading(listener, waiting, tls_config, service, settings, stop);
        self.parts.start("the Redis protocol", async { Ok(resp.await?) });
        Ok(())
    }

    /// Reloads keys and certificates.
    pub(crate) fn reload<S: Store>(&mut self, service: &Arc<Service<S>>) {
        if self.reloads.len() >= RELOADS_MAX {
            return;
        }
        let (service, tls) = (Arc::clone(service), self.tls.clone());
        // The files are small, but the disk may be slow.
        self.reloads.spawn_blocking(move || {
            let reloaded = service.access.reload().and_then(|()| tls.map_or(Ok(()), |tls| tls.reload()));
            match reloaded {
                Ok(()) => tracing::info!("keys and certificates were reloaded"),
                Err(error) => {
                    tracing::error!(%error, "could not reload keys or certificates; the old ones stay in use");
                }
            }
        });
    }

    /// Reloads keys and certificates if they have changed.
    pub(crate) fn reload_if_changed<S: Store>(&mut self, service: &Arc<Service<S>>) {
        if !self.reloads.is_empty() {
            return;
        }
        let (service, tls) = (Arc::clone(service), self.tls.clone());
        self.reloads.spawn_blocking(move || {
            service.access.poll();
            if let Some(tls) = tls {
                tls.poll();
            }
        });
    }

    /// Waits until a task fails that should run until the server stops; returns the reason.
    pub(crate) async fn broken(&mut self) -> anyhow::Error {
        loop {
            tokio::select! {
                broken = self.parts.broken() => return broken,
                Some(reload) = self.reloads.join_next() => {
                    if let Err(error) = reload {
                        return anyhow::Error::new(error).context("watching keys and certificates ended by itself");
                    }
                }
            }
        }
    }

    /// Stops accepting requests and waits for those in flight.
    pub(crate) async fn stop(self) -> Result<()> {
        self.stop.cancel();
        self.parts.finish().await
    }
}

/// The tasks that run until the server stops, by name.
#[derive(Default)]
struct Parts {
    tasks: JoinSet<Result<()>>,
    names: HashMap<Id, &'static str>,
}

impl Parts {
    fn start(&mut self, name: &'static str, part: impl Future<Output = Result<()>> + Send + 'static) {
        let task = self.tasks.spawn(part);
        self.names.insert(task.id(), name);
    }

    /// Waits until a part ends without being stopped, which is always a failure.
    async fn broken(&mut self) -> anyhow::Error {
        let Some(ended) = self.tasks.join_next_with_id().await else { return pending().await };
        let Ended { name, outcome } = self.ended(ended);
        match outcome {
            Ok(()) => anyhow::anyhow!("{name} ended by itself"),
            Err(error) => error.context(format!("{name} ended by itself")),
        }
    }

    /// Waits for all parts to end after a stop; returns the first failure.
    async fn finish(mut self) -> Result<()> {
        let mut outcome = Ok(());
        while let Some(ended) = self.tasks.join_next_with_id().await {
            let Ended { name, outcome: ended } = self.ended(ended);
            outcome = outcome.and(ended.with_context(|| format!("{name} failed")));
        }
        outcome
    }

    fn ended(&self, joined: Result<(Id, Result<()>), JoinError>) -> Ended {
        let (id, outcome) = match joined {
            Ok((id, outcome)) => (id, outcome),
            Err(error) => (error.id(), Err(error.into())),
        };
        Ended { name: self.names.get(&id).copied().unwrap_or("a task"), outcome }
    }
}

/// A part that has ended.
struct Ended {
    name: &'static str,
    outcome: Result<()>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protocols() -> Protocols {
        let mut parts = Parts::default();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        parts.start("the other", async move {
            stopped.cancelled().await;
            Ok(())
        });
        Protocols { tls: None, stop, parts, reloads: JoinSet::new() }
    }

    #[tokio::test]
    async fn a_part_that_ends_by_itself_is_detected() {
        for (reason, expected) in
            [(None, "it panicked"), (Some(Err("it failed")), "it failed"), (Some(Ok(())), "")]
        {
            let mut protocols = protocols();
            protocols.parts.start("REST", async move {
                match reason {
                    None => panic!("it panicked"),
                    Some(outcome) => outcome.map_err(anyhow::Error::msg),
                }
            });
            let broken = format!("{:#}", protocols.broken().await);
            assert!(broken.starts_with("REST ended by itself") && broken.contains(expected), "{broken}");
            protocols.stop().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_reload_may_end_but_not_panic() {
        let mut protocols = protocols();
        protocols.reloads.spawn_blocking(|| ());
        protocols.reloads.spawn_blocking(|| panic!("it panicked"));
        let broken = format!("{:#}", protocols.broken().await);
        assert!(broken.contains("keys and certificates") && broken.contains("it panicked"), "{broken}");
    }

    #[tokio::test]
    async fn a_failure_during_the_stop_is_reported_after_all_parts_ended() {
        let mut protocols = protocols();
        let stop = protocols.stop.clone();
        protocols.parts.start("REST", async move {
            stop.cancelled().await;
            anyhow::bail!("it failed")
        });
        let failed = format!("{:#}", protocols.stop().await.unwrap_err());
        assert_eq!(failed, "REST failed: it failed");
    }
}
