//! Stands in front of every route and applies what its endpoint declares: admits callers, resolves the user that the request
//! is made for, charges its cost, bounds its time, and counts it. The handler gets the result as a [`Call`].

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::RequestExt;
use axum::extract::{RawPathParams, Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use kinfolk_core::comments::{Moderator, Parent, Viewer as CommentViewer};
use kinfolk_core::{Error, Frontier, Id, IdKind, Result};
use tokio::time::timeout;

use super::endpoint::{ActorRule, Admission, Carrier, Cost, Endpoint, TokenUse};
use super::exchange::Exchange;
use super::extract::{ACTOR, Call, TOKEN, User, header};
use super::output::Rule;
use super::problem::Failure;
use super::query::Query;
use super::request_id::RequestId;
use super::{Rest, Shared, Store};
use crate::access::{Caller, Identity, Scope};
use crate::console::cookies;
use crate::limits::{Budget, Taken};
use crate::metrics::Protocol;
use crate::service::Service;

/// Says how the page that sends a request is related to its target. Pages can't set it.
pub(crate) const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Says what a request is for: a page to show, or something that a page loads.
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const RATE_LIMIT_REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RATE_LIMIT_RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// The guard of a route.
pub(crate) async fn guard<S: Store>(
    State((shared, endpoint)): State<(Shared<S>, Endpoint)>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    tracing::Span::current().record("otel.name", endpoint.operation.name());
    let identified = match shared.door.service() {
        Some(service) => identify(&shared, service, endpoint, &request),
        None => Ok(None),
    };
    let response = match identified {
        Err(error) => Failure(error).into_response(),
        Ok(None) => run(&shared, endpoint, next, request).await,
        Ok(Some(Identified { service, caller })) => {
            let budget = Arc::clone(&caller.budget);
            let admitted = admit(&shared, service, caller, endpoint, request).await;
            let mut response = match admitted {
                Err(error) => Failure(error).into_response(),
                Ok(admitted) => respond(&shared, endpoint, next, admitted).await,
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

/// A request that its handler may see; its [`Call`] is among its extensions.
struct Admitted {
    request: Request,
    identity: Identity,
    /// The budgets of a new comment.
    comment: Option<Taken>,
}

/// Runs the route of an admitted request.
async fn respond<S: Store>(
    shared: &Rest<S>,
    endpoint: Endpoint,
    next: Next,
    Admitted { request, identity, comment }: Admitted,
) -> Response {
    let response = run(shared, endpoint, next, request).await;
    if let Some(taken) = comment.filter(|_| !may_be_written(&response)) {
        taken.give_back();
    }
    // A write was asked for room before it was applied, so that its response is never withheld.
    let rule = if endpoint.changes { Rule::Owed } else { Rule::Limited };
    let held = shared.output.hold_response(&identity, response, rule);
    held.unwrap_or_else(|error| Failure(error).into_response())
}

/// Marks the response to a comment that is new. What it took from its budgets stays taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IsNewComment;

/// Whether a new comment may have come of a request.
fn may_be_written(response: &Response) -> bool {
    let extensions = response.extensions();
    extensions.get::<IsNewComment>().is_some()
        || extensions.get::<Failure>().is_some_and(|Failure(error)| error.is_outcome_unknown())
}

/// Finds the caller, if the route needs one. Refuses what no route accepts.
fn identify<'a, S: Store>(
    shared: &Rest<S>,
    service: &'a Arc<Service<S>>,
    endpoint: Endpoint,
    request: &Request,
) -> Result<Option<Identified<'a, S>>> {
    let headers = request.headers();
    if service.access.is_open() {
        refuse_foreign_pages(shared, headers, endpoint)?;
    }
    if endpoint.carrier == Carrier::Cookies {
        if !request.method().is_safe() {
            refuse_other_pages(headers)?;
        } else if is_for_other_page(headers, endpoint) {
            return Err(Error::Forbidden {
                detail: "pages of other sites may only link to pages of the console".to_owned(),
            });
        }
    }
    if endpoint.admission == Admission::Everybody {
        // No credential is needed here, so an invalid one is ignored.
        if endpoint.carrier == Carrier::Headers
            && headers.contains_key(ACTOR)
            && let Ok(caller) = caller(service, headers)
        {
            refuse_other_actor(service, &caller, headers)?;
        }
        return Ok(None);
    }
    if service.access.is_open() {
        refuse_foreign_names(shared, headers)?;
    }
    let caller = match endpoint.carrier {
        Carrier::Headers => caller(service, headers)?,
        Carrier::Cookies => shared.console.caller(service, headers)?,
    };
    Ok(Some(Identified { service, caller }))
}

/// Refuses what the endpoint does not allow; charges what it costs.
async fn admit<S: Store>(
    shared: &Rest<S>,
    service: &Arc<Service<S>>,
    caller: Caller,
    endpoint: Endpoint,
    mut request: Request,
) -> Result<Admitted> {
    caller.admit(1)?;
    refuse_other_actor(service, &caller, request.headers())?;
    let scope =
        endpoint.admission.scope().ok_or(Error::Unauthenticated { detail: "this route has no caller" })?;
    let permit = caller.permit(scope)?;
    if let Admission::Services(_) = endpoint.admission {
        caller.require_service()?;
    }
    if let Some(capability) = endpoint.capability {
        service.require(capability)?;
    }
    if endpoint.changes {
        shared.output.require_room(&caller.identity)?;
    }
    let user = user(service.id_kind(), &caller, endpoint, &mut request).await?;
    let seen = seen(service, endpoint, request.headers())?;
    let comment = charge(service, endpoint, &user, &mut request).await?;
    let request_id = request.extensions().get::<RequestId>().cloned();
    let request_id = request_id.unwrap_or_else(|| shared.request_ids.of(request.headers()));
    let identity = caller.identity.clone();
    let (service, cost) = (Arc::clone(service), endpoint.cost);
    let call = Call { service, caller, permit, user, cost, seen, request_id };
    request.extensions_mut().insert(call);
    Ok(Admitted { request, identity, comment })
}

/// What the client has seen, if the endpoint takes a token.
fn seen<S: Store>(service: &Service<S>, endpoint: Endpoint, headers: &HeaderMap) -> Result<Frontier> {
    if endpoint.token == TokenUse::Ignored {
        return Ok(Frontier::default());
    }
    if endpoint.carrier == Carrier::Cookies {
        // One of another deployment on this machine, or from before a restore, says nothing here.
        let token = cookies::find(headers, cookies::TOKEN);
        return Ok(token.and_then(|token| service.frontier(token).ok()).unwrap_or_default());
    }
    header(headers, &TOKEN)?.map_or_else(|| Ok(Frontier::default()), |token| service.frontier(token))
}

/// The user that the request is made for, if the caller may make it.
async fn user(kind: IdKind, caller: &Caller, endpoint: Endpoint, request: &mut Request) -> Result<User> {
    if endpoint.actor == ActorRule::Anyone {
        return Ok(User::Unnamed);
    }
    let named = match (endpoint.carrier, endpoint.actor) {
        // Who moderates in the console does so in its own right, whichever user it acts as otherwise.
        (Carrier::Cookies, ActorRule::Moderator) => None,
        (Carrier::Cookies, _) => cookies::actor(request.headers(), kind),
        (Carrier::Headers, _) => {
            header(request.headers(), &ACTOR)?.map(|text| kind.parse(text)).transpose()?
        }
    };
    Ok(match endpoint.actor {
        ActorRule::Anyone => User::Unnamed,
        ActorRule::Actor => User::Actor(caller.actor(named)?),
        ActorRule::ActorInPath => {
            let of = path_id(kind, request).await?;
            let actor = caller.actor(named)?;
            if actor.id() != of {
                let detail = "a user changes only its own followers and suggestions".to_owned();
                return Err(Error::Forbidden { detail });
            }
            User::Actor(actor)
        }
        ActorRule::Author => {
            // A user who is named must be itself, also where the body names an author.
            named.map(|named| caller.actor(Some(named))).transpose()?;
            User::Author { named }
        }
        ActorRule::ViewerInPath => User::Viewer(caller.viewer(Some(path_id(kind, request).await?))?),
        ActorRule::Viewer => {
            named.map(|named| caller.viewer(Some(named))).transpose()?;
            let viewer = Query::of(request.uri()).id("viewer", kind)?;
            User::Viewer(caller.viewer(viewer.or(named))?)
        }
        ActorRule::CommentViewer | ActorRule::CommentOwner => {
            User::CommentViewer(comment_viewer(caller, named)?)
        }
        ActorRule::Moderator => User::Moderator(moderator(caller, named)?),
    })
}

/// Who reads comments: an end user is itself, a service may name a user, and then sees what that user does. Moderators see
/// more.
fn comment_viewer(caller: &Caller, named: Option<Id>) -> Result<CommentViewer> {
    let user = match caller.actor(named) {
        Err(Error::ActorRequired) => None,
        actor => Some(actor?.id()),
    };
    // A service that asks for a user must not show what that user may not see.
    let in_own_right = named.is_none() || matches!(caller.identity, Identity::User(_));
    Ok(CommentViewer { user, is_moderator: in_own_right && caller.holds(Scope::Moderate) })
}

/// Who moderates, as far as it is known: an end user is itself, a service may name a user, and is known by its key otherwise.
fn moderator(caller: &Caller, named: Option<Id>) -> Result<Option<Moderator>> {
    match (caller.actor(named), &caller.identity) {
        (Ok(user), _) => Ok(Some(Moderator::User(user.id()))),
        (Err(Error::ActorRequired), Identity::Service(key)) => Ok(Some(Moderator::Service(Arc::clone(key)))),
        (Err(Error::ActorRequired), _) => Ok(None),
        (Err(error), _) => Err(error),
    }
}

/// Charges what the actor pays. The caller has paid for the request, rows are charged when they are read, and a post when its
/// body has named its author.
async fn charge<S: Store>(
    service: &Service<S>,
    endpoint: Endpoint,
    user: &User,
    request: &mut Request,
) -> Result<Option<Taken>> {
    match (endpoint.cost, user) {
        (Cost::Change, User::Actor(actor)) => service.limits.take_changes(actor.id(), 1).map(|()| None),
        (Cost::Comment, User::Actor(author)) => {
            let parent = Parent::post(path_id(service.id_kind(), request).await?);
            service.limits.take_comment(author.id(), parent).map(Some)
        }
        _ => Ok(None),
    }
}

/// The first id of the path.
async fn path_id(kind: IdKind, request: &mut Request) -> Result<Id> {
    let not_text = |_| Error::InvalidRequest { detail: "the path is not valid UTF-8".to_owned() };
    let params: RawPathParams = request.extract_parts().await.map_err(not_text)?;
    let missing = || Error::NotFound { detail: "the path does not have its ids".to_owned() };
    let (_, text) = params.iter().next().ok_or_else(missing)?;
    kind.parse(text)
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
fn refuse_foreign_pages<S: Store>(shared: &Rest<S>, headers: &HeaderMap, endpoint: Endpoint) -> Result<()> {
    if !headers.contains_key(ORIGIN) {
        // An image or a frame has none.
        if endpoint.is_long && is_for_other_page(headers, endpoint) {
            return Err(Error::Forbidden {
                detail: "web pages of other sites may not begin this".to_owned(),
            });
        }
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

/// Whether a browser reads something for a page of another site, other than to show a page that it links to. Without this, any page
/// could begin backups and exports, as an image or in a frame.
fn is_for_other_page(headers: &HeaderMap, endpoint: Endpoint) -> bool {
    let is = |name: HeaderName, value: &str| headers.get(name).is_some_and(|given| given == value);
    let is_foreign = is(FETCH_SITE, "cross-site") || is(FETCH_SITE, "same-site");
    is_foreign && (endpoint.is_long || !is(FETCH_MODE, "navigate"))
}

/// What changes something through the console must come from one of its pages: a browser sends its cookies, and on this machine needs
/// none, whichever page makes it do so. It says whether that page is of this server; where it does not, it names the page's origin.
fn refuse_other_pages(headers: &HeaderMap) -> Result<()> {
    let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let authority = origin.and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
    let is_own = match site {
        Some(site) => site == b"same-origin",
        None => {
            authority.zip(host(headers)).is_some_and(|(own, host)| host.as_str().eq_ignore_ascii_case(own))
        }
    };
    if is_own {
        return Ok(());
    }
    Err(Error::Forbidden { detail: "this must be sent from a page of the console itself".to_owned() })
}

/// Runs the route. Neither a panic nor a time-out takes the connection down with it.
async fn run<S: Store>(shared: &Rest<S>, endpoint: Endpoint, next: Next, request: Request) -> Response {
    let exchange = request.extensions().get::<Exchange>().cloned().unwrap_or_default();
    if endpoint.is_abandonable {
        exchange.abandon_with_client();
    }
    let response = AssertUnwindSafe(next.run(request)).catch_unwind();
    let responded = if endpoint.is_long {
        response.await
    } else {
        match timeout(shared.settings.request_timeout, response).await {
            Ok(responded) => responded,
            Err(_) if exchange.awaits_body() => return Failure(Error::RequestTimeout).into_response(),
            Err(_) => return Failure(Error::TimedOut).into_response(),
        }
    };
    responded.unwrap_or_else(|_| {
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
