//! REST: routes, problem documents, server-sent events, the OpenAPI document. The JSON is defined in `kinfolk-api`, the rules of
//! the graph in `kinfolk-core`, and permissions in `access`.
//!
//! A request passes, from the outside in: `connection` (sockets, TLS, malformed requests), `respond` (request id,
//! problem documents), `guard` (what the endpoint declares: who may, at what cost, how long), and one function per route.

pub(crate) mod admin;
mod changes;
mod checks;
mod comments;
mod connection;
mod counts;
mod document;
pub(crate) mod endpoint;
pub(crate) mod entity_tag;
mod exchange;
pub(crate) mod extract;
pub(crate) mod guard;
mod hyper_socket;
pub(crate) mod json;
mod json_body;
mod lists;
mod malformed;
mod new_post;
mod origin;
mod output;
mod overlaps;
pub mod pairs;
mod posts;
pub(crate) mod problem;
pub(crate) mod query;
pub(crate) mod request_id;
mod respond;
pub(crate) mod routes;
pub(crate) mod stream;
mod suggestions;
mod system;
mod tail;
mod trace_context;
mod write_timeout;
mod writes;

/// What the files of routes import.
mod prelude {
    pub(super) use axum::Json;
    pub(super) use axum::extract::State;
    pub(super) use axum::response::{IntoResponse, Response};
    pub(super) use kinfolk_api as api;
    pub(super) use kinfolk_core::{EdgeKind, Error, ErrorCode, Result};
    pub(super) use utoipa_axum::routes;

    pub(super) use super::endpoint::{ActorRule, Cost, Endpoint};
    pub(super) use super::entity_tag::{Cached, EntityTag};
    pub(super) use super::extract::{Call, IdempotencyKey, Ids, JsonBody, NamedComment, NoBody, NoInput};
    pub(super) use super::problem::{Failure, RestResult};
    pub(super) use super::query::{NoQuery, Page, PageParameters, Query, invalid};
    pub(super) use super::routes::Routes;
    pub(super) use super::{Shared, Store};
    pub(super) use crate::metrics::Operation;
    pub(super) use crate::service::Capability;
}

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use utoipa::openapi::OpenApi;

use crate::console::{self, Console, ConsoleSettings};
use crate::service::Door;

/// How many imports, exports, verifications, backups and computations may run at once: each takes a thread and much of
/// the disk.
const JOBS_MAX: usize = 4;

pub use kinfolk_core::Store;
pub use origin::Origin;
pub use trace_context::{AdoptTrace, TraceParent};

/// Settings of REST.
#[derive(Clone, Debug)]
pub struct RestSettings {
    /// How many connections may be open; further ones wait to be accepted.
    pub connections_max: usize,
    /// How long a connection may take to send the headers of a request, the wait between two requests included.
    pub header_timeout: Duration,
    /// How long a request may take, its body included. Streams and administration are not bounded by it.
    pub request_timeout: Duration,
    /// How long an import may wait for more of its file.
    pub read_timeout: Duration,
    /// How long a response may wait for a client that does not read.
    pub write_timeout: Duration,
    /// How long requests may take to finish once the server stops.
    pub drain_timeout: Duration,
    /// How many bytes of responses may wait for clients to read them, in all.
    pub output_bytes_max: usize,
    /// How many of them may be responses to one caller.
    pub caller_output_bytes_max: usize,
    /// The largest body, except that of an import.
    pub body_bytes_max: usize,
    /// How often an event stream without news says that it is alive.
    pub keep_alive_interval: Duration,
    /// The origins whose web pages may call; none by default.
    pub allowed_origins: Vec<Origin>,
    /// Whether only health, readiness and metrics are served: the process has no API.
    pub is_system_only: bool,
    /// The console, unless it is off.
    pub console: Option<ConsoleSettings>,
    /// Makes the span of a request the child of its caller's, if spans go anywhere.
    pub adopt_trace: Option<AdoptTrace>,
}

impl Default for RestSettings {
    fn default() -> Self {
        Self {
            connections_max: 20_000,
            header_timeout: Duration::from_secs(60),
            request_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(30),
            output_bytes_max: 256 << 20,
            caller_output_bytes_max: 64 << 20,
            body_bytes_max: 256 * 1024,
            keep_alive_interval: Duration::from_secs(15),
            allowed_origins: Vec::new(),
            is_system_only: false,
            console: None,
            adopt_trace: None,
        }
    }
}

/// What all connections share.
pub(crate) struct Rest<S: Store> {
    pub(crate) door: Arc<Door<S>>,
    pub(crate) settings: RestSettings,
    /// Connections end: no more are accepted by then.
    stop: CancellationToken,
    tail: tail::Tail,
    jobs: Arc<Semaphore>,
    output: Arc<output::Output>,
    request_ids: request_id::RequestIds,
    document: document::Document,
    pub(crate) console: Console,
    /// Whether connections are encrypted.
    pub(crate) is_encrypted: bool,
}

pub(crate) type Shared<S> = Arc<Rest<S>>;

impl<S: Store> Rest<S> {
    fn new(door: Arc<Door<S>>, settings: RestSettings, is_encrypted: bool, api: OpenApi) -> Shared<S> {
        let console = Console::new(settings.console.clone());
        let output = output::Output::new(settings.output_bytes_max, settings.caller_output_bytes_max);
        Arc::new(Self {
            door,
            settings,
            stop: CancellationToken::new(),
            tail: tail::Tail::default(),
            jobs: Arc::new(Semaphore::new(JOBS_MAX)),
            output: Arc::new(output),
            request_ids: request_id::RequestIds::new(),
            document: document::Document::new(api),
            console,
            is_encrypted,
        })
    }
}

/// Serves REST until `stop`, and until the requests that it has accepted by then have their responses.
pub async fn serve<S: Store>(
    listener: tokio::net::TcpListener,
    tls: Option<Arc<ServerConfig>>,
    door: Arc<Door<S>>,
    settings: RestSettings,
    stop: CancellationToken,
) {
    let mut routes = if settings.is_system_only { routes::system_only::<S>() } else { routes::all::<S>() };
    if settings.console.is_some() {
        routes = console::routes(routes);
    }
    let shared = Rest::new(door, settings, tls.is_some(), routes.api.clone());
    let router = routes::finish(routes, &shared);
    let watching = console::watch(Arc::clone(&shared));
    tokio::select! {
        () = connection::accept(listener, tls, shared, router, stop) => {}
        never = watching => match never {},
    }
}
