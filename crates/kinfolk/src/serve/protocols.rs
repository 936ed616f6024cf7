//! The wiring of both protocols: their settings, their tasks, their end.

use std::sync::Arc;

use anyhow::{Context, Result};
use kinfolk_core::IdKind;
use kinfolk_core::graph::EdgeStore;
use kinfolk_embedded::Embedded;
use kinfolk_server::resp::{self, RespSettings};
use kinfolk_server::rest::{self, RestSettings};
use kinfolk_server::{
    Access, AccessSettings, Door, LimitSettings, Protocol, Service, Tls, TlsSettings, TokenSettings,
    require_safe_binding,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Listeners;
use crate::failure::UsageError;
use crate::settings::{Configuration, TlsFiles};

/// Refuses settings that can't work, before anything is done.
pub fn check(configuration: &Configuration) -> Result<()> {
    // Of which kind the ids are only shows with the store; what the files hold shows now.
    let ids = configuration.data.ids.unwrap_or(IdKind::Integer);
    let is_open = new_access(configuration, ids)?.is_open();
    require_safe_binding(configuration.http.address, is_open)?;
    require_safe_binding(configuration.resp.address, is_open)?;
    Ok(())
}

/// The certificate, if there shall be encryption.
pub fn tls(configuration: &Configuration) -> Result<Option<Arc<Tls>>> {
    let TlsFiles { certificates, key } = &configuration.tls;
    match (certificates.clone(), key.clone()) {
        (None, None) => Ok(None),
        (Some(certificates), Some(key)) => Ok(Some(Arc::new(Tls::load(&TlsSettings { certificates, key })?))),
        _ => {
            Err(UsageError("tls.certificates and tls.key belong together; set both or none".to_owned())
                .into())
        }
    }
}

/// Who may do what.
pub fn access(configuration: &Configuration, store: &Embedded) -> Result<Access> {
    new_access(configuration, store.id_kind())
}

fn new_access(configuration: &Configuration, id_kind: IdKind) -> Result<Access> {
    let auth = &configuration.auth;
    let tokens = auth.token_keys.clone().map(|keys_file| TokenSettings {
        keys_file,
        algorithms: auth.algorithms.0.clone(),
        audiences: auth.audience.0.clone(),
        issuers: auth.issuer.0.clone(),
        leeway: auth.leeway.0,
        allow_moderate: auth.moderators,
        ..TokenSettings::new("", "")
    });
    if auth.keys.is_none() && tokens.is_none() {
        return Ok(Access::open());
    }
    let limits = &configuration.limits;
    let limits = LimitSettings {
        key: limits.key.0,
        user: limits.user.0,
        changes: limits.changes.0,
        remembered: limits.remembered.0,
        author_comments: configuration.comments.author_rate.0,
        parent_comments: configuration.comments.parent_rate.0,
    };
    let settings = AccessSettings { id_kind, keys_file: auth.keys.clone(), tokens, limits };
    Ok(Access::new(&settings)?)
}

/// Where clients find both protocols.
pub fn urls(listeners: &Listeners, is_encrypted: bool) -> Result<(String, String)> {
    let (http, redis) = if is_encrypted { ("https", "rediss") } else { ("http", "redis") };
    Ok((
        format!("{http}://{}", listeners.http_address()?),
        format!("{redis}://{}", listeners.resp_address()?),
    ))
}

/// How requests join the traces of their callers, if traces are sent.
#[cfg(feature = "otlp")]
fn adopt_trace(configuration: &Configuration) -> Option<rest::AdoptTrace> {
    configuration.tracing.otlp_endpoint.as_ref().map(|_| super::spans::adopt as rest::AdoptTrace)
}

/// This binary sends no traces.
#[cfg(not(feature = "otlp"))]
fn adopt_trace(_: &Configuration) -> Option<rest::AdoptTrace> {
    None
}

/// Both protocols while they are served.
pub struct Protocols {
    tls: Option<Arc<Tls>>,
    stop: CancellationToken,
    rest: JoinHandle<()>,
    resp: Option<JoinHandle<std::io::Result<()>>>,
}

impl Protocols {
    /// Starts REST, which says that it is not ready until the door is open.
    pub fn start_rest(
        configuration: &Configuration,
        listener: std::net::TcpListener,
        tls: Option<Arc<Tls>>,
        door: Arc<Door<Embedded>>,
    ) -> Result<Self> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let defaults = RestSettings::default();
        let settings = RestSettings {
            body_bytes_max: defaults.body_bytes_max.max(configuration.comments.request_bytes_max()),
            connections_max: configuration.http.connections.0,
            request_timeout: configuration.http.timeout.0,
            drain_timeout: configuration.server.grace.0,
            allowed_origins: configuration.http.origins.0.clone(),
            adopt_trace: adopt_trace(configuration),
            ..defaults
        };
        let stop = CancellationToken::new();
        let tls_config = tls.as_ref().map(|tls| tls.server_config(Protocol::Rest)).transpose()?;
        let rest = tokio::spawn(rest::serve(listener, tls_config, door, settings, stop.clone()));
        Ok(Self { tls, stop, rest, resp: None })
    }

    /// Starts the Redis protocol.
    pub fn start_resp(
        &mut self,
        configuration: &Configuration,
        listener: std::net::TcpListener,
        service: Arc<Service<Embedded>>,
    ) -> Result<()> {
        let defaults = RespSettings::default();
        let settings = RespSettings {
            threads: configuration.resp.threads.map_or(defaults.threads, |threads| threads.0),
            connections_max: configuration.resp.connections.0,
            service_connections_max: configuration.resp.key_connections.0,
            user_connections_max: configuration.resp.user_connections.0,
            drain_max: configuration.server.grace.0,
            ..defaults
        };
        let tls_config = self.tls.as_ref().map(|tls| tls.server_config(Protocol::Resp)).transpose()?;
        self.resp = Some(tokio::spawn(resp::run(listener, tls_config, service, settings, self.stop.clone())));
        Ok(())
    }

    /// Reads keys and certificates again.
    pub fn reload(&self, service: &Arc<Service<Embedded>>) {
        let (service, tls) = (Arc::clone(service), self.tls.clone());
        // The files are small, but a disk may take its time.
        tokio::task::spawn_blocking(move || {
            let reloaded = service.access.reload().and_then(|()| tls.map_or(Ok(()), |tls| tls.reload()));
            match reloaded {
                Ok(()) => tracing::info!("keys and certificates were read again"),
                Err(error) => {
                    tracing::error!(%error, "keys or certificates could not be read; the old ones stay");
                }
            }
        });
    }

    /// Reads keys and certificates again if they have changed.
    pub fn look(&self, service: &Arc<Service<Embedded>>) {
        let (service, tls) = (Arc::clone(service), self.tls.clone());
        tokio::task::spawn_blocking(move || {
            service.access.poll();
            if let Some(tls) = tls {
                tls.poll();
            }
        });
    }

    /// Takes no more requests and waits for those in flight.
    pub async fn stop(self) -> Result<()> {
        self.stop.cancel();
        self.rest.await.context("REST ended badly")?;
        if let Some(resp) = self.resp {
            resp.await.context("the Redis protocol ended badly")?.context("the Redis protocol failed")?;
        }
        Ok(())
    }
}
