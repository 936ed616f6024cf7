//! What is said about a route once, where it is registered: who may call it, how long it may take, what it is counted
//! as, and how it may refuse. The guard in front of the route and the OpenAPI document both follow from it.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use kinfolk_core::{Error, ErrorCode, Result};
use tokio::time::timeout;

use super::exchange::Exchange;
use super::extract::{ACTOR, Call, header};
use super::output::Rule;
use super::problem::Failure;
use super::request_id::RequestId;
use super::{Rest, Shared, Store};
use crate::access::{Caller, Identity, Scope};
use crate::limits::Budget;
use crate::metrics::{Operation, Protocol};
use crate::service::{Capability, Service};

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const RATE_LIMIT_REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RATE_LIMIT_RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Everybody, with or without credentials.
    Everybody,
    /// Callers that hold a scope.
    Holders(Scope),
    /// As [`Admission::Holders`], and of end users only the one whom the path names first or the parameter `viewer`
    /// names, or whose comment it is. That is for the route to see to, once it has read them.
    Oneself(Scope),
    /// Services that hold a scope; end users are refused.
    Services(Scope),
}

impl Admission {
    /// The scope that is needed.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Self::Everybody => None,
            Self::Holders(scope) | Self::Oneself(scope) | Self::Services(scope) => Some(scope),
        }
    }

    /// Who else is refused, as the document says it.
    pub fn audience(self) -> &'static str {
        match self {
            Self::Everybody => "everybody",
            Self::Holders(_) => "callers",
            Self::Oneself(_) => "oneself",
            Self::Services(_) => "services",
        }
    }
}

/// What an endpoint does with the token of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenUse {
    /// It takes none.
    Ignored,
    /// The response shows at least what the token covers.
    Awaited,
    /// The token of the response covers it.
    Joined,
}

/// A route, but for its path and its function.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// What it is counted as.
    pub operation: Operation,
    /// Who may call it.
    pub admission: Admission,
    /// Whether it changes something.
    pub changes: bool,
    /// Whether it does so in the name of an actor.
    pub acts: bool,
    /// What it does with the request's token.
    pub token: TokenUse,
    /// Whether it takes as long as it takes, and counts itself when it ends.
    pub is_long: bool,
    /// Whether it can be so much work that it is given up a moment after its client closes its sending side, and so may be
    /// gone.
    pub is_abandonable: bool,
    /// What the profile must have for it.
    pub capability: Option<Capability>,
    /// How it may refuse or fail, apart from what every route of its sort has in common.
    pub refusals: &'static [ErrorCode],
}

impl Endpoint {
    /// Needs no caller.
    pub const fn open() -> Self {
        Self {
            operation: Operation::Other,
            admission: Admission::Everybody,
            changes: false,
            acts: false,
            token: TokenUse::Ignored,
            is_long: false,
            is_abandonable: false,
            capability: None,
            refusals: &[],
        }
    }

    /// Reads the graph.
    pub const fn read(operation: Operation) -> Self {
        let admission = Admission::Holders(Scope::Read);
        Self { operation, admission, token: TokenUse::Awaited, ..Self::open() }
    }

    /// Reads what an end user may see only of itself.
    pub const fn read_oneself(operation: Operation) -> Self {
        Self { admission: Admission::Oneself(Scope::Read), ..Self::read(operation) }
    }

    /// Changes the graph for an actor.
    pub const fn write(operation: Operation) -> Self {
        let admission = Admission::Holders(Scope::Write);
        Self { operation, admission, changes: true, acts: true, token: TokenUse::Joined, ..Self::open() }
    }

    /// Acts on what others have written, in nobody's name.
    pub const fn moderate(operation: Operation) -> Self {
        let admission = Admission::Holders(Scope::Moderate);
        Self { operation, admission, changes: true, token: TokenUse::Joined, ..Self::open() }
    }

    /// Reads what belongs to no user.
    pub const fn services(operation: Operation) -> Self {
        Self { operation, admission: Admission::Services(Scope::Read), ..Self::open() }
    }

    /// Administers the store.
    pub const fn admin(operation: Operation) -> Self {
        let admission = Admission::Services(Scope::Admin);
        Self { operation, admission, is_long: true, ..Self::open() }
    }

    /// May also refuse with these codes.
    pub const fn refusing(self, refusals: &'static [ErrorCode]) -> Self {
        Self { refusals, ..self }
    }

    /// Is refused where the profile lacks a capability.
    pub const fn needing(self, capability: Capability) -> Self {
        Self { capability: Some(capability), ..self }
    }

    /// Returns a token that covers the one of the request.
    pub const fn joining_token(self) -> Self {
        Self { token: TokenUse::Joined, ..self }
    }

    /// Takes as long as it takes.
    pub const fn long(self) -> Self {
        Self { is_long: true, ..self }
    }

    /// Is given up when its client leaves.
    pub const fn abandonable(self) -> Self {
        Self { is_abandonable: true, ..self }
    }
}

/// Stands in front of every route: lets in whom the endpoint admits, bounds the time, and counts.
pub async fn guard<S: Store>(
    State((shared, endpoint)): State<(Shared<S>, Endpoint)>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    tracing::Span::current().record("otel.name", endpoint.operation.name());
    let identified = match shared.door.service() {
        Some(service) => identify(&shared, service, endpoint, request.headers()),
        None => Ok(None),
    };
    let response = match identified {
        Err(error) => Failure(error).into_response(),
        Ok(None) => run(&shared, endpoint, next, request).await,
        Ok(Some(Identified { service, caller })) => {
            let (budget, identity) = (Arc::clone(&caller.budget), caller.identity.clone());
            let mut response = match admit(&shared, service, caller, endpoint, &request) {
                Err(error) => Failure(error).into_response(),
                Ok(call) => {
                    request.extensions_mut().insert(call);
                    let response = run(&shared, endpoint, next, request).await;
                    // A write was asked for room before it was applied, so that its response is never withheld.
                    let rule = if endpoint.changes { Rule::Owed } else { Rule::Limited };
                    let held = shared.output.hold_response(&identity, response, rule);
                    held.unwrap_or_else(|error| Failure(error).into_response())
                }
            };
            rate_limit_headers(&budget, response.headers_mut());
            response
        }
    };
    if let Some(service) = shared.door.service() {
        let failure = response.extensions().get::<Failure>();
        if let Some(Failure(error)) = failure {
            service.metrics.failed(Protocol::Rest, endpoint.operation, error.code());
        }
        if failure.is_some() || !endpoint.is_long {
            service.metrics.observe(Protocol::Rest, endpoint.operation, 1, started.elapsed());
        }
    }
    response
}

/// The caller of a route that has to know it.
struct Identified<'a, S: Store> {
    service: &'a Arc<Service<S>>,
    caller: Caller,
}

/// Finds the caller, if the route needs one. Refuses what no route accepts.
fn identify<'a, S: Store>(
    shared: &Rest<S>,
    service: &'a Arc<Service<S>>,
    endpoint: Endpoint,
    headers: &HeaderMap,
) -> Result<Option<Identified<'a, S>>> {
    if service.access.is_open() {
        refuse_foreign_pages(shared, headers)?;
    }
    if endpoint.admission == Admission::Everybody {
        // No credential is needed here, so an invalid one is ignored.
        if headers.contains_key(ACTOR)
            && let Ok(caller) = caller(service, headers)
        {
            refuse_other_actor(service, &caller, headers)?;
        }
        return Ok(None);
    }
    if service.access.is_open() {
        refuse_foreign_names(shared, headers)?;
    }
    Ok(Some(Identified { service, caller: caller(service, headers)? }))
}

fn admit<S: Store>(
    shared: &Rest<S>,
    service: &Arc<Service<S>>,
    caller: Caller,
    endpoint: Endpoint,
    request: &Request,
) -> Result<Call<S>> {
    caller.admit(1)?;
    refuse_other_actor(service, &caller, request.headers())?;
    if let Some(scope) = endpoint.admission.scope() {
        caller.require(scope)?;
    }
    if let Admission::Services(_) = endpoint.admission {
        caller.require_service()?;
    }
    if let Some(capability) = endpoint.capability {
        service.require(capability)?;
    }
    if endpoint.changes {
        shared.output.require_room(&caller.identity)?;
    }
    let request_id = request.extensions().get::<RequestId>().cloned();
    let request_id = request_id.unwrap_or_else(|| shared.request_ids.of(request.headers()));
    Ok(Call { service: Arc::clone(service), caller, request_id })
}

/// Who calls, by the header `Authorization`.
fn caller<S: Store>(service: &Service<S>, headers: &HeaderMap) -> Result<Caller> {
    const EXPECTED: Error =
        Error::Unauthenticated { detail: "the header Authorization must be: Bearer CREDENTIAL" };
    let Some(text) = header(headers, &AUTHORIZATION).map_err(|_| EXPECTED)? else {
        return service.access.anonymous();
    };
    let (scheme, credential) = text.split_once(' ').ok_or(EXPECTED)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(EXPECTED);
    }
    service.access.authenticate(credential.trim_start())
}

/// End users act only as themselves. A request that names another actor is refused, also where nobody acts.
fn refuse_other_actor<S: Store>(service: &Service<S>, caller: &Caller, headers: &HeaderMap) -> Result<()> {
    let Identity::User(user) = caller.identity else { return Ok(()) };
    match header(headers, &ACTOR)? {
        Some(named) if service.id_kind().parse(named).ok() != Some(user) => {
            Err(Error::Forbidden { detail: "a user acts only as itself".to_owned() })
        }
        _ => Ok(()),
    }
}

/// Without authentication, requests must name a host of this machine. A web page can have a name of its own lead here,
/// and then a browser takes what it asks for the page's own; but the browser still says by which name it came.
fn refuse_foreign_names<S: Store>(shared: &Rest<S>, headers: &HeaderMap) -> Result<()> {
    if host(headers).is_some_and(|host| is_served_as(shared, &host)) {
        return Ok(());
    }
    Err(Error::Forbidden {
        detail: "without authentication the host must be localhost or that of an allowed origin".to_owned(),
    })
}

fn host(headers: &HeaderMap) -> Option<Authority> {
    headers.get(HOST)?.to_str().ok()?.parse().ok()
}

/// Whether a host is a name of this machine, or of an allowed origin.
fn is_served_as<S: Store>(shared: &Rest<S>, host: &Authority) -> bool {
    let host = host.host();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.to_canonical().is_loopback())
        || shared.settings.allowed_origins.iter().any(|allowed| allowed.host().eq_ignore_ascii_case(host))
}

/// Without authentication, a web page that the operator's browser shows must neither change nor read anything: a browser
/// sends requests to this machine for any page, and names the page's origin in `Origin`.
fn refuse_foreign_pages<S: Store>(shared: &Rest<S>, headers: &HeaderMap) -> Result<()> {
    if !headers.contains_key(ORIGIN) {
        return Ok(());
    }
    let host = host(headers).filter(|host| is_served_as(shared, host));
    let is_own = |origin: &str| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        host.as_ref().is_some_and(|host| authority.is_some_and(|own| host.as_str().eq_ignore_ascii_case(own)))
    };
    let is_allowed = |origin: &HeaderValue| {
        let allowed = |origin: &str| shared.settings.allowed_origins.iter().any(|own| own.as_str() == origin);
        origin.to_str().is_ok_and(|origin| is_own(origin) || allowed(origin))
    };
    if headers.get_all(ORIGIN).iter().all(is_allowed) {
        return Ok(());
    }
    Err(Error::Forbidden {
        detail: "web pages of this origin may not call; allow it in http.origins".to_owned(),
    })
}

/// Runs the route. Neither a panic nor a time-out takes the connection down with it.
async fn run<S: Store>(shared: &Rest<S>, endpoint: Endpoint, next: Next, request: Request) -> Response {
    let exchange = request.extensions().get::<Exchange>().cloned().unwrap_or_default();
    if endpoint.is_abandonable {
        exchange.abandon_with_client();
    }
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind();
    let answered = if endpoint.is_long {
        answer.await
    } else {
        match timeout(shared.settings.request_timeout, answer).await {
            Ok(answered) => answered,
            Err(_) if exchange.awaits_body() => return Failure(Error::RequestTimeout).into_response(),
            Err(_) => return Failure(Error::TimedOut).into_response(),
        }
    };
    answered.unwrap_or_else(|_| {
        Failure(Error::Storage { detail: "a request panicked".to_owned() }).into_response()
    })
}

/// Says what is left of the caller's budget, if it has a limit.
fn rate_limit_headers(budget: &Budget, headers: &mut HeaderMap) {
    let Some(state) = budget.state() else { return };
    headers.insert(RATE_LIMIT, u64::from(state.limit).into());
    headers.insert(RATE_LIMIT_REMAINING, u64::from(state.remaining).into());
    headers.insert(RATE_LIMIT_RESET, state.reset_seconds().into());
}
